import type { ActiveRun } from './active-run.ts';
import type { EnginePorts } from './engine-ports.ts';
import { quotaUse } from './run-quotas.ts';

/** What a run that is not recorded has used. */
export const unrecordedUse = (run: ActiveRun, ports: EnginePorts) => {
  const { tenantId, unrecordedCount } = run.plan;
  if (ports.quotas === null || unrecordedCount === undefined) return [];
  return ports.quotas.unrecorded(tenantId, unrecordedCount, quotaUse(run.usage.totalTokens, run.cost));
};

/** Tells the reader of a root run which quota thresholds it crosses; null: there is nothing to wait for. */
export const announceThresholds = (run: ActiveRun, ports: EnginePorts): Promise<void> | null => {
  const { tenantId, userId, parent } = run.plan;
  if (ports.quotas === null || parent !== null) return null;
  const use = quotaUse(run.usage.totalTokens, run.cost);
  const notices = ports.quotas.closing({ tenantId, rootRunId: run.id, userId, ...use });
  const announce = (payloads: Awaited<NonNullable<typeof notices>>): void => {
    for (const payload of payloads) run.log.append('custom', { customType: 'acp.quota.threshold', payload });
  };
  return notices?.then(announce) ?? null;
};
