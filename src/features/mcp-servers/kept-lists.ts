import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { WholeList } from '../../providers/mcp/lists.ts';

interface KeptList {
  /** Of the record and the credential that it was answered for. */
  readonly mark: string;
  readonly until: number;
  readonly entries: readonly unknown[];
}

// Lists that are larger are asked for again; of many the oldest goes.
const maxBytes = 262_144;
const maxLists = 200;
const longestMs = 24 * 60 * 60 * 1000;

/**
 * Lists that servers have said how long they hold. Each is kept for one record, which is one tenant's, and for the credential
 * that it was asked with, whether or not the server calls it private: nobody else is shown it.
 */
export const createKeptLists = (now: () => number) => {
  const kept = new Map<string, KeptList>();
  return {
    /** `credential`: what stands for the one that is sent. */
    async list(
      { id, updated_at: savedAt }: Pick<McpServerRow, 'id' | 'updated_at'>,
      kind: string,
      credential: string,
      ask: () => Promise<Pick<WholeList, 'entries' | 'ttlMs'>>,
    ): Promise<readonly unknown[]> {
      const key = `${id} ${kind}`;
      const mark = `${savedAt} ${credential}`;
      const known = kept.get(key);
      if (known !== undefined && known.mark === mark && known.until > now()) return known.entries;
      kept.delete(key);
      const askedAt = now();
      const { entries, ttlMs } = await ask();
      if (ttlMs === null || ttlMs === 0 || Buffer.byteLength(JSON.stringify(entries)) > maxBytes) return entries;
      const [oldest] = kept.keys();
      if (kept.size >= maxLists && oldest !== undefined) kept.delete(oldest);
      kept.set(key, { mark, until: askedAt + Math.min(ttlMs, longestMs), entries });
      return entries;
    },
  };
};
