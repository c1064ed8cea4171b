import { RpcError, type RpcParams, rpcCodes } from '../../contract/json-rpc.ts';
import { tasksExtension } from '../../contract/mcp.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';
import { version } from '../../core/version.ts';
import type { McpTool } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';

type Result = Readonly<Record<string, Json>>;

const pageSize = 100;
const listTtlMs = 60_000;

export const serverInfo = { name: 'acp', title: 'Agent Control Plane', version };

export const instructions =
  'Each tool is an agent that answers a message, or an operation of the service that runs them. An agent goes on with a conversation under the sessionId of an earlier call.';

/** What a client may keep of a list, and for whom. */
export const listHints: Result = { ttlMs: listTtlMs, cacheScope: 'private' };

export const tasksOf = (enabled: boolean): Result => (enabled ? { extensions: { [tasksExtension]: {} } } : {});

// What follows it is a name, so that no text is a cursor by chance.
const mark = 'after:';

const cursorFor = (name: string): string => Buffer.from(mark + name, 'utf8').toString('base64url');

/** The name after which a page begins. */
const startOf = (cursor: Json | undefined): string => {
  if (cursor === undefined || cursor === null) return '';
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('utf8') : '';
  const name = text.slice(mark.length);
  if (cursorFor(name) !== cursor)
    throw new RpcError(rpcCodes.invalidParams, 'params.cursor is not one that this service gave.');
  return name;
};

export const listTools = async (tools: McpTools, context: CallContext, params: RpcParams): Promise<Result> => {
  const start = startOf(params['cursor']);
  const rest = (await tools.list(context)).filter(({ shape }) => shape.name > start);
  const page = rest.slice(0, pageSize).map(({ shape }) => shape);
  const last = page.at(-1);
  return {
    tools: page as unknown as Json,
    ...(rest.length > page.length && last !== undefined ? { nextCursor: cursorFor(last.name) } : {}),
  };
};

/** The tool that a call names, always by its message, with its arguments. */
export const calledTool = async (
  tools: McpTools,
  context: CallContext,
  { name, arguments: given }: RpcParams,
): Promise<{ readonly tool: McpTool; readonly args: RpcParams }> => {
  if (typeof name !== 'string') throw new RpcError(rpcCodes.invalidParams, 'params.name must be a text.');
  const args = given ?? {};
  if (typeof args !== 'object' || Array.isArray(args))
    throw new RpcError(rpcCodes.invalidParams, 'params.arguments must be an object.');
  const tool = await tools.find(context, name);
  if (tool === null) throw new RpcError(rpcCodes.invalidParams, 'There is no such tool.');
  return { tool, args: args as RpcParams };
};
