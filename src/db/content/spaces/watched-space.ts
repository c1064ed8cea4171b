import { randomUUID } from 'node:crypto';
import { AcpError } from '../../../contract/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { RootStorage } from '../../storage.ts';
import { createStoreCondition, type StoreTrouble } from '../../store-condition.ts';
import type { MarkedSpace } from './marked-space.ts';
import { placeMarkerStore } from './place-markers.store.ts';
import type { ContentSpace, SpaceDraft } from './space.ts';

export interface WatchedSpace extends ContentSpace {
  /** Why it takes nothing now; null: it does, as far as anybody has tried. */
  trouble(): StoreTrouble | null;
  stop(): Promise<void>;
}

// A place in trouble is tried so often, one without at each sixth turn: a bucket counts requests.
const turnMs = 5000;
const turnsBetweenLooks = 6;
const retryAfterMs = 5000;

/** Looks whether a place is the one of this store, and whether one that failed works again. */
export const watchSpace = async (
  space: MarkedSpace,
  storage: Pick<RootStorage, 'stores'>,
  log: Pick<Logger, 'error' | 'warn'>,
): Promise<WatchedSpace> => {
  const { keptIn, location, words } = space;
  const condition = createStoreCondition(location, space.classify, log, words);
  const { noted } = condition;
  const markers = storage.stores(placeMarkerStore);

  /** The marker is in the store first: processes that start at once agree on it, and whoever comes next writes it, too. */
  const identify = async (): Promise<boolean> => {
    const present = await noted(space.marker);
    const known = await markers.markerOf(keptIn, present ?? randomUUID());
    if (present === known) return true;
    if (present !== null || (await markers.hasContents(keptIn))) return false;
    await noted(() => space.mark(known));
    return true;
  };
  const look = async (): Promise<void> => {
    try {
      condition.looked((await identify()) ? null : location);
      if (condition.trouble === null || condition.refusal !== null) return;
      await noted(space.probeWrite);
      condition.works();
    } catch {
      // What the place did is noted; what the database did, is the trouble of the store.
    }
  };
  const assertWritable = (): void => {
    if (condition.refusal !== null) throw condition.refusal;
    // Tried again by the watch, and not by each caller: some answers take their time to fail.
    if (condition.trouble === 'unavailable')
      throw new AcpError('store-unavailable', 'The contents of attachments cannot be reached now.', {
        details: { retryAfterMs },
      });
  };
  const notedDraft = (draft: SpaceDraft): SpaceDraft => ({
    ...draft,
    write: (bytes) => noted(() => draft.write(bytes)),
    amend: (offset, bytes) => noted(() => draft.amend(offset, bytes)),
    finish: () =>
      noted(() => {
        assertWritable();
        return draft.finish();
      }),
  });

  await look();
  let turns = 0;
  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    turns += 1;
    if (condition.trouble === null && turns % turnsBetweenLooks !== 0) return;
    looking ??= look().finally(() => {
      looking = null;
    });
  }, turnMs);
  timer.unref();
  return {
    keptIn,
    assertWritable,
    draft: (id) => noted(async () => notedDraft(await space.draft(id))),
    open: (id, range) => noted(() => space.open(id, range)),
    has: (id, sizeBytes) => noted(() => space.has(id, sizeBytes)),
    remove: (id) => noted(() => space.remove(id)),
    trouble: () => condition.trouble,
    async stop() {
      clearInterval(timer);
      await looking;
      space.close();
    },
  };
};
