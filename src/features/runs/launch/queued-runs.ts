import { AcpError } from '../../../contract/errors.ts';
import { formatTraceparent } from '../../../core/telemetry/trace-context.ts';
import type { BatchedWrites } from '../../../db/batched-writes.ts';
import type { Statement } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import type { ApprovalHandoverRow } from '../../../db/tables/approvals.ts';
import type { RunPlan } from '../../../engine/active-run.ts';
import type { CompiledAgent } from '../../../engine/compiled-agent.ts';
import type { RunJournal, RunListeners } from '../../../engine/record/index.ts';
import { problemCode, type RunFailure } from '../../../engine/run-failure.ts';
import { retryDelayMs } from '../../../scheduler/retry-delay.ts';
import type { FlowSource, FlowStore, JobStore, LaneFlows } from '../../jobs/index.ts';
import type { QueuedPlaces } from '../../sessions/index.ts';
import type { RunStore } from '../runs.store.ts';
import { createFlowEntry, type FlowDoors } from './flow-entry.ts';
import type { LaunchRequest, RunOwner } from './launch-request.ts';
import {
  agentRunKey,
  type ContinuationPayload,
  continuationKey,
  packPrincipal,
  placeStatements,
  type QueuedRun,
  type QueuedRunPayload,
  queuedStatements,
  resumptionOf,
  tellQueued,
} from './queued-run.ts';

/** A run that ends and whose turn may go on. */
export interface ContinuedRun {
  readonly id: string;
  readonly tenantId: string;
  readonly agentName: string;
  readonly sessionId: string | null;
}

export interface QueuedRunsDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly batch: Pick<BatchedWrites, 'write'>;
  readonly flows: Pick<FlowStore, 'forget'>;
  readonly lanes: LaneFlows;
  readonly store: Pick<RunStore, 'requeued'>;
  readonly journal: RunJournal;
  readonly jobs: Pick<JobStore, 'postponed' | 'queued' | 'retried'>;
  readonly queuedPlaces: Pick<QueuedPlaces, 'behind' | 'before'>;
  readonly listeners: RunListeners | null;
  /** Day that a run counts in from now on; null: runs do not count against quotas. */
  readonly quotaDay: (runId: string) => string | null;
  readonly settings: {
    readonly enabled: boolean;
    readonly continues: boolean;
    readonly maxAttempts: number;
    readonly laneByHandlerKey: Readonly<Record<string, string>>;
  };
  /** Has a worker look for jobs that are due since then. */
  readonly wake: (dueAt: number) => void;
  readonly now: () => number;
  readonly newId: () => string;
}

/** How runs come into the job queue, and back into it. The job has the run's id, so that either finds the other. */
export const createQueuedRuns = (deps: QueuedRunsDeps) => {
  const { journal, jobs, queuedPlaces, settings, newId } = deps;
  const { maxAttempts } = settings;
  const enter = createFlowEntry({ ...deps, write: (statements) => deps.batch.write(statements) });
  const rowsOf = (run: QueuedRun): readonly Statement[] => queuedStatements({ journal, jobs, maxAttempts }, run);
  const writesOf = (run: QueuedRun): readonly Statement[] => [
    ...rowsOf(run),
    ...placeStatements({ queuedPlaces }, run),
  ];

  const laneOf = (handlerKey: string): string => settings.laneByHandlerKey[handlerKey] ?? 'default';
  return {
    /** Stores an accepted run with its job; one that a flow does not let in as dropped. */
    async accept(
      { context, agentName, body, arriving }: LaunchRequest,
      runId: string,
      agent: CompiledAgent,
      { ownerId, userId, labels }: RunOwner,
      doors: FlowDoors,
    ): Promise<void> {
      if ([...agent.tools.values()].some((entry) => entry.kind === 'tool' && entry.tool.descriptor.runsOnClient))
        throw new AcpError(
          'client-tools-need-a-client',
          `Agent "${agentName}" has a tool that runs on the client; a queued run has no client.`,
        );
      if (!settings.enabled) throw new AcpError('async-runs-disabled', 'Queued runs are switched off on this service.');
      const now = deps.now();
      const payload: QueuedRunPayload = {
        request: body,
        requestId: context.requestId,
        createdAt: now,
        ownerId,
        principal: packPrincipal(context.principal),
        attribution: { userId, labels },
        ...(context.trace ? { trace: formatTraceparent(context.trace) } : {}),
        quotaDay: deps.quotaDay(runId),
      };
      const lane = body.lane ?? laneOf(agentRunKey);
      const run = { runId, tenantId: context.tenantId, agentName, handlerKey: agentRunKey, lane, now, payload };
      const arrival = arriving?.stored(runId) ?? [];
      let startsAt: number | null = now;
      const ofLane = deps.lanes.sourceOf(lane, body);
      const sources: FlowSource[] = [
        ...(ofLane === null ? [] : [ofLane]),
        ...(agent.flow === null ? [] : [{ kind: 'agent' as const, name: agentName, flow: agent.flow, keyed: body }]),
        ...(arriving?.flow == null ? [] : [arriving.flow]),
      ];
      if (sources.length === 0) await deps.batch.write([...arrival, ...writesOf(run)]);
      else {
        const writes = { arrival, rows: rowsOf(run), place: placeStatements({ queuedPlaces }, run) };
        startsAt = await enter(sources, run, writes, doors);
      }
      if (startsAt === null) return;
      tellQueued(deps.listeners, run);
      // One that waits is found when it is due, by the poll of whichever worker is free.
      if (startsAt <= now) deps.wake(startsAt);
    },
    /** The row, log and job of the run that goes on once every call of another was decided. */
    resumption: (handover: ApprovalHandoverRow, now: number): readonly Statement[] =>
      writesOf(resumptionOf(handover, now)),
    /** Called when these are stored. */
    resumed(handover: ApprovalHandoverRow, now: number): void {
      tellQueued(deps.listeners, resumptionOf(handover, now));
      deps.wake(now);
    },
    /** The job that goes on with the turn of a run that ends like this; none when it is not continued. */
    continuation({ id, tenantId, agentName, sessionId }: ContinuedRun, { type }: RunFailure): readonly Statement[] {
      if (!settings.continues || sessionId === null || (type !== 'orphaned' && type !== 'shutdown')) return [];
      const payload: ContinuationPayload = { from: id };
      const runId = newId();
      return [
        jobs.queued({
          id: runId,
          tenantId,
          handlerKey: continuationKey,
          lane: laneOf(continuationKey),
          targetName: agentName,
          payload,
          maxAttempts,
          now: deps.now(),
        }),
        ...queuedPlaces.before({ tenantId, sessionId, runId, agentName }),
      ];
    },
    /** The writes that put a run of this process back in line; null when it has no attempt left. */
    requeue({ job, tenantId, id }: RunPlan, failure: RunFailure): readonly Statement[] | null {
      if (job === null || job.attempt >= job.maxAttempts) return null;
      // The process ends, so the attempt is another one's at once.
      const delayMs = failure.type === 'shutdown' ? 0 : Math.max(retryDelayMs(job.attempt), failure.retryAfterMs ?? 0);
      return [
        deps.store.requeued(tenantId, id),
        journal.toolsUnknown(id),
        jobs.retried(job.id, job.attempt, deps.now() + delayMs),
      ];
    },
    /**
     * The same for one that has not begun, because the store is away: it has one attempt more. Null for the run of an
     * item, whose job is that of others, too, and goes back in line by itself.
     */
    postpone({ job, tenantId, id }: RunPlan, { errorClass, type, message }: RunFailure): readonly Statement[] | null {
      if (job?.id !== id) return null;
      const wait = { code: problemCode(errorClass, type), message, isSpent: true };
      return [
        deps.store.requeued(tenantId, id),
        journal.toolsUnknown(id),
        jobs.postponed(job, deps.now() + retryDelayMs(1), wait),
      ];
    },
  };
};

export type QueuedRuns = ReturnType<typeof createQueuedRuns>;
