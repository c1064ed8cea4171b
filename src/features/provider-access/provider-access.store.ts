import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';

export const providerAccessStore = defineStore((storage) => ({
  bindings: (): Promise<readonly ProviderBindingRow[]> =>
    storage.db.selectFrom('tenant_provider_bindings').selectAll().execute(),
  policies: (): Promise<readonly EgressPolicyRow[]> =>
    storage.db.selectFrom('tenant_egress_policies').selectAll().execute(),
  policy: (tenantId: string): Promise<EgressPolicyRow | undefined> =>
    storage.db.selectFrom('tenant_egress_policies').selectAll().where('tenant_id', '=', tenantId).executeTakeFirst(),
  async bind(row: ProviderBindingRow): Promise<void> {
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
  /** False: there was none. */
  unbind: (tenantId: string, providerName: string): Promise<boolean> =>
    deletesRow(
      storage.db
        .deleteFrom('tenant_provider_bindings')
        .where('tenant_id', '=', tenantId)
        .where('provider_name', '=', providerName),
    ),
  async limit(row: EgressPolicyRow): Promise<void> {
    const { allowed_providers, labels, updated_at } = row;
    await storage.db
      .insertInto('tenant_egress_policies')
      .values(row)
      .onConflict((conflict) => conflict.columns(['tenant_id']).doUpdateSet({ allowed_providers, labels, updated_at }))
      .execute();
  },
  /** False: there was none. */
  lift: (tenantId: string): Promise<boolean> =>
    deletesRow(storage.db.deleteFrom('tenant_egress_policies').where('tenant_id', '=', tenantId)),
}));

export type ProviderAccessStore = StoreOf<typeof providerAccessStore>;
