import { RpcError, type RpcRequest, rpcCodes, rpcNotification, rpcResult } from '../../contract/json-rpc.ts';
import { mcpMeta } from '../../contract/mcp.ts';
import type { StreamReply } from '../../contract/operation.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { serverInfo } from './mcp-methods.ts';
import type { McpTasks } from './mcp-tasks.ts';
import type { McpCallContext } from './mcp-tool.ts';
import type { McpTools } from './mcp-tools.ts';
import { messageStream } from './message-stream.ts';

export interface McpSubscriptionDeps {
  readonly tools: Pick<McpTools, 'signature'>;
  /** Null: tasks are switched off. */
  readonly tasks: Pick<McpTasks, 'find' | 'heads' | 'isOpen' | 'detailed'> | null;
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

interface Subscriber {
  readonly context: McpCallContext;
  /** The list that was reported to it last, or that it opened with; null: it did not subscribe to the list. */
  list: string | null;
  /** Tasks that it waits for, each with the status that it knows. */
  readonly tasks: Map<string, string>;
  readonly notify: (method: string, params: object) => void;
}

/** What the streams of one tenant have in common. */
interface Watch {
  readonly subscribers: Set<Subscriber>;
  /** As it was at the last poll; null: no poll yet. */
  list: Promise<string> | null;
}

/**
 * Streams of notifications. Changes are polled, since they may come from another process: one poll for all
 * streams of a tenant, however many there are.
 */
export const createMcpSubscriptions = (deps: McpSubscriptionDeps) => {
  const { tools, tasks, clock, log } = deps;
  const open = new Set<() => void>();
  const watches = new Map<string, Watch>();
  let timer: Timer | null = null;
  let looking: Promise<void> | null = null;

  const lookAtTask = async (subscriber: Subscriber, taskId: string): Promise<void> => {
    const { context, tasks: known, notify } = subscriber;
    const row = await tasks?.find(context, taskId, 'Read');
    if (row === undefined) known.delete(taskId);
    if (row === undefined || tasks === null || row.status === known.get(taskId)) return;
    if (tasks.isOpen(row)) known.set(taskId, row.status);
    else known.delete(taskId);
    notify('notifications/tasks', await tasks.detailed(context, row));
  };
  const lookAtTasks = async (subscribers: readonly Subscriber[]): Promise<void> => {
    const ids = new Set(subscribers.flatMap((subscriber) => [...subscriber.tasks.keys()]));
    if (ids.size === 0 || tasks === null) return;
    const heads = await tasks.heads([...ids]);
    for (const subscriber of subscribers)
      for (const [taskId, status] of subscriber.tasks)
        if (heads.get(taskId)?.status !== status) await lookAtTask(subscriber, taskId);
  };
  const lookAtList = async (tenantId: string, watch: Watch): Promise<void> => {
    const waiting = [...watch.subscribers].filter(({ list }) => list !== null);
    if (waiting.length === 0) return;
    const list = await tools.signature(tenantId);
    watch.list = Promise.resolve(list);
    for (const subscriber of waiting) {
      if (subscriber.list === list) continue;
      subscriber.list = list;
      subscriber.notify('notifications/tools/list_changed', {});
    }
  };
  const look = async (): Promise<void> => {
    for (const [tenantId, watch] of [...watches])
      try {
        await lookAtTasks([...watch.subscribers]);
        await lookAtList(tenantId, watch);
      } catch (error) {
        log.warn({ tenantId, error }, 'What subscribers wait for could not be read');
      }
  };

  const watchOf = (tenantId: string): Watch => {
    const known = watches.get(tenantId);
    if (known !== undefined) return known;
    const watch: Watch = { subscribers: new Set(), list: null };
    watches.set(tenantId, watch);
    return watch;
  };
  const currentList = async (tenantId: string): Promise<string> => {
    const watch = watchOf(tenantId);
    watch.list ??= tools.signature(tenantId);
    try {
      return await watch.list;
    } catch (error) {
      watch.list = null;
      throw error;
    }
  };
  const leave = (subscriber: Subscriber): void => {
    const { tenantId } = subscriber.context;
    const watch = watches.get(tenantId);
    watch?.subscribers.delete(subscriber);
    if (watch?.subscribers.size === 0) watches.delete(tenantId);
    if (open.size > 0) return;
    timer?.stop();
    timer = null;
  };
  const join = (subscriber: Subscriber): void => {
    watchOf(subscriber.context.tenantId).subscribers.add(subscriber);
    timer ??= clock.every(deps.lookEveryMs, () => {
      // While a poll takes longer than the interval, no other one begins.
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking;
    });
  };

  return {
    /** Throws RpcError for what cannot be subscribed to. */
    async listen(context: McpCallContext, request: RpcRequest): Promise<StreamReply> {
      const wanted = wantedBy(request, tasks !== null);
      context.openStream?.();
      const meta = { [mcpMeta.subscriptionId]: request.id };
      const { send, end, reply } = messageStream();
      const known = new Map<string, string>();
      for (const taskId of wanted.taskIds) {
        const row = await tasks?.find(context, taskId, 'Read');
        if (row !== undefined) known.set(taskId, row.status);
      }
      const subscriber: Subscriber = {
        context,
        list: wanted.toolsListChanged ? await currentList(context.tenantId) : null,
        tasks: known,
        notify: (method, params) => send(rpcNotification(method, { ...params, _meta: meta })),
      };
      subscriber.notify('notifications/subscriptions/acknowledged', {
        notifications: {
          ...(wanted.toolsListChanged ? { toolsListChanged: true } : {}),
          ...(known.size === 0 ? {} : { taskIds: [...known.keys()] }),
        },
      });
      const close = (): void => {
        open.delete(finish);
        leave(subscriber);
      };
      const finish = (): void => {
        close();
        send(rpcResult(request.id, { resultType: 'complete', _meta: { ...meta, [mcpMeta.serverInfo]: serverInfo } }));
        end();
      };
      open.add(finish);
      join(subscriber);
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
