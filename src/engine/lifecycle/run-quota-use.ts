import type { ActiveRun, RunOutcome } from '../active-run.ts';
import { type QuotaPorts, quotaUse } from '../control/index.ts';
import { RunFailure } from '../run-failure.ts';

/** What a run that is not recorded has used. */
export const unrecordedUse = (run: ActiveRun, ports: QuotaPorts) => {
  const { tenantId, unrecordedCount } = run.plan;
  if (ports.quotas === null || unrecordedCount === null) return [];
  return ports.quotas.unrecorded(tenantId, unrecordedCount, quotaUse(run.usage.totalTokens, run.cost));
};

/** Tells the reader of a root run which quota thresholds it crosses; null: there is nothing to wait for. */
export const announceThresholds = (run: ActiveRun, ports: QuotaPorts): Promise<void> | null => {
  const { tenantId, userId, parent } = run.plan;
  if (ports.quotas === null || parent !== null) return null;
  const use = quotaUse(run.usage.totalTokens, run.cost);
  const notices = ports.quotas.closing({ tenantId, rootRunId: run.id, userId, ...use });
  const announce = (payloads: Awaited<NonNullable<typeof notices>>): void => {
    for (const payload of payloads) run.log.append('custom', { customType: 'acp.quota.threshold', payload });
  };
  return notices?.then(announce) ?? null;
};

/** Type of the failure of a run that is not made because its admission could not be written. */
export const notAdmitted = 'not_admitted';

// A full disk takes a person, a lock of another program seconds.
const retryAfterMs = 5000;

/** The store did not take the row of a run: it goes on, counted in memory, or ends before its first model call. */
export const rowRefused = (run: ActiveRun, ports: QuotaPorts, error: unknown): void => {
  const { plan, rootId } = run;
  if (ports.quotas === null) return;
  const unwritten = {
    tenantId: plan.tenantId,
    id: run.id,
    root: { id: rootId, agentName: run.root.plan.agent.name },
    isAdmission: plan.parent === null && plan.continuedFromRunId === null,
  };
  if (ports.quotas.unwritten(unwritten, error)) {
    run.uncounted = true;
    return;
  }
  run.log.discardOpening();
  const failure = new RunFailure(
    'Infrastructure',
    notAdmitted,
    'The run was not made: the store does not take that it counts for its quotas.',
    { cause: error, retryAfterMs },
  );
  run.stop({ kind: 'fail', failure });
};

/** Tells the quotas of the end of a run, and whether the store knows of it. */
export const tellEnd = (run: ActiveRun, ports: QuotaPorts, { status }: RunOutcome): void => {
  const { tenantId, unrecordedCount } = run.plan;
  ports.quotas?.ended({
    tenantId,
    runId: run.id,
    isBooked: status !== 'Queued' && run.log.endStored,
    isLost: run.log.isLost && !run.log.endStored,
    count: unrecordedCount,
    ...quotaUse(run.usage.totalTokens, run.cost),
  });
};
