import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { ReceivedSpan } from './otlp-spans.ts';

/** Who sent a span: its run is theirs. */
export interface SpanOwner {
  readonly userId: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  readonly ownerId: string | null;
}

/** A span with who sent it. */
export interface OwnedSpan {
  readonly span: ReceivedSpan;
  readonly owner: SpanOwner;
}

/** A span that waits, or that has become part of a run. */
export interface KeptSpan {
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly isLocalRoot: boolean;
  readonly receivedAt: number;
  /** Null: it waits. Empty: it belongs to no run. */
  readonly runId: string | null;
  /** Null once it is part of a run. */
  readonly received: OwnedSpan | null;
}

/** No span of the same process stands above it. */
const isLocalRoot = ({ parentSpanId, isParentRemote }: ReceivedSpan): boolean =>
  parentSpanId === null || isParentRemote === true;

// Few enough for the parameters that a statement may have.
const spansPerWrite = 100;

export const externalSpanStore = defineStore((storage) => ({
  /** Keeps spans until their part of the trace is complete; those that are known already stay as they are. */
  async add(tenantId: string, owner: SpanOwner, spans: readonly ReceivedSpan[], now: number): Promise<void> {
    const rows = spans.map((span) =>
      storage.rows.seal('external_spans', tenantId, {
        tenant_id: tenantId,
        trace_id: span.traceId,
        span_id: span.spanId,
        parent_span_id: span.parentSpanId,
        is_local_root: isLocalRoot(span) ? 1 : 0,
        received_at: now,
        run_id: null,
        span: JSON.stringify({ span, owner } satisfies OwnedSpan),
      }),
    );
    for (let at = 0; at < rows.length; at += spansPerWrite)
      await storage.db
        .insertInto('external_spans')
        .values(rows.slice(at, at + spansPerWrite))
        .onConflict((conflict) => conflict.doNothing())
        .execute();
  },
  /** Those of these runs that are stored already. */
  async stored(tenantId: string, runIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let at = 0; at < runIds.length; at += spansPerWrite) {
      const rows = await storage.db
        .selectFrom('runs')
        .select('id')
        .where('tenant_id', '=', tenantId)
        .where('id', 'in', runIds.slice(at, at + spansPerWrite))
        .execute();
      for (const { id } of rows) found.add(id);
    }
    return found;
  },
  /** All that is known of one trace. */
  async ofTrace(tenantId: string, traceId: string): Promise<readonly KeptSpan[]> {
    const rows = await storage.db
      .selectFrom('external_spans')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('trace_id', '=', traceId)
      .execute();
    return rows.map((stored) => {
      const { span } = storage.rows.open('external_spans', tenantId, stored);
      return {
        spanId: stored.span_id,
        parentSpanId: stored.parent_span_id,
        isLocalRoot: stored.is_local_root === 1,
        receivedAt: stored.received_at,
        runId: stored.run_id,
        received: span === null ? null : (JSON.parse(span) as OwnedSpan),
      };
    });
  },
  /** Spans that are part of a run now, or of none (empty). What they said is in the run. */
  async taken(tenantId: string, traceId: string, runOf: ReadonlyMap<string, string>): Promise<void> {
    const byRun = new Map<string, string[]>();
    for (const [spanId, runId] of runOf) byRun.getOrInsertComputed(runId, () => []).push(spanId);
    for (const [runId, spanIds] of byRun)
      for (let at = 0; at < spanIds.length; at += spansPerWrite)
        await storage.db
          .updateTable('external_spans')
          .set({ run_id: runId, span: null })
          .where('tenant_id', '=', tenantId)
          .where('trace_id', '=', traceId)
          .where('span_id', 'in', spanIds.slice(at, at + spansPerWrite))
          .execute();
  },
  /** Traces with spans that have waited since before a time, oldest first. */
  waitingSince: (before: number, limit: number) =>
    storage.db
      .selectFrom('external_spans')
      .select(['tenant_id', 'trace_id'])
      .where('run_id', 'is', null)
      .groupBy(['tenant_id', 'trace_id'])
      .having((eb) => eb.fn.max('received_at'), '<', before)
      .orderBy((eb) => eb.fn.max('received_at'))
      .limit(limit)
      .execute(),
  /** Forgets which spans were received before a time. */
  async forget(before: number): Promise<void> {
    await storage.db.deleteFrom('external_spans').where('received_at', '<', before).execute();
  },
}));

export type ExternalSpanStore = StoreOf<typeof externalSpanStore>;
