import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { RemoteAgentPinRow } from '../../db/tables/remote-agents.ts';

/** Cards as people of a tenant have approved them. */
export const remoteAgentStore = defineStore(({ db }) => ({
  pins: (tenantId: string): Promise<readonly RemoteAgentPinRow[]> =>
    db.selectFrom('remote_agent_pins').selectAll().where('tenant_id', '=', tenantId).execute(),
  pin: (tenantId: string, name: string): Promise<RemoteAgentPinRow | undefined> =>
    db
      .selectFrom('remote_agent_pins')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .executeTakeFirst(),
  async save(row: RemoteAgentPinRow): Promise<void> {
    const { tenant_id: _tenant, name: _name, ...changed } = row;
    await db
      .insertInto('remote_agent_pins')
      .values(row)
      .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(changed))
      .execute();
  },
  async remove(tenantId: string, names: readonly string[]): Promise<void> {
    await db.deleteFrom('remote_agent_pins').where('tenant_id', '=', tenantId).where('name', 'in', names).execute();
  },
}));

export type RemoteAgentStore = StoreOf<typeof remoteAgentStore>;
