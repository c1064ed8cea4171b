import { RunFailure } from '../run-failure.ts';
import type { ToolOutcome } from '../tools/index.ts';
import { normalizedArguments } from './turn-resume.ts';

/** A run that repeats another one. */
export interface RunReplay {
  readonly sourceRunId: string;
  /** True: tools have their effects, so no model call is answered from the response cache either. */
  readonly isLive: boolean;
  /** Answers every call in place of the tools and agents; null: they are called. */
  readonly tools: RecordedTools | null;
  /** Set where there is neither a model nor a host to ask: what the service decided in the recorded run. */
  readonly decisions?: RecordedDecisions;
}

/** What the service itself decided and said between the model's answers. Each throws RunFailure where the recording ends. */
export interface RecordedDecisions {
  /** The model's next input in the loop, or null at its end; null in its place: the loop decides by itself. */
  readonly loop: { next(): Promise<string | null> } | null;
  /** Why the next final answer was rejected, or null; null in its place: the answer is checked. */
  readonly rejection: (() => AnswerRejection | null) | null;
  /** What the next summary of a history says as a message; null: none could be made. */
  summary(): string | null;
}

/** Why an answer was rejected, and what the model is told of it; the text itself is nowhere in it. */
export interface AnswerRejection {
  readonly reason: string;
  readonly repair: string;
}

/** One recorded call, as the ledger has it. */
export interface RecordedCall {
  readonly toolName: string;
  /** Canonical JSON, or the model's own text where that was no JSON. Null or cut: it equals no call. */
  readonly arguments: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly succeeded: boolean;
  readonly authorizationDenied: boolean;
  readonly timedOut: boolean;
  /** Part of the payload was not kept. */
  readonly truncated: boolean;
}

/** Recorded answers by call. */
export interface RecordedTools {
  /** The next recorded answer to an equal call. Throws RunFailure `replay_result_missing`. */
  answer(toolName: string, argumentsText: string): ToolOutcome;
}

const missing = (toolName: string): RunFailure =>
  new RunFailure(
    'ToolError',
    'replay_result_missing',
    `The recording has no whole result for this call of tool "${toolName}".`,
  );

const statusOf = (call: RecordedCall): ToolOutcome['status'] => {
  if (call.succeeded) return 'succeeded';
  if (call.authorizationDenied) return 'denied';
  return call.timedOut ? 'timed_out' : 'failed';
};

/** The n-th equal call gets the n-th recorded result; equal are name and canonical arguments. `calls` in order of calling. */
export const recordedTools = (calls: readonly RecordedCall[]): RecordedTools => {
  const keyOf = (toolName: string, args: string): string => `${toolName}\n${args}`;
  const left = Map.groupBy(
    calls.filter((call) => call.arguments !== null),
    (call) => keyOf(call.toolName, normalizedArguments(call.arguments ?? '')),
  );
  return {
    answer(toolName, argumentsText) {
      const args = normalizedArguments(argumentsText === '' ? '{}' : argumentsText);
      const call = left.get(keyOf(toolName, args))?.shift();
      const text = call?.succeeded === true ? call.result : call?.error;
      if (call === undefined || call.truncated || text === null || text === undefined) throw missing(toolName);
      return {
        status: statusOf(call),
        text,
        error: call.succeeded ? null : text,
        arguments: args,
        durationMs: 0,
        usage: null,
        truncation: null,
        errorClass: null,
      };
    },
  };
};
