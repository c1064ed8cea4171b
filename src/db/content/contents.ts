import { AcpError } from '../../contract/errors.ts';
import type { RootStorage } from '../storage.ts';
import { contentIndexStore } from './content-index.store.ts';
import { createPlaceLocks } from './place-locks.ts';
import { ContentGone, type ContentPlace, type ContentReading, type ContentStore, type KeptContents } from './store.ts';

// Equal bytes that were to be used again may be deleted in the same moment; then the draft itself is stored.
const maxAttempts = 3;
// No sender takes that long between two pieces, and no reader between two reads.
const looseAfterMs = 3_600_000;

/**
 * Contents with the rows that name them. In one process, work on a place is done one piece at a time, since a file has its
 * place before its row; where several processes share a place, it is given in the unit that writes the row.
 */
export const createContents = (
  storage: Pick<RootStorage, 'transaction' | 'stores'>,
  kept: Omit<KeptContents, 'draft'> & ContentReading,
  now: () => number,
): ContentStore => {
  const exclusive = createPlaceLocks();
  const removeUnnamed = async (place: ContentPlace): Promise<boolean> => {
    const remove = await storage.transaction(async (stores) =>
      (await stores(contentIndexStore).isNamed(place)) ? null : kept.forget(stores, place),
    );
    await remove?.();
    return remove !== null;
  };
  return {
    assertWritable: kept.assertWritable,
    draft: kept.draft,
    open: kept.open,
    read: kept.read,
    removeDrafts: kept.removeDrafts,
    keep: (draft, place, name) =>
      exclusive(place, async () => {
        for (let attempt = 1; ; attempt += 1) {
          // Bytes first, then their rows: a crash between leaves bytes without a row, which a sweep removes.
          const placing = await draft.keep(place);
          try {
            await storage.transaction(async (stores) => {
              await placing(stores);
              await name(stores);
            });
            return;
          } catch (error) {
            if (error instanceof ContentGone && attempt < maxAttempts) continue;
            // What cannot be removed now goes with a sweep.
            await removeUnnamed(place).catch(() => false);
            throw error instanceof ContentGone
              ? new AcpError('store-unavailable', 'The contents of the attachment were deleted while it was stored.', {
                  cause: error,
                })
              : error;
          }
        }
      }),
    removeUnnamed: (place) => exclusive(place, () => removeUnnamed(place)),
    async sweep(signal) {
      const index = storage.stores(contentIndexStore);
      let removed = 0;
      for await (const place of kept.places()) {
        if (signal.aborted) break;
        // Looked at outside of a unit first: nearly all are named.
        if (!(await index.isNamed(place)) && (await exclusive(place, () => removeUnnamed(place)))) removed += 1;
      }
      return removed;
    },
    removeLoose: (signal) => kept.removeLoose(now() - looseAfterMs, signal),
  };
};
