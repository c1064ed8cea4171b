import { isoTime } from '../../core/iso-time.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { StoredSpan } from '../../engine/record/index.ts';
import type { RunTrace } from './runs.schema.ts';

export interface RunSpan {
  readonly traceId: string;
  readonly spanId: string;
}

const byStart = (a: StoredSpan, b: StoredSpan): number =>
  a.startedAt - b.startedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

export const runTraceStore = defineStore(({ db, rows }) => {
  /** The trace of the tree with this root; null when none is stored. */
  const get = async (tenantId: string, rootRunId: string): Promise<RunTrace | null> => {
    const stored = await db
      .selectFrom('run_traces')
      .selectAll()
      .where('run_id', '=', rootRunId)
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst();
    if (stored === undefined) return null;
    const row = rows.open('run_traces', tenantId, stored);
    return {
      id: row.id,
      traceId: row.trace_id,
      runId: row.run_id,
      tenantId: row.tenant_id,
      startedAt: isoTime(row.started_at),
      endedAt: isoTime(row.ended_at),
      spans: (JSON.parse(row.spans) as StoredSpan[]).sort(byStart).map((span) => ({
        ...span,
        startedAt: isoTime(span.startedAt),
        endedAt: span.endedAt === null ? null : isoTime(span.endedAt),
      })),
    };
  };
  return {
    get,
    /** The span of one run of the tree; null when no trace is stored or the span was one too many. */
    async spanOf(tenantId: string, rootRunId: string, runId: string): Promise<RunSpan | null> {
      const trace = await get(tenantId, rootRunId);
      const span = trace?.spans.find(({ attributes }) => attributes['acp.run.id'] === runId);
      return trace === null || span === undefined ? null : { traceId: trace.traceId, spanId: span.spanId };
    },
  };
});

export type RunTraceStore = StoreOf<typeof runTraceStore>;
