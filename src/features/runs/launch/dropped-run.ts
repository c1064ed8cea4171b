import type { Logger } from '../../../core/logger.ts';
import type { Statement } from '../../../db/statement.ts';
import {
  encodePack,
  type LoggedEvent,
  logRunEnd,
  type RunJournal,
  type RunListeners,
  toFrame,
} from '../../../engine/record/index.ts';
import { storedError } from '../../../engine/run-failure.ts';
import { type Drop, type FlowStore, jobReason } from '../../jobs/index.ts';
import type { PublishedRunEnds } from '../run-ends.ts';
import { attributionIn, type QueuedRun } from './queued-run.ts';

interface DroppedRunDeps {
  readonly journal: RunJournal;
  readonly flows: Pick<FlowStore, 'dropped'>;
  readonly ends: Pick<PublishedRunEnds, 'current' | 'closingDetached' | 'closedDetached'>;
  readonly listeners: RunListeners | null;
  readonly log: Pick<Logger, 'info'>;
  readonly maxAttempts: number;
}

/** A run that was accepted, and that its agent's flow does not let start. */
export interface DroppedRun {
  /** Its row, its log and its job, all of them closed. It takes no place in a session and counts for no quota. */
  readonly statements: readonly Statement[];
  /** Called once they are stored. */
  stored(): void;
}

export const createDroppedRuns =
  ({ journal, flows, ends, listeners, log, maxAttempts }: DroppedRunDeps) =>
  async (queued: QueuedRun, { cause, failure }: Drop): Promise<DroppedRun> => {
    const { runId, tenantId, agentName, handlerKey, lane, now, payload } = queued;
    const error = storedError(failure);
    const members = JSON.stringify({
      cause,
      canceledBy: null,
      error,
      usage: null,
      cost: null,
      durationMs: 0,
    });
    const last: LoggedEvent = { sequence: 0, type: 'run.canceled', timestamp: now, members, stored: members };
    const model = { agentVersion: null, modelProvider: null, modelId: null };
    const sessionId = payload.request.sessionId ?? null;
    const run = {
      ...model,
      ...attributionIn(payload),
      ...{ id: runId, tenantId, agentName, sessionId, rootRunId: null },
    };
    await ends.current();
    const told = ends.closingDetached(
      {
        ...{ id: runId, tenantId, kind: 'Agent', name: agentName, version: null, sessionId },
        ...{ modelProvider: null, modelId: null, startedAt: null, completedAt: now },
        ...{ inputTokens: null, outputTokens: null, costMicros: null },
      },
      { status: 'Canceled', error },
    );
    return {
      statements: [
        ...journal.opened({
          ...run,
          ...{ status: 'Queued', isStreaming: false, jobId: runId, parentRunId: null, continuedFromRunId: null },
          ...{ depth: 0, createdAt: now, startedAt: null, input: null, isCounted: false },
        }),
        journal.packed(tenantId, runId, 0, 0, encodePack([last])),
        ...journal.closed({
          ...run,
          ...{ status: 'Canceled', completedAt: now, usage: null, cost: null, error, eventCount: 1, tree: null },
        }),
        flows.dropped({
          ...{ id: runId, tenantId, handlerKey, lane, targetName: agentName, maxAttempts, now },
          ...{ ...jobReason(failure) },
        }),
        ...told,
      ],
      stored() {
        ends.closedDetached(told);
        const { userId } = run;
        const spent = { durationMs: 0, inputTokens: null, outputTokens: null, cost: null };
        logRunEnd(log, { runId, tenantId, agent: agentName, status: 'Canceled', ...spent, error });
        listeners?.heard({ tenantId, agentName, runId, rootRunId: runId, sessionId, userId }, [toFrame(runId, last)]);
      },
    };
  };

export type DropRun = ReturnType<typeof createDroppedRuns>;
