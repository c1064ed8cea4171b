import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import { type ContentPlace, type ContentStore, contentPlace } from '../../db/content/store.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { AttachmentContent, AttachmentReference, RunAttachments } from '../../engine/context/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { AttachmentAccess } from './attachment-access.ts';
import type { AttachmentStore } from './attachments.store.ts';
import { createMemoryGate } from './memory-gate.ts';

// What the runs of a process hold of attachments at one time. A call carries it as base64 inside a JSON text that is
// sent as bytes, so that the process needs some four times as much at worst.
const heldBytes = 67_108_864;
// Base64 and the JSON around it are one string, which the engine of the language limits to 512 MiB.
const maxCallBytes = 335_544_320;

export interface AttachmentMeasure {
  readonly texts: readonly { readonly name: string; readonly content: string }[];
  readonly others: number;
}

interface RunAttachmentDeps {
  readonly store: AttachmentStore;
  readonly content: Pick<ContentStore, 'read'>;
  readonly access: AttachmentAccess;
}

const textType = 'text/plain';

const notFound = (id: string): AcpError =>
  new AcpError('attachment-not-found', `Attachment ${id} was not found.`, {
    details: { errors: [{ path: 'attachmentIds', message: `has ${id}, which was not found` }] },
  });

const toReference = (row: AttachmentRow): AttachmentReference => ({
  attachmentId: row.id,
  mediaType: row.media_type,
  fileName: row.file_name,
});

// The first bytes were valid when the type was found; what follows may be anything, and becomes U+FFFD.
const decoded = (bytes: Uint8Array): string => new TextDecoder('utf-8').decode(bytes);

const toContent = (mediaType: string, bytes: Uint8Array): AttachmentContent =>
  mediaType === textType
    ? { kind: 'text', text: decoded(bytes) }
    : { kind: 'binary', base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };

/** Contents that runs use now, each once, however many runs use it. */
const createSharedContents = (content: Pick<ContentStore, 'read'>) => {
  const used = new Map<ContentPlace, { users: number; readonly content: Promise<AttachmentContent | null> }>();
  const read = async (place: ContentPlace, mediaType: string): Promise<AttachmentContent | null> => {
    const bytes = await content.read(place);
    return bytes === null ? null : toContent(mediaType, bytes);
  };
  return {
    take(row: AttachmentRow): { readonly content: Promise<AttachmentContent | null>; release(): void } {
      const place = contentPlace(row.tenant_id, row.sha256);
      const entry = used.get(place) ?? { users: 0, content: read(place, row.media_type) };
      // Told to those who wait for it, one after another; until then it is nobody's failure.
      entry.content.catch(() => undefined);
      entry.users += 1;
      used.set(place, entry);
      return {
        content: entry.content,
        release() {
          entry.users -= 1;
          if (entry.users === 0) used.delete(place);
        },
      };
    },
  };
};

/** What the rest of the service needs of attachments to start runs. */
export const createRunAttachments = ({ store, content, access }: RunAttachmentDeps) => {
  const gate = createMemoryGate(heldBytes);
  const shared = createSharedContents(content);

  const rowsOf = async (tenantId: string, references: readonly AttachmentReference[]) => {
    const ids = [...new Set(references.map(({ attachmentId }) => attachmentId))];
    return new Map((await store.getAll(tenantId, ids)).map((row) => [row.id, row]));
  };
  /** In the order of the ids, each once. */
  const namedRows = async (tenantId: string, names: readonly string[], sessionId: string | null) => {
    const ids = [...new Set(names.map((id) => id.toLowerCase()))];
    const rows = new Map((await store.getAll(tenantId, ids)).map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = rows.get(id);
      if (row === undefined || (row.session_id !== null && row.session_id !== sessionId)) throw notFound(id);
      return row;
    });
  };
  const gone = (): RunFailure =>
    new RunFailure('Infrastructure', 'attachment_not_found', 'An attachment of the run was deleted before it started.');
  /** Deleted since its row was read, or damage, of which the log names the file. */
  const withoutBytes = async (tenantId: string, row: AttachmentRow): Promise<RunFailure> => {
    if ((await store.get(tenantId, row.id)) === undefined) return gone();
    const cause = new Error(`There is no file ${contentPlace(tenantId, row.sha256)}`);
    return new RunFailure(
      'Infrastructure',
      'attachment_unavailable',
      'The bytes of an attachment of the run are missing from the store.',
      { cause },
    );
  };

  return {
    /**
     * The attachments that a request names, in its order, each once. Throws `attachment-not-found` for one that is
     * unknown, not the caller's to see, or of another session.
     */
    async named(context: CallContext, ids: readonly string[], sessionId: string | null) {
      const rows = await namedRows(context.tenantId, ids, sessionId);
      for (const row of rows) if (!(await access.may(context, 'Read', row))) throw notFound(row.id);
      return rows.map(toReference);
    },
    /** The same for a run that was accepted before: who may see what was asked then. */
    async stillThere(tenantId: string, ids: readonly string[], sessionId: string | null) {
      return (await namedRows(tenantId, ids, sessionId)).map(toReference);
    },

    /** What an estimate counts: texts as they are, and how many others there are. Attachments that are gone are left out. */
    async measure(tenantId: string, references: readonly AttachmentReference[]): Promise<AttachmentMeasure> {
      const rows = await rowsOf(tenantId, references);
      const texts: { name: string; content: string }[] = [];
      let others = 0;
      for (const { attachmentId } of references) {
        const row = rows.get(attachmentId);
        if (row === undefined) continue;
        if (row.media_type !== textType) others += 1;
        else {
          const bytes = await content.read(contentPlace(tenantId, row.sha256));
          if (bytes !== null) texts.push({ name: row.file_name, content: decoded(bytes) });
        }
      }
      return { texts, others };
    },

    async load(turn: Parameters<RunAttachments['load']>[0]): ReturnType<RunAttachments['load']> {
      const { tenantId, sessionId, named, earlier, signal } = turn;
      const rows = await rowsOf(tenantId, [...named, ...earlier]);
      if (named.some(({ attachmentId }) => !rows.has(attachmentId))) throw gone();
      const bytes = [...rows.values()].reduce((sum, row) => sum + row.byte_size, 0);
      if (bytes > maxCallBytes)
        throw new RunFailure(
          'ProviderError',
          'attachment_too_large',
          `The attachments of the run have ${bytes} bytes together; a model call can carry ${maxCallBytes}.`,
        );
      if (sessionId !== null)
        await store.link(
          tenantId,
          named.map(({ attachmentId }) => attachmentId),
          sessionId,
        );
      const giveBack = await gate.take(bytes, signal);
      const taken = [...rows.values()].map((row) => ({ id: row.id, ...shared.take(row) }));
      const release = (): void => {
        for (const entry of taken.splice(0)) entry.release();
        giveBack();
      };
      try {
        const contents = new Map<string, AttachmentContent>();
        for (const entry of taken) {
          const loaded = await entry.content;
          if (loaded !== null) contents.set(entry.id, loaded);
        }
        for (const { attachmentId } of named) {
          const row = rows.get(attachmentId);
          if (row !== undefined && !contents.has(attachmentId)) throw await withoutBytes(tenantId, row);
        }
        return {
          get: (attachmentId) => contents.get(attachmentId),
          release() {
            contents.clear();
            release();
          },
        };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
};

export type RunAttachmentPort = ReturnType<typeof createRunAttachments>;
