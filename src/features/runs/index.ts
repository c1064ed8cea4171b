import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Handlers } from '../../core/context.ts';
import type { LeftoverClosings } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AgentSource } from '../../engine/compiled-agent.ts';
import type { AgentMemory } from '../../engine/context/index.ts';
import type { ApprovalGate, ContentGuards } from '../../engine/control/index.ts';
import type { PauseJournal } from '../../engine/lifecycle/index.ts';
import { createRunEngine, type RunEngine } from '../../engine/lifecycle/index.ts';
import { createPriceList, type PriceList } from '../../engine/pricing.ts';
import type { RunJournal, RunListeners } from '../../engine/record/index.ts';
import type { ToolAuthorizer, ToolCallDeps } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import type { ProviderAccess } from '../../providers/models/provider-access.ts';
import type { BackgroundService } from '../../scheduler/background-service.ts';
import type { JobHandler, QueuedJob } from '../../scheduler/job-queue.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import type { JobStore, JobWork } from '../jobs/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { type CostRecalculation, createCostRecalculation } from './cost-recalculation.ts';
import { createDetachedRuns, type DetachedRuns } from './detached-runs.ts';
import { engineSettings } from './engine-settings.ts';
import { createIdempotencyKeys } from './idempotency.store.ts';
import {
  createChildPlans,
  createLaunch,
  createQueuedRuns,
  type Launch,
  type LaunchDeps,
  type Preflight,
  packPrincipal,
  type QueuedRuns,
  runJobKeys,
} from './launch/index.ts';
import { createLostRuns } from './lost-runs.ts';
import { createResponseCache } from './response-cache.store.ts';
import { createRunAccess, type RunAccess } from './run-access.ts';
import { createRunJobs } from './run-jobs.ts';
import { createRunJournal } from './run-journal.store.ts';
import { createLateClosings } from './run-late-closings.ts';
import { runReading } from './run-reading.service.ts';
import { createRunReconciliation, type RunReconciliation } from './run-reconciliation.ts';
import { closeOpenRuns, freeLeasedJobs } from './run-recovery.ts';
import { createRunStart } from './run-start.service.ts';
import { type RunTraceStore, runTraceStore } from './run-traces.store.ts';
import { turnStore } from './run-turns.store.ts';
import { runJobHandler } from './runs.job.ts';
import type { runOperations } from './runs.operations.ts';
import type { RunComparisonSide } from './runs.schema.ts';
import { runService } from './runs.service.ts';
import { type RunStore, runStore } from './runs.store.ts';
import { unpricedRuns } from './unpriced-runs.store.ts';

export interface RunsDeps extends Pick<LaunchDeps, 'lifecycle' | 'stops'> {
  readonly config: Config;
  readonly storage: Storage;
  readonly agents: AgentSource;
  readonly sessions: Pick<SessionsFeature, 'store' | 'places' | 'access'>;
  readonly writes: RunWrites;
  readonly jobs: JobStore;
  readonly providers: Pick<ModelProviders, 'list' | 'protection'>;
  readonly providerAccess: ProviderAccess;
  readonly attachments: RunAttachmentPort;
  readonly saveAttachment: ToolCallDeps['saveAttachment'];
  /** Null: nothing is inspected. */
  readonly guards: ContentGuards | null;
  readonly authorizer: ToolAuthorizer | null;
  readonly authorization: RunAuthorization;
  readonly attribution: Attribution;
  /** Null: no module listens to events. */
  readonly listeners: RunListeners | null;
  readonly gate: ApprovalGate;
  readonly pauseJournal: PauseJournal;
  /** Null: switched off. */
  readonly quotas: ActiveQuotas | null;
  readonly preflight: Preflight | null;
  readonly scoresOf: (tenantId: string, runId: string) => Promise<RunComparisonSide['scores']>;
  readonly memory: AgentMemory;
  readonly structuredResponseValidators: ReadonlyMap<string, StructuredResponseValidator>;
  readonly loopCriteria: ReadonlyMap<string, LoopCriterionEvaluator>;
  /** How long answers of idempotency keys are given again; null: without an end. */
  readonly keysKeptMs: (tenantId: string) => Promise<number | null>;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  /** Has the worker of this process look for jobs. */
  readonly wake: () => void;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** What other features read of recorded runs, and how they record one that did not start. */
export type RunRecords = Pick<
  RunStore,
  'get' | 'recordedInput' | 'output' | 'toolNames' | 'toolInvocations' | 'modelCalls' | 'treeMembers' | 'packs'
> &
  Pick<DetachedRuns, 'recordFailed'> &
  Pick<RunTraceStore, 'spanOf'>;

export interface RunsFeature {
  readonly handlers: Handlers<typeof runOperations>;
  readonly launch: Launch;
  /** Runs that execute; only the launch starts them. */
  readonly engine: Omit<RunEngine, 'start'>;
  readonly access: RunAccess;
  readonly records: RunRecords;
  readonly recalculateCosts: (tenantId: string) => Promise<CostRecalculation>;
  readonly jobHandlers: Readonly<Record<string, JobHandler>>;
  readonly jobWork: JobWork;
  readonly leftovers: LeftoverClosings<'runs' | 'jobs' | 'heartbeats' | 'idempotencyMarks'>;
  /** Ends the run of a job whose last attempt was lost. */
  lostJob(job: QueuedJob): Promise<void>;
  /** Gives signs of life for the runs of this process, where that is switched on. */
  started(): void;
  /** Looks for runs whose process is gone; null where that is switched off. */
  readonly reconciliation: BackgroundService | null;
  close(): Promise<void>;
}

/** What is written of runs, and how they come into the job queue. */
export interface RunWrites {
  readonly store: RunStore;
  readonly journal: RunJournal;
  readonly prices: PriceList;
  readonly queued: QueuedRuns;
}

type RunWriteDeps = Pick<RunsDeps, 'config' | 'storage' | 'listeners' | 'wake' | 'clock' | 'newId'> & {
  readonly jobs: JobStore;
  readonly quotas: Pick<ActiveQuotas, 'counters'> | null;
};

/** Made before the features that pause runs and have them go on, and before those that execute them. */
export const createRunWrites = (deps: RunWriteDeps): RunWrites => {
  const { AsyncRun, Pricing, RunContinuation, Scheduling } = deps.config.Service;
  const prices = createPriceList(Pricing.Currency, Pricing.Models);
  const store = deps.storage.stores(runStore);
  const journal = deps.storage.stores(createRunJournal(prices.currency, deps.quotas?.counters ?? null));
  const queued = createQueuedRuns({
    ...deps,
    store,
    journal,
    now: deps.clock.now,
    settings: {
      enabled: AsyncRun.Enabled && Scheduling.Enabled,
      continues: RunContinuation.Enabled && Scheduling.Enabled,
      maxAttempts: AsyncRun.MaxAttempts,
      laneByHandlerKey: Scheduling.LaneByHandlerKey,
    },
  });
  return { store, journal, prices, queued };
};

export const runsFeature = (deps: RunsDeps): RunsFeature => {
  const { config, storage, agents, jobs, log, clock, newId } = deps;
  const { now } = clock;
  const { places: sessions, access: owners } = deps.sessions;
  const { store, journal, prices, queued } = deps.writes;
  const { Service, Host } = config;
  const settings = engineSettings(config);
  const traces = storage.stores(runTraceStore);
  const access = createRunAccess(store, deps.authorization, owners);
  const recordingEnabled = settings.recording.enabled;
  const detached = createDetachedRuns({
    storage,
    store,
    journal,
    recordingEnabled,
    listeners: deps.listeners,
    quotas: deps.quotas,
    now,
  });
  const turns = storage.stores(turnStore);
  const lost = createLostRuns({
    storage,
    store,
    turns,
    jobs,
    sessions: deps.sessions.store,
    detached,
    journal,
    queued,
    now,
  });
  const recovery = { runs: store, lost, jobs, log, now };
  const keys = storage.stores(createIdempotencyKeys({ keptMs: deps.keysKeptMs, clock, log }));
  const responses = storage.stores(createResponseCache(clock, log));
  const lateClosings = createLateClosings({
    storage,
    clock,
    log,
    written: (runId) => deps.quotas?.engine.writtenLate(runId),
    dropped: (runId) => deps.quotas?.engine.recordDropped(runId),
  });
  const engine = createRunEngine({
    children: createChildPlans({ agents, now, newId }),
    journal,
    prices,
    responses,
    access: deps.providerAccess,
    protection: deps.providers.protection,
    telemetry: deps.telemetry,
    settings,
    attachments: deps.attachments,
    guards: deps.guards,
    tools: {
      authorizer: deps.authorizer,
      defaultTimeoutMs: Service.Tools.DefaultTimeout,
      defaultMaxOutputBytes: Service.Tools.DefaultMaxOutputBytes,
      saveAttachment: deps.saveAttachment,
      log,
    },
    unfinished: {
      requeue: queued.requeue,
      continuation: ({ id, tenantId, agent, sessionId }, failure) =>
        queued.continuation({ id, tenantId, agentName: agent.name, sessionId }, failure),
      packPrincipal: (plan) => packPrincipal(plan.principal),
    },
    memory: deps.memory,
    structuredResponseValidators: deps.structuredResponseValidators,
    loopCriteria: deps.loopCriteria,
    approvals: deps.gate,
    pauses: deps.pauseJournal,
    stops: deps.stops,
    quotas: deps.quotas?.engine ?? null,
    listeners: deps.listeners,
    log,
    enqueue: (unit) => storage.enqueue(unit),
    closeLater: (runId, statements) => lateClosings.add(runId, statements),
    now,
    after: clock.after,
    newId,
  });
  const launch = createLaunch({
    authorization: deps.authorization,
    attribution: deps.attribution,
    lifecycle: deps.lifecycle,
    stops: deps.stops,
    agents,
    store,
    turns,
    jobs,
    sessions,
    engine,
    queued,
    detached,
    attachments: deps.attachments,
    quotas: deps.quotas,
    preflight: deps.preflight,
    recordingEnabled,
    maxContinuations: Service.RunContinuation.MaxAttempts,
    now,
    newId,
  });
  const handler = runJobHandler({
    launch,
    storage,
    store,
    journal,
    jobs,
    engine,
    sessions,
    detached,
    lost,
    wake: deps.wake,
    log,
    now,
  });
  const runJobs = createRunJobs({ storage, store, access, owners, jobs, journal, detached, sessions, now });
  const { RunReconciliation: reconciling } = Service;
  const reconciliation: RunReconciliation | null = reconciling.Enabled
    ? createRunReconciliation(
        { storage, runs: store, engine, jobs, lost, log, clock },
        {
          heartbeatIntervalMs: reconciling.HeartbeatInterval,
          orphanThresholdMs: reconciling.OrphanThreshold,
          scanIntervalMs: reconciling.ScanInterval,
          maxRunsPerScan: reconciling.MaxRunsPerScan,
        },
      )
    : null;
  const start = createRunStart({
    launch,
    engine,
    keys,
    prices,
    prefix: Host.Prefix,
    settings: {
      payloads: settings.recording,
      idempotency: { enabled: Service.Idempotency.Enabled, maxKeyLength: Service.Idempotency.MaxKeyLength },
    },
  });
  return {
    handlers: {
      ...runReading({
        store,
        access,
        traces,
        scoresOf: deps.scoresOf,
        recording: settings.recording,
      }),
      ...runService({
        authorization: deps.authorization,
        start,
        store,
        access,
        owners,
        engine,
        cancelQueued: runJobs.cancelQueued,
        pollIntervalMs: Host.RunEventPollInterval,
        clock,
      }),
    },
    launch,
    engine,
    access,
    records: { ...store, ...detached, spanOf: traces.spanOf },
    recalculateCosts: createCostRecalculation({
      storage,
      unpriced: storage.stores(unpricedRuns),
      prices,
      providers: deps.providers,
    }),
    jobHandlers: Object.fromEntries(runJobKeys.map((key) => [key, handler])),
    jobWork: runJobs,
    async lostJob(job) {
      const row = await store.get(job.tenantId, job.id);
      if (row?.status !== 'Running' && row?.status !== 'Queued') return;
      await lost.loseDescendants(row);
      await lost.lose(row);
    },
    started() {
      responses.start();
      reconciliation?.start();
    },
    reconciliation: reconciliation?.scans ?? null,
    leftovers: {
      runs: () => closeOpenRuns(recovery),
      jobs: () => freeLeasedJobs(recovery),
      heartbeats: store.heartbeatsDropped,
      idempotencyMarks: keys.freeAll,
    },
    close() {
      responses.close();
      reconciliation?.close();
      keys.close();
      return lateClosings.close();
    },
  };
};

export { createRunPricing } from './cost-recalculation.ts';
export {
  failureError,
  type Launch,
  pauseContextOf,
  preflightCheck,
  type RunWork,
  runPlan,
} from './launch/index.ts';
export type { RunAccess } from './run-access.ts';
export { toRunRecord } from './run-record.ts';
export { turnStore } from './run-turns.store.ts';
export type { TreeMember } from './runs.store.ts';
