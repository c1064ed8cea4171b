import type { Logger } from '../../core/logger.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import type { RunJournal } from '../../engine/record/index.ts';
import { endedTaskStates, type LostRemoteTasks, type RemoteTask } from '../../engine/tools/index.ts';
import type { JobHandler } from '../../scheduler/job-queue.ts';
import { type JobStore, remoteCancelKey } from '../jobs/index.ts';
import type { RunStore } from './runs.store.ts';

export interface LostRemoteTaskDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: Pick<RunStore, 'get'>;
  readonly jobs: Pick<JobStore, 'queued'>;
  readonly journal: Pick<RunJournal, 'remoteTask'>;
  readonly remoteTasks: LostRemoteTasks;
  readonly settings: {
    /** False: no worker takes jobs, and each task is told once. */
    readonly enabled: boolean;
    readonly lane: string;
  };
  readonly wake: (dueAt: number) => void;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What becomes of a task of another system whose run is lost. */
export interface RemoteEnd {
  readonly kind: 'ended' | 'left';
  /** Part of the unit that closes the run. */
  readonly statements: readonly Statement[];
  /** Called once that is stored. */
  closed(): void;
}

interface CancelPayload {
  readonly runId: string;
}

// With the pauses of jobs that is some ten minutes: longer than an agent is away that is started anew.
const maxAttempts = 7;

const nothing = (): void => undefined;

/** Tells agents of other systems that nobody waits any more for what runs had asked of them that were lost. */
export const createLostRemoteTasks = (deps: LostRemoteTaskDeps) => {
  const { storage, store, journal, remoteTasks, settings, now } = deps;

  /** The task that another system may still be at; null: there is none that it has told of. */
  const openTaskOf = ({ remote_task: text }: Pick<RunRow, 'remote_task'>): RemoteTask | null => {
    const task = text === null ? null : (JSON.parse(text) as RemoteTask);
    return task?.taskId == null || endedTaskStates.has(task.state ?? '') ? null : task;
  };

  /** What the agent says is kept with the run. */
  const end = async (row: Pick<RunRow, 'tenant_id' | 'id'>, task: RemoteTask) => {
    const { tenant_id: tenantId, id: runId } = row;
    const told = await remoteTasks.end({ tenantId, runId }, task);
    if (told.kind === 'over' && told.state !== null) {
      const kept = JSON.stringify({ ...task, state: told.state } satisfies RemoteTask);
      await storage.transaction((stores) => stores.write([journal.remoteTask(tenantId, runId, kept)]));
    }
    return told;
  };
  const endOnce = (row: RunRow, task: RemoteTask): void => {
    end(row, task).catch((error: unknown) =>
      deps.log.error({ runId: row.id, error }, 'What became of the task of a lost run could not be kept'),
    );
  };
  const job = ({ tenant_id: tenantId, id: runId }: RunRow, task: RemoteTask): Statement =>
    deps.jobs.queued({
      ...{ id: deps.newId(), tenantId, handlerKey: remoteCancelKey, lane: settings.lane, targetName: task.agent },
      ...{ payload: { runId } satisfies CancelPayload, maxAttempts, now: now() },
    });

  const handler: JobHandler = async ({ tenantId, payload }) => {
    const row = await store.get(tenantId, (payload as CancelPayload).runId);
    const task = row === undefined ? null : openTaskOf(row);
    if (row === undefined || task === null) return { status: 'Completed' };
    const told = await end(row, task);
    if (told.kind === 'over') return { status: 'Completed' };
    const message = 'The agent did not end the task of a run that was lost.';
    return { status: 'Failed', code: 'remote-task-open', message, final: !told.again };
  };

  return {
    /** Null: the run has asked nobody, or what it has asked for is over. */
    async of(row: RunRow): Promise<RemoteEnd | null> {
      const task = openTaskOf(row);
      if (task === null) return null;
      if (!(await remoteTasks.ends(row.tenant_id, task.agent)))
        return { kind: 'left', statements: [], closed: nothing };
      // Nobody's start waits for another system.
      return settings.enabled
        ? { kind: 'ended', statements: [job(row, task)], closed: () => deps.wake(now()) }
        : { kind: 'ended', statements: [], closed: () => endOnce(row, task) };
    },
    jobHandlers: { [remoteCancelKey]: handler },
  };
};

export type EndedRemoteTasks = Pick<ReturnType<typeof createLostRemoteTasks>, 'of'>;
