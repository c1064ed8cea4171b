import { isRecord } from '../../contract/record.ts';
import { OutboundError } from '../http/outbound-error.ts';
import { McpFailure } from './mcp-failure.ts';
import type { McpClient, McpRequestOptions } from './mcp-target.ts';
import { sleep } from './sleep.ts';

/** A call that its server works on. */
export interface RemoteTask {
  readonly taskId: string;
  /** How often it wants to be asked; null: it does not say. */
  readonly pollIntervalMs: number | null;
}

/** How a task ended, or what it asks before it goes on. */
export type TaskStep =
  | { readonly kind: 'ended'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'asks'; readonly requests: unknown };

type TaskOptions = Pick<McpRequestOptions, 'timeoutMs' | 'capabilities'> & { readonly signal: AbortSignal };

const shortestPollMs = 500;
const longestPollMs = 30_000;
const usualPollMs = 1000;
// So many polls in a row may get no answer: the task goes on without them.
const maxLostPolls = 3;
const farewellMs = 5000;
const longestId = 1024;

const intervalOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;

/** The task that an answer names; null: it names none. */
export const taskOf = ({ taskId, pollIntervalMs }: Readonly<Record<string, unknown>>): RemoteTask | null =>
  typeof taskId === 'string' && taskId !== '' && taskId.length <= longestId
    ? { taskId, pollIntervalMs: intervalOf(pollIntervalMs) }
    : null;

const isLost = (error: unknown): boolean =>
  error instanceof McpFailure &&
  ((error.kind === 'no-answer' && error.outbound !== 'canceled' && error.outbound !== 'target-not-allowed') ||
    (error.kind === 'http' && (error.status ?? 0) >= 500));

/** Best effort: the server forgets a task by itself. */
export const cancelTask = (client: Pick<McpClient, 'request'>, { taskId }: RemoteTask): void => {
  client.request('tasks/cancel', { taskId }, { timeoutMs: farewellMs, name: taskId }).catch(() => undefined);
};

/** Tells a task what it has asked for. */
export const updateTask = async (
  client: Pick<McpClient, 'request'>,
  { taskId }: RemoteTask,
  inputResponses: Readonly<Record<string, unknown>>,
  options: TaskOptions,
): Promise<void> => {
  await client.request('tasks/update', { taskId, inputResponses }, { ...options, name: taskId });
};

/** Where a task is; null: it goes on. */
const stepOf = (task: Readonly<Record<string, unknown>>, answered: ReadonlySet<string>): TaskStep | null => {
  const { status, result, error, inputRequests: requests } = task;
  if (status === 'completed' && isRecord(result)) return { kind: 'ended', result };
  if (status === 'failed') {
    const code = isRecord(error) && Number.isSafeInteger(error['code']) ? Number(error['code']) : -32603;
    throw new McpFailure('rpc', { code });
  }
  if (status === 'cancelled') throw new McpFailure('no-answer', { cause: new OutboundError('unreachable') });
  if (status === 'working') return null;
  if (status !== 'input_required') throw new McpFailure('broken');
  // What was answered may stand there until the server has taken it.
  if (isRecord(requests) && Object.keys(requests).every((key) => answered.has(key))) return null;
  return { kind: 'asks', requests };
};

/** Asks for a task until it ends or asks itself; `answered`: what was said to it before. A signal that is aborted cancels it. */
export const followTask = async (
  client: Pick<McpClient, 'request'>,
  task: RemoteTask,
  answered: ReadonlySet<string>,
  options: TaskOptions,
): Promise<TaskStep> => {
  const { taskId } = task;
  let interval = task.pollIntervalMs;
  try {
    for (let lost = 0; ; ) {
      await sleep(Math.min(longestPollMs, Math.max(shortestPollMs, interval ?? usualPollMs)), options.signal);
      let told: Readonly<Record<string, unknown>>;
      try {
        told = await client.request('tasks/get', { taskId }, { ...options, name: taskId });
      } catch (error) {
        lost += 1;
        if (!isLost(error) || lost >= maxLostPolls || options.signal.aborted) throw error;
        continue;
      }
      lost = 0;
      interval = intervalOf(told['pollIntervalMs']) ?? interval;
      const step = stepOf(told, answered);
      if (step !== null) return step;
    }
  } catch (error) {
    if (options.signal.aborted) cancelTask(client, task);
    throw error;
  }
};
