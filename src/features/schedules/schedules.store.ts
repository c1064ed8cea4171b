import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import { updateStatement } from '../../db/statement.ts';
import type { ScheduleRow } from '../../db/tables/arriving-work.ts';

/** A schedule with its payload opened; `isReadable` false: the payload cannot be decrypted, and is null. */
export interface StoredSchedule extends ScheduleRow {
  readonly isReadable: boolean;
}

/** A place in the order in which schedules are due. */
export type DuePosition = Pick<ScheduleRow, 'tenant_id' | 'name'> & { readonly next_run_at: number };

export const scheduleStore = defineStore((storage) => {
  const readable = (row: ScheduleRow): StoredSchedule => {
    const { rows, unreadable } = storage.rows.openList('schedules', row.tenant_id, [row]);
    return { ...row, ...rows[0], isReadable: unreadable === null };
  };
  const row = async (tenantId: string, name: string): Promise<ScheduleRow | undefined> =>
    storage.db
      .selectFrom('schedules')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .executeTakeFirst();

  return {
    async list(tenantId: string): Promise<readonly StoredSchedule[]> {
      const rows = await storage.db
        .selectFrom('schedules')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .orderBy('name')
        .execute();
      return rows.map(readable);
    },
    /** Throws `decryption-failed`. */
    async get(tenantId: string, name: string): Promise<ScheduleRow | undefined> {
      const stored = await row(tenantId, name);
      return stored === undefined ? undefined : storage.rows.open('schedules', tenantId, stored);
    },
    async find(tenantId: string, name: string): Promise<StoredSchedule | undefined> {
      const stored = await row(tenantId, name);
      return stored === undefined ? undefined : readable(stored);
    },
    /** Creates or replaces; id, creation and last job of one that exists stay. */
    async save(schedule: ScheduleRow): Promise<ScheduleRow> {
      const { tenant_id, name, id, created_by, created_at, last_run_at, ...rule } = storage.rows.seal(
        'schedules',
        schedule.tenant_id,
        schedule,
      );
      const saved = await storage.db
        .insertInto('schedules')
        .values({ tenant_id, name, id, created_by, created_at, last_run_at, ...rule })
        .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(rule))
        .returningAll()
        .executeTakeFirstOrThrow();
      return storage.rows.open('schedules', saved.tenant_id, saved);
    },
    remove: (tenantId: string, name: string): Promise<boolean> =>
      deletesRow(storage.db.deleteFrom('schedules').where('tenant_id', '=', tenantId).where('name', '=', name)),
    /** Notes that a job was queued from it; fails its unit when it was deleted meanwhile. */
    triggered: updateStatement(
      storage.db,
      'schedules',
      (schedule: Pick<ScheduleRow, 'tenant_id' | 'name' | 'id'>, now: number) => ({
        set: { last_run_at: now },
        where: { tenant_id: schedule.tenant_id, name: schedule.name, id: schedule.id },
      }),
      { mustChange: true },
    ),
    /** Goes on to the next occurrence; fails its unit unless the schedule is as it was seen. `lastRunAt`: when a job came of it. */
    fired: updateStatement(
      storage.db,
      'schedules',
      (seen: DuePosition & Pick<ScheduleRow, 'id'>, nextRunAt: number | null, lastRunAt: number | null) => ({
        set: { next_run_at: nextRunAt, last_run_at: lastRunAt },
        where: { tenant_id: seen.tenant_id, name: seen.name, id: seen.id, next_run_at: seen.next_run_at },
      }),
      { mustChange: true },
    ),
    /** Those of any tenant that are due, the earliest first, after this one. */
    async due(now: number, after: DuePosition | null, take: number): Promise<readonly StoredSchedule[]> {
      let query = storage.db.selectFrom('schedules').selectAll().where('next_run_at', '<=', now);
      if (after !== null)
        query = query.where((eb) =>
          eb(
            eb.refTuple('next_run_at', 'tenant_id', 'name'),
            '>',
            eb.tuple(after.next_run_at, after.tenant_id, after.name),
          ),
        );
      const rows = await query.orderBy('next_run_at').orderBy('tenant_id').orderBy('name').limit(take).execute();
      return rows.map(readable);
    },
    /** Ids of those that are still as they were seen. */
    async unmoved(seen: readonly (DuePosition & Pick<ScheduleRow, 'id'>)[]): Promise<ReadonlySet<string>> {
      if (seen.length === 0) return new Set();
      const rows = await storage.db
        .selectFrom('schedules')
        .select(['id', 'next_run_at'])
        .where((eb) =>
          eb.or(seen.map(({ tenant_id, name }) => eb.and([eb('tenant_id', '=', tenant_id), eb('name', '=', name)]))),
        )
        .execute();
      const at = new Map(rows.map((stored) => [stored.id, stored.next_run_at]));
      return new Set(seen.flatMap(({ id, next_run_at }) => (at.get(id) === next_run_at ? [id] : [])));
    },
    /** When the next one of all tenants is due; null: none is. */
    async earliest(): Promise<number | null> {
      const next = await storage.db
        .selectFrom('schedules')
        .select('next_run_at')
        .where('next_run_at', 'is not', null)
        .orderBy('next_run_at')
        .limit(1)
        .executeTakeFirst();
      return next?.next_run_at ?? null;
    },
  };
});

export type ScheduleStore = StoreOf<typeof scheduleStore>;
