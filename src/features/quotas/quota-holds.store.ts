import { ChurningMap } from '../../core/churning-map.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement, type Statement } from '../../db/statement.ts';
import type { QuotaHoldRow } from '../../db/tables/quotas.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import type { CountedRoot } from './counted-roots.ts';
import { addedUse, noUse } from './quota-use.ts';

/** What stands against the quotas of a run, and what no counter has yet. */
export interface QuotaHold {
  readonly runId: string;
  /** Where it counts. */
  readonly root: CountedRoot;
  /** The run is admitted, and the store does not have it. */
  readonly isAdmission: boolean;
  /** The most that is being used; without end where nobody can say. */
  readonly held: QuotaUse;
  /** Of model calls that are over. */
  readonly spent: QuotaUse;
}

/** Where this process is with the row of a hold. */
interface KeptHold extends QuotaHold {
  held: QuotaUse;
  spent: QuotaUse;
  isAdmission: boolean;
  isLimited: boolean;
  /** A row of it is in the store, or on its way there. */
  isStored: boolean;
  /** A transaction on its way takes the row away. */
  isSettling: boolean;
  isGone: boolean;
}

const changing = ['is_admission', 'held_tokens', 'held_cost_micros', 'spent_tokens', 'spent_cost_micros'] as const;

/** A number without end has no place in a column. */
const bounded = (amount: number): number | null => (Number.isFinite(amount) ? amount : null);

/** A hold as a row of a store with one owner. */
export const holdRow = ({
  runId,
  root,
  isAdmission,
  held,
  spent,
}: QuotaHold): Omit<QuotaHoldRow, 'holder' | 'call_number'> => ({
  run_id: runId,
  tenant_id: root.tenantId,
  agent_name: root.agentName,
  quota_day: root.day,
  is_admission: isAdmission ? 1 : 0,
  held_tokens: bounded(held.tokens),
  held_cost_micros: bounded(held.costMicros),
  spent_tokens: spent.tokens,
  spent_cost_micros: spent.costMicros,
});

/**
 * Holds of a store with one owner. That process decides with its copy of the rows, which is all there is while nobody else
 * takes holds; the rows go along with its commits, and tell the next owner what was left behind.
 */
export const createQuotaHolds = (freed: (tenantId: string) => void, batch: Pick<BatchedWrites, 'enqueue'>) =>
  defineStore((storage) => {
    const holds = new ChurningMap<string, KeptHold>();
    const ofTenants = new ChurningMap<string, ChurningMap<string, KeptHold>>();
    const readers = new Set<{ readonly tenantId: string; isStale: boolean }>();
    const changed = new Set<KeptHold>();
    const insert = insertStatement(storage.db, 'quota_holds', holdRow);
    const anew = ` on conflict (run_id) do update set ${changing.map((column) => `${column} = excluded.${column}`).join(', ')}`;
    const { sql: removeSql } = storage.db.deleteFrom('quota_holds').where('run_id', '=', '').compile();
    let isScheduled = false;

    const add = (hold: KeptHold): void => {
      holds.set(hold.runId, hold);
      const { tenantId } = hold.root;
      const own = ofTenants.get(tenantId) ?? new ChurningMap<string, KeptHold>();
      own.set(hold.runId, hold);
      ofTenants.set(tenantId, own);
    };

    const forget = (hold: KeptHold): void => {
      const { tenantId } = hold.root;
      holds.delete(hold.runId);
      const own = ofTenants.get(tenantId);
      own?.delete(hold.runId);
      if (own?.size === 0) ofTenants.delete(tenantId);
      for (const reader of readers) if (reader.tenantId === tenantId) reader.isStale = true;
    };

    const removed = (runId: string): Statement => ({ sql: removeSql, parameters: [runId] });

    const written = (hold: KeptHold): readonly Statement[] => {
      if (hold.isGone) return hold.isStored ? [removed(hold.runId)] : [];
      if (hold.isSettling || !hold.isLimited) return [];
      hold.isStored = true;
      const { sql, parameters } = insert(hold);
      return [{ sql: sql + anew, parameters }];
    };

    const write = (): void => {
      isScheduled = false;
      let pending: readonly KeptHold[] = [];
      // Most admissions are over by now: their run is recorded in the turn in which it was admitted.
      if ([...changed].every((hold) => !hold.isStored && (hold.isGone || hold.isSettling || !hold.isLimited))) {
        changed.clear();
        return;
      }
      batch.enqueue({
        collect() {
          pending = [...changed];
          changed.clear();
          return pending.flatMap(written);
        },
        committed: () => undefined,
        // Memory has those that stand. They are written with the next change; of the others the next owner finds out.
        failed() {
          for (const hold of pending) if (!hold.isGone) changed.add(hold);
        },
      });
    };

    const follow = (hold: KeptHold): void => {
      changed.add(hold);
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(write);
    };

    return {
      of: (tenantId: string): Iterable<QuotaHold> => ofTenants.get(tenantId)?.values() ?? [],
      /**
       * What is read of a tenant, as of one moment: it is read again where a hold of the tenant went meanwhile, since counters
       * that were read before may lack what it stood for.
       */
      async readSteadily<T>(tenantId: string, read: () => Promise<T>): Promise<T> {
        const reader = { tenantId, isStale: false };
        readers.add(reader);
        try {
          for (;;) {
            reader.isStale = false;
            const values = await read();
            if (!reader.isStale) return values;
          }
        } finally {
          readers.delete(reader);
        }
      },
      /**
       * From now on it stands against the quotas of its root. `isLimited`: some quota applies; it is a row from the next
       * commit on, unless it is over by then.
       */
      take(
        { runId, root, isAdmission, held }: Pick<QuotaHold, 'runId' | 'root' | 'isAdmission' | 'held'>,
        isLimited: boolean,
      ): void {
        const earlier = holds.get(runId);
        const hold = earlier ?? { runId, root, spent: noUse, isStored: false, isGone: false };
        const taken: KeptHold = Object.assign(hold, { isAdmission, held, isLimited, isSettling: false });
        if (earlier === undefined) add(taken);
        if (isLimited) follow(taken);
      },
      /** A call is over: what it has not used is free. */
      used(runId: string, use: QuotaUse): void {
        const hold = holds.get(runId);
        if (hold === undefined) return;
        hold.held = noUse;
        hold.spent = addedUse(hold.spent, use);
        hold.isSettling = false;
        if (hold.isStored) follow(hold);
        freed(hold.root.tenantId);
      },
      /** For the transaction that records what the hold is for. */
      settled(runId: string): readonly Statement[] {
        const hold = holds.get(runId);
        if (hold === undefined) return [];
        hold.isSettling = true;
        return hold.isStored ? [removed(runId)] : [];
      },
      /** That transaction was not written, or the run goes on in another attempt: what it has used goes on to count. */
      keep(runId: string): void {
        const hold = holds.get(runId);
        if (hold === undefined) return;
        hold.held = noUse;
        hold.isSettling = false;
        if (hold.isLimited) follow(hold);
      },
      /** After that transaction, or because there will be none. */
      release(runId: string): void {
        const hold = holds.get(runId);
        if (hold === undefined) return;
        forget(hold);
        hold.isGone = true;
        // Whether the transaction that settles it was written is not known here: then the next write makes sure of it.
        if (hold.isStored && hold.isSettling) changed.add(hold);
        else if (hold.isStored) follow(hold);
        freed(hold.root.tenantId);
      },
      /** Another process of a store that is shared has the run: there is none where the store has one owner. */
      lose(runId: string): void {
        const hold = holds.get(runId);
        if (hold === undefined) return;
        forget(hold);
        freed(hold.root.tenantId);
      },
      /**
       * What a new owner of the store does once the runs of the last one are closed or back in line: what these have used
       * goes on to count, and everything else was for nothing. `unfinished` is what their steps tell, for those without a row.
       */
      async recover(unfinished: readonly Pick<QuotaHold, 'runId' | 'root' | 'spent'>[]): Promise<void> {
        await storage.db
          .deleteFrom('quota_holds')
          .where((eb) =>
            eb.not(
              eb.exists(
                eb
                  .selectFrom('runs')
                  .select('runs.id')
                  .whereRef('runs.id', '=', 'quota_holds.run_id')
                  .whereRef('runs.tenant_id', '=', 'quota_holds.tenant_id')
                  .where('runs.status', 'in', ['Queued', 'Running']),
              ),
            ),
          )
          .execute();
        await storage.db
          .updateTable('quota_holds')
          .set({ is_admission: 0, held_tokens: 0, held_cost_micros: 0 })
          .execute();
        const restore = (runId: string, root: CountedRoot, spent: QuotaUse, isStored: boolean): void =>
          add({
            ...{ runId, root, spent, held: noUse, isAdmission: false },
            ...{ isLimited: isStored, isStored, isSettling: false, isGone: false },
          });
        for (const row of await storage.db.selectFrom('quota_holds').selectAll().execute())
          restore(
            row.run_id,
            { tenantId: row.tenant_id, agentName: row.agent_name, day: row.quota_day },
            { tokens: row.spent_tokens, costMicros: row.spent_cost_micros },
            true,
          );
        for (const { runId, root, spent } of unfinished)
          if (holds.get(runId) === undefined) restore(runId, root, spent, false);
      },
    };
  });

/** The hold of a run is taken before, and settled in the transaction that records what it was for. */
export type QuotaHolds = StoreOf<ReturnType<typeof createQuotaHolds>>;
