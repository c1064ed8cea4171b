import type { FrameSource } from '../../contract/operation.ts';
import type { Clock } from '../../core/clock.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ExposedRuns } from '../exposure/index.ts';
import type {
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  Task,
  TaskIdRequest,
  TaskState,
} from './a2a.schema.ts';
import { A2AError, taskNotFound } from './a2a-errors.ts';
import type { A2ATaskStore, TaskFilter } from './a2a-tasks.store.ts';
import type { AgentCall, SendMessage } from './send-message.ts';
import { pageEnd, pageSizeOf, pageToken, runsInState } from './task-list.rules.ts';
import { changedAt, isFinal, runStateOf, stateOf } from './task-state.rules.ts';
import type { TaskStreamOf } from './task-streams.ts';
import { isPosition, TaskUpdates } from './task-updates.ts';
import { type TaskAsked, type TaskView, taskIds } from './task-view.ts';

export interface TaskMethodDeps {
  readonly send: SendMessage;
  readonly view: TaskView;
  readonly tasks: A2ATaskStore;
  readonly runs: Pick<ExposedRuns, 'find' | 'cancel' | 'requireList'>;
  readonly runOf: (tenantId: string, runId: string) => Promise<RunRow | undefined>;
  /** The log of a run from a sequence on, wherever it executes. */
  readonly events: (tenantId: string, runId: string, from: number) => FrameSource;
  readonly clock: Pick<Clock, 'after'>;
  readonly maxWaitMs: number;
}

/** A call, and what every answer to it is made with. */
export interface TaskCall extends AgentCall {
  readonly answersJson: boolean;
  readonly base: string;
  /** Null: positions are not asked for. */
  readonly positions: { readonly seen: string | null } | null;
}

/** What a stream shows of a task, but for the words of the protocol version. */
export type TaskStream = Omit<TaskStreamOf, 'text'>;

const cancelWaitMs = 5000;
// Behind every event: a reader from there is told of nothing but the end.
const endOfLog = Number.MAX_SAFE_INTEGER;

const asked = ({ base }: TaskCall, historyLength: number | undefined, withArtifacts = true): TaskAsked => ({
  historyLength: historyLength ?? null,
  withArtifacts,
  base,
});

const stateOfRow = (row: RunRow): TaskState => stateOf(runStateOf(row));

export const createTaskMethods = (deps: TaskMethodDeps) => {
  const { view, runs } = deps;

  /** The caller's task. Throws -32001 for every other id, whatever the reason. */
  const find = async (
    { context, agentName }: TaskCall,
    id: string,
    action: 'Read' | 'Cancel' = 'Read',
  ): Promise<RunRow> => {
    const row = await runs.find(context, id, action);
    if (row === undefined || row.agent_name !== agentName) throw taskNotFound(id);
    return row;
  };

  const reread = async (row: Pick<RunRow, 'tenant_id' | 'id'>): Promise<RunRow> => {
    const current = await deps.runOf(row.tenant_id, row.id);
    if (current === undefined) throw taskNotFound(row.id);
    return current;
  };

  /** Waits for the end of a run, wherever it executes: so long at most, and while its caller is there. */
  const untilEnd = ({ context: { signal } }: TaskCall, row: RunRow, ms: number): Promise<void> =>
    new Promise((resolve) => {
      let stop: () => void = () => undefined;
      const done = (): void => {
        timer.stop();
        signal.removeEventListener('abort', done);
        stop();
        resolve();
      };
      const timer = deps.clock.after(ms, done);
      signal.addEventListener('abort', done);
      stop = deps.events(row.tenant_id, row.id, endOfLog).subscribe(() => undefined, done);
      if (signal.aborted) done();
    });

  const refuseTaken = async (call: TaskCall, taskId: string): Promise<void> => {
    const state = stateOfRow(await find(call, taskId));
    throw isFinal(state)
      ? new A2AError('UnsupportedOperation', 'The task is over: send the next message without its id.', {
          reason: 'TASK_FINAL',
        })
      : new A2AError('UnsupportedOperation', 'A task takes no further message while it is in progress.', {
          reason: 'TASK_IN_PROGRESS',
        });
  };

  const send = async (call: TaskCall, request: SendMessageRequest, isStreaming: boolean): Promise<string> => {
    const { taskId } = request.message;
    if (taskId !== undefined && taskId !== '') await refuseTaken(call, taskId);
    return deps.send(call, request, isStreaming);
  };

  const filterOf = (call: TaskCall, request: ListTasksRequest): TaskFilter | null => {
    const { contextId, status, statusTimestampAfter: after } = request;
    const state = status === undefined || status === 'TASK_STATE_UNSPECIFIED' ? null : runsInState(status);
    if (state === null && status !== undefined && status !== 'TASK_STATE_UNSPECIFIED') return null;
    return {
      agentName: call.agentName,
      door: call.door,
      contextId: contextId === undefined || contextId === '' ? null : contextId,
      state,
      changedAfter: after === undefined ? null : Date.parse(after),
    };
  };

  /** The task as it was after an event that its caller has, and what follows. Throws -32602 for an event that is still to come. */
  const after = async (call: TaskCall, row: RunRow, seen: string): Promise<TaskStream> => {
    const updates = new TaskUpdates(taskIds(row), call.answersJson, row.created_at);
    const last = Number(seen.split('.')[0]);
    if (!isPosition(seen) || !(await view.readUpTo(row, updates, last)))
      throw new A2AError('InvalidParams', 'Last-Event-ID is not a position of this task.', {
        reason: 'POSITION_INVALID',
      });
    const task = await view.at(row, updates, asked(call, 0, false));
    return { row, task, updates, base: call.base, positions: { seen } };
  };

  return {
    async sendMessage(call: TaskCall, request: SendMessageRequest): Promise<Task> {
      const { historyLength, returnImmediately = false } = request.configuration ?? {};
      const taskId = await send(call, request, returnImmediately);
      const { tenantId } = call.context;
      let row = await reread({ tenant_id: tenantId, id: taskId });
      if (!returnImmediately && !isFinal(stateOfRow(row))) {
        await untilEnd(call, row, deps.maxWaitMs);
        row = await reread(row);
      }
      return view.of(row, call.answersJson, asked(call, historyLength));
    },

    async sendStreamingMessage(call: TaskCall, request: SendMessageRequest): Promise<TaskStream> {
      const taskId = await send(call, request, true);
      const row = await reread({ tenant_id: call.context.tenantId, id: taskId });
      // From its beginning, so that a message that is sent again gets the same stream.
      const updates = new TaskUpdates(taskIds(row), call.answersJson, row.created_at);
      const task = await view.at(row, updates, asked(call, request.configuration?.historyLength));
      return { row, task, updates, base: call.base, positions: call.positions === null ? null : { seen: null } };
    },

    async getTask(call: TaskCall, { id, historyLength }: GetTaskRequest): Promise<Task> {
      return view.of(await find(call, id), call.answersJson, asked(call, historyLength));
    },

    async listTasks(call: TaskCall, request: ListTasksRequest): Promise<ListTasksResponse> {
      const { tenantId } = call.context;
      const pageSize = pageSizeOf(request.pageSize);
      const end = pageEnd(request.pageToken);
      const filter = filterOf(call, request);
      await runs.requireList(call.context, call.agentName, filter?.contextId ?? null);
      if (filter === null) return { tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0 };
      const rows = await deps.tasks.list(tenantId, filter, end, pageSize + 1);
      const page = rows.slice(0, pageSize);
      const wanted = asked(call, request.historyLength, request.includeArtifacts === true);
      const tasks: Task[] = [];
      for (const row of page) tasks.push(await view.of(row, call.answersJson, wanted));
      const last = page.at(-1);
      const isLast = rows.length <= pageSize || last === undefined;
      return {
        tasks,
        nextPageToken: isLast ? '' : pageToken({ changedAt: changedAt(last), id: last.id }),
        pageSize: tasks.length,
        totalSize: await deps.tasks.count(tenantId, filter),
      };
    },

    async cancelTask(call: TaskCall, { id }: TaskIdRequest): Promise<Task> {
      const row = await find(call, id, 'Cancel');
      const isOver = (): A2AError => new A2AError('TaskNotCancelable', 'The task is over.');
      if (isFinal(stateOfRow(row))) throw isOver();
      const end = await runs.cancel(call.context, row);
      if (end === 'finished') throw isOver();
      if (end === 'elsewhere')
        throw new A2AError('TaskNotCancelable', 'The task is carried out by another instance of the service.', {
          reason: 'OTHER_INSTANCE',
        });
      await untilEnd(call, row, cancelWaitMs);
      return view.of(await reread(row), call.answersJson, asked(call, undefined));
    },

    async subscribeToTask(call: TaskCall, { id }: TaskIdRequest): Promise<TaskStream> {
      const row = await find(call, id);
      const seen = call.positions?.seen ?? null;
      const stream = seen === null ? null : await after(call, row, seen);
      const updates = stream?.updates ?? (await view.updatesOf(row, call.answersJson));
      // With a position a caller gets the end that it has missed; without one there is nothing left to follow.
      if (updates.isOver || (stream === null && isFinal(stateOfRow(row))))
        throw new A2AError('UnsupportedOperation', 'The task is over.', { reason: 'TASK_FINAL' });
      if (stream !== null) return stream;
      const task = await view.at(row, updates, asked(call, undefined));
      return { row, task, updates, base: call.base, positions: call.positions };
    },
  };
};

export type TaskMethods = ReturnType<typeof createTaskMethods>;
