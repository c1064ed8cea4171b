import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('tenant_provider_bindings')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('provider_name', 'text', (column) => column.notNull())
    // The name of a configuration key; no value of a secret is ever stored.
    .addColumn('api_key_configuration_name', 'text', (column) => column.notNull())
    .addColumn('endpoint', 'text')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('tenant_provider_bindings')}_pk`, [
      'tenant_id',
      'provider_name',
    ] as never)
    .execute();
  await db.schema
    .createTable('tenant_egress_policies')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    // JSON list of provider names; an empty list allows none.
    .addColumn('allowed_providers', 'text', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('tenant_egress_policies')}_pk`, ['tenant_id'] as never)
    .execute();
};

export const providerAccess: MigrationStep = { name: '0021-provider-access', up };
