import type { Json } from '../../contract/schema.ts';
import type { AttributeInput } from '../../core/telemetry/span.ts';
import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';

/** Read is the default of code tools. It informs people and policies, and rules what an interrupted run may repeat. */
export const toolEffects = ['Read', 'Write', 'Destructive', 'External'] as const;
export type ToolEffect = (typeof toolEffects)[number];

/** What a tool spent, in its own unit (`[a-z0-9-]{1,32}`). A null cost is unknown, never 0. */
export interface ToolCallUsage {
  readonly unit: string;
  readonly quantity: number;
  readonly cost: number | null;
  readonly currency: string | null;
  readonly isEstimated: boolean;
}

/** A tool as the catalog, policies and authorizers see it. */
export interface ToolDescriptor {
  readonly name: string;
  readonly description: string | null;
  readonly jsonSchema: Json | null;
  readonly kind: 'Code' | 'BuiltIn' | 'Client' | 'Mcp' | 'RemoteAgent';
  /** Name of the MCP server that offers it, or of the remote agent that it calls; null otherwise. */
  readonly source: string | null;
  readonly effect: ToolEffect;
  readonly requiresApproval: boolean;
  readonly runsOnClient: boolean;
  readonly requiredPermission: string | null;
  /** Null: `Tools:DefaultTimeout`. */
  readonly timeoutMs: number | null;
  /** Null: `Tools:DefaultMaxOutputBytes`. */
  readonly maxOutputBytes: number | null;
  readonly safeToRepeat: boolean;
}

export interface AttachmentDescriptor {
  readonly id: string;
  readonly tenantId: string;
  readonly sessionId: string | null;
  readonly runId: string | null;
  readonly fileName: string;
  readonly mediaType: string;
  readonly byteSize: number;
  readonly sha256: string;
  readonly createdBy: string | null;
  readonly createdAt: string;
}

/** The run that a call belongs to. */
export interface ToolRun {
  readonly tenantId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly rootRunId: string;
  readonly sessionId: string | null;
  readonly userId: string | null;
}

/** What the body of a tool gets beside its arguments. */
export interface ToolContext extends ToolRun {
  readonly toolCallId: string;
  /** W3C Trace Context of this call, to be sent along with what the body calls; absent while observability is off. */
  readonly traceparent?: string;
  /** The `tracestate` beside it; absent where the caller of the run has sent none. */
  readonly tracestate?: string;
  /** Equal for every execution of the same call, so that an outside service can drop a repeated one. */
  readonly idempotencyKey: string;
  /** Aborted on timeout and when the run is cancelled; what the body returns after that is dropped. */
  readonly signal: AbortSignal;
  /** Writes a `custom` event of the run. `customType` is `[a-z0-9._-]{1,128}` and does not start with `acp.`. */
  emit(customType: string, payload: Json): void;
  saveAttachment(bytes: Uint8Array, fileName: string): Promise<AttachmentDescriptor>;
  /** The last report of a call counts. */
  reportUsage(usage: ToolCallUsage): void;
}

/** A tool as a module declares it. */
export interface ToolDefinition {
  /** `[A-Za-z0-9_-]{1,64}`, exact case. */
  readonly name: string;
  /** Tells the model when and how to call it. */
  readonly description: string;
  /** JSON Schema 2020-12 whose root has the type `object`. */
  readonly inputSchema: Json;
  readonly effect?: ToolEffect;
  readonly requiresApproval?: boolean;
  /** A permission that the principal must carry when no authorizer is registered. */
  readonly requiredPermission?: string | null;
  readonly runsOnClient?: boolean;
  /** 1..86400000. */
  readonly timeoutMs?: number;
  /** At least 57, the size of an empty truncation envelope. */
  readonly maxOutputBytes?: number;
  /** True: a Destructive or External call may run again with the same arguments. */
  readonly safeToRepeat?: boolean;
  /** Checks beyond the schema: messages for the model, empty when all is well. */
  validate?(args: Json): string[];
  /** A string goes to the model as it is, everything else as JSON. */
  execute?(args: Json, context: ToolContext): Promise<Json | string | null>;
}

/** Asked before every call. Throwing, or taking more than 5 s, denies. */
export interface ToolAuthorizer {
  authorize(call: {
    tool: ToolDescriptor;
    /** Null when the model's text is not JSON. */
    arguments: Json;
    context: Omit<ToolContext, 'signal'>;
    principal: Json;
  }): Promise<{ allowed: boolean; reason?: string }>;
}

/** Longest text that a tool's author may give the model in place of a result, in UTF-16 units. */
export const maxToolErrorLength = 2000;

/** The first `length` units of a text, never half a character. */
export const cutText = (text: string, length: number): string => {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? length - 1 : length);
};

/**
 * Thrown by a body whose message the model shall read; at most 2000 characters are kept. Every other error reaches
 * the model by its class name only. A module that cannot import this class sets `name` to `ToolError` instead.
 */
export class ToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(cutText(message, maxToolErrorLength), options);
    this.name = 'ToolError';
  }
}

/** How a body of the service itself ends its call other than by a result: with a text for the model and one for the record. */
export class ToolStop extends Error {
  readonly status: 'failed' | 'timed_out';
  /** What the record of the call says; the model gets `message`. */
  readonly recorded: string;

  constructor(status: 'failed' | 'timed_out', message: string, recorded = message) {
    super(message);
    this.name = 'ToolStop';
    this.status = status;
    this.recorded = recorded;
  }
}

/** True for the class itself and for an error of another realm or bundle that names itself so. */
export const isToolError = (error: unknown): error is Error => error instanceof Error && error.name === 'ToolError';

/** A span below that of a call. `close` ends it; an error type marks it as failed. */
export interface OpenSpan {
  /** What makes the work of whom is asked a part of it; empty: nothing is traced. */
  readonly headers: Partial<TraceHeaders>;
  set(attributes: AttributeInput): void;
  close(errorType: string | null): void;
}

/** Opens one; of the kind `Client` where it stands for a request to somewhere else. */
export type OpensSpan = (name: string, attributes: AttributeInput, kind?: 'Internal' | 'Client') => OpenSpan;

/** The class of what was thrown. A class name is foreign text too: only what looks like one is passed on. */
export const errorClassOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'Error';
  const name: unknown = error.name === 'Error' ? error.constructor.name : error.name;
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? name : 'Error';
};
