import type { EmergencyStopRow } from '../../db/tables.ts';
import type { ActiveRun } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { covers } from './stop-switch.ts';

/** A run and what it has called, down the tree. */
const withChildren = (run: ActiveRun): ActiveRun[] => [run, ...[...run.children].flatMap(withChildren)];

/** Cancels what a stop covers of this process; those runs, with all that they have called. */
export const cancelCovered = (
  engine: Pick<LiveRuns, 'list' | 'cancel'>,
  stop: Pick<EmergencyStopRow, 'tenant_id' | 'agent_name'>,
  by: string | null,
): readonly ActiveRun[] => {
  const covered = engine.list().filter(({ plan }) => covers(stop, plan.tenantId, plan.agent.name));
  const runs = [...new Set(covered.flatMap(withChildren))];
  for (const run of runs) engine.cancel(run, 'Requested', by);
  return runs;
};
