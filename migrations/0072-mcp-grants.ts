import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('mcp_grants')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('server_id', 'text', (column) => column.notNull())
    // What of the server's record it was given for.
    .addColumn('binding', 'text', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    // JSON, sealed: tokens, and who this service is at their issuer.
    .addColumn('value', 'text', (column) => column.notNull())
    // Who is renewing it.
    .addColumn('claim_id', 'text')
    .addColumn('claimed_until', 'bigint')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('mcp_grants')}_pk`, ['tenant_id', 'server_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createTable('mcp_consents')
    .addColumn('state_hash', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    // JSON, sealed: what is needed once its person comes back.
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('mcp_consents')}_pk`, ['state_hash'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

/** What people have granted this service at servers of the Model Context Protocol. */
export const mcpGrants: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0072-mcp-grants',
  worksFrom: '0035-arriving-work',
  up,
};
