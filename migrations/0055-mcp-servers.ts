import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('mcp_servers')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    // JSON: what was saved. Names of configuration keys and no secrets.
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('enabled', 'bigint', (column) => column.notNull())
    // What the last look at it came to.
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('protocol_version', 'text')
    .addColumn('server_name', 'text')
    .addColumn('tool_count', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('dropped_tools', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('checked_at', 'bigint')
    .addColumn('fresh_until', 'bigint')
    // Of the lists in mcp_catalogs, so that whoever has read them knows whether they have changed.
    .addColumn('catalog_hash', 'text')
    .addColumn('pinned_hash', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('mcp_servers')}_pk`, ['tenant_id', 'name'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  // Apart from the records, which every process reads again and again.
  await db.schema
    .createTable('mcp_catalogs')
    .addColumn('server_id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    // JSON: what the server listed last, and what a person has approved.
    .addColumn('listed', 'text')
    .addColumn('pinned', 'text')
    .addColumn('pinned_by', 'text')
    .addColumn('pinned_at', 'bigint')
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('mcp_catalogs')}_pk`, ['server_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

/** Remote servers of the Model Context Protocol, and the tools that they list. */
export const mcpServers: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0055-mcp-servers',
  worksFrom: '0035-arriving-work',
  up,
};
