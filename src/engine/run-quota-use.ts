import type { ActiveRun } from './active-run.ts';
import type { EnginePorts } from './engine-ports.ts';
import { quotaUse } from './run-quotas.ts';

/** What a run that is not recorded has used. */
export const unrecordedUse = (run: ActiveRun, ports: EnginePorts) => {
  const { tenantId, unrecordedCount } = run.plan;
  if (ports.quotas === null || unrecordedCount === undefined) return [];
  return ports.quotas.unrecorded(tenantId, unrecordedCount, quotaUse(run.usage.totalTokens, run.cost));
};

/** Tells the reader of a root run which quota thresholds it crosses. */
export const announceThresholds = async (run: ActiveRun, ports: EnginePorts): Promise<void> => {
  const { tenantId, userId, parent } = run.plan;
  if (ports.quotas === null || parent !== null) return;
  const use = quotaUse(run.usage.totalTokens, run.cost);
  const notices = ports.quotas.closing({ tenantId, rootRunId: run.id, userId, ...use });
  if (notices === undefined) return;
  for (const payload of await notices) run.log.append('custom', { customType: 'acp.quota.threshold', payload });
};
