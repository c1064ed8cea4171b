import type { AuditChainVerification, AuditRecord, ChainStatus } from './audit.schema.ts';
import { entryHash } from './chain.rules.ts';

/** What the store keeps of the end of a chain, apart from its entries. */
export interface ChainHead {
  readonly entryCount: number;
  readonly newestId: string | null;
  readonly newestHash: string | null;
}

/**
 * Whether the entry is what was hashed. An earlier build hashed U+0000 of an actor or entity where a store that the entry has
 * moved to holds U+FFFD.
 */
const isAsHashed = (entry: AuditRecord): boolean => {
  if (entryHash(entry) === entry.hash) return true;
  const before = (text: string): string => text.replaceAll('\uFFFD', '\0');
  const { actor, entity } = entry;
  if (!`${actor}${entity}`.includes('\uFFFD')) return false;
  return entryHash({ ...entry, actor: actor === null ? null : before(actor), entity: before(entity) }) === entry.hash;
};

/**
 * Walks a chain and stops at the first fault. `isWhole`: it begins with the first entry of the tenant and ends with the
 * newest, so that the link of the first and the number of entries are judged, too.
 */
export const checkChain = (isWhole: boolean) => {
  let previous: AuditRecord | null = null;
  let entriesChecked = 0;
  let fault: Exclude<ChainStatus, 'Valid'> | null = null;

  const faultOf = (entry: AuditRecord): typeof fault => {
    if (!isAsHashed(entry)) return 'Broken';
    if (previous !== null) return entry.previousHash === previous.hash && entry.id > previous.id ? null : 'Gap';
    return isWhole && entry.previousHash !== null ? 'Gap' : null;
  };

  const isEnd = (head: ChainHead): boolean => {
    if (isWhole && head.entryCount !== entriesChecked) return false;
    // A range that holds nothing says nothing about the end, unless it is the whole history.
    if (previous === null) return !isWhole || head.newestHash === null;
    return head.newestHash === previous.hash && head.newestId === previous.id;
  };

  return {
    /** The next entry, oldest first; false: the check is over, since it shows a fault. */
    take(entry: AuditRecord): boolean {
      entriesChecked += 1;
      fault = faultOf(entry);
      previous = entry;
      return fault === null;
    },
    /** After the last entry. `head`: null where the end is not judged. */
    end(head: ChainHead | null): AuditChainVerification {
      if (fault === null && head !== null && !isEnd(head)) fault = 'Gap';
      return {
        status: fault ?? 'Valid',
        entriesChecked,
        firstFailingEntryId: fault === null ? null : (previous?.id ?? null),
      };
    },
  };
};
