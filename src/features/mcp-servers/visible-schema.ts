import { isRecord } from '../../contract/record.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';

const words: ReadonlySet<string> = new Set(['title', 'description', '$comment']);

/** A schema whose words hide nothing. Names of members and values stay as they are: arguments are compared with them. */
export const visibleSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(visibleSchema);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      words.has(name) && typeof inner === 'string' ? visibleText(inner) : visibleSchema(inner),
    ]),
  );
};
