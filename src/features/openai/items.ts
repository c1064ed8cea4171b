import { createHash } from 'node:crypto';
import { invalidField } from '../../contract/errors.ts';
import type { ChatMessage, ContentPart } from '../../engine/context/index.ts';
import { isServiceToolName } from '../../engine/tools/index.ts';
import { readableResult } from '../../providers/models/hosted-parts.ts';
import { isModelName } from '../agents/index.ts';
import type { Item } from './responses.schema.ts';

export const hexOf = (uuid: string): string => uuid.replaceAll('-', '');

/**
 * Ids of items begin with the run that they are of, by which a reference to one is found. What no run has said has its own
 * number alone.
 */
const ofRun = (runId: string | null): string => (runId === null ? '' : hexOf(runId));

const ownItem = /^(?:msg|fc|fco|mcp)_([0-9a-f]{32})[0-9a-f]{32}$/;

/** The run that an item is of, as its response has it in its id; null: it is no item of a run. */
export const runOfItem = (itemId: string): string | null => ownItem.exec(itemId)?.[1] ?? null;

export const messageItemId = (runId: string | null, messageId: string): string =>
  `msg_${ofRun(runId)}${hexOf(messageId)}`;

/** Stable for a call of a run, of which models repeat the ids. */
const callItemId = (kind: 'fc' | 'mcp' | 'fco', runId: string, callId: string, nth: number): string => {
  const own = createHash('sha256').update(`${runId}\n${callId}\n${nth}`).digest('hex').slice(0, 32);
  return `${kind}_${ofRun(runId)}${own}`;
};

/** Ids of the items of calls, in the order in which a run has made them. */
export const callItemIds = () => {
  const seen = new Map<string, number>();
  return (kind: 'fc' | 'mcp' | 'fco', runId: string, callId: string): string => {
    const name = `${kind} ${runId} ${callId}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return callItemId(kind, runId, callId, nth);
  };
};

const ownLabel = 'acp';

/**
 * The MCP server that a tool is of, from where its call went; tools of the service itself, skills, providers and remote agents
 * have one label. The name of a remote tool begins with that of its server.
 */
export const serverLabel = (toolName: string, source: string | null | undefined): string =>
  typeof source === 'string' && !isServiceToolName(toolName) && toolName.startsWith(`${source}_`) ? source : ownLabel;

export const outputText = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });

const userPart = (part: ContentPart): unknown[] => {
  if (part.type === 'Text') return part.text === '' ? [] : [{ type: 'input_text', text: part.text }];
  if (part.type === 'Document') return [{ type: 'input_text', text: part.text }];
  if (part.type !== 'Attachment') return [];
  return part.mediaType.startsWith('image/')
    ? [{ type: 'input_image', file_id: part.attachmentId, detail: 'auto' }]
    : [{ type: 'input_file', file_id: part.attachmentId, filename: part.fileName }];
};

type ToolResult = Extract<ContentPart, { type: 'ToolResult' }>;

const saidItem = ({ runId, messageId, interrupted }: ChatMessage, text: string): Item => ({
  type: 'message',
  id: messageItemId(runId, messageId),
  role: 'assistant',
  status: interrupted ? 'incomplete' : 'completed',
  content: [outputText(text)],
});

type ToolCall = Extract<ContentPart, { type: 'ToolCall' }>;

/** Results by their calls. The result of a call is behind it, before the next message of the assistant. */
const resultsOf = (messages: readonly ChatMessage[]): ReadonlyMap<ToolCall, ToolResult> => {
  const results = new Map<ToolCall, ToolResult>();
  let open = new Map<string, ToolCall>();
  for (const { role, contents } of messages) {
    if (role === 'Assistant') open = new Map();
    for (const part of contents)
      if (part.type === 'ToolCall') open.set(part.toolCallId, part);
      else if (part.type === 'ToolResult') {
        const call = open.get(part.toolCallId);
        if (call !== undefined && !results.has(call)) results.set(call, part);
      }
  }
  return results;
};

/** What tools of the provider have answered in a message, as the results of any tools, by the ids of their calls. */
const hostedResults = ({ contents }: ChatMessage): ReadonlyMap<string, ToolResult> => {
  const results = new Map<string, ToolResult>();
  for (const part of contents) {
    if (part.type !== 'HostedResult' || results.has(part.toolCallId)) continue;
    const { toolCallId, toolName, isError } = part;
    const text = JSON.stringify(readableResult(part.result));
    results.set(toolCallId, {
      ...{ type: 'ToolResult', toolCallId, toolName },
      ...{ result: isError ? null : text, errorMessage: isError ? text : null },
    });
  }
  return results;
};

/** A request that names a model brings the tools of its caller, and there are no others. */
export const itemRulesOf = (agentName: string, rules: ItemRules): ItemRules =>
  isModelName(agentName) ? { ...rules, runsOnClient: () => true } : rules;

export interface ItemRules {
  /** Whether a tool is executed by the program of the caller. */
  readonly runsOnClient: (toolName: string) => boolean;
  /** The MCP server that a tool is of, by its name: messages do not keep it. Null: of none. */
  readonly serverOf: (tenantId: string, toolName: string) => string | null;
}

/**
 * Stored messages as items; one message may be several, and a result is part of its call's where the service made it. `behind` has
 * messages that may have results of calls, and that are no items here.
 */
export const itemsOf = (
  tenantId: string,
  messages: readonly ChatMessage[],
  { runsOnClient, serverOf }: ItemRules,
  behind: readonly ChatMessage[] = [],
): Item[] => {
  const idOf = callItemIds();
  const results = resultsOf([...messages, ...behind]);

  const ranHere = (
    runId: string,
    callId: string,
    name: string,
    args: unknown,
    result: ToolResult | undefined,
  ): Item => ({
    type: 'mcp_call',
    id: idOf('mcp', runId, callId),
    server_label: serverOf(tenantId, name) ?? ownLabel,
    name,
    arguments: JSON.stringify(args),
    output: result?.result ?? null,
    error: result?.errorMessage ?? null,
    status: result === undefined ? 'incomplete' : result.errorMessage === null ? 'completed' : 'failed',
  });

  const ofAssistant = (message: ChatMessage): Item[] => {
    const runId = message.runId ?? '';
    const hosted = hostedResults(message);
    return message.contents.flatMap((part): Item[] => {
      if (part.type === 'Text') return part.text === '' ? [] : [saidItem(message, part.text)];
      if (part.type === 'HostedCall') {
        const { toolCallId, toolName } = part;
        return [ranHere(runId, toolCallId, toolName, part.arguments, hosted.get(toolCallId))];
      }
      if (part.type !== 'ToolCall') return [];
      const { toolCallId, toolName, arguments: args } = part;
      if (!runsOnClient(toolName)) return [ranHere(runId, toolCallId, toolName, args, results.get(part))];
      return [
        {
          type: 'function_call',
          id: idOf('fc', runId, toolCallId),
          call_id: toolCallId,
          name: toolName,
          arguments: JSON.stringify(args),
          status: 'completed',
        },
      ];
    });
  };

  const ofTool = ({ contents, runId }: ChatMessage): Item[] =>
    contents.flatMap((part): Item[] =>
      part.type === 'ToolResult' && runsOnClient(part.toolName)
        ? [
            {
              type: 'function_call_output',
              id: idOf('fco', runId ?? '', part.toolCallId),
              call_id: part.toolCallId,
              output: part.result ?? part.errorMessage ?? '',
              status: 'completed',
            },
          ]
        : [],
    );

  return messages.flatMap((message): Item[] => {
    if (message.role === 'Assistant') return ofAssistant(message);
    if (message.role === 'Tool') return ofTool(message);
    const content = message.contents.flatMap(userPart);
    if (content.length === 0) return [];
    const role = message.role === 'System' ? 'system' : 'user';
    return [
      { type: 'message', id: messageItemId(message.runId, message.messageId), role, status: 'completed', content },
    ];
  });
};

export interface ItemQuery {
  readonly limit?: string | undefined;
  readonly order?: string | undefined;
  readonly after?: string | undefined;
}

const defaultLimit = 20;
const mostItems = 100;

const limitOf = (limit: string | undefined): number => {
  if (limit === undefined) return defaultLimit;
  if (!/^[+-]?\d{1,9}$/.test(limit)) throw invalidField('limit', 'must be a whole number');
  return Math.min(Math.max(Number(limit), 1), mostItems);
};

/** How many items a page has at most, and in which order. */
export const pageSize = ({
  limit,
  order = 'desc',
}: ItemQuery): { readonly size: number; readonly order: 'asc' | 'desc' } => {
  if (order !== 'asc' && order !== 'desc') throw invalidField('order', 'must be asc or desc');
  return { size: limitOf(limit), order };
};

/** One page of items that are in the order in which they came. */
export const itemPage = (items: readonly Item[], query: ItemQuery) => {
  const { after } = query;
  const { size, order } = pageSize(query);
  const all = order === 'asc' ? items : items.toReversed();
  const at = after === undefined ? -1 : all.findIndex(({ id }) => id === after);
  if (after !== undefined && at < 0) throw invalidField('after', 'names no item of this list');
  const data = all.slice(at + 1, at + 1 + size);
  return {
    object: 'list' as const,
    data: [...data],
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: at + 1 + size < all.length,
  };
};
