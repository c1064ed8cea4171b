import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { flowPlaceStore } from './flow-places.store.ts';

interface FlowPlacesDeps {
  readonly storage: Pick<Storage, 'stores' | 'transaction'>;
  /** Has a worker look for jobs that are due since then. */
  readonly wake: (dueAt: number) => void;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
}

// So many units one after another, and then a look for more.
const perLook = 100;

/** Who gets the places that jobs leave. */
export const createFlowPlaces = ({ storage, wake, log, now }: FlowPlacesDeps) => {
  const store = storage.stores(flowPlaceStore);

  const settle = async (jobId: string): Promise<void> => {
    // One of them at a time: most are about the few keys that are full.
    const { jobIds, dueAt } = await storage.transaction(
      (stores) => stores(flowPlaceStore).settle(jobId, now()),
      'flow places',
    );
    if (jobIds.length > 0) wake(dueAt);
  };

  return {
    /** Called when the job has ended, has gone back in line, or is due earlier. The next poll does what fails here. */
    freed: (jobId: string): Promise<void> =>
      settle(jobId).catch((error: unknown) =>
        log.error({ jobId, error }, 'Jobs that wait for a place start later than they could'),
      ),
    /** The same for all that nobody has told of: their process ended, or their time has come. */
    async sweep(): Promise<void> {
      for (;;) {
        const found = await store.unsettled(now(), perLook);
        for (const jobId of found) await settle(jobId);
        if (found.length < perLook) return;
      }
    },
  };
};

export type FlowPlaces = ReturnType<typeof createFlowPlaces>;
