import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AuditRecord } from './audit.schema.ts';
import type { AuditRange, AuditReadingStore } from './audit-reading.store.ts';
import type { ChainHead } from './chain-check.rules.ts';

// Hashing a page takes a few milliseconds; then others have their turn.
const pageSize = 100;

/**
 * The entries of a range, while others may be appended. The head is read before each page: when the page behind it is
 * empty, nothing was appended between the two, and both are of one state.
 */
export const walkChain = (store: AuditReadingStore, tenantId: string, range: AuditRange) => {
  let head: ChainHead = { entryCount: 0, newestId: null, newestHash: null };
  const entries = async function* (): AsyncGenerator<AuditRecord, void> {
    const span = await store.span(tenantId, range);
    for (let behindId: string | null = null; ; ) {
      head = await store.head(tenantId);
      const page = await store.page(tenantId, span, behindId, pageSize);
      const last = page.at(-1);
      if (last === undefined) return;
      behindId = last.id;
      yield* page;
      await nextTurn();
    }
  };
  return {
    /** Oldest first; leaving the iteration ends the walk. */
    entries: entries(),
    /** The end that belongs to these entries, once they were iterated to their end. */
    head: () => head,
  };
};

export const isWholeHistory = ({ after, before }: AuditRange): boolean => after === null && before === null;
