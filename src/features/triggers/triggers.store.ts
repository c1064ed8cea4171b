import type { Kysely } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { preparedStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { TriggerCallRow, TriggerRow } from '../../db/tables/arriving-work.ts';
import type { Tables } from '../../db/tables.ts';

const select = (db: Kysely<Tables>, tenantId: string, name: string): Promise<TriggerRow | undefined> =>
  db.selectFrom('triggers').selectAll().where('tenant_id', '=', tenantId).where('name', '=', name).executeTakeFirst();

type CallKey = Pick<TriggerCallRow, 'tenant_id' | 'trigger_name' | 'call_id'>;

/** What is saved of a trigger; the rest survives. */
export type SavedTrigger = Omit<TriggerRow, 'last_accepted_at'>;

/** What saving it makes of what is there. */
export const triggerAfter = (before: TriggerRow | undefined, row: SavedTrigger): TriggerRow =>
  before === undefined
    ? { ...row, last_accepted_at: null }
    : { ...before, ...row, id: before.id, created_at: before.created_at };

export const triggerStore = defineStore((storage) => {
  // One statement decides which of several calls at the same time is the first, over processes, too.
  const reserved = preparedStatement<keyof TriggerCallRow | 'now'>(
    (parameter) =>
      storage.db
        .insertInto('trigger_calls')
        .values({
          tenant_id: parameter('tenant_id'),
          trigger_name: parameter('trigger_name'),
          call_id: parameter('call_id'),
          run_id: parameter('run_id'),
          kept_until: parameter('kept_until'),
        })
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'trigger_name', 'call_id'])
            .doUpdateSet((eb) => ({ run_id: eb.ref('excluded.run_id'), kept_until: eb.ref('excluded.kept_until') }))
            .where((eb) =>
              eb.or([
                eb('trigger_calls.kept_until', '<=', parameter('now')),
                eb('trigger_calls.run_id', '=', eb.ref('excluded.run_id')),
              ]),
            ),
        ),
    { mustChange: true, isRepeatable: true },
  );
  const accepted = updateStatement(
    storage.db,
    'triggers',
    (tenantId: string, name: string, at: number) => ({
      set: { last_accepted_at: at },
      where: { tenant_id: tenantId, name },
    }),
    { isRepeatable: true },
  );
  return {
    /** By name, in the order of its characters. */
    list: (tenantId: string): Promise<readonly TriggerRow[]> =>
      storage.db.selectFrom('triggers').selectAll().where('tenant_id', '=', tenantId).orderBy('name').execute(),
    find: (tenantId: string, name: string) => select(storage.db, tenantId, name),
    /** Creates or replaces; gives the trigger before and after. Id, creation and last call stay. */
    save: (row: SavedTrigger) =>
      storage.atomic(async (db) => {
        const { tenant_id, name, id, created_at, ...values } = row;
        const before = await select(db, tenant_id, name);
        const after = triggerAfter(before, row);
        if (before === undefined) {
          await db.insertInto('triggers').values(after).execute();
          return { before, after };
        }
        await db
          .updateTable('triggers')
          .set(values)
          .where('tenant_id', '=', tenant_id)
          .where('name', '=', name)
          .execute();
        return { before, after };
      }),
    /** Undefined: there was none. */
    remove: (tenantId: string, name: string) =>
      storage.atomic(async (db) => {
        const before = await select(db, tenantId, name);
        if (before !== undefined)
          await db.deleteFrom('triggers').where('tenant_id', '=', tenantId).where('name', '=', name).execute();
        return before;
      }),
    /** Whether a call with this id was accepted and may not be again. */
    async isReserved({ tenant_id, trigger_name, call_id }: CallKey, now: number): Promise<boolean> {
      const row = await storage.db
        .selectFrom('trigger_calls')
        .select('kept_until')
        .where('tenant_id', '=', tenant_id)
        .where('trigger_name', '=', trigger_name)
        .where('call_id', '=', call_id)
        .executeTakeFirst();
      return row !== undefined && row.kept_until > now;
    },
    /** Reserves the id of a call and dates it; fails its unit where the id is reserved. */
    acceptance: (call: TriggerCallRow, now: number): readonly Statement[] => [
      reserved({ ...call, now }),
      accepted(call.tenant_id, call.trigger_name, now),
    ],
    /** Forgets ids that may come again. */
    async forget(before: number): Promise<void> {
      await storage.db.deleteFrom('trigger_calls').where('kept_until', '<', before).execute();
    },
  };
});

export type TriggerStore = StoreOf<typeof triggerStore>;
