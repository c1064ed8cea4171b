import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/documents/canonical-json.ts';

/** An entry as it is hashed. `createdAt` is RFC 3339 in UTC with milliseconds. */
export interface ChainedFields {
  readonly id: string;
  readonly tenantId: string;
  readonly actor: string | null;
  readonly action: string;
  readonly entity: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly createdAt: string;
  readonly previousHash: string | null;
}

/** SHA-256 in lower-case hex of the entry's canonical JSON (RFC 8785). */
export const entryHash = (entry: ChainedFields): string => {
  const { id, tenantId, actor, action, entity, before, after, createdAt, previousHash } = entry;
  const fields = { id, tenantId, actor, action, entity, before, after, createdAt, previousHash };
  return createHash('sha256').update(canonicalJson(fields)).digest('hex');
};

/**
 * The proposed id, or one that sorts right behind the newest when the clock was set back or another process is ahead:
 * the order of ids is the order of the chain. Both are UUID version 7.
 */
export const idAfter = (newest: string | null, proposed: string): string => {
  if (newest === null || proposed > newest) return proposed;
  const nextMs = (Number.parseInt(newest.slice(0, 8) + newest.slice(9, 13), 16) + 1).toString(16).padStart(12, '0');
  return `${nextMs.slice(0, 8)}-${nextMs.slice(8)}${proposed.slice(13)}`;
};
