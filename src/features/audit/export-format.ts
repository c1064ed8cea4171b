import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { ChainHead } from './chain-check.rules.ts';

/** See docs/audit.md. A reader of another version refuses the file. */
export const exportFormat = 'acp-audit-export';
export const exportVersion = 1;

/** The first line. */
export interface ExportHeader {
  readonly format: typeof exportFormat;
  readonly version: number;
  readonly product: string;
  readonly tenantId: string;
  readonly createdAt: string;
  /** RFC 3339; null: no bound. */
  readonly after: string | null;
  readonly before: string | null;
  /** Base64 of the 32 bytes of the Ed25519 key. */
  readonly publicKey: string;
  readonly fingerprint: string;
}

/** What the last line signs: `{"end": …, "signature": …}`. */
export interface ExportEnd {
  readonly entries: number;
  readonly firstId: string | null;
  readonly lastId: string | null;
  readonly lastHash: string | null;
  /** What the store says of the end of the chain; null where the file does not reach it. */
  readonly chain: ChainHead | null;
  /** SHA-256 in hex of every line before this one, line feeds included. */
  readonly sha256: string;
}

const rawKeyBytes = 32;
// An SPKI structure of Ed25519 (RFC 8410) is this prefix and the 32 bytes.
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

export const rawPublicKey = (key: KeyObject): Buffer =>
  Buffer.from(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-rawKeyBytes));

/** Throws for what is no Ed25519 key. */
export const publicKeyOf = (base64: string): KeyObject => {
  const raw = Buffer.from(base64, 'base64');
  if (raw.length !== rawKeyBytes) throw new TypeError('An Ed25519 key has 32 bytes.');
  return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' });
};

/** As `ssh-keygen -l` writes it: `SHA256:` and unpadded base64. */
export const fingerprintOf = (base64: string): string =>
  `SHA256:${createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64').replaceAll('=', '')}`;

// Names what is signed, so that a signature of another purpose of the same key never fits.
const signed = (end: ExportEnd): Buffer =>
  Buffer.from(`${exportFormat}:${exportVersion}\n${canonicalJson({ ...end } as never)}`);

export const signEnd = (end: ExportEnd, key: KeyObject): string => sign(null, signed(end), key).toString('base64');

export const isSignedBy = (end: ExportEnd, signature: string, key: KeyObject): boolean =>
  verify(null, signed(end), key, Buffer.from(signature, 'base64'));
