import type { Statement } from '../../db/statement.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { ChatMessage, ContentPart, OpenCall, ToolResultPart, TurnResume } from '../context/index.ts';
import type { CostMicros } from '../pricing.ts';

/** One stored step of a turn that may have to go on in another attempt or run. */
export type TurnStep =
  | { readonly kind: 'start'; readonly origin: TurnOrigin }
  /** The turn began with what another run had produced. */
  | { readonly kind: 'resume'; readonly messages: readonly ChatMessage[]; readonly calls: readonly OpenCall[] }
  | {
      readonly kind: 'message';
      readonly message: ChatMessage;
      readonly calls: readonly OpenCall[];
      /** Of all attempts up to here. */
      readonly usage: ModelUsage;
      readonly cost: CostMicros | null;
    }
  | { readonly kind: 'result'; readonly key: string; readonly part: ToolResultPart };

/** What a continuation needs of its source beside the row. */
export interface TurnOrigin {
  readonly requestId: string;
  readonly culture: string | null;
  readonly parameters: Readonly<Record<string, string>>;
  /** As the runs feature keeps it. */
  readonly principal: unknown;
}

/** The state of a turn as its steps tell it. */
export interface StoredTurn {
  readonly origin: TurnOrigin;
  readonly messages: readonly ChatMessage[];
  readonly calls: readonly OpenCall[];
  readonly usage: ModelUsage | null;
  readonly cost: CostMicros | null;
}

/** Writes the steps of one run: one small row each, together with the events of the moment. */
export type TurnSteps = ReturnType<typeof createTurnSteps>;

export const createTurnSteps = (first: number, write: (sequence: number, content: string) => Statement) => {
  let next = first;
  const step = (content: TurnStep): Statement => {
    const statement = write(next, JSON.stringify(content));
    next += 1;
    return statement;
  };
  return {
    start: (origin: TurnOrigin, resume: TurnResume | null): readonly Statement[] => [
      step({ kind: 'start', origin }),
      ...(resume === null ? [] : [step({ kind: 'resume', messages: resume.messages, calls: resume.calls })]),
    ],
    message: (
      message: ChatMessage,
      calls: readonly OpenCall[],
      usage: ModelUsage,
      cost: CostMicros | null,
    ): Statement => step({ kind: 'message', message, calls, usage, cost }),
    result: (key: string, part: ToolResultPart): Statement => step({ kind: 'result', key, part }),
  };
};

/** The message that the answers of a turn's calls make, named after the message that has the calls. */
const answersOf = (messages: readonly ChatMessage[], calls: readonly OpenCall[]): ChatMessage[] => {
  const asking = messages.at(-1);
  if (calls.length === 0 || asking === undefined) return [];
  const contents = calls.flatMap(({ answer }): ContentPart[] =>
    typeof answer !== 'string' && answer.type === 'ToolResult' ? [answer] : [],
  );
  return [{ ...asking, messageId: `${asking.messageId}-results`, role: 'Tool', contents }];
};

/** Where a turn stands after these steps; null when it has none. */
export const storedTurn = (steps: readonly TurnStep[]): StoredTurn | null => {
  const [start] = steps;
  if (start?.kind !== 'start') return null;
  let messages: ChatMessage[] = [];
  let calls: readonly OpenCall[] = [];
  let usage: ModelUsage | null = null;
  let cost: CostMicros | null = null;
  for (const step of steps) {
    if (step.kind === 'resume') {
      messages = [...step.messages];
      calls = step.calls;
    } else if (step.kind === 'message') {
      messages = [...messages, ...answersOf(messages, calls), step.message];
      calls = step.calls;
      usage = step.usage;
      cost = step.cost;
    } else if (step.kind === 'result')
      calls = calls.map((open) => (open.idempotencyKey === step.key ? { ...open, answer: step.part } : open));
  }
  return { origin: start.origin, messages, calls, usage, cost };
};
