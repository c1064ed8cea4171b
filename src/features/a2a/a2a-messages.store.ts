import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { A2AMessageRow } from '../../db/tables/a2a.ts';

type MessageKey = Pick<A2AMessageRow, 'tenant_id' | 'agent_name' | 'door' | 'message_id'>;

export const a2aMessageStore = defineStore((storage) => ({
  /** The task that a message with this id has made and may still be asked for; undefined: none. */
  async find({ tenant_id, agent_name, door, message_id }: MessageKey, now: number): Promise<A2AMessageRow | undefined> {
    const row = await storage.db
      .selectFrom('a2a_messages')
      .selectAll()
      .where('tenant_id', '=', tenant_id)
      .where('agent_name', '=', agent_name)
      .where('door', '=', door)
      .where('message_id', '=', message_id)
      .executeTakeFirst();
    return row !== undefined && row.kept_until > now ? row : undefined;
  },
  /**
   * Notes which task a message makes. False: another one has been faster, in whichever process. `instead`: the task of an
   * earlier note, of which nothing came.
   */
  async reserve(row: A2AMessageRow, instead: string | null): Promise<boolean> {
    const { numInsertedOrUpdatedRows: written } = await storage.db
      .insertInto('a2a_messages')
      .values(row)
      .onConflict((conflict) =>
        conflict
          .columns(['tenant_id', 'agent_name', 'door', 'message_id'])
          .doUpdateSet((eb) => ({
            task_id: eb.ref('excluded.task_id'),
            created_at: eb.ref('excluded.created_at'),
            kept_until: eb.ref('excluded.kept_until'),
          }))
          .where((eb) =>
            eb.or([
              eb('a2a_messages.kept_until', '<=', row.created_at),
              eb('a2a_messages.task_id', '=', row.task_id),
              eb('a2a_messages.task_id', '=', instead ?? row.task_id),
            ]),
          ),
      )
      .executeTakeFirst();
    return Number(written ?? 0) > 0;
  },
  /** Id of the message that made the task; undefined once it is forgotten. */
  async messageOf(tenantId: string, taskId: string): Promise<string | undefined> {
    const row = await storage.db
      .selectFrom('a2a_messages')
      .select('message_id')
      .where('tenant_id', '=', tenantId)
      .where('task_id', '=', taskId)
      .executeTakeFirst();
    return row?.message_id;
  },
  /** Forgets ids that may come again. */
  async forget(before: number): Promise<void> {
    await storage.db.deleteFrom('a2a_messages').where('kept_until', '<', before).execute();
  },
}));

export type A2AMessageStore = StoreOf<typeof a2aMessageStore>;
