import { RpcError, type RpcRequest, rpcCodes, rpcNotification, rpcResult } from '../../contract/json-rpc.ts';
import { mcpMeta } from '../../contract/mcp.ts';
import type { StreamReply } from '../../contract/operation.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { CallContext } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import { serverInfo } from './mcp-methods.ts';
import type { McpTasks } from './mcp-tasks.ts';
import type { McpCallContext } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';
import { messageStream } from './message-stream.ts';

export interface McpSubscriptionDeps {
  readonly tools: McpTools;
  /** Null: tasks are switched off. */
  readonly tasks: McpTasks | null;
  readonly lookEveryMs: number;
  readonly clock: Pick<Clock, 'every'>;
  readonly log: Pick<Logger, 'warn'>;
}

// Each one is looked after in every round.
const maxTasks = 100;

interface Wanted {
  readonly toolsListChanged: boolean;
  readonly taskIds: readonly string[];
}

const wantedBy = ({ params }: RpcRequest, offersTasks: boolean): Wanted => {
  const { notifications } = params;
  if (!isRecord(notifications)) throw new RpcError(rpcCodes.invalidParams, 'params.notifications must be an object.');
  const { toolsListChanged, taskIds = [] } = notifications as Readonly<Record<string, Json>>;
  if (!Array.isArray(taskIds) || !taskIds.every((id) => typeof id === 'string') || taskIds.length > maxTasks)
    throw new RpcError(
      rpcCodes.invalidParams,
      `params.notifications.taskIds must be a list of at most ${maxTasks} ids.`,
    );
  return { toolsListChanged: toolsListChanged === true, taskIds: offersTasks ? [...new Set(taskIds)] : [] };
};

/** Streams of notifications. What changes is looked for again and again, as it may have changed in another process. */
export const createMcpSubscriptions = (deps: McpSubscriptionDeps) => {
  const { tools, tasks, clock, log } = deps;
  const open = new Set<() => void>();

  const signature = async (context: CallContext): Promise<string> =>
    JSON.stringify((await tools.list(context)).map(({ shape }) => shape));

  return {
    /** Throws RpcError for what cannot be subscribed to. */
    async listen(context: McpCallContext, request: RpcRequest): Promise<StreamReply> {
      const wanted = wantedBy(request, tasks !== null);
      const meta = { [mcpMeta.subscriptionId]: request.id };
      const { send, end, reply } = messageStream();
      const notify = (method: string, params: object): void =>
        send(rpcNotification(method, { ...params, _meta: meta }));
      const known = new Map<string, string>();
      for (const taskId of wanted.taskIds) {
        const row = await tasks?.find(context, taskId, 'Read');
        if (row !== undefined) known.set(taskId, row.status);
      }
      let list = wanted.toolsListChanged ? await signature(context) : '';
      notify('notifications/subscriptions/acknowledged', {
        notifications: {
          ...(wanted.toolsListChanged ? { toolsListChanged: true } : {}),
          ...(known.size === 0 ? {} : { taskIds: [...known.keys()] }),
        },
      });

      const lookAtTask = async (taskId: string, status: string): Promise<void> => {
        const row = await tasks?.find(context, taskId, 'Read');
        if (row === undefined) known.delete(taskId);
        if (row === undefined || tasks === null || row.status === status) return;
        if (tasks.isOpen(row)) known.set(taskId, row.status);
        else known.delete(taskId);
        notify('notifications/tasks', await tasks.detailed(context, row));
      };
      const look = async (): Promise<void> => {
        for (const [taskId, status] of known) await lookAtTask(taskId, status);
        if (!wanted.toolsListChanged) return;
        const now = await signature(context);
        if (now !== list) notify('notifications/tools/list_changed', {});
        list = now;
      };
      let looking: Promise<void> | null = null;
      const timer = clock.every(deps.lookEveryMs, () => {
        looking ??= look()
          .catch((error: unknown) => log.warn({ error }, 'What a subscriber waits for could not be read'))
          .finally(() => {
            looking = null;
          });
        return looking;
      });
      const close = (): void => {
        timer.stop();
        open.delete(finish);
      };
      const finish = (): void => {
        close();
        send(rpcResult(request.id, { resultType: 'complete', _meta: { ...meta, [mcpMeta.serverInfo]: serverInfo } }));
        end();
      };
      open.add(finish);
      context.signal.addEventListener('abort', close, { once: true });
      if (context.signal.aborted) close();
      return reply;
    },
    /** Ends every stream with its result. */
    endAll(): void {
      for (const finish of [...open]) finish();
    },
  };
};

export type McpSubscriptions = ReturnType<typeof createMcpSubscriptions>;
