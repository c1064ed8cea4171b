import type { Json } from '../../contract/schema.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';
import type { ChatMessage, ContentPart } from '../../engine/context/index.ts';
import type { GuardSource } from '../../engine/control/index.ts';
import { isServiceToolName } from '../../engine/tools/index.ts';
import type { Gaps } from './gaps.ts';
import type { EventPack, StoredInput } from './history.store.ts';

/** A text as a guard would have been asked about it. */
export interface RecordedText {
  readonly source: GuardSource;
  readonly toolName: string | null;
  /** The server of a RemoteTool. */
  readonly toolSource: string | null;
  readonly text: string;
  /** True: JSON whose single texts are looked at. */
  readonly isArguments: boolean;
}

/** Undefined: the text was cut, or never was JSON. */
export const jsonIn = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
};

const plain = (
  source: GuardSource,
  text: string | null,
  toolName: string | null = null,
  toolSource: string | null = null,
): RecordedText[] => (text === null || text === '' ? [] : [{ source, toolName, toolSource, text, isArguments: false }]);

/** The server that a call went to: only tools of servers are named after their source. */
const serverOf = ({ tool_name: name, source }: ToolInvocationRow): string | null =>
  source !== null && name.startsWith(`${source}_`) && !isServiceToolName(name) ? source : null;

const textsOfPart = (part: ContentPart, runId: string, gaps: Gaps): RecordedText[] => {
  if (part.type === 'Text') return plain('UserMessage', part.text);
  if (part.type === 'Document') return [...plain('Document', part.name), ...plain('Document', part.text)];
  if (part.type === 'ApprovalResponse') return plain('UserMessage', part.reason);
  if (part.type === 'ToolResult')
    return [
      ...plain('ToolResult', part.result, part.toolName),
      ...plain('ToolResult', part.errorMessage, part.toolName),
    ];
  if (part.type !== 'Attachment') return [];
  // Only the reference stands in the history; the file may be gone, and is not opened here.
  gaps.add(runId, 'Attachment', 'NotRead');
  return plain('Document', part.fileName);
};

/** What a run began with. */
export const inputTexts = (row: RunRow, input: StoredInput | undefined, gaps: Gaps): RecordedText[] => {
  if (input === undefined) {
    // A queued run keeps its input with its job until it begins.
    gaps.add(row.id, 'Input', row.status === 'Queued' ? 'RunOpen' : 'NotStored');
    return [];
  }
  const messages = JSON.parse(input.messages) as readonly ChatMessage[];
  const context =
    input.context === null ? null : (JSON.parse(input.context) as { parameters?: Record<string, string> });
  return [
    ...messages
      .filter(({ role }) => role === 'User' || role === 'Tool')
      .flatMap(({ contents }) => contents.flatMap((part) => textsOfPart(part, row.id, gaps))),
    ...Object.values(context?.parameters ?? {}).flatMap((value) => plain('UserMessage', value)),
  ];
};

/** Arguments and results of the calls of tools. */
export const callTexts = (runId: string, calls: readonly ToolInvocationRow[], gaps: Gaps): RecordedText[] =>
  calls.flatMap((call) => {
    const { tool_name: toolName, arguments: args, result, error, state, truncated, succeeded } = call;
    const server = serverOf(call);
    const resultSource = server === null ? 'ToolResult' : 'RemoteTool';
    if (args === null) gaps.add(runId, 'ToolArguments', 'NotStored');
    // One mark stands for arguments and result.
    if (truncated === 1) gaps.add(runId, 'ToolResult', 'Truncated');
    if (result === null && error === null && state === 'Settled' && succeeded === 1)
      gaps.add(runId, 'ToolResult', 'NotStored');
    return [
      ...(args === null || args === ''
        ? []
        : [{ source: 'ModelOutput' as const, toolName, toolSource: null, text: args, isArguments: true }]),
      ...plain(resultSource, result, toolName, server),
      ...plain(resultSource, error, toolName, server),
    ];
  });

type Members = Readonly<Record<string, unknown>>;

const textOf = (value: unknown): string | null =>
  value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value as Json);

/** Reads the log of a run pack by pack: what models wrote, and the calls that providers made themselves. */
export const createEventTexts = (runId: string, gaps: Gaps) => {
  const reasoning = new Map<string, string>();
  const hosted = new Set<string>();
  let events = 0;
  let lacksReasoning = false;

  /** Part of a call that a provider made itself; the others have rows of their own. */
  const payload = (members: Members, name: string, part: 'ToolArguments' | 'ToolResult'): RecordedText[] => {
    if (members['truncated'] === true) gaps.add(runId, part, 'Truncated');
    const text = textOf(members[name]);
    if (text === null) gaps.add(runId, part, 'NotStored');
    if (text === null || text === '') return [];
    const isArguments = part === 'ToolArguments';
    return [
      {
        source: isArguments ? 'ModelOutput' : 'ToolResult',
        toolName: textOf(members['toolName']),
        toolSource: null,
        text,
        isArguments,
      },
    ];
  };

  const readers: Readonly<Record<string, (members: Members) => RecordedText[]>> = {
    'message.completed': (members) => plain('ModelOutput', textOf(members['text'])),
    'reasoning.delta'(members) {
      const text = textOf(members['text']);
      if (text === null) lacksReasoning = true;
      const message = String(members['messageId'] ?? '');
      reasoning.set(message, (reasoning.get(message) ?? '') + (text ?? ''));
      return [];
    },
    'tool.invoking'(members) {
      if (!String(members['source'] ?? '').startsWith('provider:')) return [];
      hosted.add(String(members['toolCallId']));
      return payload(members, 'arguments', 'ToolArguments');
    },
    'tool.invoked': (members) =>
      hosted.has(String(members['toolCallId'])) ? payload(members, 'result', 'ToolResult') : [],
    'tool.failed': (members) =>
      hosted.has(String(members['toolCallId'])) ? payload(members, 'error', 'ToolResult') : [],
  };

  return {
    read({ events: pack }: EventPack): RecordedText[] {
      const entries = JSON.parse(pack) as readonly [string, number, Members][];
      events += entries.length;
      return entries.flatMap(([type, , members]) => readers[type]?.(members) ?? []);
    },
    /** The rest, which is known once all packs were read. */
    end({ completed_at: completedAt, event_count: expected }: RunRow): RecordedText[] {
      if (completedAt === null) gaps.add(runId, 'Events', 'RunOpen');
      else if (events < expected || events === 0) gaps.add(runId, 'Events', 'NotStored');
      if (lacksReasoning) gaps.add(runId, 'Reasoning', 'NotStored');
      return [...reasoning.values()].flatMap((text) => plain('ModelOutput', text));
    },
  };
};
