import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { RetentionTarget } from './retention.schema.ts';

const targetAttribute = 'acp.retention.target';

export interface SweepEnd {
  readonly deletedRows: number;
  readonly archivedRows: number;
  /** Stable code; null: it ran to its end. */
  readonly error: string | null;
  readonly seconds: number;
}

// Somebody stopped the sweep, or the process ended: nothing has failed.
const notFailed = new Set(['canceled', 'interrupted']);

/** What sweeps remove, how long they take, and which fail. */
export const createSweepMetrics = ({ metrics }: Telemetry) => {
  const rows = (name: string, description: string) => metrics.counter(name, description, '{row}', [targetAttribute]);
  const deleted = rows('acp.retention.deleted_rows', 'Rows that sweeps deleted.');
  const archived = rows('acp.retention.archived_rows', 'Rows that were archived before they were deleted.');
  const duration = metrics.histogram('acp.retention.duration', 'Time of the sweep of one target of one tenant.', 's', [
    targetAttribute,
  ]);
  const failures = metrics.counter('acp.retention.failures', 'Sweeps that failed.', '{sweep}', [
    targetAttribute,
    'error.type',
  ]);
  return {
    ended(target: RetentionTarget, { deletedRows, archivedRows, error, seconds }: SweepEnd): void {
      if (deletedRows > 0) deleted.add(deletedRows, [target]);
      if (archivedRows > 0) archived.add(archivedRows, [target]);
      duration.record(seconds, [target]);
      if (error !== null && !notFailed.has(error)) failures.add(1, [target, error]);
    },
  };
};
