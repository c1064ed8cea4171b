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

export const createTurnSteps = (
  first: number,
  write: (sequence: number, content: string) => Statement,
  continues: boolean,
) => {
  let next = first;
  const step = (content: TurnStep): Statement => {
    const statement = write(next, JSON.stringify(content));
    next += 1;
    return statement;
  };
  return {
    /** True: another attempt or run continues the turn. False: its session alone gets it, if this process dies. */
    continues,
    get isEmpty(): boolean {
      return next === 0;
    },
    resume: ({ messages, calls }: TurnResume): Statement => step({ kind: 'resume', messages, calls }),
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

/** The message that the answers of a turn's calls make, named after the message that has the calls, or one beside it. */
const answersOf = (asking: ChatMessage, calls: readonly OpenCall[]): ChatMessage[] => {
  const contents = calls.flatMap(({ answer }): ContentPart[] =>
    typeof answer !== 'string' && answer.type === 'ToolResult' ? [answer] : [],
  );
  if (contents.length === 0) return [];
  return [{ ...asking, messageId: `${asking.messageId}-results`, role: 'Tool', contents }];
};

const afterSteps = (steps: readonly TurnStep[]): Omit<StoredTurn, 'origin'> => {
  let messages: ChatMessage[] = [];
  let calls: readonly OpenCall[] = [];
  let usage: ModelUsage | null = null;
  let cost: CostMicros | null = null;
  for (const step of steps) {
    if (step.kind === 'resume') {
      messages = [...step.messages];
      calls = step.calls;
    } else if (step.kind === 'message') {
      messages = [...messages, ...answersOf(messages.at(-1) ?? step.message, calls), step.message];
      calls = step.calls;
      usage = step.usage;
      cost = step.cost;
    } else if (step.kind === 'result')
      calls = calls.map((open) => (open.idempotencyKey === step.key ? { ...open, answer: step.part } : open));
  }
  return { messages, calls, usage, cost };
};

/** The state of a turn after these steps; null when another run cannot continue from any of them. */
export const storedTurn = (steps: readonly TurnStep[]): StoredTurn | null => {
  const [start] = steps;
  return start?.kind === 'start' ? { origin: start.origin, ...afterSteps(steps) } : null;
};

/**
 * What the session keeps of a turn that was cut off after these steps. `input`: the recorded one, which begins with
 * `history` messages of the caller; `answers`: the message that results have where no message of the turn asked for them.
 */
export const keptMessages = (
  steps: readonly TurnStep[],
  input: readonly ChatMessage[],
  history: number,
  answers: ChatMessage,
): ChatMessage[] => {
  const { messages, calls } = afterSteps(steps);
  const own = [...messages, ...answersOf(messages.at(-1) ?? answers, calls)];
  const known = new Set(own.map(({ messageId }) => messageId));
  const rest = input.slice(history).filter(({ messageId }) => !known.has(messageId));
  // The answers to open calls come before the user's next message.
  const isResumed = steps.some(({ kind }) => kind === 'resume');
  return [...input.slice(0, history), ...(isResumed ? [...own, ...rest] : [...rest, ...own])];
};
