/** An attachment as a message names it. What it holds is looked up when a run starts. */
export interface AttachmentReference {
  readonly attachmentId: string;
  readonly mediaType: string;
  readonly fileName: string;
}

/** What the model gets: text as a document, everything else as one base64 text that all model calls of all runs share. */
export type AttachmentContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly base64: string }
  /** Of a repeated run: the text as it goes into the prompt. */
  | { readonly kind: 'sent'; readonly text: string };

/** Contents by attachment id, held for one run. */
export interface LoadedAttachments {
  get(attachmentId: string): AttachmentContent | undefined;
  release(): void;
}

export interface AttachmentRequest {
  readonly tenantId: string;
  readonly sessionId: string | null;
  /** Named by the run itself: each must be there. */
  readonly named: readonly AttachmentReference[];
  /** Named by earlier turns: one that is gone is left out. */
  readonly earlier: readonly AttachmentReference[];
  readonly signal: AbortSignal;
}

export interface RunAttachments {
  /**
   * Reads what a run needs, waiting while other runs hold too much, and gives attachments without a session the run's.
   * Throws RunFailure `attachment_not_found`, or `attachment_too_large` for more than a model call can carry.
   */
  load(request: AttachmentRequest): Promise<LoadedAttachments>;
}

/** For runs without any. */
export const noAttachments: LoadedAttachments = { get: () => undefined, release: () => undefined };
