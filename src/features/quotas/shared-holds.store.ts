import { sql } from 'kysely';
import { ChurningMap } from '../../core/churning-map.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { type Statement, statementOf } from '../../db/statement.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import type { CountedRoot } from './counted-roots.ts';
import { createHolderSigns, type StoredHold, usableMs } from './holder-signs.store.ts';
import { holdRow, type QuotaHold } from './quota-holds.store.ts';
import { addedUse, noUse } from './quota-use.ts';
import type { Reading } from './standing.store.ts';

/** A hold that is asked for. `number` is that of the question, so that what is written late of one does not change the next. */
export interface AskedHold extends QuotaHold {
  readonly number: number;
}

/** One that this process was given. */
interface GivenHold {
  readonly runId: string;
  readonly root: CountedRoot;
  readonly isAdmission: boolean;
  held: QuotaUse;
  spent: QuotaUse;
  /** Of the last question about it. */
  number: number;
  /** False: no limit applied, and no other process knows of it. */
  isStored: boolean;
  /** A transaction on its way takes the row away. */
  isSettling: boolean;
  /** That transaction is only right while the hold stands. */
  isFence: boolean;
}

export interface SharedHoldsDeps {
  /** Name of this process among those of the store. */
  readonly holder: string;
  readonly freed: (tenantId: string) => void;
  /** Whether a rule is known by now that limits the runs of an agent. */
  readonly isLimited: (tenantId: string, agentName: string) => Promise<boolean>;
  readonly batch: Pick<BatchedWrites, 'enqueue'>;
  readonly clock: Pick<Clock, 'now' | 'every'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly strict: boolean;
}

export interface HoldAnswer<T> {
  /** Before the holds that were asked for. */
  readonly standing: T;
  /** Runs whose holds are in the store. */
  readonly stored: ReadonlySet<string>;
}

/** Takes the hold of an admission away with the row of its run, and fails that unit where the hold was released before. */
class Fence implements Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly #hold: GivenHold;

  constructor({ sql: text, parameters }: Statement, hold: GivenHold) {
    this.sql = text;
    this.parameters = parameters;
    this.#hold = hold;
  }

  get mustChange(): boolean {
    return this.#hold.isFence;
  }
}

const atLeast = (a: QuotaUse, b: QuotaUse): QuotaUse => ({
  tokens: Math.max(a.tokens, b.tokens),
  costMicros: Math.max(a.costMicros, b.costMicros),
});

/**
 * Holds of a store that several processes share. The rows decide: what a tenant's rules leave is read behind a lock, in
 * the transaction that writes the holds that are asked for, and a hold is given where the read had room for it. A row is its
 * holder's; what is written of one that was lost changes nothing.
 */
export const createSharedHolds = (deps: SharedHoldsDeps) =>
  defineStore((storage) => {
    const { holder, freed, isLimited, batch, clock, strict } = deps;
    const { db } = storage;
    const given = new ChurningMap<string, GivenHold>();
    /** Asked for and not answered, so that nobody takes their rows for forgotten ones. */
    const asked = new Set<string>();
    const changes = new Map<string, { readonly tenantId: string; readonly statement: Statement }>();
    let isScheduled = false;
    let lastNumber = 0;

    const { sql: lockSql } = sql`insert into ${sql.table('quota_locks')} (tenant_id, kind, taken)
      values (${''}, ${''}, ${1})
      on conflict (tenant_id, kind) do update set taken = ${sql.ref('quota_locks.taken')} + 1`.compile(db);
    const removal = db.deleteFrom('quota_holds').where('run_id', '=', '');
    const { sql: removeSql } = removal.compile();
    const { sql: removeOwnSql } = removal.where('holder', '=', '').compile();
    const { sql: changeSql } = db
      .updateTable('quota_holds')
      .set({ held_tokens: 0, held_cost_micros: 0, spent_tokens: 0, spent_cost_micros: 0, holder: '' })
      .where('run_id', '=', '')
      .where('holder', '=', '')
      .where('call_number', '<=', 0)
      .compile();

    const removedOwn = (runId: string): Statement => ({
      sql: removeOwnSql,
      parameters: [runId, holder],
      isRepeatable: true,
    });
    /** The call is over: `by` has the row from now on. */
    const idle = ({ runId, spent, number }: Pick<GivenHold, 'runId' | 'spent' | 'number'>, by: string): Statement => ({
      sql: changeSql,
      parameters: [0, 0, spent.tokens, spent.costMicros, by, runId, holder, number],
      isRepeatable: true,
    });
    /** What stands under the run's id is replaced where it is this process's, or that of none that lives. */
    const inserted = (holds: readonly AskedHold[], { isRepeatable = false } = {}): Statement =>
      statementOf(
        db
          .insertInto('quota_holds')
          .values(holds.map((hold) => ({ ...holdRow(hold), holder, call_number: hold.number })))
          .onConflict((conflict) =>
            conflict
              .column('run_id')
              .doUpdateSet((eb) => ({
                is_admission: eb.ref('excluded.is_admission'),
                held_tokens: eb.ref('excluded.held_tokens'),
                held_cost_micros: eb.ref('excluded.held_cost_micros'),
                spent_tokens: eb.ref('excluded.spent_tokens'),
                spent_cost_micros: eb.ref('excluded.spent_cost_micros'),
                holder: eb.ref('excluded.holder'),
                call_number: eb.ref('excluded.call_number'),
              }))
              .where((eb) =>
                eb.or([
                  eb('quota_holds.holder', '=', eb.ref('excluded.holder')),
                  eb.not(
                    eb.exists(
                      eb
                        .selectFrom('quota_holders')
                        .select('quota_holders.id')
                        .whereRef('quota_holders.id', '=', 'quota_holds.holder'),
                    ),
                  ),
                ]),
              ),
          )
          .returning('run_id'),
        { isRepeatable },
      );

    const write = (): void => {
      isScheduled = false;
      let pending: [string, { readonly tenantId: string; readonly statement: Statement }][] = [];
      batch.enqueue({
        collect() {
          pending = [...changes];
          changes.clear();
          return pending.map(([, { statement }]) => statement);
        },
        committed() {
          for (const tenantId of new Set(pending.map(([, change]) => change.tenantId))) freed(tenantId);
        },
        // Too much is held until then. What follows of the same run says more.
        failed() {
          for (const [runId, change] of pending) if (!changes.has(runId)) changes.set(runId, change);
        },
      });
    };
    const schedule = (): void => {
      if (isScheduled || changes.size === 0) return;
      isScheduled = true;
      setImmediate(write);
    };
    const change = (runId: string, { tenantId }: CountedRoot, statement: Statement): void => {
      changes.set(runId, { tenantId, statement });
      schedule();
    };

    /** No other process knows of it, and a rule limits it by now. */
    const storeFree = async (hold: GivenHold): Promise<void> => {
      await storage.exchange([inserted([hold])]);
      if (given.get(hold.runId) !== hold) change(hold.runId, hold.root, removedOwn(hold.runId));
      else {
        hold.isStored = true;
        if (hold.held === noUse) change(hold.runId, hold.root, idle(hold, holder));
      }
    };
    /** Finds rows that are left of holds that nobody has, and holds that lack their rows. */
    const compare = async (stored: readonly StoredHold[]): Promise<void> => {
      for (const { runId, tenantId } of stored)
        if (given.get(runId) === undefined && !asked.has(runId) && !changes.has(runId))
          changes.set(runId, { tenantId, statement: removedOwn(runId) });
      // With those that the store did not take before.
      schedule();
      for (const hold of [...given.values()])
        if (!hold.isStored && (await isLimited(hold.root.tenantId, hold.root.agentName))) await storeFree(hold);
    };
    const signs = createHolderSigns({ ...deps, signed: compare }).on(storage);

    const forget = (runId: string): GivenHold | undefined => {
      const hold = given.get(runId);
      if (hold !== undefined) given.delete(runId);
      return hold;
    };

    return {
      /** A hold to ask for. What the run has used is in it: `spent`, or more where this process knows better. */
      asking(hold: QuotaHold): AskedHold {
        lastNumber += 1;
        return { ...hold, spent: atLeast(hold.spent, given.get(hold.runId)?.spent ?? noUse), number: lastNumber };
      },
      /** Nobody of the same kind gets between the read and the holds. Without holds it is a read like any other. */
      async ask<T>(
        tenantId: string,
        kind: 'places' | 'calls',
        holds: readonly AskedHold[],
        reading: Reading<T>,
      ): Promise<HoldAnswer<T>> {
        if (holds.length === 0) {
          const [rows = []] = await storage.exchange([reading]);
          return { standing: reading.of(rows), stored: new Set() };
        }
        for (const { runId } of holds) asked.add(runId);
        await signs.fresh();
        const askedAt = clock.now();
        // What is read for calls leaves out those that ask; places of runs would be in the way of the second question.
        const repeated = { isRepeatable: kind === 'calls' };
        const lock = { sql: lockSql, parameters: [tenantId, kind, 1], ...repeated };
        const read = { ...reading, ...repeated };
        const [, rows = [], returned = []] = await storage.exchange([lock, read, inserted(holds, repeated)]);
        const isUsable = Math.abs(clock.now() - askedAt) < usableMs;
        const stored = isUsable ? (returned as readonly { run_id: string }[]).map((row) => row.run_id) : [];
        return { standing: reading.of(rows), stored: new Set(stored) };
      },
      /** Nobody knows whether what was asked for is in the store, which goes on. */
      wasCut: (error: unknown): boolean => storage.dialect.isCut?.(error) === true,
      /** It was in the store with room to spare. */
      give({ runId, root, isAdmission, held, spent, number }: AskedHold): void {
        asked.delete(runId);
        changes.delete(runId);
        const state = { isStored: true, isSettling: false, isFence: isAdmission };
        given.set(runId, { runId, root, isAdmission, held, spent, number, ...state });
      },
      /** There was none, or nobody knows whether it is in the store. */
      drop(holds: readonly AskedHold[]): void {
        for (const hold of holds) {
          const own = given.get(hold.runId);
          if (own !== undefined) own.number = hold.number;
          asked.delete(hold.runId);
          change(hold.runId, hold.root, hold.isAdmission ? removedOwn(hold.runId) : idle(hold, holder));
        }
      },
      /** Of a call that no limit applies to; it becomes a row once one does. */
      giveFree(hold: AskedHold): void {
        const state = { isStored: false, isSettling: false, isFence: false };
        given.set(hold.runId, { ...hold, ...state });
      },
      /** Where the run of an admission counts, which is where it was admitted. */
      dayOf: (runId: string): string | null => given.get(runId)?.root.day ?? null,
      used(runId: string, use: QuotaUse): void {
        const hold = given.get(runId);
        if (hold === undefined) return;
        hold.held = noUse;
        hold.spent = addedUse(hold.spent, use);
        if (hold.isStored) change(runId, hold.root, idle(hold, holder));
      },
      admitted(runId: string): readonly Statement[] {
        const hold = given.get(runId);
        if (hold === undefined || !hold.isAdmission) return [];
        hold.isSettling = true;
        return [new Fence(removedOwn(runId), hold)];
      },
      /** The run goes on, though the store did not take it, or will never be made. */
      unfence(runId: string): void {
        const hold = given.get(runId);
        if (hold === undefined) return;
        hold.isFence = false;
        hold.isSettling = false;
      },
      /** Whoever has the row: a run ends once. */
      settled(runId: string): readonly Statement[] {
        const hold = given.get(runId);
        if (hold !== undefined) hold.isSettling = true;
        return strict ? [{ sql: removeSql, parameters: [runId] }] : [];
      },
      /** Another attempt follows, perhaps in another process, or the run's end is stored later. */
      keep(runId: string): void {
        const hold = forget(runId);
        if (hold?.isStored === true) change(runId, hold.root, idle(hold, ''));
      },
      release(runId: string): void {
        const hold = forget(runId);
        if (hold === undefined) return;
        // What a transaction did not take away after all is found with the next sign of life.
        if (hold.isStored && !hold.isSettling) change(runId, hold.root, removedOwn(runId));
        freed(hold.root.tenantId);
      },
      signs,
    };
  });

export type SharedHolds = StoreOf<ReturnType<typeof createSharedHolds>>;
