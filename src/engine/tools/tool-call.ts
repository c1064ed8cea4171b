import type { Json } from '../../contract/schema.ts';
import type { Principal } from '../../core/context.ts';
import type { ContinuedCall, ToolQuestions } from './questions.ts';
import type { RegisteredTool } from './registry.ts';
import type { AttachmentDescriptor, OpensSpan, ToolAuthorizer, ToolCallUsage, ToolRun } from './tool.ts';
import type { Truncation } from './tool-output.ts';

/** One call of one tool, as the model asked for it. */
export interface ToolCallRequest {
  /** Undefined when the agent has no tool of this name. */
  readonly tool: RegisteredTool | undefined;
  readonly toolName: string;
  readonly toolCallId: string;
  /** The model's text, which may be no JSON. */
  readonly argumentsText: string;
  readonly run: ToolRun;
  readonly principal: Principal;
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** Joins the log line of a foreign error to the request. */
  readonly requestId: string;
  /** W3C Trace Context of the call's span, for what the tool calls over HTTP. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** True: there is a person who can be asked while the call is made. Default: nobody. */
  readonly mayAsk?: boolean;
  /** What was said to the questions of the call before; absent: it begins. */
  readonly continued?: ContinuedCall;
  /** Absent where nothing is traced. */
  readonly openSpan?: OpensSpan;
}

/** What the run hears of a body. */
export interface ToolCallHooks {
  /** A result before it is cut, as it may go on; left out where nothing is inspected. Never rejects. */
  inspect?(text: string): Promise<string>;
  /** A custom event, already checked; never called after the call has settled. */
  emit(customType: string, payload: Json): void;
}

/** The part of a logger that calls use. */
export interface ToolLog {
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export interface ToolCallDeps {
  /** Null: `requiredPermission` alone decides. */
  readonly authorizer: ToolAuthorizer | null;
  readonly defaultTimeoutMs: number;
  /** Null: no limit. */
  readonly defaultMaxOutputBytes: number | null;
  /** Keeps a file for the run and its session. Throws ToolError for one that the rules refuse. */
  saveAttachment(
    run: ToolRun,
    principal: Principal,
    bytes: Uint8Array,
    fileName: string,
  ): Promise<AttachmentDescriptor>;
  readonly log: ToolLog;
}

export type ToolCallStatus = 'succeeded' | 'failed' | 'timed_out' | 'denied' | 'invalid' | 'canceled' | 'waiting';

export interface ToolOutcome {
  readonly status: ToolCallStatus;
  /** What the model gets, already cut to the limit. */
  readonly text: string;
  /** The same text for a call that did not succeed, else null. */
  readonly error: string | null;
  /** Canonical JSON of the arguments, or the model's own text when it is no JSON. */
  readonly arguments: string;
  /** Time of the body; of the checks when it did not run; null where a client executed the call. */
  readonly durationMs: number | null;
  readonly usage: ToolCallUsage | null;
  readonly truncation: Truncation | null;
  /** Class name of a thrown error, for `error.type` of the span; null without one. */
  readonly errorClass: string | null;
  /** Of a call that was made and waits for answers. */
  readonly asked?: ToolQuestions;
}

/** True for the ends that count towards `Tools:MaxConsecutiveErrors`; denials and cancellations do not. */
export const isToolFailure = (status: ToolCallStatus): boolean =>
  status === 'failed' || status === 'timed_out' || status === 'invalid';
