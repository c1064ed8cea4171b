import type { AgentRunRequest } from '../../../contract/run-request.ts';
import { credentialAttribution, type RunAttribution } from '../../../core/caller/attribution.ts';
import type { Principal } from '../../../core/context.ts';
import type { Statement } from '../../../db/statement.ts';
import type { ApprovalHandoverRow } from '../../../db/tables/approvals.ts';
import type { RunRow } from '../../../db/tables.ts';
import type { RunPlan } from '../../../engine/active-run.ts';
import type { RunJournal, RunListeners } from '../../../engine/record/index.ts';
import { encodePack, type LoggedEvent, toFrame } from '../../../engine/record/index.ts';
import type { JobStore } from '../../jobs/index.ts';
import type { QueuedPlaces } from '../../sessions/index.ts';

/** A run that was accepted over the API. */
export const agentRunKey = 'acp.agent-run';
/** The run that goes on once the calls of another were decided. */
export const approvalResumeKey = 'acp.approval-resume';
/** The run that goes on with the turn of one whose process is gone; it has no row before it starts. */
export const continuationKey = 'acp.run-continuation';
/** Keys of the jobs whose handlers execute runs. */
export const runJobKeys: readonly string[] = [agentRunKey, approvalResumeKey, continuationKey];

/** A run that has a job of its own, and not one that stands for an item of a job. */
export const isQueuedRun = (row: RunRow): row is RunRow & { readonly job_id: string } => row.job_id === row.id;

/** A principal as it is stored for a run that executes later. */
export type PackedPrincipal = Omit<Principal, 'scopes' | 'permissions'> & {
  readonly scopes: readonly string[] | null;
  readonly permissions: readonly string[] | null;
};

export const packPrincipal = (principal: Principal): PackedPrincipal => ({
  ...principal,
  scopes: principal.scopes === null ? null : [...principal.scopes],
  permissions: principal.permissions === null ? null : [...principal.permissions],
});

export const unpackPrincipal = (packed: PackedPrincipal): Principal => ({
  ...packed,
  scopes: packed.scopes === null ? null : (new Set(packed.scopes) as NonNullable<Principal['scopes']>),
  permissions: packed.permissions === null ? null : new Set(packed.permissions),
});

/** What a queued run keeps of its acceptance: the request and who asked. */
export interface QueuedRunPayload {
  readonly request: AgentRunRequest;
  readonly requestId: string;
  readonly createdAt: number;
  readonly ownerId: string | null;
  readonly principal: PackedPrincipal;
  /** Absent in what an earlier version has queued: as the principal says. */
  readonly attribution?: RunAttribution;
  /** W3C Trace Context of the request that queued the run. */
  readonly trace?: string;
  /** Day that it counts in against quotas; null: in none. Absent in what an earlier version has queued, and in what goes on. */
  readonly quotaDay?: string | null;
  /** Set for a run that goes on once the calls of another were decided. */
  readonly resumes?: {
    readonly runId: string;
    readonly agentVersion: number;
    /** Absent in what an earlier version has paused. */
    readonly agentSavedAt?: number | null;
  };
}

export interface QueuedRun {
  readonly runId: string;
  readonly tenantId: string;
  readonly agentName: string;
  readonly handlerKey: string;
  readonly lane: string;
  readonly now: number;
  readonly payload: QueuedRunPayload;
}

export interface ContinuationPayload {
  /** The closed run. */
  readonly from: string;
}

/** Kept with a paused run, as JSON. */
export type PauseContext = Pick<QueuedRunPayload, 'principal' | 'attribution' | 'ownerId' | 'requestId'> & {
  readonly culture: string | null;
  readonly parameters: RunPlan['parameters'];
  /** Absent in what an earlier version has paused. */
  readonly agentSavedAt?: number | null;
};

export interface QueueWrites {
  readonly journal: RunJournal;
  readonly jobs: Pick<JobStore, 'queued'>;
  readonly queuedPlaces: Pick<QueuedPlaces, 'behind' | 'before'>;
  readonly maxAttempts: number;
}

/** What a continuation takes over from the run that paused. */
export const pauseContextOf = (plan: RunPlan): PauseContext => ({
  principal: packPrincipal(plan.principal),
  attribution: { userId: plan.userId, labels: plan.labels },
  ownerId: plan.ownerId,
  requestId: plan.requestId,
  culture: plan.culture,
  parameters: plan.parameters,
  agentSavedAt: plan.agent.savedAt,
});

/** As it was when the run was accepted, or when its source began. */
export const attributionIn = ({
  attribution,
  principal,
  ownerId,
}: Pick<QueuedRunPayload, 'attribution' | 'principal' | 'ownerId'>) => ({
  ...(attribution ?? credentialAttribution(unpackPrincipal(principal))),
  ownerId,
});

/** The run that goes on once every call of another was decided. */
export const resumptionOf = (handover: ApprovalHandoverRow, now: number): QueuedRun => {
  const { culture, parameters, agentSavedAt, ...source } = JSON.parse(handover.context) as PauseContext;
  return {
    runId: handover.continuation_run_id,
    tenantId: handover.tenant_id,
    agentName: handover.agent_name,
    handlerKey: approvalResumeKey,
    lane: handover.lane,
    now,
    payload: {
      request: { sessionId: handover.session_id, culture, parameters },
      ...source,
      createdAt: now,
      resumes: {
        runId: handover.run_id,
        agentVersion: handover.agent_version,
        ...(agentSavedAt === undefined ? {} : { agentSavedAt }),
      },
    },
  };
};

/** Number of the event that follows the one of the place in line. */
export const sequenceAfterQueued = 1;

const queuedEvent = ({ runId, lane, payload, now }: QueuedRun): LoggedEvent => {
  const members = JSON.stringify({ jobId: runId, lane, sessionId: payload.request.sessionId ?? null });
  return { sequence: 0, type: 'run.queued', timestamp: now, members, stored: members };
};

/** Tells that the run is in line, once that is stored. */
export const tellQueued = (listeners: RunListeners | null, run: QueuedRun): void => {
  const { runId, tenantId, agentName, payload } = run;
  const sessionId = payload.request.sessionId ?? null;
  const { userId } = attributionIn(payload);
  const listened = { tenantId, agentName, runId, rootRunId: runId, sessionId, userId };
  listeners?.heard(listened, [toFrame(runId, queuedEvent(run))]);
};

/** The place of a run in the line of its session. One that is stored without it gets it when it starts. */
export const placeStatements = (
  { queuedPlaces }: Pick<QueueWrites, 'queuedPlaces'>,
  { runId, tenantId, agentName, payload }: QueuedRun,
): readonly Statement[] => {
  const sessionId = payload.request.sessionId ?? null;
  if (sessionId === null) return [];
  // Others wait behind the turn that was paused.
  const place = payload.resumes === undefined ? queuedPlaces.behind : queuedPlaces.before;
  return place({ tenantId, sessionId, runId, agentName });
};

/** The row, the first event and the job of a run that waits. */
export const queuedStatements = (
  { journal, jobs, maxAttempts }: Omit<QueueWrites, 'queuedPlaces'>,
  run: QueuedRun,
): readonly Statement[] => {
  const { runId, tenantId, agentName, handlerKey, lane, payload, now } = run;
  const sessionId = payload.request.sessionId ?? null;
  return [
    ...journal.opened({
      id: runId,
      tenantId,
      agentName,
      agentVersion: payload.resumes?.agentVersion ?? null,
      status: 'Queued',
      modelProvider: null,
      modelId: null,
      isStreaming: false,
      jobId: runId,
      sessionId,
      ...attributionIn(payload),
      parentRunId: null,
      rootRunId: null,
      continuedFromRunId: payload.resumes?.runId ?? null,
      depth: 0,
      createdAt: now,
      startedAt: null,
      input: null,
      quotaDay: payload.quotaDay ?? null,
    }),
    journal.packed(tenantId, runId, 0, 0, encodePack([queuedEvent(run)])),
    jobs.queued({
      id: runId,
      tenantId,
      handlerKey,
      lane,
      targetName: agentName,
      payload,
      maxAttempts: maxAttempts,
      now,
    }),
  ];
};
