import { type JsonLimits, jsonShapeProblem, maxJsonDepth, sizedLimits } from './json-shape.ts';

/** A complete answer of another system, whatever its size: more than any list of tools, table of results or batch of vectors has. */
export const foreignJsonLimits: JsonLimits = {
  maxDepth: maxJsonDepth,
  maxValues: 1_000_000,
  maxMembers: 200_000,
  maxShapes: 10_000,
};

const limitsOf = (bytes: number): JsonLimits => {
  const { maxValues, maxMembers } = sizedLimits(bytes);
  return { ...foreignJsonLimits, maxValues, maxMembers: Math.min(maxMembers, foreignJsonLimits.maxMembers) };
};

/** A document of an identity provider: the largest have some thousand values. */
export const identityJsonLimits: JsonLimits = { maxDepth: 64, maxValues: 10_000, maxMembers: 10_000, maxShapes: 1000 };

/**
 * One event of a stream, of which the next one may follow at once, and one answer of a model, which is a text and some calls. A
 * vendor library that finds no object where it expects one says so of each element, which costs fifty times what parsing it costs.
 */
export const foreignEventLimits: JsonLimits = {
  maxDepth: maxJsonDepth,
  maxValues: 50_000,
  maxMembers: 50_000,
  maxShapes: 10_000,
};

/** For JSON that was counted already, while it arrived. */
export const countedJson: JsonLimits = {
  maxDepth: Number.POSITIVE_INFINITY,
  maxValues: Number.POSITIVE_INFINITY,
  maxMembers: Number.POSITIVE_INFINITY,
};

/** JSON that is not even parsed, for its depth or for how much it holds. A caller that accepts other text may treat it as such. */
export class ForeignJsonError extends SyntaxError {
  constructor(problem: string) {
    super(`The JSON ${problem}.`);
    this.name = 'ForeignJsonError';
  }
}

/**
 * Parses JSON that another system has sent: MCP servers, agents, model providers, identity providers, services behind tools.
 * Its depth and size are counted before, in one pass over the bytes, since parsing ten megabytes of brackets takes a hundred
 * times as long as parsing ten megabytes of text. Throws ForeignJsonError, and SyntaxError for what is no JSON.
 */
export const parseForeignJson = (
  source: string | Uint8Array,
  limits: JsonLimits = limitsOf(source.length),
): unknown => {
  // Nothing in a text of this length can be too deep or too much.
  if (source.length > limits.maxDepth) {
    const problem = jsonShapeProblem(typeof source === 'string' ? Buffer.from(source) : source, limits);
    if (problem !== null) throw new ForeignJsonError(problem);
  }
  return JSON.parse(
    typeof source === 'string'
      ? source
      : Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString('utf8'),
  );
};
