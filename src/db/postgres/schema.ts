import {
  type ColumnDefinitionNode,
  DataTypeNode,
  type DropIndexNode,
  IdentifierNode,
  type Kysely,
  type KyselyPlugin,
  OperationNodeTransformer,
  PostgresIntrospector,
  RawNode,
  type SchemableIdentifierNode,
  sql,
  type TableMetadata,
} from 'kysely';

import type { Tables } from '../tables.ts';

const dataTypes: Readonly<Record<string, RawNode>> = {
  // Byte order, as on the other store: orders are page keys, and ids sort by their time.
  text: RawNode.createWithSql('text collate "C"'),
  // Counters and times in milliseconds do not fit in 32 bits.
  integer: RawNode.createWithSql('bigint'),
  blob: RawNode.createWithSql('bytea'),
};

/** Puts the schema before the names of tables and nothing else, so that aliases keep their names; see `postgresNames`. */
class NamesTransformer extends OperationNodeTransformer {
  readonly #schema: IdentifierNode;
  readonly #tables: ReadonlySet<string>;

  constructor(schema: string, tables: readonly string[]) {
    super();
    this.#schema = IdentifierNode.create(schema);
    this.#tables = new Set(tables);
  }

  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    const transformed = super.transformSchemableIdentifier(node);
    if (transformed.schema !== undefined || !this.#tables.has(transformed.identifier.name)) return transformed;
    return { ...transformed, schema: this.#schema };
  }

  protected override transformDropIndex(node: DropIndexNode): DropIndexNode {
    const transformed = super.transformDropIndex(node);
    return { ...transformed, name: { ...transformed.name, schema: this.#schema } };
  }

  protected override transformColumnDefinition(node: ColumnDefinitionNode): ColumnDefinitionNode {
    const transformed = super.transformColumnDefinition(node);
    const { dataType } = transformed;
    const replacement = DataTypeNode.is(dataType) ? dataTypes[dataType.dataType] : undefined;
    return replacement === undefined ? transformed : { ...transformed, dataType: replacement };
  }
}

/** Qualifies names of tables with the schema (a search path would be a session's state) and gives text its byte order. */
export const postgresNames = (schema: string, tables: readonly string[]): KyselyPlugin => {
  const transformer = new NamesTransformer(schema, tables);
  return {
    transformQuery: ({ node, queryId }) => transformer.transformNode(node, queryId),
    transformResult: async ({ result }) => result,
  };
};

/** Tables of the one schema. */
export class SchemaIntrospector extends PostgresIntrospector {
  readonly #db: Kysely<unknown>;
  readonly #schema: string;

  constructor(db: Kysely<unknown>, schema: string) {
    super(db);
    this.#db = db;
    this.#schema = schema;
  }

  override async getTables(): Promise<TableMetadata[]> {
    const { rows } = await sql<{ name: string }>`
      select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${this.#schema} and c.relispartition`.execute(this.#db);
    const partitions = new Set(rows.map(({ name }) => name));
    return (await super.getTables()).filter(({ schema, name }) => schema === this.#schema && !partitions.has(name));
  }
}

interface ColumnRow {
  readonly table_name: string;
  readonly column_name: string;
  readonly type: string;
  readonly required: number;
  readonly default_value: string | null;
}

interface DefinitionRow {
  readonly definition: string;
}

/** Tables, how they are laid apart, settings, columns, keys and indexes, in an order that does not depend on how they came to be. */
export const describePostgresSchema = async (db: Kysely<Tables>, schema: string): Promise<string> => {
  const columns = await sql<ColumnRow>`
    select c.relname as table_name, a.attname as column_name,
      format_type(a.atttypid, a.atttypmod) || case when l.collname = 'C' then ' collate "C"' else '' end as type,
      a.attnotnull as required, pg_get_expr(d.adbin, d.adrelid) as default_value
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
    left join pg_collation l on l.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where c.relnamespace = quote_ident(${schema})::regnamespace and a.attnum > 0 and not a.attisdropped
    order by c.relname collate "C", a.attnum`.execute(db);
  const indexes = await sql<DefinitionRow>`
    select replace(pg_get_indexdef(i.indexrelid), quote_ident(${schema}) || '.', '') as definition
    from pg_index i
    join pg_class c on c.oid = i.indrelid and not c.relispartition
    join pg_class x on x.oid = i.indexrelid
    where c.relnamespace = quote_ident(${schema})::regnamespace
    order by c.relname collate "C", x.relname collate "C"`.execute(db);
  const laidApart = await sql<DefinitionRow>`
    select c.relname || ' partition by ' || pg_get_partkeydef(c.oid) as definition
    from pg_class c where c.relnamespace = quote_ident(${schema})::regnamespace and c.relkind = 'p'
    order by c.relname collate "C"`.execute(db);
  const settings = await sql<DefinitionRow>`
    select c.relname || ' with (' || array_to_string(c.reloptions, ', ') || ')' as definition
    from pg_class c
    where c.relnamespace = quote_ident(${schema})::regnamespace and c.relkind = 'r' and not c.relispartition
      and c.reloptions is not null
    order by c.relname collate "C"`.execute(db);
  const lines = columns.rows.map(
    ({ table_name, column_name, type, required, default_value }) =>
      `${table_name}.${column_name} ${type}${required ? ' not null' : ''}${default_value === null ? '' : ` default ${default_value}`}`,
  );
  const further = [...laidApart.rows, ...settings.rows, ...indexes.rows].map(({ definition }) => definition);
  return `${[...lines, ...further].join(';\n')};\n`;
};
