import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { flowPlaceStore, type StoppedAgents } from './flow-places.store.ts';

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

  const sweep = async (): Promise<void> => {
    for (;;) {
      const found = await store.unsettled(now(), perLook);
      for (const jobId of found) await settle(jobId);
      if (found.length < perLook) return;
    }
  };

  return {
    /** Called when the job has ended, has gone back in line, or is due earlier. The next poll does what fails here. */
    freed: (jobId: string): Promise<void> =>
      settle(jobId).catch((error: unknown) =>
        log.error({ jobId, error }, 'Jobs that wait for a place start later than they could'),
      ),
    /** The same for all that nobody has told of: their process ended, or their time has come. */
    sweep,
    /** Called when these agents may run again: their jobs that were put off meanwhile are let in now, and not at their time. */
    async resumed(agents: StoppedAgents, handlerKeys: readonly string[]): Promise<void> {
      await storage.transaction(
        (stores) => stores(flowPlaceStore).bringForward(agents, handlerKeys, now()),
        'flow places',
      );
      // There may be many, which the caller does not wait for: each wakes a worker. The next poll does what fails here.
      void sweep().catch((error: unknown) =>
        log.error({ error }, 'Jobs of agents that were stopped start later than they could'),
      );
    },
  };
};

export type FlowPlaces = ReturnType<typeof createFlowPlaces>;
