import { createHash } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import type { UploadedFile } from '../../contract/operation.ts';
import { isAllowedType } from '../../core/media-types.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { type ContentDraft, type ContentStore, contentPlace } from '../../db/content/store.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import { attachmentStore } from './attachments.store.ts';
import { hasVideoTrack } from './container-tracks.ts';
import { attachmentName } from './file-name.rules.ts';
import { type DetectedType, detectionBytes, detectMediaType } from './media-type.rules.ts';

export interface AttachmentLimits {
  readonly maxBytes: number;
  readonly allowedMediaTypes: readonly string[];
}

export interface IntakeDeps {
  readonly content: ContentStore;
  readonly limits: AttachmentLimits;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Whose file it is, and what made it. */
export interface AttachmentOrigin {
  readonly tenantId: string;
  readonly sessionId: string | null;
  readonly runId: string | null;
  readonly createdBy: string | null;
  readonly userId: string | null;
  readonly ownerId: string | null;
}

const notAllowed = (shownType: string): AcpError =>
  new AcpError('media-type-not-allowed', `The file is of the type ${shownType}, which is not allowed here.`);

/** What is known of the bytes once they have all been written to a draft. */
interface Received {
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly detected: DetectedType;
}

const checkType = async (head: Uint8Array, limits: AttachmentLimits): Promise<DetectedType> => {
  const detected = await detectMediaType(head);
  if (detected.mediaType === null || !isAllowedType(detected.mediaType, limits.allowedMediaTypes))
    throw notAllowed(detected.shownType);
  return detected;
};

const writeDraft = async (
  bytes: AsyncIterable<Uint8Array>,
  draft: ContentDraft,
  limits: AttachmentLimits,
): Promise<Received> => {
  const hash = createHash('sha256');
  const head: Uint8Array[] = [];
  let sizeBytes = 0;
  let detected: DetectedType | null = null;
  for await (const chunk of bytes) {
    if (chunk.byteLength === 0) continue;
    if (sizeBytes + chunk.byteLength > limits.maxBytes)
      throw new AcpError('attachment-too-large', `The file is larger than ${limits.maxBytes} bytes.`);
    if (detected === null) head.push(Uint8Array.from(chunk.subarray(0, detectionBytes - sizeBytes)));
    sizeBytes += chunk.byteLength;
    if (detected === null && sizeBytes >= detectionBytes) detected = await checkType(Buffer.concat(head), limits);
    hash.update(chunk);
    await draft.write(chunk);
  }
  if (sizeBytes === 0) throw new AcpError('file-empty', 'The file is empty.');
  return {
    sizeBytes,
    sha256: hash.digest('hex'),
    detected: detected ?? (await checkType(Buffer.concat(head), limits)),
  };
};

const reasons: Readonly<Record<string, 'size' | 'type' | 'empty'>> = {
  'attachment-too-large': 'size',
  'media-type-not-allowed': 'type',
  'file-empty': 'empty',
};

/** What is kept, by its type, and what the rules refuse. */
const intakeMetrics = ({ metrics }: Pick<Telemetry, 'metrics'>) => {
  const stored = metrics.counter('acp.attachments.stored', 'Bytes of attachments that were stored.', 'By', [
    'acp.attachment.media_type',
  ]);
  const refused = metrics.counter('acp.attachments.refused', 'Files that were refused.', '{file}', [
    'acp.attachment.reason',
  ]);
  return {
    stored: (row: AttachmentRow): void => stored.add(row.byte_size, [row.media_type]),
    failed(error: unknown): void {
      const reason = error instanceof AcpError ? reasons[error.code] : undefined;
      if (reason !== undefined) refused.add(1, [reason]);
    },
  };
};

/** The one way in for files, of callers and of tools: never more than a piece of a file is in memory. */
export const createAttachmentIntake = ({ content, limits, telemetry, now, newId }: IntakeDeps) => {
  const metrics = intakeMetrics(telemetry);
  const keep = (draft: ContentDraft, row: AttachmentRow): Promise<void> =>
    content.keep(draft, contentPlace(row.tenant_id, row.sha256), (stores) => stores(attachmentStore).insert(row));
  return {
    /**
     * Reads a file to its end and keeps it. Throws `file-empty`, `attachment-too-large` or `media-type-not-allowed` as
     * soon as that is known, and then reads no further and keeps nothing.
     */
    async receive(file: UploadedFile, origin: AttachmentOrigin): Promise<AttachmentRow> {
      const draft = await content.draft();
      try {
        const { sizeBytes, sha256, detected } = await writeDraft(file.bytes, draft, limits);
        const { mediaType, container } = detected;
        if (mediaType === null) throw notAllowed(detected.shownType);
        if (container !== null && (await hasVideoTrack(container, (at, length) => draft.read(at, length), sizeBytes)))
          throw notAllowed(`video/${container}`);
        const row: AttachmentRow = {
          id: newId(),
          tenant_id: origin.tenantId,
          session_id: origin.sessionId,
          run_id: origin.runId,
          file_name: attachmentName(file.name, mediaType),
          media_type: mediaType,
          byte_size: sizeBytes,
          sha256,
          created_by: origin.createdBy,
          user_id: origin.userId,
          owner_id: origin.ownerId,
          created_at: now(),
        };
        await keep(draft, row);
        metrics.stored(row);
        return row;
      } catch (error) {
        metrics.failed(error);
        throw error;
      } finally {
        await draft.discard();
      }
    },
  };
};

export type AttachmentIntake = ReturnType<typeof createAttachmentIntake>;
