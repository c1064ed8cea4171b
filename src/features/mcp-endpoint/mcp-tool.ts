import type { RpcParams } from '../../contract/json-rpc.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';

/** A tool as the list shows it. */
export interface McpToolShape {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: Json;
  readonly outputSchema?: Json;
  readonly annotations?: Readonly<Record<string, boolean>>;
}

/** A call of the endpoint. */
export interface McpCallContext extends CallContext {
  /** Address of the service as the caller has it, with the prefix. Links in answers are below it. */
  readonly base: string;
}

/** What a tool has answered. */
export interface McpToolResult {
  readonly content: readonly Readonly<Record<string, Json>>[];
  readonly structuredContent?: Readonly<Record<string, Json>>;
  readonly isError?: boolean;
}

/** A call that was answered with its own end, or goes on behind a handle. */
export type McpCallEnd =
  | { readonly kind: 'result'; readonly result: McpToolResult }
  | { readonly kind: 'task'; readonly task: Readonly<Record<string, Json>> };

/** How a call is made, as its generation allows. */
export interface McpCallOptions {
  /** Whether a call that takes longer may be answered by a task. */
  readonly mayBecomeTask: boolean;
  /** Called with each step of the work; null: nobody follows. */
  readonly onProgress: (() => void) | null;
  /** Ends the work when it is aborted, before a handle was given; null: only what is asked for ends it. */
  readonly gone: AbortSignal | null;
  /** Told how the work can be ended from elsewhere, and called again once it is over. */
  readonly underway: (cancel: () => void) => () => void;
}

export interface McpTool {
  readonly shape: McpToolShape;
  /** Throws RpcError for arguments that do not fit. */
  call(context: McpCallContext, args: RpcParams, options: McpCallOptions): Promise<McpCallEnd>;
}

export const textContent = (text: string): Readonly<Record<string, Json>> => ({ type: 'text', text });
