import { AcpError, invalidField } from '../../contract/errors.ts';
import type { UploadedFile } from '../../contract/operation.ts';
import type { CallContext } from '../../core/context.ts';
import type { AttachmentReference } from '../../engine/context/index.ts';

/** A file of a request: an attachment by its id, or bytes in base64. */
export type GivenFile =
  | { readonly id: string; readonly path: string }
  | { readonly base64: string; readonly name: string | null; readonly path: string };

/** What one message says: its text, and files in their order. */
export interface GivenParts {
  readonly text: string;
  readonly files: readonly GivenFile[];
}

const dataUrl = /^data:[^,]*?;base64,/i;

/** The base64 of a `data:` URL. Any other address is refused: nothing is fetched. */
const inlineOf = (url: string, path: string): string => {
  const head = dataUrl.exec(url)?.[0];
  if (head === undefined) throw invalidField(path, 'must be a data: URL in base64, since no address is fetched');
  return url.slice(head.length);
};

/** A file that is named, or that comes with the request; some clients write its base64 without the head of a URL. */
export const fileOf = (
  { id, url, data, name }: { id?: string | null; url?: string | null; data?: string | null; name?: string | null },
  path: string,
): GivenFile => {
  if (typeof id === 'string' && id !== '') return { id, path };
  if (typeof url === 'string') return { base64: inlineOf(url, path), name: name ?? null, path };
  if (typeof data !== 'string') throw invalidField(path, 'must have an id or data');
  return { base64: data.startsWith('data:') ? inlineOf(data, path) : data, name: name ?? null, path };
};

const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

export interface GivenFileDeps {
  /** Keeps a file, whose type and size the rules of attachments decide. */
  readonly keep: (
    context: CallContext,
    file: UploadedFile,
    sessionId: string | null,
    runId: string,
  ) => Promise<AttachmentReference>;
  readonly named: (
    context: CallContext,
    ids: readonly string[],
    sessionId: string | null,
  ) => Promise<readonly AttachmentReference[]>;
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Files of a request as attachments, which a run and its history name. */
export const createGivenFiles = ({ keep, named }: GivenFileDeps) => {
  const inline = (
    context: CallContext,
    { base64, name, path }: Extract<GivenFile, { base64: string }>,
    sessionId: string | null,
    runId: string,
  ): Promise<AttachmentReference> => {
    const text = base64.replaceAll(/\s/g, '');
    if (!isBase64(text)) throw invalidField(path, 'is not valid base64');
    const bytes = Buffer.from(text, 'base64');
    const file: UploadedFile = {
      name,
      bytes: (async function* () {
        yield bytes;
      })(),
    };
    return keep(context, file, sessionId, runId);
  };
  return async (
    context: CallContext,
    files: readonly GivenFile[],
    sessionId: string | null,
    runId: string,
  ): Promise<readonly AttachmentReference[]> => {
    const references: AttachmentReference[] = [];
    for (const file of files) {
      if (!('id' in file)) {
        references.push(await inline(context, file, sessionId, runId));
        continue;
      }
      const [reference] = uuid.test(file.id) ? await named(context, [file.id], sessionId) : [];
      if (reference === undefined)
        throw new AcpError('attachment-not-found', `Attachment ${file.id} was not found.`, {
          details: { errors: [{ path: file.path, message: 'names no attachment' }] },
        });
      references.push(reference);
    }
    return references;
  };
};

export type GivenFiles = ReturnType<typeof createGivenFiles>;
