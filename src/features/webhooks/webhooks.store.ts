import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { WebhookRow } from '../../db/tables/arriving-work.ts';
import type { DisabledReason } from './webhooks.schema.ts';

/** What tells which events a subscription wants. */
export type Listener = Pick<WebhookRow, 'tenant_id' | 'name' | 'id' | 'events' | 'enabled'>;

export const webhookStore = defineStore((storage) => {
  const { rows } = storage;
  const ofTenant = (tenantId: string) =>
    storage.db.selectFrom('webhooks').selectAll().where('tenant_id', '=', tenantId);
  const change = (tenantId: string, id: string) =>
    storage.db.updateTable('webhooks').where('tenant_id', '=', tenantId).where('id', '=', id);

  return {
    /** Subscriptions of all tenants. */
    listeners: (): Promise<readonly Listener[]> =>
      storage.db.selectFrom('webhooks').select(['tenant_id', 'name', 'id', 'events', 'enabled']).execute(),
    /** By name. */
    list: (tenantId: string): Promise<readonly WebhookRow[]> => ofTenant(tenantId).orderBy('name').execute(),
    find: (tenantId: string, name: string): Promise<WebhookRow | undefined> =>
      ofTenant(tenantId).where('name', '=', name).executeTakeFirst(),
    /** Its extra headers. Throws `decryption-failed`. */
    headersOf(row: Pick<WebhookRow, 'tenant_id' | 'name' | 'headers'>): Readonly<Record<string, string>> {
      const { headers } = rows.open('webhooks', row.tenant_id, row);
      return headers === null ? {} : (JSON.parse(headers) as Record<string, string>);
    },
    async save(row: WebhookRow): Promise<void> {
      const sealed = rows.seal('webhooks', row.tenant_id, row);
      const { tenant_id: _tenant, name: _name, id: _id, created_at: _created, ...changed } = sealed;
      await storage.db
        .insertInto('webhooks')
        .values(sealed)
        .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(changed))
        .execute();
    },
    /** False: there is none. */
    remove: (tenantId: string, name: string): Promise<boolean> =>
      deletesRow(storage.db.deleteFrom('webhooks').where('tenant_id', '=', tenantId).where('name', '=', name)),
    /** Counts a failure; how many there are in a row now, 0 where it is not enabled. */
    async failed(tenantId: string, id: string): Promise<number> {
      const row = await change(tenantId, id)
        .set((eb) => ({ consecutive_failures: eb('consecutive_failures', '+', 1) }))
        .returning(['consecutive_failures', 'enabled'])
        .executeTakeFirst();
      return row?.enabled === 1 ? row.consecutive_failures : 0;
    },
    async succeeded(tenantId: string, id: string): Promise<void> {
      await change(tenantId, id).set({ consecutive_failures: 0 }).where('consecutive_failures', '<>', 0).execute();
    },
    /** The row as it is then; undefined: it was not enabled any more. */
    disable: (tenantId: string, id: string, reason: DisabledReason, now: number): Promise<WebhookRow | undefined> =>
      change(tenantId, id)
        .set({ enabled: 0, disabled_reason: reason, updated_at: now })
        .where('enabled', '=', 1)
        .returningAll()
        .executeTakeFirst(),
  };
});

export type WebhookStore = StoreOf<typeof webhookStore>;
