import type { UploadedFile } from '../../contract/operation.ts';
import { isRecord } from '../../contract/record.ts';
import { maxDocumentBytes } from '../../contract/run-request.ts';
import type { Json } from '../../contract/schema.ts';
import { isAllowedType } from '../../core/media-types.ts';
import type { Part, SendMessageRequest } from './a2a.schema.ts';
import { A2AError } from './a2a-errors.ts';

/** A file that came with a message, before its bytes are looked at. */
export type SentFile = UploadedFile;

/** What a message has an agent do. */
export interface MessageContent {
  readonly text: string;
  readonly documents: { readonly name: string; readonly content: string }[];
  readonly files: readonly SentFile[];
  readonly parameters: Readonly<Record<string, string>> | null;
}

/** Stands for the text of a message that has none, since some models take no message without one. */
export const dataAlone = 'The data above is the whole message.';

const maxDocuments = 32;
const maxFiles = 32;

const invalid = (message: string): A2AError => new A2AError('InvalidParams', message);
const refused = (mediaType: string): A2AError =>
  new A2AError('ContentTypeNotSupported', 'A part has a media type that the agent does not take.', {
    metadata: { mediaType: mediaType.slice(0, 128) },
  });

const essence = (mediaType: string): string => (mediaType.split(';')[0] ?? '').trim().toLowerCase();
const isText = (mediaType: string): boolean => mediaType.startsWith('text/');
const isJson = (mediaType: string): boolean => mediaType === 'application/json' || mediaType.endsWith('+json');
/** What a sender says that does not know. */
const unknownType = 'application/octet-stream';

/** What the bytes are is found out later; what they are called must be a type that is taken, too. */
const assertType = ({ text, data, mediaType = '' }: Part, allowed: readonly string[]): void => {
  const type = essence(mediaType);
  if (type === '' || isText(type)) return;
  if (isJson(type) && (text !== undefined || data !== undefined || isAllowedType('text/plain', allowed))) return;
  if (text === undefined && data === undefined && (type === unknownType || isAllowedType(type, allowed))) return;
  throw refused(mediaType);
};

const kinds = ['text', 'raw', 'url', 'data'] as const;

/** With content of another kind, null data mean that there are none. */
const kindsOf = (part: Part): readonly string[] => {
  const named = kinds.filter((kind) => part[kind] !== undefined);
  return named.length > 1 && part.data === null ? named.filter((kind) => kind !== 'data') : named;
};

const whole = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
};

const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

const fileOf = (raw: string, name: string | undefined): SentFile => {
  if (!base64.test(raw)) throw invalid('A raw part must be base64.');
  return { name: name === undefined || name === '' ? null : name, bytes: whole(Buffer.from(raw, 'base64')) };
};

const documentOf = (data: Json, nth: number): MessageContent['documents'][number] => {
  const content = JSON.stringify(data);
  if (Buffer.byteLength(content) > maxDocumentBytes)
    throw invalid(`A data part is longer than ${maxDocumentBytes} bytes.`);
  return { name: `data-${nth}.json`, content };
};

const parametersOf = ({ metadata }: SendMessageRequest): MessageContent['parameters'] => {
  const given = metadata?.['acp.parameters'];
  if (given === undefined || given === null) return null;
  if (isRecord(given) && Object.values(given).every((value) => typeof value === 'string'))
    return given as Record<string, string>;
  throw invalid('metadata["acp.parameters"] must be an object of texts.');
};

/**
 * The parts of a message as a run takes them. Throws -32602 for what is malformed and for a message that says nothing,
 * -32005 for what the agent does not take; no file is kept by then.
 */
export const messageContent = (request: SendMessageRequest, allowedMediaTypes: readonly string[]): MessageContent => {
  const { message } = request;
  if (message.role !== 'ROLE_USER') throw invalid('message.role must be that of the user.');
  const texts: string[] = [];
  const documents: MessageContent['documents'] = [];
  const files: SentFile[] = [];
  for (const part of message.parts) {
    if (kindsOf(part).length !== 1) throw invalid(`A part must have exactly one of ${kinds.join(', ')}.`);
    if (part.url !== undefined)
      throw new A2AError('ContentTypeNotSupported', 'A part with a url is not fetched: send its content.');
    assertType(part, allowedMediaTypes);
    if (part.text !== undefined) texts.push(part.text);
    else if (part.raw !== undefined) files.push(fileOf(part.raw, part.filename));
    else documents.push(documentOf(part.data ?? null, documents.length + 1));
  }
  const text = texts.join('\n\n');
  if (text.trim() === '' && documents.length === 0) throw invalid('The message has neither text nor data.');
  if (documents.length > maxDocuments) throw invalid(`The message has more than ${maxDocuments} data parts.`);
  if (files.length > maxFiles) throw invalid(`The message has more than ${maxFiles} raw parts.`);
  return { text: text.trim() === '' ? dataAlone : text, documents, files, parameters: parametersOf(request) };
};

/** Whether the agent can answer in one of the modes that a caller takes; none named: in any. */
export const assertOutputModes = (accepted: readonly string[] | undefined, modes: readonly string[]): void => {
  if (accepted === undefined || accepted.length === 0) return;
  const answers = accepted.map(essence).some((mode) => mode === '*/*' || modes.includes(mode));
  if (!answers)
    throw new A2AError('ContentTypeNotSupported', `The agent answers in ${modes.join(', ')}.`, {
      reason: 'OUTPUT_MODES_NOT_SUPPORTED',
    });
};

/** Extensions that a message cannot do without: entries that are objects which say so. Plain names are ignored. */
export const requiredExtensions = ({ message }: SendMessageRequest): readonly string[] =>
  (message.extensions ?? []).flatMap((entry) =>
    isRecord(entry) && entry['required'] === true && typeof entry['uri'] === 'string' ? [entry['uri']] : [],
  );
