import type { ModelErrorType } from '../model-error.ts';
import type { ModelJson, ModelUsage } from '../model-provider.ts';

/** A checked script: the first rule that matches a call answers it. */
export interface Script {
  readonly file: string;
  readonly rules: readonly ScriptRule[];
}

export interface ScriptRule {
  readonly when: ScriptCondition;
  readonly reply: ScriptReply;
}

/** All conditions that are given must hold; null: not asked. */
export interface ScriptCondition {
  /** On the last user message: a text that it contains, case aside, or a pattern. */
  readonly message: string | RegExp | null;
  /** Name of the tool whose result is the last message. */
  readonly tool: string | null;
  /** Number of the call within the run, from 1. */
  readonly call: number | null;
  readonly model: string | null;
}

/** Given in this order: text, stall, error; without an error: tool calls, usage and the end. */
export interface ScriptReply {
  readonly text: string;
  /** Characters of one chunk; null: the text in one piece. */
  readonly chunkSize: number | null;
  /** Wait between two chunks. */
  readonly delayMs: number;
  readonly toolCalls: readonly ScriptToolCall[];
  readonly usage: ModelUsage | 'estimated';
  readonly stall: number | 'until-canceled' | null;
  readonly error: ScriptFault | null;
}

export interface ScriptToolCall {
  readonly name: string;
  /** A text is sent as it is, which may be broken JSON on purpose. */
  readonly arguments: ModelJson;
}

export interface ScriptFault {
  readonly type: ModelErrorType;
  readonly httpStatus: number | null;
  readonly retryAfterMs: number | null;
}
