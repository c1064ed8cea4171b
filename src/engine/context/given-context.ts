import type {
  ModelResponseFormat,
  ModelSampling,
  ModelTool,
  ModelToolChoice,
} from '../../providers/models/model-provider.ts';
import type { ChatMessage } from './chat-message.ts';

/** What a caller brings beside the message of its run, because it keeps the conversation itself or speaks to the model. */
export interface GivenContext {
  /** What was said before the message, after what the session has; the session keeps it with the turn. */
  readonly history: readonly ChatMessage[];
  /** Follow the agent's own, for this run alone; null: none. */
  readonly instructions: string | null;
}

/** What a caller decided of the agent of its run, as it is kept with the input. Absent: what the agent has. */
export interface AskedSettings {
  readonly temperature?: number;
  readonly topP?: number;
  readonly reasoningEffort?: string;
  readonly sampling?: ModelSampling;
  readonly toolChoice?: ModelToolChoice;
  /** Calls of tools come one in each turn. */
  readonly singleToolCalls?: true;
  /** Lowers the agent's own. */
  readonly maxOutputTokens?: number;
  readonly responseFormat?: ModelResponseFormat;
  /** Those of the caller's program, and no others. */
  readonly tools?: readonly AskedTool[];
}

export interface AskedTool extends Pick<ModelTool, 'name' | 'inputSchema' | 'strict'> {
  readonly description: string;
}

const noMessages: readonly ChatMessage[] = [];

/** What went before the messages of the run itself, as the model reads it. */
export const historyOf = ({
  session,
  plan,
}: {
  readonly session: { readonly history: readonly ChatMessage[] } | null;
  readonly plan: { readonly given: GivenContext | null };
}): readonly ChatMessage[] => {
  const given = plan.given?.history ?? noMessages;
  if (session === null || session.history.length === 0) return given;
  return given.length === 0 ? session.history : [...session.history, ...given];
};

/** The system text of a run: the agent's, then the caller's. */
export const withGiven = (instructions: string | null, given: GivenContext | null): string | null => {
  if (given === null || given.instructions === null) return instructions;
  return instructions === null ? given.instructions : `${instructions}\n\n${given.instructions}`;
};
