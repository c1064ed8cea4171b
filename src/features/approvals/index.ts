import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import { byKey, type InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { RunPlan } from '../../engine/active-run.ts';
import { type ApprovalPolicy, type ApprovalPresenter, createApprovalGate } from '../../engine/control/index.ts';
import type { AuditLog } from '../audit/index.ts';
import type { GuardsFeature } from '../guards/index.ts';
import type { Mailbox, SessionAccess, SessionWaits } from '../sessions/index.ts';
import type { WebhookEvents } from '../webhooks/index.ts';
import { type Continuations, createApprovalDecisions, isDecided, statusAt } from './approval-decisions.ts';
import { createApprovalExpiration } from './approval-expiration.ts';
import { createApprovalMetrics } from './approval-metrics.ts';
import { type ApprovalRuleStore, approvalRuleStore, type StandingRule } from './approval-rules.store.ts';
import { approvalService } from './approvals.service.ts';
import { approvalStore } from './approvals.store.ts';
import { createInBandDecisions } from './in-band-decisions.ts';
import { createPauseJournal } from './paused-runs.ts';
import { createStandingRules } from './standing-rules.service.ts';

export interface ApprovalsDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly authorization: RunAuthorization;
  readonly owners: SessionAccess;
  readonly policy: ApprovalPolicy | null;
  /** By the name of their tool. */
  readonly presenters: ReadonlyMap<string, ApprovalPresenter>;
  readonly continuations: Continuations;
  /** Who is told of what waits for a decision. */
  readonly events: Pick<WebhookEvents, 'deliveries'>;
  readonly waits: SessionWaits;
  readonly guards: Pick<GuardsFeature, 'inspectRequest'>;
  /** What a continuation takes over from the run that paused, as JSON. */
  contextOf(plan: RunPlan): unknown;
  /** Lane of a continuation whose source was no job. */
  readonly resumeLane: string;
  readonly lifecycle: { readonly draining: boolean };
  readonly telemetry: Telemetry;
  readonly log: Logger;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Who must say yes before a tool runs: rules, the mailbox, and what paused sessions wait for. */
export const approvalsFeature = (deps: ApprovalsDeps) => {
  const { storage, audit, log, clock, newId } = deps;
  const { now } = clock;
  const { requests, ends } = deps.waits;
  const { Approvals: settings, RunRecording: recording, Scheduling: scheduling } = deps.config.Service;
  const store = storage.stores(approvalStore);
  const metrics = createApprovalMetrics({ ...deps, now, store });
  const ruleStore = storage.stores(approvalRuleStore);
  const rules = createStandingRules({
    store: ruleStore,
    rules: deps.state.entries('approvalRules', { load: byKey(ruleStore.list) }),
    audit,
    now,
    newId,
  });
  const expiresAfterMs = settings.ExpirationEnabled ? settings.DefaultExpiration : null;
  const decisions = createApprovalDecisions({
    ...deps,
    store,
    metrics,
    lapsed: ends.ended,
    schedulingEnabled: scheduling.Enabled,
    now,
  });
  return {
    handlers: approvalService({
      ...deps,
      store,
      decisions,
      maxPerScan: settings.MaxPerScan,
      inspectReason: (context, reason, { agent_name, run_id, session_id }) =>
        deps.guards.inspectRequest(context, reason, { agentName: agent_name, runId: run_id, sessionId: session_id }),
      now,
    }),
    rules: rules.handlers,
    gate: createApprovalGate({ ...deps, matchingRule: rules.matching }),
    pauseJournal: createPauseJournal({
      requests,
      approvals: store,
      events: deps.events,
      contextOf: deps.contextOf,
      recordingEnabled: recording.Enabled,
      recordToolPayloads: recording.RecordToolPayloads,
      expiresAfterMs,
      lane: deps.resumeLane,
      newId,
    }),
    mailbox: {
      /**
       * Queues a continuation that became due because the last call lapsed, too: the scan that would do it may be a while
       * off, and no other turn may come between. While nothing can be queued, what was decided blocks no turn. Calls that
       * the session's next run may decide block no turn, until one of them was decided in the mailbox.
       */
      async blockedUntil(tenantId, sessionId) {
        const at = now();
        const rows = await store.undecided(tenantId, sessionId);
        const begun = new Set(rows.filter(({ status }) => isDecided(status)).map((row) => row.run_id));
        const open = rows.filter(
          (row) => statusAt(row, at) === 'Pending' && (row.in_band === 0 || begun.has(row.run_id)),
        );
        if (open.length > 0) return Math.max(...open.map((row) => row.expires_at ?? Number.POSITIVE_INFINITY));
        await decisions.settleLapsed(rows);
        const unfinished = await store.unfinished(tenantId, sessionId);
        if (unfinished === undefined || (unfinished.state === 'Waiting' && !scheduling.Enabled)) return null;
        if (unfinished.state === 'Waiting') await decisions.settle(unfinished.run_id);
        return Number.POSITIVE_INFINITY;
      },
      async settled(requests) {
        const rows = await store.statesOf([...new Set(requests.map((row) => row.run_id))]);
        await decisions.settleLapsed(rows);
        const at = now();
        const states = new Map<string, string>();
        // A request without a row is of an earlier version, or not recorded: it expires all the same.
        for (const { id, state, created_at: askedAt } of requests)
          if (state === 'Open' && expiresAfterMs !== null && askedAt + expiresAfterMs <= at) states.set(id, 'Expired');
        for (const row of rows) states.set(row.request_id, statusAt(row, at));
        return new Map([...states].filter(([, status]) => status !== 'Pending'));
      },
      async decided(sourceRunId) {
        const handover = await store.handover(sourceRunId);
        if (handover === undefined) return undefined;
        const at = now();
        const rows = await store.ofRun(handover.run_id);
        return {
          tenantId: handover.tenant_id,
          runId: handover.run_id,
          continuationRunId: handover.continuation_run_id,
          calls: new Map(rows.map((row) => [row.request_id, { status: statusAt(row, at), reason: row.reason }])),
        };
      },
      ...createInBandDecisions({
        store,
        rules,
        audit,
        metrics,
        inspect: (context, reason, { agent_name, run_id, session_id }) =>
          deps.guards.inspectRequest(context, reason, { agentName: agent_name, runId: run_id, sessionId: session_id }),
        voidOpen: requests.voidOpen,
        now,
        newId,
      }),
    } satisfies Mailbox,
    expiration: createApprovalExpiration({
      store,
      decisions,
      log,
      clock,
      settings: {
        enabled: settings.ExpirationEnabled,
        queues: scheduling.Enabled,
        scanIntervalMs: settings.ScanInterval,
        maxPerScan: settings.MaxPerScan,
      },
    }),
    dropSession: (stores: UnitOfWork, tenantId: string, sessionId: string) =>
      stores(approvalStore).dropSession(tenantId, sessionId),
  };
};

export type ApprovalsFeature = ReturnType<typeof approvalsFeature>;

export type { Continuations } from './approval-decisions.ts';
export { argumentsHash, conditionProblems, ruleMatches } from './argument-conditions.rules.ts';
export { type ApprovalRuleStore, approvalRuleStore, type StandingRule };
