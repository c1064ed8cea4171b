import type { FrameSource } from '../../contract/operation.ts';
import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import type { Storage } from '../../db/storage.ts';
import type { AgentSource } from '../../engine/compiled-agent.ts';
import type { AgentMemory, AgentResources } from '../../engine/context/index.ts';
import type { ApprovalGate, ContentGuards } from '../../engine/control/index.ts';
import type { PauseJournal } from '../../engine/lifecycle/index.ts';
import { createRunEngine, type RunEngine } from '../../engine/lifecycle/index.ts';
import { createPriceList } from '../../engine/pricing.ts';
import type { RunListeners } from '../../engine/record/index.ts';
import type { LostRemoteTasks, ToolAuthorizer, ToolCallDeps } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import type { ProviderAccess } from '../../providers/models/provider-access.ts';
import type { QueuedJob } from '../../scheduler/job-queue.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import { type FlowPlaces, flowStore, type HeldJobs, type JobStore, laneFlows, remoteCancelKey } from '../jobs/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import type { QueuedPlaces, SessionsFeature } from '../sessions/index.ts';
import type { WebhookEvents } from '../webhooks/index.ts';
import { createCancelRun } from './cancel-run.ts';
import { createCostRecalculation } from './cost-recalculation.ts';
import { createDetachedRuns, type DetachedRuns } from './detached-runs.ts';
import { engineSettings } from './engine-settings.ts';
import { createFollowedRuns } from './followed-runs.ts';
import { createItemRuns } from './item-runs.ts';
import {
  createChildPlans,
  createDroppedRuns,
  createLaunch,
  createQueuedRuns,
  type LaunchDeps,
  type Preflight,
  packPrincipal,
  runJobKeys,
} from './launch/index.ts';
import { createLostRemoteTasks } from './lost-remote-tasks.ts';
import { createLostRuns } from './lost-runs.ts';
import { createLostTurns } from './lost-turns.ts';
import { createResponseCache } from './response-cache.store.ts';
import { createRunAccess } from './run-access.ts';
import { createRunAnswers } from './run-answers.ts';
import { createRunAudience } from './run-audience.ts';
import { createRunCancels } from './run-cancels.ts';
import { createRunEnds } from './run-ends.ts';
import { lostRunSource, runEventSource } from './run-event-source.ts';
import { createRunJobs, type RunJobs } from './run-jobs.ts';
import { createRunJournal } from './run-journal.store.ts';
import { createLateClosings } from './run-late-closings.ts';
import { runReading } from './run-reading.service.ts';
import { createRunReconciliation } from './run-reconciliation.ts';
import { closeOpenRuns, freeLeasedJobs } from './run-recovery.ts';
import { createRunStart } from './run-start.service.ts';
import { type RunTraceStore, runTraceStore } from './run-traces.store.ts';
import { turnStore } from './run-turns.store.ts';
import { runJobHandler } from './runs.job.ts';
import type { RunComparisonSide } from './runs.schema.ts';
import { runService } from './runs.service.ts';
import { type RunStore, runStore } from './runs.store.ts';
import { unitFailure } from './unit-failure.ts';
import { unpricedRuns } from './unpriced-runs.store.ts';

export { askedAgent } from './asked-agent.ts';
export interface RunsDeps extends Pick<LaunchDeps, 'lifecycle' | 'stops'> {
  readonly config: Config;
  readonly storage: Storage;
  readonly batch: BatchedWrites;
  /** True: other processes write the store, too. */
  readonly shared: boolean;
  readonly announcements: Announcements;
  readonly agents: AgentSource;
  readonly sessions: Pick<SessionsFeature, 'places' | 'access'>;
  readonly queuedPlaces: QueuedPlaces;
  readonly writes: ReturnType<typeof createRunWrites>;
  readonly jobs: JobStore;
  readonly providers: Pick<ModelProviders, 'list' | 'protection'>;
  readonly providerAccess: ProviderAccess;
  readonly attachments: RunAttachmentPort;
  readonly resources: AgentResources;
  readonly saveAttachment: ToolCallDeps['saveAttachment'];
  /** Null: nothing is inspected. */
  readonly guards: ContentGuards | null;
  readonly authorizer: ToolAuthorizer | null;
  readonly authorization: RunAuthorization;
  readonly attribution: Attribution;
  readonly prefix: string;
  /** Null: no module listens to events. */
  readonly listeners: RunListeners | null;
  readonly gate: ApprovalGate;
  readonly pauseJournal: PauseJournal;
  /** Null: switched off. */
  readonly quotas: ActiveQuotas | null;
  readonly preflight: Preflight | null;
  /** Who is told of the ends of runs. */
  readonly events: WebhookEvents;
  readonly scoresOf: (tenantId: string, runId: string) => Promise<RunComparisonSide['scores']>;
  readonly memory: AgentMemory;
  readonly remoteTasks: LostRemoteTasks;
  readonly structuredResponseValidators: ReadonlyMap<string, StructuredResponseValidator>;
  readonly loopCriteria: ReadonlyMap<string, LoopCriterionEvaluator>;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  /** Has a worker look for jobs that are due since then. */
  readonly places: FlowPlaces;
  /** What becomes of jobs whose agent is stopped. */
  readonly held: HeldJobs;
  readonly wake: (dueAt: number) => void;
  readonly clock: Clock;
  /** Of what processes that share the store agree on. */
  readonly storeClock: Clock;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What other features read of recorded runs, and how they record one that did not start. */
export type RunRecords = Pick<
  RunStore,
  | 'get'
  | 'heads'
  | 'recordedInput'
  | 'output'
  | 'toolNames'
  | 'toolInvocations'
  | 'modelCalls'
  | 'treeMembers'
  | 'packs'
> &
  Pick<DetachedRuns, 'recordFailed'> &
  Pick<RunTraceStore, 'spanOf'>;

type RunWriteDeps = Pick<RunsDeps, 'config' | 'storage' | 'batch' | 'jobs' | 'queuedPlaces'> &
  Pick<RunsDeps, 'listeners' | 'wake' | 'now' | 'newId'> & {
    readonly quotas: Pick<ActiveQuotas, 'counters'> | null;
  };

/** Made before the features that pause runs and have them go on, and before those that execute them. */
export const createRunWrites = (deps: RunWriteDeps) => {
  const { AsyncRun, Pricing, RunContinuation, Scheduling } = deps.config.Service;
  const prices = createPriceList(Pricing.Currency, Pricing.Models);
  const store = deps.storage.stores(runStore);
  const journal = deps.storage.stores(createRunJournal(prices.currency, deps.quotas?.counters ?? null));
  const flows = deps.storage.stores(flowStore);
  const queued = createQueuedRuns({
    ...deps,
    flows,
    lanes: laneFlows(Scheduling.LaneFlows),
    store,
    journal,
    quotaDay: (runId) => deps.quotas?.counters.day(runId) ?? null,
    settings: {
      enabled: AsyncRun.Enabled && Scheduling.Enabled,
      continues: RunContinuation.Enabled && Scheduling.Enabled,
      maxAttempts: AsyncRun.MaxAttempts,
      laneByHandlerKey: Scheduling.LaneByHandlerKey,
    },
  });
  return { store, journal, prices, queued, flows };
};

export const runsFeature = (deps: RunsDeps) => {
  const { storage, jobs, log, clock, now } = deps;
  const { store, queued } = deps.writes;
  const { Service, Host } = deps.config;
  const settings = engineSettings(deps.config);
  const { access: owners, places: sessions } = deps.sessions;
  const access = createRunAccess(store, deps.authorization, owners);
  // What nearly every part needs; each takes what its own dependencies name.
  const base = {
    ...deps,
    ...deps.writes,
    ends: createRunEnds(deps.events, deps.writes.prices.currency),
    sessions,
    owners,
    access,
    turns: storage.stores(turnStore),
    recordingEnabled: settings.recording.enabled,
  };
  const traces = storage.stores(runTraceStore);
  const announce = (runId: string): void => deps.announcements.announce('run-events', runId);
  const detached = createDetachedRuns({ ...base, announce });
  const { LaneByHandlerKey, Enabled: hasQueue } = Service.Scheduling;
  const lostTasks = createLostRemoteTasks({
    ...base,
    settings: { enabled: hasQueue, lane: LaneByHandlerKey[remoteCancelKey] ?? 'default' },
  });
  const lost = createLostRuns({
    ...base,
    lostTurns: createLostTurns(base),
    remoteEnds: lostTasks,
    detached,
    cancels: { isAsked: (runId) => cancels.isAsked(runId) },
  });
  const recovery = { runs: store, lost, jobs, log, now };
  const responses = storage.stores(createResponseCache(clock, log, deps.batch));
  const lateClosings = createLateClosings({
    ...base,
    announce,
    written: (runId) => deps.quotas?.engine.writtenLate(runId),
    dropped: (runId) => deps.quotas?.engine.recordDropped(runId),
  });
  const followed = createFollowedRuns({
    store,
    announcements: deps.announcements,
    pollIntervalMs: Host.RunEventPollInterval,
    clock,
  });
  const audience = createRunAudience(deps.announcements, clock, (runId) => engine.active(runId) !== undefined);
  const engine: RunEngine = createRunEngine({
    ...base,
    children: createChildPlans(deps),
    responses,
    access: deps.providerAccess,
    protection: deps.providers.protection,
    settings,
    tools: {
      authorizer: deps.authorizer,
      defaultTimeoutMs: Service.Tools.DefaultTimeout,
      defaultMaxOutputBytes: Service.Tools.DefaultMaxOutputBytes,
      saveAttachment: deps.saveAttachment,
      log,
    },
    unfinished: {
      requeue: queued.requeue,
      postpone: queued.postpone,
      continuation: ({ id, tenantId, agent, sessionId }, failure) =>
        queued.continuation({ id, tenantId, agentName: agent.name, sessionId }, failure),
      packPrincipal: (plan) => packPrincipal(plan.principal),
    },
    approvals: deps.gate,
    pauses: deps.pauseJournal,
    quotas: deps.quotas?.engine ?? null,
    shared: deps.shared
      ? {
          announce: audience.tell,
          log: (tenantId, runId, from) => lostRunSource({ store, engine, followed }, tenantId, runId, from),
        }
      : null,
    enqueue: deps.batch.enqueue,
    failureOf: unitFailure(storage.dialect),
    closeLater: lateClosings.add,
    after: clock.after,
  });
  const cancels = createRunCancels({ ...base, engine, forwards: Service.RunCancellation.Forward });
  const executing = { ...base, engine, detached, cancels };
  const launch = createLaunch({
    ...executing,
    doors: {
      drop: createDroppedRuns({ ...base, maxAttempts: Service.AsyncRun.MaxAttempts }),
      replace: (...replaced) => runJobs.replace(...replaced),
    },
    cancelElsewhere: async (...run) => (await cancels.ask(...run)) === 'asked',
    storeIsAway: () => storage.dialect.isAway?.() === true,
    maxContinuations: Service.RunContinuation.MaxAttempts,
  });
  const handler = runJobHandler({ ...executing, launch, lost });
  const runJobs: RunJobs = createRunJobs(executing);
  const { RunReconciliation: reconciling } = Service;
  const reconciliation = reconciling.Enabled
    ? createRunReconciliation(
        { storage, runs: store, engine, unwritten: lateClosings.runIds, jobs, lost, log, clock: deps.storeClock },
        {
          heartbeatIntervalMs: reconciling.HeartbeatInterval,
          orphanThresholdMs: reconciling.OrphanThreshold,
          scanIntervalMs: reconciling.ScanInterval,
          maxRunsPerScan: reconciling.MaxRunsPerScan,
        },
      )
    : null;
  const cancelRun = createCancelRun({ ...executing, cancelQueued: (...queued) => runJobs.cancelQueued(...queued) });
  const answers = createRunAnswers({ ...executing, launch, clock });
  const start = createRunStart({
    ...executing,
    launch,
    answers,
    settings: { payloads: settings.recording },
  });
  return {
    handlers: {
      ...runReading({ ...base, traces, recording: settings.recording }),
      ...runService({
        ...executing,
        start,
        cancelRun,
        followed,
      }),
    },
    launch,
    answers,
    /** Runs that execute; only the launch starts them. */
    engine: engine as Omit<RunEngine, 'start'>,
    access,
    cancelRun,
    /** The log of a run from a sequence on, live or finished, wherever it executes. */
    events: (tenantId: string, runId: string, from: number): FrameSource =>
      runEventSource({ store, engine, followed }, tenantId, runId, from),
    /** Limits of every tree of runs. */
    treeLimits: settings.tree,
    records: { ...store, ...detached, spanOf: traces.spanOf } as RunRecords,
    recalculateCosts: createCostRecalculation({ ...base, unpriced: storage.stores(unpricedRuns) }),
    jobHandlers: Object.fromEntries(runJobKeys.map((key) => [key, handler])),
    /** Of work that is left behind by runs, and executes none. */
    leftJobHandlers: lostTasks.jobHandlers,
    jobWork: runJobs,
    itemRuns: createItemRuns({ ...base, lost, cancels }),
    /** Ends the run of a job whose last attempt was lost. */
    async lostJob(job: QueuedJob): Promise<void> {
      const row = await store.get(job.tenantId, job.id);
      if (row?.status !== 'Running' && row?.status !== 'Queued') return;
      await lost.loseDescendants(row);
      await lost.lose(row);
    },
    /** Gives signs of life for the runs of this process, where that is switched on. */
    started(): void {
      responses.start();
      cancels.start();
      reconciliation?.start();
    },
    /** Looks for runs whose process is gone; null where that is switched off. */
    reconciliation: reconciliation?.scans ?? null,
    leftovers: {
      runs: () => closeOpenRuns(recovery),
      jobs: () => freeLeasedJobs(recovery),
      heartbeats: store.heartbeatsDropped,
    },
    close(): Promise<void> {
      responses.close();
      reconciliation?.close();
      followed.close();
      audience.close();
      cancels.close();
      return lateClosings.close();
    },
  };
};

export type { CancelRun } from './cancel-run.ts';
export { createRunPricing, type PricedRun, type RecalculateCosts } from './cost-recalculation.ts';
export type { EarlierEnd, ItemRuns } from './item-runs.ts';
export {
  type ArrivingWork,
  approvalResumeKey,
  type Entrance,
  failureError,
  type Launch,
  pauseContextOf,
  preflightCheck,
  type RunWork,
  runPlan,
} from './launch/index.ts';
export { createLostTurns } from './lost-turns.ts';
export { type RunAccess, runTarget } from './run-access.ts';
export type { HeldStream, OnDisconnect, RunAnswers } from './run-answers.ts';
export { storedWarnings, toRunRecord } from './run-record.ts';
export { turnStore } from './run-turns.store.ts';
export type { RecordedInput, TreeMember } from './runs.store.ts';
export { microsOf } from './stored-cost.ts';
export { decodeShares, type StoredShare } from './stored-shares.ts';
export { warningHeader } from './warning-header.ts';
