import { AcpError } from '../../contract/errors.ts';
import { RpcError, type RpcRequest, rpcCodes, rpcResult } from '../../contract/json-rpc.ts';
import { mcpCodes, mcpMeta, statelessVersion, tasksExtension } from '../../contract/mcp.ts';
import type { StreamReply } from '../../contract/operation.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { McpHeaders } from './mcp-endpoint.operations.ts';
import { checkEnvelope } from './mcp-envelope.rules.ts';
import { calledTool, instructions, listHints, listTools, serverInfo, tasksOf } from './mcp-methods.ts';
import type { McpSubscriptions } from './mcp-subscriptions.ts';
import type { McpTasks } from './mcp-tasks.ts';
import type { McpCallContext } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';
import { callTool, readsStreams, type ToolCallDeps } from './tool-call.ts';

export interface StatelessCallDeps extends ToolCallDeps {
  readonly tools: McpTools;
  /** Null: switched off. */
  readonly tasks: McpTasks | null;
  readonly subscriptions: McpSubscriptions;
}

type Result = Readonly<Record<string, Json>>;
type Answer = StreamReply | { readonly status: 200; readonly body: Json };

const plainMethods = ['server/discover', 'tools/list', 'tools/call', 'subscriptions/listen'];
const taskMethods = ['tasks/get', 'tasks/update', 'tasks/cancel'];
const notHere = 'There is no such task.';

export const statelessMethods = (offersTasks: boolean): ReadonlySet<string> =>
  new Set(offersTasks ? [...plainMethods, ...taskMethods] : plainMethods);

/** Every result says that it is whole, unless it says what it is, and who gave it. */
const whole = (result: Result): Result => {
  const { _meta: meta } = result;
  return {
    resultType: 'complete',
    ...result,
    _meta: { ...(isRecord(meta) ? (meta as Result) : {}), [mcpMeta.serverInfo]: serverInfo },
  };
};

const declaresTasks = (capabilities: Result): boolean => {
  const { extensions } = capabilities;
  return isRecord(extensions) && isRecord(extensions[tasksExtension]);
};

/** Requests that are complete in themselves. */
export const createStatelessCalls = ({ tools, tasks, subscriptions, ...waits }: StatelessCallDeps) => {
  const methods = statelessMethods(tasks !== null);

  const taskNamed = async (
    context: CallContext,
    { params }: RpcRequest,
    declared: boolean,
    action: 'Read' | 'Cancel' = 'Read',
  ): Promise<{ readonly all: McpTasks; readonly row: RunRow }> => {
    if (!declared)
      throw new RpcError(mcpCodes.missingClientCapability, 'The request does not declare the extension for tasks.', {
        requiredCapabilities: { extensions: { [tasksExtension]: {} } },
      });
    const row = await tasks?.find(context, params['taskId'], action);
    if (tasks === null || row === undefined) throw new RpcError(rpcCodes.invalidParams, notHere);
    return { all: tasks, row };
  };

  const results: Readonly<
    Record<string, (context: McpCallContext, request: RpcRequest, declared: boolean) => Promise<Result>>
  > = {
    'server/discover': async () => ({
      supportedVersions: [statelessVersion],
      capabilities: { tools: { listChanged: true }, ...tasksOf(tasks !== null) },
      instructions,
      ...listHints,
    }),
    'tools/list': async (context, { params }) => ({ ...(await listTools(tools, context, params)), ...listHints }),
    async 'tasks/get'(context, request, declared) {
      const { all, row } = await taskNamed(context, request, declared);
      return all.detailed(context, row);
    },
    // Nobody is asked for anything in such a run, so that every answer is one to nothing.
    async 'tasks/update'(context, request, declared) {
      await taskNamed(context, request, declared);
      return {};
    },
    async 'tasks/cancel'(context, request, declared) {
      const { all, row } = await taskNamed(context, request, declared, 'Cancel');
      if ((await all.cancel(context, row)) === 'elsewhere')
        throw new RpcError(rpcCodes.internalError, 'The task executes in a process that is not asked from here.');
      return {};
    },
  };

  /** Throws RpcError and AcpError. */
  return async (context: McpCallContext, request: RpcRequest, headers: McpHeaders): Promise<Answer> => {
    const { capabilities } = checkEnvelope(request, headers, methods);
    const declared = declaresTasks(capabilities);
    const { id, method, params } = request;
    const plain = results[method];
    if (plain !== undefined)
      return { status: 200, body: rpcResult(id, whole(await plain(context, request, declared))) as unknown as Json };
    if (method === 'subscriptions/listen') {
      if (!readsStreams(headers.accept))
        throw new AcpError('not-acceptable', 'Accept must name text/event-stream, too.');
      return subscriptions.listen(context, request);
    }
    const called = await calledTool(tools, context, params);
    const options = {
      mayBecomeTask: declared && tasks !== null,
      gone: context.signal,
      underway: () => () => undefined,
    };
    const result = (end: Parameters<Parameters<typeof callTool>[4]['result']>[0]): Json =>
      whole(end.kind === 'task' ? end.task : (end.result as unknown as Result)) as Json;
    return callTool(context, request, headers.accept, called, { options, result }, waits);
  };
};
