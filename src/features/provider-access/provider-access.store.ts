import { defineStore } from '../../db/define-store.ts';
import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';

export interface ProviderAccessStore {
  bindings(): Promise<readonly ProviderBindingRow[]>;
  policies(): Promise<readonly EgressPolicyRow[]>;
  bind(row: ProviderBindingRow): Promise<void>;
  /** False: there was none. */
  unbind(tenantId: string, providerName: string): Promise<boolean>;
  limit(row: EgressPolicyRow): Promise<void>;
  /** False: there was none. */
  lift(tenantId: string): Promise<boolean>;
}

export const providerAccessStore = defineStore(
  (storage): ProviderAccessStore => ({
    bindings: () => storage.db.selectFrom('tenant_provider_bindings').selectAll().execute(),
    policies: () => storage.db.selectFrom('tenant_egress_policies').selectAll().execute(),
    async bind(row) {
      const { api_key_configuration_name, endpoint, updated_at } = row;
      await storage.db
        .insertInto('tenant_provider_bindings')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'provider_name'])
            .doUpdateSet({ api_key_configuration_name, endpoint, updated_at }),
        )
        .execute();
    },
    async unbind(tenantId, providerName) {
      const { numDeletedRows } = await storage.db
        .deleteFrom('tenant_provider_bindings')
        .where('tenant_id', '=', tenantId)
        .where('provider_name', '=', providerName)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
    async limit(row) {
      const { allowed_providers, updated_at } = row;
      await storage.db
        .insertInto('tenant_egress_policies')
        .values(row)
        .onConflict((conflict) => conflict.columns(['tenant_id']).doUpdateSet({ allowed_providers, updated_at }))
        .execute();
    },
    async lift(tenantId) {
      const { numDeletedRows } = await storage.db
        .deleteFrom('tenant_egress_policies')
        .where('tenant_id', '=', tenantId)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
  }),
);
