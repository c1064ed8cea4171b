/** A request that its caller may send again, under one key. */
export interface KeyedRequest {
  readonly key: string;
  readonly tenantId: string;
  readonly method: string;
  readonly path: string;
  /** As received; in process as it would be sent. */
  readonly body: Uint8Array | string;
}

/**
 * Gives the answer of the first request with this key, or has the request answered now and keeps that. `ownerId`: whose
 * the answer is; what one owner has asked is never answered to another. Null: nobody's.
 */
export type AnswerOnce = <R extends { readonly status: number }>(
  ownerId: string | null,
  answer: () => Promise<R>,
) => Promise<R>;

/** The place of idempotency in the pipeline. Throws for a key that is not valid, in use, or was used for something else. */
export type Idempotency = (request: KeyedRequest) => AnswerOnce;

export const idempotencyHeader = 'idempotency-key';
