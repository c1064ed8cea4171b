import type { AuditedWrite } from '../../core/audit.ts';
import type { Storage } from '../../db/storage.ts';
import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';

export interface ProviderAccessStore {
  bindings(): Promise<readonly ProviderBindingRow[]>;
  policies(): Promise<readonly EgressPolicyRow[]>;
  bound(row: ProviderBindingRow): AuditedWrite;
  unbound(tenantId: string, providerName: string): AuditedWrite;
  limited(row: EgressPolicyRow): AuditedWrite;
  lifted(tenantId: string): AuditedWrite;
}

export const createProviderAccessStore = ({ db }: Storage): ProviderAccessStore => ({
  bindings: () => db.selectFrom('tenant_provider_bindings').selectAll().execute(),
  policies: () => db.selectFrom('tenant_egress_policies').selectAll().execute(),
  bound: (row) =>
    db
      .insertInto('tenant_provider_bindings')
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['tenant_id', 'provider_name']).doUpdateSet((eb) => ({
          api_key_configuration_name: eb.ref('excluded.api_key_configuration_name'),
          endpoint: eb.ref('excluded.endpoint'),
          updated_at: eb.ref('excluded.updated_at'),
        })),
      )
      .compile(),
  unbound: (tenantId, providerName) => ({
    ...db
      .deleteFrom('tenant_provider_bindings')
      .where('tenant_id', '=', tenantId)
      .where('provider_name', '=', providerName)
      .compile(),
    mustChange: true,
  }),
  limited: (row) =>
    db
      .insertInto('tenant_egress_policies')
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['tenant_id']).doUpdateSet((eb) => ({
          allowed_providers: eb.ref('excluded.allowed_providers'),
          updated_at: eb.ref('excluded.updated_at'),
        })),
      )
      .compile(),
  lifted: (tenantId) => ({
    ...db.deleteFrom('tenant_egress_policies').where('tenant_id', '=', tenantId).compile(),
    mustChange: true,
  }),
});
