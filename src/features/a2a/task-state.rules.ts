import { isoTime } from '../../core/iso-time.ts';
import type { RunRow } from '../../db/tables.ts';
import type { TaskMessage, TaskState, TaskStatus } from './a2a.schema.ts';

/** What a run and its last event say of its end. */
export interface RunState {
  readonly status: string;
  readonly errorClass: string | null;
  readonly errorType: string | null;
  /** Whether a model has answered, as far as its provider reports what it used. */
  readonly hasUsage: boolean;
}

const states: Readonly<Record<string, TaskState>> = {
  Queued: 'TASK_STATE_SUBMITTED',
  Running: 'TASK_STATE_WORKING',
  Completed: 'TASK_STATE_COMPLETED',
  Canceled: 'TASK_STATE_CANCELED',
};

/** What a guard blocked before any model was asked is what the caller sent. */
const isRejected = ({ errorClass, hasUsage }: RunState): boolean => errorClass === 'ContentBlocked' && !hasUsage;

export const stateOf = (run: RunState): TaskState =>
  // A pause would be one of a run that somebody can be asked in, which no task is.
  states[run.status] ?? (isRejected(run) ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED');

const finalStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
]);

export const isFinal = (state: TaskState): boolean => finalStates.has(state);

/** What every message and update of a task names. */
export interface TaskIds {
  readonly taskId: string;
  readonly contextId: string;
}

/** A sentence of the service: what a provider, tool or guard said stays out of it. */
const explanation = ({ taskId, contextId }: TaskIds, state: TaskState, errorType: string): TaskMessage => {
  const what = state === 'TASK_STATE_REJECTED' ? 'The message was rejected' : 'The task failed';
  return {
    messageId: `${taskId}-status`,
    contextId,
    taskId,
    role: 'ROLE_AGENT',
    parts: [{ text: `${what} (${errorType}). Its run is ${taskId}.` }],
  };
};

export const taskStatus = (ids: TaskIds, run: RunState, at: number): TaskStatus => {
  const state = stateOf(run);
  const says = state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED';
  return {
    state,
    ...(says ? { message: explanation(ids, state, run.errorType ?? 'internal') } : {}),
    timestamp: isoTime(at),
  };
};

export const runStateOf = (
  row: Pick<RunRow, 'status' | 'error_class' | 'error_type' | 'input_tokens' | 'output_tokens' | 'total_tokens'>,
): RunState => ({
  status: row.status,
  errorClass: row.error_class,
  errorType: row.error_type,
  hasUsage: row.input_tokens !== null || row.output_tokens !== null || row.total_tokens !== null,
});

/** When the state of the task became what it is. */
export const changedAt = (row: Pick<RunRow, 'created_at' | 'started_at' | 'completed_at'>): number =>
  row.completed_at ?? row.started_at ?? row.created_at;
