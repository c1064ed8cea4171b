import { createHash } from 'node:crypto';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import { readForeignSchema } from '../../engine/tools/index.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { mirroredArguments } from '../../providers/mcp/wire/parameter-headers.ts';
import type { McpGeneration } from '../../providers/mcp/wire/protocol.ts';
import type { ServerSettings } from './mcp-servers.rules.ts';
import { hidesText } from './visible-schema.ts';

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly inputSchema: Json;
  readonly annotations: Json;
}

/** What a server has listed, as it is kept. */
export interface Listing {
  /** What the server calls itself. */
  readonly serverName: string | null;
  readonly tools: readonly ListedTool[];
  /** Names that were listed more than once. */
  readonly repeated: readonly string[];
  readonly refused: readonly { readonly tool: string; readonly reason: string }[];
  /** Tools beyond the most that are taken. */
  readonly dropped: number;
}

// What one tool may say of itself; a model would pay for it on every turn.
const maxToolBytes = 65_536;
const maxNameLength = 256;

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

const isWanted = (name: string, tools: ServerSettings['tools']): boolean => {
  const include = tools?.include ?? null;
  return (include === null || include.includes(name)) && tools?.exclude?.includes(name) !== true;
};

type Entry = Readonly<Record<string, unknown>>;

/** Whose list it is, and how that is spoken to. */
export interface ListingServer {
  readonly serverName: string | null;
  readonly generation: McpGeneration;
}

/** Whether a tool is called by the tasks of 2025-11-25 alone, which were an experiment of that revision. */
const needsTask = ({ execution }: Entry, { generation }: ListingServer): boolean =>
  generation === 'Handshake' && isRecord(execution) && execution['taskSupport'] === 'required';

/** Why a tool cannot be offered; null: it can. */
const refusalOf = (tool: ListedTool, entry: Entry, server: ListingServer): string | null => {
  if (needsTask(entry, server)) return 'it can only be called as a task, of which 2025-11-25 had an experiment';
  const { inputSchema } = tool;
  if (Buffer.byteLength(JSON.stringify(tool)) > maxToolBytes)
    return `its description is larger than ${maxToolBytes} bytes`;
  const read = readForeignSchema(inputSchema);
  if ('problem' in read) return read.problem;
  if (hidesText(read.schema)) return 'its schema has characters that nobody sees, in names or in values to choose from';
  return mirroredArguments(inputSchema) === null ? 'its x-mcp-header annotations are not valid' : null;
};

/** Sorts out what a server has listed: which of its tools are wanted, which can be offered, and how many are too many. */
export const readListing = (
  entries: readonly unknown[],
  server: ListingServer,
  tools: ServerSettings['tools'],
  most: number,
): Listing => {
  const taken = new Map<string, ListedTool>();
  const repeated = new Set<string>();
  const refused: { tool: string; reason: string }[] = [];
  let dropped = 0;
  for (const entry of entries) {
    if (!isRecord(entry) || typeof entry['name'] !== 'string' || entry['name'] === '') {
      refused.push({ tool: '', reason: 'it has no name' });
      continue;
    }
    const name = entry['name'].toWellFormed();
    if (!isWanted(name, tools)) continue;
    if (taken.has(name)) {
      repeated.add(name);
      continue;
    }
    if (taken.size >= most) {
      dropped += 1;
      continue;
    }
    if (name.length > maxNameLength || isNestedTooDeep(entry)) {
      refused.push({
        tool: visibleText(name.slice(0, maxNameLength)),
        reason: 'its name is too long, or it is nested too deeply',
      });
      continue;
    }
    const tool: ListedTool = {
      name,
      title: textOrNull(entry['title']),
      description: textOrNull(entry['description']),
      inputSchema: (entry['inputSchema'] ?? null) as Json,
      annotations: (isRecord(entry['annotations']) ? entry['annotations'] : null) as Json,
    };
    const reason = refusalOf(tool, entry, server);
    if (reason === null) taken.set(name, tool);
    else refused.push({ tool: visibleText(name), reason });
  }
  const { serverName } = server;
  return { serverName, tools: [...taken.values()], repeated: [...repeated], refused: refused.slice(0, 1000), dropped };
};

/** What is compared of a tool. */
export const toolHash = (tool: ListedTool): string => sha256(canonicalJson(tool as unknown as Json));

/** Of the server's name for itself and all its tools, whatever their order. */
export const listingHash = ({ serverName, tools }: Pick<Listing, 'serverName' | 'tools'>): string =>
  sha256(canonicalJson({ serverName, tools: tools.map(toolHash).sort() }));

export const listingText = (listing: Listing): string => JSON.stringify(listing);
export const listingOf = (text: string | null): Listing | null =>
  text === null ? null : (JSON.parse(text) as Listing);

const most = 64;
const kept = 55;

/** Under which name agents have a tool. */
export const catalogName = (server: string, tool: string): string => {
  const name = `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  return name.length <= most ? name : `${name.slice(0, kept)}_${sha256(name).slice(0, 8)}`;
};
