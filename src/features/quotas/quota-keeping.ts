import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import { type CallRooms, createCallDecision } from './call-decision.ts';
import { createOwnedPlaces } from './owned-places.ts';
import { createOwnedRooms } from './owned-rooms.ts';
import type { PeriodClock } from './period-clock.ts';
import type { AdmissionDeps } from './quota-admission.ts';
import type { QuotaBacklog } from './quota-backlog.ts';
import { createQuotaHolds } from './quota-holds.store.ts';
import { limitingUse } from './quota-room.rules.ts';
import type { QuotaRules, QuotaStore } from './quotas.store.ts';
import { createSharedHolds } from './shared-holds.store.ts';
import { createSharedPlaces } from './shared-places.ts';
import { createSharedRooms } from './shared-rooms.ts';
import { standingStore } from './standing.store.ts';
import { type StoredTurns, unfinishedUse } from './unfinished-use.store.ts';

/** What becomes of a hold as its run goes on and ends. */
export interface RunHolds {
  /** For the transaction that writes the row of an admitted run. */
  admitted(runId: string): readonly Statement[];
  /** For the transaction that writes the end of a run. */
  settled(runId: string): readonly Statement[];
  /** Local day in which an admitted run counts; null: that in which its row is written. */
  dayOf(runId: string): string | null;
  /** The row of the run was refused: what follows no longer depends on its hold. */
  unfence(runId: string): void;
  /** That transaction was not written, or the run goes on in another attempt: what it has used goes on to count. */
  keep(runId: string): void;
  /** After that transaction, or because there will be none. */
  release(runId: string): void;
  /** Another process has the run, or has closed it: what is stored is that one's. */
  lose(runId: string): void;
}

/** How holds are kept: by the owner of a store, or by several processes that share it. */
export interface QuotaKeeping {
  readonly holds: RunHolds;
  readonly places: AdmissionDeps['places'];
  readonly rooms: CallRooms;
  /** What the next owner of a store does about the holds of the last one. */
  recover(): Promise<void>;
  start(): void;
  close(): Promise<void>;
}

export interface KeepingDeps {
  readonly storage: Storage;
  readonly batch: BatchedWrites;
  readonly store: QuotaStore;
  readonly rules: QuotaRules;
  readonly periods: PeriodClock;
  readonly unwritten: Pick<QuotaBacklog, 'added' | 'openAdded'>;
  readonly turns: StoredTurns;
  readonly strict: boolean;
  /** Those in line of a tenant may have something to gain; null: of all tenants. */
  readonly wake: (tenantId: string | null) => void;
  readonly clock: Clock;
  readonly newId: () => string;
}

export const ownedKeeping = (deps: KeepingDeps): QuotaKeeping => {
  const { storage, strict, turns } = deps;
  const holds = storage.stores(createQuotaHolds(deps.wake, deps.batch));
  const decideOn = createCallDecision(deps.periods, deps.clock);
  return {
    holds: { ...holds, admitted: holds.settled, dayOf: () => null, unfence: () => undefined, lose: holds.lose },
    places: createOwnedPlaces({ ...deps, holds }),
    rooms: createOwnedRooms({ ...deps, holds, decideOn }),
    recover: async () => holds.recover(strict ? await storage.stores(unfinishedUse)(turns) : []),
    start: () => undefined,
    close: async () => undefined,
  };
};

export interface SharedKeepingDeps extends KeepingDeps {
  /** Name of this process among those of the store. */
  readonly holder: string;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  readonly storeClock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}

export const sharedKeeping = (deps: SharedKeepingDeps): QuotaKeeping => {
  const { storage, rules, announcements, wake } = deps;
  const isLimited = async (tenantId: string, agentName: string): Promise<boolean> =>
    limitingUse((await rules.read(tenantId)) ?? [], agentName).length > 0;
  const holds = storage.stores(
    createSharedHolds({
      ...deps,
      clock: deps.storeClock,
      isLimited,
      freed(tenantId) {
        wake(tenantId);
        announcements.announce('quotas', tenantId);
      },
    }),
  );
  const decideOn = createCallDecision(deps.periods, deps.clock);
  const standing = storage.stores(standingStore);
  let deafen: () => void = () => undefined;
  return {
    holds: { ...holds, lose: holds.keep },
    places: createSharedPlaces({ ...deps, holds, standing }),
    rooms: createSharedRooms({ ...deps, holds, standing, decideOn }),
    // The processes that live keep theirs, and the signs of life of any of them end those of the dead.
    recover: () => Promise.resolve(),
    start() {
      deafen = announcements.listen('quotas', { heard: wake, missed: () => wake(null) });
      holds.signs.start();
    },
    async close() {
      deafen();
      await holds.signs.close();
    },
  };
};
