import { AcpError } from '../../contract/errors.ts';
import { RpcError, type RpcMessage, rpcCodes, rpcFailure } from '../../contract/json-rpc.ts';
import { newestHandshakeVersion, statelessVersion } from '../../contract/mcp.ts';
import { ok } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import { requestUrl } from '../../core/caller/request-url.ts';
import type { CallContext, Handlers, UnreadCall } from '../../core/context.ts';
import { accepts, readRpcMessage } from '../../core/json-rpc-message.ts';
import type { createHandshakeCalls } from './handshake-calls.ts';
import type { McpHeaders, mcpEndpointOperations } from './mcp-endpoint.operations.ts';
import { type Generation, generationOf, metaOf } from './mcp-envelope.rules.ts';
import type { McpTelemetry } from './mcp-telemetry.ts';
import type { McpCallContext } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';
import { messageStream } from './message-stream.ts';
import { type createStatelessCalls, statelessMethods } from './stateless-calls.ts';

type McpHandlers = Handlers<typeof mcpEndpointOperations>;
type CallReply = Awaited<ReturnType<McpHandlers['call']>>;

export interface McpEndpointDeps {
  readonly stateless: ReturnType<typeof createStatelessCalls>;
  readonly handshake: ReturnType<typeof createHandshakeCalls>;
  readonly tools: Pick<McpTools, 'find'>;
  readonly telemetry: McpTelemetry;
  readonly allowedOrigins: readonly string[];
  /** Null: tokens of nobody are taken. */
  readonly issuer: string | null;
  /** Path in front of every operation. */
  readonly prefix: string;
  /** Of the endpoint, with the prefix. */
  readonly path: string;
}

const headerOf =
  (headers: Readonly<Record<string, string | undefined>>) =>
  (name: string): string | undefined =>
    headers[name];

const maxBodyBytes = 1_048_576;
const knownMethods: ReadonlySet<string> = new Set([...statelessMethods(true), 'initialize', 'ping']);

const failed = (status: 200 | 400 | 404, id: Parameters<typeof rpcFailure>[0], error: RpcError) =>
  ({ status, body: rpcFailure(id, error) as unknown as Json }) as const;

/** Of the generation that has statuses for them; the other one tells errors in answers that succeed. */
const statusOf = (generation: Generation, { code }: RpcError): 200 | 400 | 404 => {
  if (generation === 'handshake') return 200;
  return code === rpcCodes.methodNotFound ? 404 : 400;
};

/** A result for a caller that takes event streams alone, as some proxies ask: a stream of this one message. */
const inAcceptedType = (reply: CallReply, { accept }: McpHeaders): CallReply => {
  if (!('body' in reply) || reply.status !== 200 || accepts(accept, 'application/json')) return reply;
  const { send, end, reply: stream } = messageStream();
  send(reply.body);
  end();
  return stream;
};

/** Messages of the Model Context Protocol, of both its generations. Design: docs/design/mcp-endpoint.md. */
export const mcpEndpointService = (deps: McpEndpointDeps): McpHandlers => {
  const { stateless, handshake, telemetry } = deps;
  const allowed = new Set(deps.allowedOrigins);

  const assertOrigin = ({ origin, ...headers }: McpHeaders): void => {
    if (origin === undefined || allowed.has(origin)) return;
    // The scheme is the proxy's to say; the host is what a page of another site cannot have.
    const own = requestUrl('', headerOf(headers));
    if (own !== null && URL.canParse(origin) && new URL(origin).host === new URL(own).host) return;
    throw new AcpError('origin-denied', 'The endpoint is not for pages of this origin.');
  };

  const answer = async (
    context: McpCallContext,
    message: RpcMessage & { kind: 'request' },
    headers: McpHeaders,
    generation: Generation,
  ): Promise<CallReply> => {
    try {
      return await (generation === 'stateless'
        ? stateless(context, message, headers)
        : handshake.requested(context, message, headers));
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return failed(statusOf(generation, error), message.id, error);
    }
  };

  const told = async (
    context: McpCallContext,
    message: RpcMessage & { kind: 'request' },
    headers: McpHeaders,
    generation: Generation,
  ): Promise<CallReply> => {
    const startedAt = performance.now();
    const { params } = message;
    const method = knownMethods.has(message.method) ? message.method : 'unknown';
    const { name } = params;
    const isOffered =
      method === 'tools/call' && typeof name === 'string' && (await deps.tools.find(context, name)) !== null;
    const version =
      generation === 'stateless' ? statelessVersion : (headers['mcp-protocol-version'] ?? newestHandshakeVersion);
    const tool = isOffered ? (name as string) : null;
    const span = telemetry.begin({ method, version, tool }, metaOf(params), context.trace ?? null);
    const traced = span === null ? context : { ...context, trace: span };
    try {
      const reply = await answer(traced, message, headers, generation);
      const body = 'body' in reply ? (reply.body as { error?: { code: number } } | undefined) : undefined;
      telemetry.end(span, method, startedAt, body?.error === undefined ? null : String(body.error.code));
      return reply;
    } catch (error) {
      telemetry.end(span, method, startedAt, error instanceof AcpError ? error.code : 'internal');
      throw error;
    }
  };

  return {
    async call(context: CallContext & UnreadCall, { headers }) {
      assertOrigin(headers);
      const message = await readRpcMessage(context, headers, maxBodyBytes, ['application/json', 'text/event-stream']);
      if (message.kind === 'invalid') return failed(400, message.id, message.error);
      const generation = generationOf(message, headers);
      if (
        generation === 'handshake' &&
        !handshake.accepts(headers) &&
        !('method' in message && message.method === 'initialize')
      )
        return failed(
          400,
          message.kind === 'request' ? message.id : null,
          new RpcError(rpcCodes.invalidRequest, 'MCP-Protocol-Version names no version that is served.'),
        );
      const base = requestUrl(deps.prefix, headerOf(headers)) ?? deps.prefix;
      if (message.kind === 'request')
        return inAcceptedType(await told({ ...context, base }, message, headers, generation), headers);
      if (message.kind === 'notification' && generation === 'handshake') handshake.notified(context, message);
      return { status: 202 };
    },
    async resource(_context, { headers }) {
      const resource = requestUrl(deps.path, headerOf(headers));
      if (deps.issuer === null || resource === null)
        throw new AcpError('not-found', 'No issuer gives tokens for this endpoint.');
      return ok({
        resource,
        authorization_servers: [deps.issuer],
        bearer_methods_supported: ['header'],
        resource_name: 'Agent Control Plane',
      });
    },
  };
};
