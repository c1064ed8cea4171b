import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Handlers } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AgentSource } from '../../engine/compiled-agent.ts';
import type { AgentMemory } from '../../engine/context/index.ts';
import type { ApprovalGate, ContentGuards } from '../../engine/control/index.ts';
import {
  createRunEngine,
  type EngineSettings,
  type PauseJournal,
  type RunEngine,
} from '../../engine/lifecycle/index.ts';
import { createPriceList } from '../../engine/pricing.ts';
import type { RunListeners, SessionTurn } from '../../engine/record/index.ts';
import type { ToolAuthorizer, ToolCallDeps } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import type { ProviderAccess } from '../../providers/models/provider-access.ts';
import type { BackgroundService } from '../../scheduler/background-service.ts';
import type { JobHandler, QueuedJob } from '../../scheduler/job-queue.ts';
import type { SessionPauses } from '../approvals/index.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import type { JobStore, JobWork } from '../jobs/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { type CostRecalculation, createCostRecalculation } from './cost-recalculation.ts';
import { createIdempotencyKeys } from './idempotency.store.ts';
import { createChildPlans } from './launch/child-plans.ts';
import type { MayStartDeps } from './launch/may-start.ts';
import { packPrincipal } from './launch/packed-principal.ts';
import type { Preflight } from './launch/preflight.ts';
import { createResponseCache } from './response-cache.store.ts';
import { createRunAccess, type RunAccess } from './run-access.ts';
import { createDetachedRuns, type DetachedRuns } from './run-detached.ts';
import { createRunJobs } from './run-jobs.ts';
import { createRunJournal } from './run-journal.store.ts';
import { createLateClosings } from './run-late-closings.ts';
import { createLostRuns } from './run-lost.ts';
import { createRunQueue, type RunQueue } from './run-queue.ts';
import { runReading } from './run-reading.service.ts';
import { createRunReconciliation, type RunReconciliation } from './run-reconciliation.ts';
import { type RecoveryReport, recoverRuns } from './run-recovery.ts';
import { createRunStart } from './run-start.service.ts';
import { createRunTraceStore, type RunTraceStore } from './run-traces.store.ts';
import { createTurnStore } from './run-turns.store.ts';
import type { runOperations } from './runs.operations.ts';
import type { RunComparisonSide } from './runs.schema.ts';
import { runService } from './runs.service.ts';
import { createRunStore, type RunStore } from './runs.store.ts';

export interface RunsDeps extends MayStartDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly agents: AgentSource;
  readonly sessions: Pick<SessionsFeature, 'store' | 'turns' | 'access'>;
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
  readonly pauses: SessionPauses;
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
  /** Called when a job was queued in this process. */
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
  readonly engine: RunEngine;
  readonly access: RunAccess;
  readonly records: RunRecords;
  readonly recalculateCosts: (tenantId: string) => Promise<CostRecalculation>;
  readonly queue: Pick<RunQueue, 'contextOf' | 'continuation' | 'continued'>;
  readonly jobHandlers: Readonly<Record<string, JobHandler>>;
  readonly jobWork: JobWork;
  /** Closes what a dead owner of the store left open; before the first request. */
  recover(): Promise<RecoveryReport>;
  /** Ends the run of a job whose last attempt was lost. */
  lostJob(job: QueuedJob): Promise<void>;
  /** Gives signs of life for the runs of this process, where that is switched on. */
  started(): void;
  /** Looks for runs whose process is gone; null where that is switched off. */
  readonly reconciliation: BackgroundService | null;
  close(): Promise<void>;
}

const engineSettings = ({ Service }: Config): EngineSettings => {
  const { RunRecording: recording, AgentGraph: graph, Tools: tools, StructuredResponse: structured } = Service;
  return {
    recording: {
      enabled: recording.Enabled,
      recordMessageDeltas: recording.RecordMessageDeltas,
      recordReasoningDeltas: recording.RecordReasoningDeltas,
      recordToolPayloads: recording.RecordToolPayloads,
      recordRunInput: recording.RecordRunInput,
      maxPayloadLength: recording.MaxPayloadLength,
    },
    tree: {
      maxDepth: graph.MaxDepth,
      maxTotalTokens: graph.MaxTotalTokens,
      maxTotalRuns: graph.MaxTotalRuns,
      maxTotalCostMicros: graph.MaxTotalCost === null ? null : Math.round(graph.MaxTotalCost * 1_000_000),
      maxDurationMs: graph.MaxDuration,
    },
    maxIterations: tools.MaxIterations,
    maxConsecutiveToolErrors: tools.MaxConsecutiveErrors,
    steps: { continuation: Service.RunContinuation.Enabled, retries: Service.AsyncRun.MaxAttempts > 1 },
    childDeadlineMs: graph.ChildDeadline,
    waitTimeoutMs: graph.WaitTimeout,
    structuredResponse: {
      enabled: structured.Enabled,
      maxRepairAttempts: structured.MaxRepairAttempts,
    },
  };
};

export const runsFeature = (deps: RunsDeps): RunsFeature => {
  const { config, storage, agents, jobs, log, clock, newId } = deps;
  const { now } = clock;
  const { turns: sessions, access: owners } = deps.sessions;
  const { Service, Host } = config;
  const settings = engineSettings(config);
  const prices = createPriceList(Service.Pricing.Currency, Service.Pricing.Models);
  const journal = createRunJournal(storage, prices.currency, deps.quotas?.counters ?? null);
  const store = createRunStore(storage);
  const traces = createRunTraceStore(storage);
  const access = createRunAccess(store, deps.authorization, owners);
  const recordingEnabled = settings.recording.enabled;
  const detached = createDetachedRuns({ storage, store, journal, recordingEnabled, listeners: deps.listeners, now });
  const turns = createTurnStore(storage);
  const lost = createLostRuns({
    storage,
    store,
    turns,
    jobs,
    sessions: deps.sessions.store,
    detached,
    journal,
    settings: {
      continues: Service.RunContinuation.Enabled && Service.Scheduling.Enabled,
      maxAttempts: Service.AsyncRun.MaxAttempts,
      laneByHandlerKey: Service.Scheduling.LaneByHandlerKey,
    },
    now,
    newId,
  });
  const keys = createIdempotencyKeys(storage, { keptMs: deps.keysKeptMs, clock, log });
  const responses = createResponseCache(storage, clock, log);
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
      // Bound late: the queue starts runs of the engine that asks it here.
      requeue: (plan, failure): ReturnType<RunQueue['requeue']> => queue.requeue(plan, failure),
      continuation: ({ id, tenantId, agent, sessionId }, failure) =>
        lost.continuation({ id, tenantId, agentName: agent.name, sessionId }, failure),
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
  const release = async (session: SessionTurn): Promise<void> => {
    try {
      await storage.write(session.release());
    } finally {
      session.ended();
    }
  };
  const queue = createRunQueue({
    stops: deps.stops,
    storage,
    journal,
    store,
    jobs,
    engine,
    agents,
    sessions,
    attachments: deps.attachments,
    detached,
    turns,
    pauses: deps.pauses,
    lost,
    preflight: deps.preflight,
    release,
    settings: {
      enabled: Service.AsyncRun.Enabled && Service.Scheduling.Enabled,
      maxAttempts: Service.AsyncRun.MaxAttempts,
      maxContinuations: Service.RunContinuation.MaxAttempts,
      laneByHandlerKey: Service.Scheduling.LaneByHandlerKey,
    },
    wake: deps.wake,
    listeners: deps.listeners,
    log,
    now,
    newId,
  });
  const runJobs = createRunJobs({ storage, store, access, owners, jobs, journal, detached, queue, now });
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
  const busySessions = deps.telemetry.metrics.counter(
    'acp.session.busy',
    'Runs that met a session which another run held.',
    '{run}',
    ['acp.session.concurrency'],
  );
  const start = createRunStart({
    authorization: deps.authorization,
    attribution: deps.attribution,
    store,
    agents,
    engine,
    sessions,
    attachments: deps.attachments,
    queue,
    detached,
    keys,
    prices,
    prefix: Host.Prefix,
    pauses: deps.pauses,
    quotas: deps.quotas,
    release,
    busy: (concurrency) => busySessions.add(1, [concurrency]),
    settings: {
      recordingEnabled,
      payloads: settings.recording,
      idempotency: { enabled: Service.Idempotency.Enabled, maxKeyLength: Service.Idempotency.MaxKeyLength },
    },
    lifecycle: deps.lifecycle,
    stops: deps.stops,
    preflight: deps.preflight,
    clock,
    now,
    newId,
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
    engine,
    access,
    records: { ...store, ...detached, spanOf: traces.spanOf },
    recalculateCosts: createCostRecalculation({
      storage,
      unpriced: createUnpricedRuns(storage),
      prices,
      providers: deps.providers,
    }),
    jobHandlers: queue.handlers,
    jobWork: runJobs,
    async lostJob(job) {
      const row = await store.get(job.tenantId, job.id);
      if (row?.status !== 'Running' && row?.status !== 'Queued') return;
      await lost.loseDescendants(row);
      await lost.lose(row);
    },
    started: () => reconciliation?.start(),
    reconciliation: reconciliation?.scans ?? null,
    queue,
    recover() {
      responses.start();
      return recoverRuns({ runs: store, lost, jobs, sessions: deps.sessions.store, keys, now });
    },
    close() {
      responses.close();
      reconciliation?.close();
      keys.close();
      return lateClosings.close();
    },
  };
};

import { createUnpricedRuns } from './unpriced-runs.store.ts';

export { createRunPricing } from './cost-recalculation.ts';
export { assertMayStart, type MayStartDeps } from './launch/may-start.ts';
export { preflightCheck } from './launch/preflight.ts';
export { runPlan } from './launch/run-plan.ts';
export type { RunAccess } from './run-access.ts';
export type { RunOwner } from './run-queue.ts';
export { toRunRecord } from './run-record.ts';
export type { RecoveryReport } from './run-recovery.ts';
export { failureError } from './run-start.service.ts';
export { createTurnStore } from './run-turns.store.ts';
export type { TreeMember } from './runs.store.ts';
