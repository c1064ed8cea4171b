import { isRecord } from '../../../contract/record.ts';
import { encodeHeaderValue } from './header-value.ts';
import { mcpHeader } from './protocol.ts';

const annotation = 'x-mcp-header';
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
const maxDepth = 64;

/** An argument that is mirrored in a header. */
export interface MirroredArgument {
  /** Members from the arguments down. */
  readonly path: readonly string[];
  readonly header: string;
}

/**
 * The arguments that a schema wants mirrored; null: its annotations are not valid, because one stands elsewhere than on a
 * property of a property, or names no header, or one that another has, or an argument that is no text, integer or boolean.
 */
export const mirroredArguments = (schema: unknown): readonly MirroredArgument[] | null => {
  const found: MirroredArgument[] = [];
  const taken = new Set<string>();
  const visit = (node: unknown, path: readonly string[] | null, depth: number): boolean => {
    if (typeof node !== 'object' || node === null) return true;
    if (depth > maxDepth) return false;
    if (Array.isArray(node)) return node.every((item) => visit(item, null, depth + 1));
    const members = node as Readonly<Record<string, unknown>>;
    const header = members[annotation];
    if (header !== undefined) {
      if (path === null || path.length === 0) return false;
      if (typeof header !== 'string' || !token.test(header) || !types.has(members['type'])) return false;
      if (taken.has(header.toLowerCase())) return false;
      taken.add(header.toLowerCase());
      found.push({ path, header: header.toLowerCase() });
    }
    return Object.entries(members).every(([keyword, value]) => {
      // What stands there is data, which may have members of any name.
      if (keyword === 'const' || keyword === 'default' || keyword === 'enum' || keyword === 'examples') return true;
      if (keyword !== 'properties' || !isRecord(value)) return visit(value, null, depth + 1);
      return Object.entries(value).every(([name, inner]) =>
        visit(inner, path === null ? null : [...path, name], depth + 1),
      );
    });
  };
  return visit(schema, [], 0) ? found : null;
};

const valueAt = (args: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    args,
  );

const textOf = (value: unknown): string | null => {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value);
  return null;
};

/** The headers of one call; an argument that is not given has none. */
export const parameterHeaders = (
  mirrored: readonly MirroredArgument[],
  args: unknown,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    mirrored.flatMap(({ path, header }) => {
      const text = textOf(valueAt(args, path));
      return text === null ? [] : [[`${mcpHeader.parameter}${header}`, encodeHeaderValue(text)]];
    }),
  );
