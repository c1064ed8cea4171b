import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { ToolInvocationRow } from '../../db/tables.ts';
import type { FinishReason } from '../../engine/active-run.ts';
import type { ChatMessage, ContentPart } from '../../engine/context/index.ts';
import type { RecordedModelCall } from '../../engine/record/index.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { BundleStep, BundleTool, BundleToolCall } from './bundle.format.ts';

export type LoggedEvent = Readonly<Record<string, Json>>;

/** What the store has of one run. */
export interface RecordedRun {
  readonly events: readonly LoggedEvent[];
  /** Settled calls in the order of calling. */
  readonly ledger: readonly ToolInvocationRow[];
  readonly calls: readonly RecordedModelCall[];
  /** What the session kept of the turn: whole payloads, where the log has cut ones. */
  readonly turn: readonly ChatMessage[];
  readonly error: { readonly class: string; readonly type: string; readonly message: string } | null;
}

type Part<T extends ContentPart['type']> = Extract<ContentPart, { type: T }>;

const partsOf = <T extends ContentPart['type']>(messages: readonly ChatMessage[], type: T): Part<T>[] =>
  messages.flatMap(({ contents }) => contents.filter((part): part is Part<T> => part.type === type));

const wholeResult = (part: Part<'ToolResult'> | undefined): Pick<BundleTool, 'result' | 'error'> | null =>
  part === undefined ? null : { result: part.result, error: part.errorMessage };

/** Takes the rows of one tool call id in their order: some providers give the same id again. */
const takerOf = <T>(entries: readonly T[], idOf: (entry: T) => string) => {
  const left = Map.groupBy(entries, idOf);
  return (id: string): T | undefined => left.get(id)?.shift();
};

const parsed = (text: string): Json => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // A model may write arguments that are no JSON; they are the text then, as in the conversation.
    return text;
  }
};

const argumentsText = (args: Json): string => (typeof args === 'string' ? args : canonicalJson(args));

const messageCall = (parts: readonly Part<'ToolCall'>[] | null, id: string): BundleToolCall | null => {
  const part = parts?.find(({ toolCallId }) => toolCallId === id);
  return part === undefined ? null : { toolCallId: id, toolName: part.toolName, arguments: part.arguments as Json };
};

/** A row is cut where its arguments or its result are; arguments that are still JSON were kept whole. */
const ledgerCall = (row: ToolInvocationRow | undefined, id: string): BundleToolCall | null => {
  if (row === undefined || row.arguments === null) return null;
  const args = parsed(row.arguments);
  if (row.truncated === 1 && typeof args === 'string') return null;
  return { toolCallId: id, toolName: row.tool_name, arguments: args };
};

/** How a call ended: from the session where that has it whole, else from the ledger. */
const settledOf = (
  row: ToolInvocationRow | undefined,
  whole: Pick<BundleTool, 'result' | 'error'> | null,
): Omit<BundleTool, keyof BundleToolCall> => ({
  result: (whole === null ? row?.result : whole.result) ?? null,
  error: (whole === null ? row?.error : whole.error) ?? null,
  succeeded: whole === null ? row?.succeeded === 1 : whole.error === null,
  authorizationDenied: row?.authorization_denied === 1,
  timedOut: row?.timed_out === 1,
  truncated: whole === null && row?.truncated === 1,
});

const minus = (after: ModelUsage, before: ModelUsage | null): ModelUsage =>
  Object.fromEntries(
    Object.entries(after).map(([name, count]) => [
      name,
      count === null ? null : count - (before?.[name as keyof ModelUsage] ?? 0),
    ]),
  ) as unknown as ModelUsage;

interface LoggedAnswer {
  readonly messageId: string;
  readonly text: string;
  readonly finishReason: FinishReason;
  readonly paused: boolean;
  readonly fallbacks: BundleStep['fallbacks'];
  /** Of the calls that followed it, in the order of their first event. */
  readonly followedBy: Set<string>;
  usage: ModelUsage | null;
}

interface LoggedAnswers {
  readonly answers: LoggedAnswer[];
  /** How many of them are of earlier attempts. */
  readonly earlier: number;
  /** Of a call that had no answer. */
  readonly open: BundleStep['fallbacks'];
}

/** The model's answers as the log has them. */
const loggedAnswers = (events: readonly LoggedEvent[]): LoggedAnswers => {
  const answers: LoggedAnswer[] = [];
  let earlier = 0;
  let fallbacks: { provider: string; model: string; errorClass: string }[] = [];
  let usage: ModelUsage | null = null;
  for (const event of events) {
    if (event['type'] === 'run.started') {
      earlier = answers.length;
      fallbacks = [];
    }
    if (event['type'] === 'model.fallback-used')
      fallbacks.push({
        provider: String(event['fromProvider']),
        model: String(event['fromModel']),
        errorClass: String(event['errorClass']),
      });
    if (event['type'] === 'message.completed') {
      const { messageId, text, finishReason } = event as unknown as LoggedAnswer;
      const paused = event['paused'] === true;
      answers.push({ messageId, text, finishReason, paused, fallbacks, followedBy: new Set(), usage: null });
      fallbacks = [];
    }
    if (String(event['type']).startsWith('tool.')) answers.at(-1)?.followedBy.add(String(event['toolCallId']));
    if (event['type'] === 'usage.updated') {
      const now = (event['usage'] ?? null) as ModelUsage | null;
      const last = answers.at(-1);
      if (last !== undefined && last.usage === null && now !== null) last.usage = minus(now, usage);
      usage = now ?? usage;
    }
  }
  return { answers, earlier, open: fallbacks };
};

/** Failures that came with the model's answer; every other one ended a call from outside. */
const modelFailures: ReadonlySet<string> = new Set([
  'ProviderError',
  'ProviderUnavailable',
  'RateLimited',
  'Timeout',
  'ContentFiltered',
]);

/** Steps and tool calls of a run, put together from its log, its ledger, its session and the record of its calls. */
export const recordedSteps = (run: RecordedRun): { steps: BundleStep[]; tools: BundleTool[] } => {
  const { answers: logged, earlier, open } = loggedAnswers(run.events);
  // The calls are those of the last attempt, which made the answers again that no earlier attempt had kept.
  const firstCall = run.calls[0]?.callNumber ?? earlier + 1;
  const answers = [...logged.slice(0, Math.min(earlier, firstCall - 1)), ...logged.slice(earlier)];
  const before = answers.length - (logged.length - earlier);
  const takeRow = takerOf(run.ledger, (row) => row.tool_call_id);
  const takeResult = takerOf(partsOf(run.turn, 'ToolResult'), (part) => part.toolCallId);
  const tools: BundleTool[] = [];

  const recordTool = (call: BundleToolCall, row: ToolInvocationRow | undefined): void => {
    const result = wholeResult(takeResult(call.toolCallId));
    if (row === undefined && result === null) return;
    tools.push({ ...call, arguments: argumentsText(call.arguments), ...settledOf(row, result) });
  };

  const toolCalls = (answer: LoggedAnswer, ids: readonly string[] | null): BundleToolCall[] | string => {
    const message = run.turn.find(({ messageId }) => messageId === answer.messageId);
    const parts = message === undefined ? null : partsOf([message], 'ToolCall');
    if (parts === null && ids === null)
      return answer.finishReason === 'ToolCalls' ? 'The tool calls of the answer were not recorded.' : [];
    const calls: BundleToolCall[] = [];
    let missing: string | null = null;
    for (const id of parts?.map((part) => part.toolCallId) ?? ids ?? []) {
      const row = takeRow(id);
      const call = messageCall(parts, id) ?? ledgerCall(row, id);
      if (call === null) missing ??= `The arguments of call ${id} were not recorded whole.`;
      else {
        calls.push(call);
        recordTool(call, row);
      }
    }
    return missing ?? calls;
  };

  const steps = answers.map((answer, index): BundleStep => {
    const call = run.calls[index - before];
    // Which calls an answer of an earlier attempt had is known from what followed it alone.
    const calls = toolCalls(answer, call?.toolCallIds ?? (index < before ? [...answer.followedBy] : null));
    const { text, finishReason, paused, usage, fallbacks } = answer;
    const isWhole = typeof calls !== 'string';
    return {
      // A run that goes on with another one's turn counts on from its calls.
      number: call?.callNumber ?? index + 1,
      prompt: call?.prompt ?? null,
      answer: isWhole ? { text, toolCalls: calls, finishReason, usage, ...(paused && { paused }) } : null,
      failure: null,
      fallbacks,
      missing: isWhole ? null : calls,
    };
  });
  const failed = run.calls[answers.length - before];
  if (failed !== undefined)
    steps.push({
      number: failed.callNumber,
      prompt: failed.prompt,
      answer: null,
      failure: run.error !== null && modelFailures.has(run.error.class) ? run.error : null,
      fallbacks: open,
      missing: null,
    });
  return { steps, tools };
};
