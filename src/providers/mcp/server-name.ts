import { mcpMeta } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';

const member = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined);

const mostCharacters = 200;

/** What a server calls itself in a result, of either generation; null: it does not say. */
export const serverNameIn = (result: Readonly<Record<string, unknown>>): string | null => {
  const name = member(member(result['_meta'], mcpMeta.serverInfo) ?? result['serverInfo'], 'name');
  return typeof name === 'string' ? name.slice(0, mostCharacters) : null;
};
