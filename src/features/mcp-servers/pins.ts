import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { type ListedTool, type Listing, toolHash } from './listed-tools.ts';
import type { McpPinReport } from './mcp-servers.schema.ts';

/** What of a server was approved. */
export type Pin = Pick<Listing, 'serverName' | 'tools'>;

type Change = McpPinReport['changes'][number];

const shown = ({ title, description, inputSchema, annotations }: ListedTool): NonNullable<Change['after']> => ({
  description: description === null ? title && visibleText(title) : visibleText(description),
  inputSchema: visibleText(JSON.stringify(inputSchema)),
  annotations: visibleText(JSON.stringify(annotations)),
});

const content = ({ name: _name, ...rest }: ListedTool): string => canonicalJson(rest as unknown as Json);

/** What is not as it was approved. A tool that is the same but for its name was renamed. */
export const pinChanges = (pin: Pin, now: Pin): readonly Change[] => {
  const before = new Map(pin.tools.map((tool) => [tool.name, tool]));
  const after = new Map(now.tools.map((tool) => [tool.name, tool]));
  const gone = pin.tools.filter(({ name }) => !after.has(name));
  const changes: Change[] = [];
  if (pin.serverName !== now.serverName)
    changes.push({
      ...{ tool: '', change: 'Renamed', before: null, after: null },
      from: pin.serverName === null ? null : visibleText(pin.serverName),
    });
  for (const tool of now.tools) {
    const old = before.get(tool.name);
    const name = visibleText(tool.name);
    if (old !== undefined) {
      if (toolHash(old) !== toolHash(tool))
        changes.push({ tool: name, change: 'Changed', from: null, before: shown(old), after: shown(tool) });
      continue;
    }
    const same = gone.findIndex((candidate) => content(candidate) === content(tool));
    const [renamed] = same < 0 ? [] : gone.splice(same, 1);
    changes.push({
      tool: name,
      change: renamed === undefined ? 'Added' : 'Renamed',
      from: renamed === undefined ? null : visibleText(renamed.name),
      before: renamed === undefined ? null : shown(renamed),
      after: shown(tool),
    });
  }
  for (const tool of gone)
    changes.push({ tool: visibleText(tool.name), change: 'Removed', from: null, before: shown(tool), after: null });
  return changes;
};

/** How a tool is offered: as it is listed, or as it was approved and without its calls. */
export interface Admitted {
  readonly tool: ListedTool;
  /** Somebody has approved a tool of this name. */
  readonly isApproved: boolean;
  /** False: it is not as it was approved, and may not be called before somebody has accepted that. */
  readonly isCallable: boolean;
}

/** The tools of a server under its pinning. With `Block` the model sees nothing that nobody has approved. */
export const admittedTools = (
  listing: Listing,
  pin: Pin | null,
  pinning: 'Off' | 'Warn' | 'Block',
): readonly Admitted[] => {
  const approved = new Map(pin?.tools.map((tool) => [tool.name, tool]));
  if (pinning !== 'Block')
    return listing.tools.map((tool) => ({ tool, isCallable: true, isApproved: approved.has(tool.name) }));
  const isSameServer = pin?.serverName === listing.serverName;
  return listing.tools.flatMap((tool) => {
    const before = approved.get(tool.name);
    if (before === undefined) return [];
    return [{ tool: before, isApproved: true, isCallable: isSameServer && toolHash(before) === toolHash(tool) }];
  });
};
