import { AcpError, type ErrorCode, invalidField } from '../../contract/errors.ts';
import type { UploadedFile } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';
import type { AttachmentReference } from '../../engine/context/index.ts';
import { maxEntries, maxFiles } from './openai.schema.ts';

/** A file of a request: an attachment by its id, or bytes in base64. */
export type GivenFile =
  | { readonly id: string; readonly path: string }
  | { readonly base64: string; readonly name: string | null; readonly path: string };

/** What one message says: its text, and files in their order. */
export interface GivenParts {
  readonly text: string;
  readonly files: readonly GivenFile[];
}

/** A message of a conversation that a caller keeps, before its run has an id. */
export type GivenMessage =
  | ({ readonly role: 'User' } & GivenParts)
  | { readonly role: 'Assistant'; readonly text: string; readonly calls: readonly GivenCall[] }
  | { readonly role: 'Tool'; readonly callId: string; readonly toolName: string; readonly result: string };

export interface GivenCall {
  readonly callId: string;
  readonly toolName: string;
  readonly arguments: Json;
}

/** Counts what the messages of one request hold together, and refuses more of it than a request may have. */
export class GivenTotals {
  #parts = 0;
  #calls = 0;
  #files = 0;

  /** Before the parts of a content are read. */
  parts(content: unknown, path: string): void {
    this.#parts += Array.isArray(content) ? content.length : 0;
    if (this.#parts > maxEntries) throw invalidField(path, `is beyond the ${maxEntries} parts that a request may have`);
  }

  calls(count: number, path: string): void {
    this.#calls += count;
    if (this.#calls > maxEntries) throw invalidField(path, `is beyond the ${maxEntries} calls that a request may have`);
  }

  files(count: number, path: string): void {
    this.#files += count;
    if (this.#files > maxFiles) throw invalidField(path, `is beyond the ${maxFiles} files that a request may have`);
  }
}

const dataUrl = /^data:[^,]*?;base64,/i;

/** The base64 of a `data:` URL. Any other address is refused: nothing is fetched. */
const inlineOf = (url: string, path: string): string => {
  const head = dataUrl.exec(url)?.[0];
  if (head === undefined) throw invalidField(path, 'must be a data: URL in base64, since no address is fetched');
  return url.slice(head.length);
};

interface FileMembers {
  readonly id?: string | null | undefined;
  readonly url?: string | null | undefined;
  readonly data?: string | null | undefined;
  readonly name?: string | null | undefined;
}

/**
 * A file that is named as `file_id`, or that comes with the request in the member that `inline` names; some clients write its
 * base64 without the head of a URL.
 */
export const fileOf = ({ id, url, data, name }: FileMembers, part: string, inline: string): GivenFile => {
  if (typeof id === 'string' && id !== '') return { id, path: `${part}.file_id` };
  const path = `${part}.${inline}`;
  if (typeof url === 'string') return { base64: inlineOf(url, path), name: name ?? null, path };
  if (typeof data !== 'string') throw invalidField(path, 'is required, or file_id');
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

/** What is wrong with the bytes of a file, which its error does not say of which one. */
const problems: Readonly<Partial<Record<ErrorCode, string>>> = {
  'file-empty': 'has no bytes',
  'attachment-too-large': 'has too many bytes',
  'media-type-not-allowed': 'is of a type that is not allowed',
};

const atPath = (error: unknown, path: string): unknown => {
  const problem = error instanceof AcpError ? problems[error.code] : undefined;
  if (!(error instanceof AcpError) || problem === undefined) return error;
  const details = { ...error.details, errors: [{ path, message: problem }] };
  return new AcpError(error.code, error.message, { cause: error, details });
};

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
    return keep(context, file, sessionId, runId).catch((error: unknown) => {
      throw atPath(error, path);
    });
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
