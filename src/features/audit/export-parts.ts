import { createHash } from 'node:crypto';
import { isRecord } from '../../contract/record.ts';
import type { AuditRecord } from './audit.schema.ts';
import { type ExportEnd, type ExportHeader, exportFormat, exportVersion, publicKeyOf } from './export-format.ts';

/** Why a file is not read further. */
export type ExportFaultKind = 'Altered' | 'Truncated' | 'Malformed' | 'UnknownVersion' | 'OtherKey' | 'Rewritten';

const lineFeed = 10;
// Far above any entry: what has no line feed for so long is another kind of file.
const maxLineBytes = 64 * 1_048_576;

export class ExportFault extends Error {
  readonly status: ExportFaultKind;

  constructor(status: ExportFaultKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ExportFault';
    this.status = status;
  }
}

/** Lines with their line feeds. A last line without one is not whole and is left out. */
const linesOf = async function* (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of bytes) {
    let at = 0;
    const all = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (let end = all.indexOf(lineFeed); end !== -1; end = all.indexOf(lineFeed, at)) {
      yield all.subarray(at, end + 1);
      at = end + 1;
    }
    rest = all.subarray(at);
    if (rest.length > maxLineBytes)
      throw new ExportFault('Malformed', 'The file is no audit export: its lines do not end.');
  }
};

type Members = Readonly<Record<string, unknown>>;

const parseLine = (line: Buffer, number: number): Members => {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    if (isRecord(value)) return value;
  } catch (cause) {
    throw new ExportFault('Malformed', `Line ${number} is not JSON.`, cause);
  }
  throw new ExportFault('Malformed', `Line ${number} is no JSON object.`);
};

const readHeader = (line: Members): ExportHeader => {
  if (line['format'] !== exportFormat) throw new ExportFault('Malformed', 'The file is no audit export.');
  if (line['version'] !== exportVersion)
    throw new ExportFault(
      'UnknownVersion',
      `The file has version ${JSON.stringify(line['version'])} of the format; this program reads ${exportVersion}.`,
    );
  if (typeof line['publicKey'] !== 'string' || typeof line['tenantId'] !== 'string')
    throw new ExportFault('Malformed', 'The first line names no tenant or no key.');
  return line as unknown as ExportHeader;
};

const isText = (value: unknown): boolean => typeof value === 'string';
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);

const readEntry = (line: Members, number: number, tenantId: string): AuditRecord => {
  const whole =
    ['id', 'tenantId', 'action', 'entity', 'createdAt', 'hash'].every((name) => isText(line[name])) &&
    ['actor', 'before', 'after', 'previousHash'].every((name) => isTextOrNull(line[name]));
  if (!whole) throw new ExportFault('Malformed', `Line ${number} is no audit entry.`);
  if (line['tenantId'] !== tenantId) throw new ExportFault('Altered', `Line ${number} is an entry of another tenant.`);
  return line as unknown as AuditRecord;
};

const readEnd = (line: Members): { end: ExportEnd; signature: string } => {
  const { end, signature } = line;
  if (typeof end !== 'object' || end === null || typeof signature !== 'string')
    throw new ExportFault('Malformed', 'The last line is no end of an export.');
  return { end: end as ExportEnd, signature };
};

export const signerOf = (publicKey: string) => {
  try {
    return publicKeyOf(publicKey);
  } catch (cause) {
    throw new ExportFault('Malformed', 'The key in the first line is no Ed25519 key.', cause);
  }
};

export interface SealedEnd {
  readonly end: ExportEnd;
  readonly signature: string;
  /** SHA-256 in hex of the lines before, as they are. */
  readonly sha256: string;
}

export type ExportPart =
  | { readonly header: ExportHeader }
  | { readonly entry: AuditRecord }
  | { readonly sealed: SealedEnd };

/** The parts of an export in their order: a header, entries, and an end after which nothing comes. */
export const readParts = async function* (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ExportPart, void> {
  const digest = createHash('sha256');
  let header: ExportHeader | null = null;
  let sealed: SealedEnd | null = null;
  let number = 0;
  for await (const line of linesOf(bytes)) {
    number += 1;
    if (sealed !== null) throw new ExportFault('Altered', 'Something follows the end of the export.');
    const members = parseLine(line, number);
    if (header === null) {
      header = readHeader(members);
      yield { header };
    } else if ('end' in members) {
      sealed = { ...readEnd(members), sha256: digest.digest('hex') };
      continue;
    } else yield { entry: readEntry(members, number, header.tenantId) };
    digest.update(line);
  }
  if (header === null) throw new ExportFault('Malformed', 'The file is empty, or has no whole line.');
  if (sealed === null)
    throw new ExportFault('Truncated', 'The file has no end: it was cut off, or did not arrive whole.');
  yield { sealed };
};
