import { sql } from 'kysely';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { statementOf } from '../../db/statement.ts';

// A process without a heartbeat for this time has lost its reservations. Others check with each heartbeat of their own, so that
// the reservations of a killed process are free after 14 s (RUN-9: 15 s). Nothing that a process does between two turns of its event
// loop takes nearly as long.
const silentAfterMs = 11_000;
const signEveryMs = 3000;
// A reservation needs a heartbeat that does not expire before its response is used.
const freshMs = 5000;
/** A response that took longer may be about reservations that other processes have released meanwhile. */
export const usableMs = silentAfterMs - freshMs;

/** A hold of this process, as it is stored. */
export interface StoredHold {
  readonly runId: string;
  readonly tenantId: string;
}

export interface HolderSignsDeps {
  readonly holder: string;
  /** The store's time. */
  readonly clock: Pick<Clock, 'now' | 'every'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Holds of another process were released. */
  readonly freed: (tenantId: string) => void;
  /** After each sign, with all that is stored in the name of this process. */
  readonly signed: (stored: readonly StoredHold[]) => Promise<void>;
}

/**
 * Signs of life of the processes that hold something, and the end of holds whose process gives none: those of runs that
 * are in the store go with the end of their runs, whoever writes that, and all others here.
 */
export const createHolderSigns = ({ holder, clock, log, freed, signed }: HolderSignsDeps) =>
  defineStore((storage) => {
    const { db } = storage;
    const [holds, runs] = [sql.table('quota_holds'), sql.table('runs')];
    const ofRun = sql`${sql.ref('runs.tenant_id')} = ${sql.ref('quota_holds.tenant_id')}
      and ${sql.ref('runs.id')} = ${sql.ref('quota_holds.run_id')}`;
    const isOpen = sql`${sql.ref('runs.status')} in ('Queued', 'Running')`;
    // The second kind is what a process took for a run that another one had closed.
    const release = statementOf({
      compile: () =>
        sql`delete from ${holds} where (
            not exists (select 1 from ${sql.table('quota_holders')}
              where ${sql.ref('quota_holders.id')} = ${sql.ref('quota_holds.holder')})
            and not exists (select 1 from ${runs} where ${ofRun} and ${isOpen})
          ) or (is_admission = 0 and exists (select 1 from ${runs} where ${ofRun} and not ${isOpen}))
          returning tenant_id`.compile(db),
    });
    const own = statementOf(
      db.selectFrom('quota_holds').select(['run_id as runId', 'tenant_id as tenantId']).where('holder', '=', holder),
    );
    const sign = (at: number) =>
      statementOf(
        db
          .insertInto('quota_holders')
          .values({ id: holder, seen_at: at })
          .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: at })),
      );
    const forget = (before: number) =>
      statementOf(db.deleteFrom('quota_holders').where('seen_at', '<', before).returning('id'));
    let signedAt = Number.NEGATIVE_INFINITY;
    let signing: Promise<void> | null = null;
    let timer: Timer | null = null;

    const give = async (): Promise<void> => {
      const at = clock.now();
      const [, silent, released, stored] = await storage.exchange([sign(at), forget(at - silentAfterMs), release, own]);
      signedAt = at;
      const tenants = released as readonly { readonly tenant_id: string }[];
      if (tenants.length > 0)
        log.warn(
          { holds: tenants.length, processes: (silent as readonly { id: string }[]).map(({ id }) => id) },
          'Quota holds of a process that gives no sign of life were released',
        );
      for (const tenantId of new Set(tenants.map((row) => row.tenant_id))) freed(tenantId);
      await signed(stored as readonly StoredHold[]);
    };
    const giveOnce = (): Promise<void> => {
      signing ??= give().finally(() => {
        signing = null;
      });
      return signing;
    };

    return {
      /** Before something is taken: nobody releases it as long as this process lives. */
      fresh: (): Promise<void> | null => (Math.abs(clock.now() - signedAt) < freshMs ? null : giveOnce()),
      give: giveOnce,
      start(): void {
        timer ??= clock.every(signEveryMs, () =>
          giveOnce().catch((error: unknown) =>
            log.warn({ error }, 'A sign of life for quota holds could not be stored'),
          ),
        );
      },
      /** What this process holds still is nobody's from now on. */
      async close(): Promise<void> {
        timer?.stop();
        if (signedAt === Number.NEGATIVE_INFINITY) return;
        await signing?.catch(() => undefined);
        await storage.exchange([statementOf(db.deleteFrom('quota_holders').where('id', '=', holder))]);
      },
    };
  });

export type HolderSigns = StoreOf<ReturnType<typeof createHolderSigns>>;
