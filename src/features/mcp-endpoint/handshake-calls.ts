import {
  RpcError,
  type RpcId,
  type RpcNotification,
  type RpcRequest,
  rpcCodes,
  rpcResult,
} from '../../contract/json-rpc.ts';
import { handshakeVersions, newestHandshakeVersion } from '../../contract/mcp.ts';
import type { StreamReply } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';
import type { McpHeaders } from './mcp-endpoint.operations.ts';
import { calledTool, instructions, listTools, serverInfo } from './mcp-methods.ts';
import type { McpCallContext, McpCallEnd } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';
import { callTool, type ToolCallDeps } from './tool-call.ts';

export interface HandshakeCallDeps extends ToolCallDeps {
  readonly tools: McpTools;
  /** Tells one caller from another. */
  readonly callerOf: (context: CallContext) => string;
}

type Answer = StreamReply | { readonly status: 200; readonly body: Json };

const versions: ReadonlySet<unknown> = new Set(handshakeVersions);

const initialized = ({ params }: RpcRequest): Json => {
  const { protocolVersion: asked } = params;
  if (typeof asked !== 'string') throw new RpcError(rpcCodes.invalidParams, 'params.protocolVersion must be a text.');
  return {
    protocolVersion: versions.has(asked) ? asked : newestHandshakeVersion,
    capabilities: { tools: {} },
    serverInfo,
    instructions,
  };
};

const resultOf = (end: McpCallEnd): Json => {
  if (end.kind === 'task') throw new Error('Callers of this generation wait.');
  return end.result as unknown as Json;
};

/** Requests of a client that has shaken hands, of which nothing is remembered here but what it can still cancel. */
export const createHandshakeCalls = ({ tools, callerOf, ...waits }: HandshakeCallDeps) => {
  const underway = new Map<string, Set<() => void>>();
  const keyOf = (context: CallContext, id: RpcId): string => JSON.stringify([callerOf(context), id]);

  const cancelable =
    (key: string) =>
    (cancel: () => void): (() => void) => {
      const calls = underway.get(key) ?? new Set();
      underway.set(key, calls.add(cancel));
      return () => {
        calls.delete(cancel);
        if (calls.size === 0) underway.delete(key);
      };
    };

  return {
    /** Null: a version that no handshake gives. */
    accepts: ({ 'mcp-protocol-version': version }: McpHeaders): boolean =>
      version === undefined || versions.has(version),
    notified(context: CallContext, { method, params }: RpcNotification): void {
      const { requestId: id } = params;
      if (method !== 'notifications/cancelled' || (typeof id !== 'string' && typeof id !== 'number')) return;
      const calls = [...(underway.get(keyOf(context, id)) ?? [])];
      // Two clients with one credential may both have such a request: neither ends that of the other.
      if (calls.length === 1) calls[0]?.();
    },
    /** Throws RpcError and AcpError. */
    async requested(context: McpCallContext, request: RpcRequest, { accept }: McpHeaders): Promise<Answer> {
      const { id, method, params } = request;
      const answer = (result: Json): Answer => ({ status: 200, body: rpcResult(id, result) as unknown as Json });
      if (method === 'initialize') return answer(initialized(request));
      if (method === 'ping') return answer({});
      if (method === 'tools/list') return answer((await listTools(tools, context, params)) as Json);
      if (method !== 'tools/call') throw new RpcError(rpcCodes.methodNotFound, 'There is no such method.');
      const called = await calledTool(tools, context, params);
      const options = { mayBecomeTask: false, gone: null, underway: cancelable(keyOf(context, id)) };
      return callTool(context, request, accept, called, { options, result: resultOf }, waits);
    },
  };
};
