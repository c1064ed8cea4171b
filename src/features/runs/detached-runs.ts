import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { DropCause } from '../../engine/active-run.ts';
import {
  encodePack,
  type ListenedRun,
  type LoggedEvent,
  logRunEnd,
  type OpenedRun,
  type RunJournal,
  type RunListeners,
  toFrame,
} from '../../engine/record/index.ts';
import { type RunFailure, storedError } from '../../engine/run-failure.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import type { QueuedPlaces } from '../sessions/index.ts';
import { endedRow, type PublishedRunEnds } from './run-ends.ts';
import { runStore } from './runs.store.ts';

export interface FailedStart {
  readonly runId: string;
  readonly tenantId: string;
  readonly agentName: string;
  readonly agentVersion: number;
  readonly isStreaming: boolean;
  /** Of the turn that it would have been. */
  readonly sessionId: string | null;
  readonly attribution: Pick<OpenedRun, 'userId' | 'ownerId' | 'labels'>;
  readonly failure: RunFailure;
  readonly replayOfRunId?: string;
  /** False: a quota did not let it start, so it counts for none. Default: true. */
  readonly isCounted?: boolean;
}

/** How a run ends that no engine executes. */
export type Closing =
  /** `keepsTurn`: another run goes on with what is stored of the turn. */
  | { readonly status: 'Failed'; readonly failure: RunFailure; readonly keepsTurn?: boolean }
  | {
      readonly status: 'Canceled';
      readonly failure: RunFailure;
      readonly canceledBy: string | null;
      readonly cause?: DropCause;
    };

const lastEventOf = (closing: Closing, error: ReturnType<typeof storedError>, durationMs: number) => {
  const spent = { usage: null, cost: null, durationMs };
  if (closing.status === 'Failed') return ['run.failed', { error, ...spent }] as const;
  const { canceledBy, cause } = closing;
  // What somebody asks for is no error.
  return cause === undefined
    ? (['run.canceled', { cause: 'Requested', canceledBy, ...spent }] as const)
    : (['run.canceled', { cause, canceledBy, error, ...spent }] as const);
};

const nothingSpent = { inputTokens: null, outputTokens: null, cost: null };

/** What belongs to the unit of somebody else. */
export type UnitStep = (stores: UnitOfWork) => Promise<void>;

interface DetachedDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly journal: RunJournal;
  readonly recordingEnabled: boolean;
  readonly listeners: RunListeners | null;
  readonly queuedPlaces: Pick<QueuedPlaces, 'left'>;
  /** Null: runs do not count against quotas. */
  readonly quotas: Pick<ActiveQuotas, 'unexecuted'> | null;
  readonly ends: Pick<PublishedRunEnds, 'current' | 'closingDetached' | 'closedDetached'>;
  readonly log: Pick<Logger, 'info'>;
  /** Tells who follows the run from another process. */
  announce(runId: string): void;
  readonly now: () => number;
}

/** Rows and logs of runs that no engine executes: refused at their start, still queued, or left by a dead process. */
export const createDetachedRuns = ({
  storage,
  journal,
  recordingEnabled,
  listeners,
  queuedPlaces,
  quotas,
  ends,
  log,
  announce,
  now,
}: DetachedDeps) => {
  const logged = (first: number, events: readonly (readonly [string, Record<string, unknown>])[]): LoggedEvent[] =>
    events.map(([type, members], index) => {
      const text = JSON.stringify(members);
      return { sequence: first + index, type, timestamp: now(), members: text, stored: text };
    });
  const pack = (tenantId: string, runId: string, first: number, events: readonly LoggedEvent[]): Statement =>
    journal.packed(tenantId, runId, first, first + events.length - 1, encodePack(events));
  const tell = (run: Omit<ListenedRun, 'rootRunId'>, rootRunId: string | null, events: readonly LoggedEvent[]): void =>
    listeners?.heard(
      { ...run, rootRunId: rootRunId ?? run.runId },
      events.map((event) => toFrame(run.runId, event)),
    );

  return {
    /** A run whose agent does not compile, or that a quota refused where nobody is told: opened and closed at once. */
    async recordFailed(start: FailedStart): Promise<void> {
      const at = now();
      const error = storedError(start.failure);
      const { runId, tenantId, agentName, failure } = start;
      const logEnd = () =>
        logRunEnd(log, {
          ...{ runId, tenantId, agent: agentName, status: 'Failed', durationMs: 0, ...nothingSpent, error },
          cause: failure.cause,
        });
      if (!recordingEnabled) return logEnd();
      const run = {
        id: start.runId,
        tenantId: start.tenantId,
        agentName: start.agentName,
        agentVersion: start.agentVersion,
        status: 'Running' as const,
        modelProvider: null,
        modelId: null,
        isStreaming: start.isStreaming,
        jobId: null,
        sessionId: start.sessionId,
        ...start.attribution,
        parentRunId: null,
        rootRunId: null,
        continuedFromRunId: null,
        replayOfRunId: start.replayOfRunId ?? null,
        depth: 0,
        createdAt: at,
        startedAt: at,
        input: null,
        isCounted: start.isCounted ?? true,
      };
      const started = {
        agentName: start.agentName,
        agentVersion: start.agentVersion,
        kind: 'Agent',
        attempt: 1,
        sessionId: start.sessionId,
        modelProvider: null,
        modelId: null,
        isStreaming: start.isStreaming,
        parentRunId: null,
        continuedFromRunId: null,
        replayOfRunId: start.replayOfRunId ?? null,
      };
      const events = logged(0, [
        ['run.started', started],
        ['run.failed', { error, usage: null, cost: null, durationMs: 0 }],
      ]);
      await ends.current();
      const told = ends.closingDetached(
        {
          ...{ id: run.id, tenantId: run.tenantId, kind: 'Agent', name: run.agentName, version: run.agentVersion },
          ...{ sessionId: run.sessionId, modelProvider: null, modelId: null, startedAt: at, completedAt: at },
          ...{ inputTokens: null, outputTokens: null, costMicros: null },
        },
        { status: 'Failed', error },
      );
      const rows = [
        ...journal.opened(run),
        pack(start.tenantId, start.runId, 0, events),
        ...journal.closed({
          ...run,
          status: 'Failed',
          completedAt: at,
          usage: null,
          cost: null,
          error,
          eventCount: 2,
          tree: null,
        }),
        ...told,
      ];
      await storage.transaction((stores) => stores.write(rows));
      ends.closedDetached(told);
      logEnd();
      tell({ tenantId, agentName, runId, sessionId: run.sessionId, userId: start.attribution.userId }, null, events);
    },
    /**
     * Closes an open run; false when its row has another status meanwhile, or a condition of `also`, in the same unit, fails.
     * `first` comes before the run's session is freed.
     */
    async close(row: RunRow, closing: Closing, also?: UnitStep, first?: UnitStep): Promise<boolean> {
      const at = now();
      const error = storedError(closing.failure);
      const terminal = lastEventOf(closing, error, row.started_at === null ? 0 : at - row.started_at);
      const end = {
        status: closing.status,
        completed_at: at,
        error_type: error.type,
        error_class: error.class,
        error_message: error.message,
        error_fingerprint: error.fingerprint,
        error_provider: error.provider === undefined ? null : JSON.stringify(error.provider),
      };
      const dropped = closing.status === 'Failed' && closing.keepsTurn === true ? [] : [journal.stepsDropped(row.id)];
      await ends.current();
      const told =
        row.parent_run_id === null ? ends.closingDetached(endedRow(row, at), { status: closing.status, error }) : [];
      const settled = quotas?.unexecuted.closing(row.id) ?? [];
      const left =
        row.session_id === null || row.parent_run_id !== null
          ? []
          : queuedPlaces.left({ tenantId: row.tenant_id, sessionId: row.session_id, runId: row.id });
      try {
        const events = await storage.transaction(async (stores) => {
          const runs = stores(runStore);
          // In the unit: the process of the run may be alive, and write the event that this one would be.
          const sequence = (await runs.lastSequence(row.id)) + 1;
          const last = logged(sequence, [terminal]);
          await runs.closeFrom(row, row.status, { ...end, event_count: sequence + 1 });
          await first?.(stores);
          const rows = [...dropped, ...settled, ...left, ...told];
          await stores.write([pack(row.tenant_id, row.id, sequence, last), ...rows]);
          await also?.(stores);
          return last;
        });
        quotas?.unexecuted.closed(row.tenant_id, row.id);
        ends.closedDetached(told);
        announce(row.id);
        const { tenant_id: tenantId, agent_name: agentName, id: runId, session_id: sessionId, user_id: userId } = row;
        logRunEnd(log, {
          ...{
            runId,
            tenantId,
            agent: agentName,
            kind: row.kind,
            parentRunId: row.parent_run_id,
            status: closing.status,
          },
          ...{ durationMs: row.started_at === null ? 0 : at - row.started_at, ...nothingSpent, error },
        });
        tell({ tenantId, agentName, runId, sessionId, userId }, row.root_run_id, events);
        return true;
      } catch (failure) {
        if (failure instanceof ConditionFailedError) return false;
        throw failure;
      }
    },
  };
};

export type DetachedRuns = ReturnType<typeof createDetachedRuns>;
