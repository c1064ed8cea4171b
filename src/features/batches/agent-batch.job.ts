import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext, Principal } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import {
  JobCanceledError,
  type JobHandler,
  type JobResult,
  LeaseLostError,
  type QueuedJob,
} from '../../scheduler/job-queue.ts';
import {
  type HeldJobs,
  itemPages,
  itemsOutcome,
  type JobItem,
  type JobItemEnd,
  type JobItemStore,
  type JobStore,
} from '../jobs/index.ts';
import type { ItemRuns, Launch } from '../runs/index.ts';
import { isRequest, readBatchItem } from './batch-item.rules.ts';

/** Runs of one agent, each with an item of the payload. */
export const agentBatchKey = 'acp.agent-batch';

export interface AgentBatchDeps {
  readonly launch: Pick<Launch, 'enter' | 'start'>;
  readonly engine: Pick<LiveRuns, 'cancel'>;
  readonly itemRuns: Pick<ItemRuns, 'earlierEnd'>;
  readonly items: JobItemStore;
  readonly jobs: Pick<JobStore, 'held'>;
  readonly held: HeldJobs;
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
  readonly recordingEnabled: boolean;
  readonly lifecycle: { readonly draining: boolean };
  readonly maxConcurrentItems: number;
  readonly log: Pick<Logger, 'error'>;
  readonly newId: () => string;
}

/** Nobody in particular: a schedule was saved by somebody who may plan runs, and no person waits for them. */
const scheduler: Principal = {
  kind: 'Host',
  role: 'Operator',
  scopes: null,
  actor: null,
  userId: null,
  apiKey: null,
  permissions: null,
};

const final = (code: string, message: string): JobResult => ({ status: 'Failed', code, message, final: true });

const failedItem = (runId: string | null, code: string, message: string): JobItemEnd => ({
  status: 'Failed',
  runId,
  error: `${code}: ${message}`,
});

const targetGone = (agentName: string): JobResult =>
  final('target-not-found', `Agent "${agentName}" does not exist any more.`);

/** What a refusal says of the whole job; null: it is about the one item. */
const refusalOfJob = ({ code }: AcpError, job: QueuedJob, held: HeldJobs): JobResult | null => {
  if (code === 'draining') return { status: 'Released' };
  if (code === 'emergency-stopped') return held(job);
  return code === 'agent-not-found' ? targetGone(job.targetName) : null;
};

/** The store cannot be written, which is no property of an item. */
const isOutage = (error: unknown): boolean =>
  error instanceof AcpError && (error.code === 'store-unavailable' || error.code === 'audit-unavailable');

/** One attempt at a batch: the items that have not ended, a few at a time. */
const createAttempt = (deps: AgentBatchDeps, job: QueuedJob, signal: AbortSignal) => {
  const { items, itemRuns } = deps;
  const held = deps.jobs.held(job);
  const active = new Set<ActiveRun>();
  /** Why no more items are begun; the first reason stands. */
  let halt: JobResult | null = null;
  let broken = false;

  const stopRun = (run: ActiveRun): void => {
    if (signal.reason instanceof JobCanceledError) deps.engine.cancel(run, 'Requested', signal.reason.by);
    else run.stop({ kind: 'lost' });
  };

  /** What a write says whose condition did not hold. */
  const lostLease = (error: unknown): never => {
    throw error instanceof ConditionFailedError ? new LeaseLostError() : error;
  };

  // They all write the row of the job, and a store with several writers would let one of them win.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = (write: () => Promise<void>): Promise<void> => {
    const written = turn.then(write).catch(lostLease);
    turn = written.catch(() => undefined);
    return written;
  };

  const end = (item: JobItem, how: JobItemEnd): Promise<void> => inTurn(() => items.end(job, item.seq, how));

  const contextOf = (): CallContext => ({
    requestId: deps.newId(),
    tenantId: job.tenantId,
    principal: scheduler,
    signal,
    rawBody: null,
    method: 'POST',
    path: `/api/jobs/${job.id}`,
    trace: job.trace ?? null,
  });

  const begin = async (item: JobItem, body: AgentRunRequest): Promise<ActiveRun> => {
    const { targetName: agentName, id, lane, leaseOwner } = job;
    const entrance = await deps.launch.enter({
      kind: 'request',
      context: contextOf(),
      agentName,
      body,
      isStreaming: false,
      target: { sessionId: body.sessionId ?? null },
      work: null,
      item: {
        // An item that fails is not tried again: another attempt at the job is for those that have not ended.
        jobOf(runId) {
          // An item that has ended still has its run.
          const hasRun = items.hasRun(job, item.seq, runId);
          return {
            ...{ id, lane, leaseOwner, attempt: 1, maxAttempts: 1 },
            ...{ held: hasRun, heldLate: hasRun, begun: null, completed: null },
          };
        },
        reserve: (runId) => inTurn(() => items.reserve(job, item.seq, runId, held)),
      },
    });
    return deps.launch.start(entrance);
  };

  /** How an item ends with its run; null: it stays as it is, for another attempt or for nobody. */
  const endOf = (run: ActiveRun, outcome: RunOutcome): JobItemEnd | null => {
    if (run.stopReason?.kind === 'lost') throw new LeaseLostError();
    const { status, failure, unstarted } = outcome;
    if (unstarted !== undefined) {
      halt ??= { status: 'Waiting', wait: { code: 'store-unavailable', message: unstarted.message, isSpent: true } };
      return null;
    }
    if (failure?.type === 'shutdown') {
      const message = 'The service stopped before the job had finished.';
      halt ??= job.attempt < job.maxAttempts ? { status: 'Released' } : final('shutdown', message);
      return null;
    }
    if (status === 'Canceled')
      return signal.aborted ? null : failedItem(run.id, 'canceled', failure?.message ?? 'The run was canceled.');
    if (status !== 'Failed') return { status: 'Completed', runId: run.id, error: null };
    return failedItem(run.id, (failure?.type ?? 'internal').replaceAll('_', '-'), failure?.message ?? '');
  };

  const refused = (item: JobItem, error: unknown): JobItemEnd | null => {
    if (error instanceof LeaseLostError || isOutage(error)) throw error;
    // Whatever a start says that was broken off.
    if (signal.aborted) return null;
    if (error instanceof AcpError) {
      const ofJob = refusalOfJob(error, job, deps.held);
      if (ofJob === null) return failedItem(error.details.runId ?? null, error.code, error.message);
      halt ??= ofJob;
      return null;
    }
    const reference = deps.newId();
    deps.log.error(
      { jobId: job.id, tenantId: job.tenantId, seq: item.seq, reference, error },
      'An item of a job failed because of an internal error',
    );
    const kind = error instanceof Error ? error.name : typeof error;
    return failedItem(null, 'internal', `${kind}; the log tells more under ${reference}.`);
  };

  const execute = async (item: JobItem): Promise<JobItemEnd | null> => {
    if (!item.isReadable) return failedItem(null, 'decryption-failed', 'The input cannot be decrypted.');
    const read = readBatchItem(item.input);
    if (!isRequest(read)) {
      const [first] = read;
      return failedItem(null, 'validation-failed', `${first?.path ?? ''} ${first?.message ?? ''}.`.trim());
    }
    let run: ActiveRun;
    try {
      run = await begin(item, read);
    } catch (error) {
      return refused(item, error);
    }
    active.add(run);
    if (signal.aborted) stopRun(run);
    const outcome = await run.done;
    active.delete(run);
    return endOf(run, outcome);
  };

  const process = async (item: JobItem): Promise<void> => {
    const { runId } = item;
    if (runId !== null) await inTurn(() => items.takeOver(job, item.seq, runId, held));
    const earlier = runId === null ? null : await itemRuns.earlierEnd(job.tenantId, runId, held);
    if (earlier !== null) {
      if (earlier.status === 'Completed') return end(item, { status: 'Completed', runId, error: null });
      return end(item, failedItem(runId, earlier.code, earlier.message));
    }
    const how = await execute(item);
    if (how !== null) await end(item, how);
  };

  const next = itemPages(items, job, {
    pending: true,
    stopped: () => broken || halt !== null || signal.aborted || deps.lifecycle.draining,
  });

  const work = async (): Promise<void> => {
    try {
      for (let item = await next(); item !== null; item = await next()) await process(item);
    } catch (error) {
      broken = true;
      throw error;
    }
  };

  return async (): Promise<JobResult> => {
    const onAbort = (): void => {
      for (const run of active) stopRun(run);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    // What is under way ends before the job does, also where one of them could not go on.
    const ends = await Promise.allSettled(Array.from({ length: deps.maxConcurrentItems }, work));
    signal.removeEventListener('abort', onAbort);
    if (signal.reason instanceof LeaseLostError) throw signal.reason;
    const failed = ends.find((settled) => settled.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    if (signal.aborted) return { status: 'Canceled' };
    if (halt !== null) return halt;
    if (deps.lifecycle.draining && (await items.page(job, -1, 1, true)).length > 0) return { status: 'Released' };
    return itemsOutcome(items, job);
  };
};

/** What a worker does with a batch: each item is a run of the target, and one that has ended is never begun again. */
export const agentBatchHandler =
  (deps: AgentBatchDeps): JobHandler =>
  async (job, signal) => {
    // Without its row nobody could tell whether the run of an item has happened.
    if (!deps.recordingEnabled)
      return final('run-recording-disabled', 'Batches need run recording, which is switched off.');
    if (!(await deps.agentExists(job.tenantId, job.targetName))) return targetGone(job.targetName);
    return createAttempt(deps, job, signal)();
  };
