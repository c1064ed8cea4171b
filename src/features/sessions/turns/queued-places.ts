import type { Statement } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import { sessionStore } from '../sessions.store.ts';
import { type Place, sessionPlaceStore } from './session-places.store.ts';

/** A run that waits as a job, which has its id. */
export interface QueuedTurn extends Place {
  readonly agentName: string;
}

/**
 * What is stored of the line of a session in the units of others: with the job of a run, whose place stands as long as the
 * job is open, whatever becomes of the processes that have it, or until its last attempt is lost, and with the end of a
 * run that no process executes.
 */
export interface QueuedPlaces {
  /** Behind all that have come by now. */
  behind(run: QueuedTurn): readonly Statement[];
  /** Before all that wait: it goes on with what began before they came. */
  before(run: QueuedTurn): readonly Statement[];
  /** Frees a session that the run has, when its process is gone. */
  freed(run: Place): readonly Statement[];
  /** Gives up the place, and the session that a run has whose turn had come before it was closed. */
  left(run: Place): readonly Statement[];
}

export interface QueuedPlaceDeps {
  readonly storage: Pick<Storage, 'stores'>;
  /** Whether other processes have the store, too: an owner has its line in memory. */
  readonly shared: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

// Its process keeps a place until then; that of a queued run is kept by its job alone.
const noTime = 0;
const inOrder = 1;

export const createQueuedPlaces = ({ storage, shared, now, newId }: QueuedPlaceDeps): QueuedPlaces => {
  if (!shared) {
    const { release } = storage.stores(sessionStore);
    return {
      behind: () => [],
      before: () => [],
      freed: ({ tenantId, sessionId, runId }) => release(tenantId, sessionId, runId),
      left: () => [],
    };
  }
  const places = storage.stores(sessionPlaceStore);
  const made = (place: typeof places.behind, { tenantId, sessionId, runId, agentName }: QueuedTurn) => [
    // With a row of its session nobody opens that past it.
    places.vacant({ tenantId, sessionId, agentName, conversationId: newId(), now: now() }),
    place({ tenantId, sessionId, runId, rank: inOrder, until: noTime }),
  ];
  return {
    behind: (run) => made(places.behind, run),
    before: (run) => made(places.before, run),
    freed: (run) => places.free(run, now()),
    left: (run) => places.release(run, now()),
  };
};
