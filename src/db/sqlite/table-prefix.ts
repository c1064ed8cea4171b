import {
  type KyselyPlugin,
  OperationNodeTransformer,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  type QueryResult,
  type SchemableIdentifierNode,
  type UnknownRow,
} from 'kysely';

/** Prefixes the known table names and nothing else, so that aliases keep their names. */
class TablePrefixTransformer extends OperationNodeTransformer {
  readonly #names: ReadonlyMap<string, string>;

  constructor(prefix: string, tables: readonly string[]) {
    super();
    this.#names = new Map(tables.map((name) => [name, prefix + name]));
  }

  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    const transformed = super.transformSchemableIdentifier(node);
    const name = this.#names.get(transformed.identifier.name);
    return name === undefined ? transformed : { ...transformed, identifier: { ...transformed.identifier, name } };
  }
}

export const tablePrefixPlugin = (prefix: string, tables: readonly string[]): KyselyPlugin => {
  const transformer = new TablePrefixTransformer(prefix, tables);
  return {
    transformQuery: (args: PluginTransformQueryArgs) => transformer.transformNode(args.node, args.queryId),
    transformResult: async (args: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> => args.result,
  };
};
