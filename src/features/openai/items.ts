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

/** What a tool of the provider has answered to its call, as the result of any tool; undefined: there is no answer. */
const hostedResult = (
  { contents }: ChatMessage,
  { toolCallId, toolName }: Extract<ContentPart, { type: 'HostedCall' }>,
): ToolResult | undefined => {
  const answer = contents.find((part) => part.type === 'HostedResult' && part.toolCallId === toolCallId);
  if (answer?.type !== 'HostedResult') return undefined;
  const text = JSON.stringify(readableResult(answer.result));
  const { isError } = answer;
  return {
    ...{ type: 'ToolResult', toolCallId, toolName },
    ...{ result: isError ? null : text, errorMessage: isError ? text : null },
  };
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

/** Stored messages as items; one message may be several, and a result is part of its call's where the service made it. */
export const itemsOf = (
  tenantId: string,
  messages: readonly ChatMessage[],
  { runsOnClient, serverOf }: ItemRules,
): Item[] => {
  const idOf = callItemIds();

  /** The result of a call is behind it, before the same id is used again. */
  const resultOf = (index: number, callId: string): ToolResult | undefined =>
    messages
      .slice(index + 1)
      .flatMap(({ contents }) => contents)
      .find((part): part is ToolResult => part.type === 'ToolResult' && part.toolCallId === callId);

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

  const ofAssistant = (message: ChatMessage, index: number): Item[] => {
    const runId = message.runId ?? '';
    return message.contents.flatMap((part): Item[] => {
      if (part.type === 'Text') return part.text === '' ? [] : [saidItem(message, part.text)];
      if (part.type === 'HostedCall') {
        const { toolCallId, toolName } = part;
        return [ranHere(runId, toolCallId, toolName, part.arguments, hostedResult(message, part))];
      }
      if (part.type !== 'ToolCall') return [];
      const { toolCallId, toolName, arguments: args } = part;
      if (!runsOnClient(toolName)) return [ranHere(runId, toolCallId, toolName, args, resultOf(index, toolCallId))];
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

  return messages.flatMap((message, index): Item[] => {
    if (message.role === 'Assistant') return ofAssistant(message, index);
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

/** One page of items that are in the order in which they came. */
export const itemPage = (items: readonly Item[], { limit, order, after }: ItemQuery) => {
  const size = limitOf(limit);
  if (order !== undefined && order !== 'asc' && order !== 'desc') throw invalidField('order', 'must be asc or desc');
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
