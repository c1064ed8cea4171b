import { createHash, type KeyObject } from 'node:crypto';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import { version as productVersion } from '../../core/version.ts';
import type { AuditRange, AuditReadingStore } from './audit-reading.store.ts';
import { walkChain } from './chain-walk.ts';
import {
  type ExportEnd,
  type ExportHeader,
  exportFormat,
  exportVersion,
  fingerprintOf,
  rawPublicKey,
  signEnd,
} from './export-format.ts';

export interface ExportRequest {
  readonly tenantId: string;
  readonly range: AuditRange;
  readonly key: KeyObject;
  /** Epoch milliseconds. */
  readonly now: number;
}

// Small lines are sent together: a write of its own for each would cost more than the line.
const chunkBytes = 65_536;

const headerOf = ({ tenantId, range, key, now }: ExportRequest): ExportHeader => {
  const publicKey = rawPublicKey(key).toString('base64');
  return {
    format: exportFormat,
    version: exportVersion,
    product: `acp/${productVersion}`,
    tenantId,
    createdAt: isoTime(now),
    after: isoTimeOrNull(range.after),
    before: isoTimeOrNull(range.before),
    publicKey,
    fingerprint: fingerprintOf(publicKey),
  };
};

/** The bytes of a signed export, entry by entry: a trail of any length takes the same memory. */
export const writeExport = async function* (
  store: AuditReadingStore,
  request: ExportRequest,
): AsyncGenerator<Uint8Array, void> {
  const digest = createHash('sha256');
  let waiting = '';
  const add = (line: object): void => {
    waiting += `${JSON.stringify(line)}\n`;
  };
  const flush = (): Uint8Array => {
    const bytes = Buffer.from(waiting);
    waiting = '';
    digest.update(bytes);
    return bytes;
  };
  add(headerOf(request));
  const walk = walkChain(store, request.tenantId, request.range);
  let [entries, firstId, lastId, lastHash]: [number, string | null, string | null, string | null] = [
    0,
    null,
    null,
    null,
  ];
  for await (const entry of walk.entries) {
    add(entry);
    entries += 1;
    firstId ??= entry.id;
    [lastId, lastHash] = [entry.id, entry.hash];
    if (waiting.length >= chunkBytes) yield flush();
  }
  yield flush();
  // With an upper bound the file ends before the chain may.
  const chain = request.range.before === null ? walk.head() : null;
  const end: ExportEnd = { entries, firstId, lastId, lastHash, chain, sha256: digest.digest('hex') };
  yield Buffer.from(`${JSON.stringify({ end, signature: signEnd(end, request.key) })}\n`);
};
