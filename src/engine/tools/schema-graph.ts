import { isRecord } from '../../contract/record.ts';
import { keywordKinds, type SchemaMembers, subschemas } from './schema-keywords.ts';
import type { FieldPath, FieldProblem } from './tool-problem.ts';

/**
 * Whether a schema may contain itself. `refused`: never. `through-members`: for the members and items of a value, which
 * end with the value.
 */
export type Recursion = 'refused' | 'through-members';

/** Members, alternatives and words along one way down: the library compiles each list into as many nested expressions. */
const maxReach = 1_500;

/** Schemas with their places, and what the references of each one name. */
export interface SchemaGraph {
  readonly targets: Map<SchemaMembers, readonly SchemaMembers[]>;
  readonly paths: ReadonlyMap<SchemaMembers, FieldPath>;
}

/** With references written out. A value is held against each of them, and references double with every step. */
const maxSize = 10_000;
/** Schemas below one another, references counted. */
const maxChain = 200;

/** Keywords whose schemas are for the same value as the one that they stand in. */
const inPlace = new Set(['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas']);
/** Keywords that only keep schemas for references to name. */
const stores = new Set(['$defs', 'definitions', 'contentSchema']);

const below = (schema: SchemaMembers, keywords: (keyword: string) => boolean): SchemaMembers[] =>
  Object.entries(schema).flatMap(([keyword, value]) => {
    const kind = keywordKinds.get(keyword);
    if (kind === undefined || stores.has(keyword) || !keywords(keyword)) return [];
    return subschemas(kind, value, []).flatMap(([, inner]) => (isRecord(inner) ? [inner] : []));
  });

/** Lists of words are looked through as schemas are. */
const ownSize = (schema: SchemaMembers): number =>
  ['enum', 'required'].reduce((size, keyword) => {
    const list = schema[keyword];
    return size + (Array.isArray(list) ? list.length : 0);
  }, 1);

interface Walk {
  readonly graph: SchemaGraph;
  readonly follows: (keyword: string) => boolean;
  /** Infinity while it is being counted. */
  readonly sizes: Map<SchemaMembers, number>;
  readonly cycle: (schema: SchemaMembers) => number;
}

class GraphError extends Error {
  readonly problem: FieldProblem;

  constructor(problem: FieldProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

const sizeOf = (schema: SchemaMembers, walk: Walk, chain: number): number => {
  const cached = walk.sizes.get(schema);
  if (cached !== undefined) return cached === Number.POSITIVE_INFINITY ? walk.cycle(schema) : cached;
  if (chain > maxChain)
    throw new GraphError({
      path: walk.graph.paths.get(schema) ?? [],
      message: `is nested deeper than ${maxChain} schemas, references counted`,
    });
  walk.sizes.set(schema, Number.POSITIVE_INFINITY);
  let size = ownSize(schema);
  for (const next of [...below(schema, walk.follows), ...(walk.graph.targets.get(schema) ?? [])])
    size += sizeOf(next, walk, chain + 1);
  walk.sizes.set(schema, size);
  return size;
};

const reachOf = (schema: SchemaMembers): number => {
  const inner = below(schema, everyKeyword);
  return ownSize(schema) + inner.length + inner.reduce((most, one) => Math.max(most, reachOf(one)), 0);
};

const everyKeyword = (): boolean => true;

/** Schemas that a value may be held against, with references written out; what leads back to itself counts once. */
export const schemaSize = (root: SchemaMembers, graph: SchemaGraph): number =>
  sizeOf(root, { graph, follows: everyKeyword, sizes: new Map(), cycle: () => 0 }, 0);

const cycleError = (path: FieldPath): GraphError =>
  new GraphError({ path, message: 'contains itself, which is not allowed' });

/** What keeps the schemas from being checked in a bounded time; null: nothing. */
export const graphProblem = (root: SchemaMembers, graph: SchemaGraph, recursion: Recursion): FieldProblem | null => {
  const cycle = (schema: SchemaMembers): never => {
    throw cycleError(graph.paths.get(schema) ?? []);
  };
  try {
    if (recursion === 'refused') sizeOf(root, { graph, follows: everyKeyword, sizes: new Map(), cycle }, 0);
    else {
      const sizes = new Map<SchemaMembers, number>();
      for (const schema of graph.paths.keys())
        sizeOf(schema, { graph, follows: (keyword) => inPlace.has(keyword), sizes, cycle }, 0);
    }
    for (const [schema, path] of graph.paths)
      if (reachOf(schema) > maxReach)
        return {
          path,
          message: `must not have more than ${maxReach} members, alternatives and words, all levels added`,
        };
    return schemaSize(root, graph) <= maxSize
      ? null
      : { path: [], message: `must not have more than ${maxSize} schemas and words, with references written out` };
  } catch (error) {
    if (error instanceof GraphError) return error.problem;
    throw error;
  }
};
