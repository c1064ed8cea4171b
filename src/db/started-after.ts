import type { ExpressionBuilder } from 'kysely';
import type { Tables } from './tables.ts';

export type RunCondition = (
  eb: ExpressionBuilder<Tables, 'runs'>,
) => ReturnType<ExpressionBuilder<Tables, 'runs'>['and']>;

// An id is made in the moment of `created_at` or before it, and for an interactive run never more than this before.
export const idSlackMs = 60_000;

/** Below every version 7 UUID of the moment: ids sort by their time. */
export const idFloor = (epochMs: number): string => {
  const hex = Math.max(epochMs, 0).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-`;
};

/** Started (or, while it waits, created) after the moment, among the runs whose ids are of that time: nearly all match. */
export const startedSince =
  (after: number): RunCondition =>
  (eb) =>
    eb.and([
      eb('runs.id', '>=', idFloor(after - idSlackMs)),
      eb(eb.fn.coalesce('runs.started_at', 'runs.created_at'), '>', after),
    ]);

/**
 * Started after the moment though their ids are older: they waited. Their ids come from the index on the start; the
 * comparison that keeps out the others is worded so that the planner does not walk through all older ids for it.
 */
export const startedLate =
  (after: number, tenantId: string): RunCondition =>
  (eb) => {
    const older = eb.selectFrom('runs as late').select('late.id').where('late.tenant_id', '=', tenantId);
    const started = older.where('late.started_at', '>', after);
    const queued = older.where('late.started_at', 'is', null).where('late.created_at', '>', after);
    return eb.and([
      eb.or([eb('runs.id', 'in', started), eb('runs.id', 'in', queued)]),
      eb(eb.fn.coalesce('runs.id', 'runs.id'), '<', idFloor(after - idSlackMs)),
    ]);
  };
