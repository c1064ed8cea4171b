import { sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { ReceivedSpan } from './received-spans.ts';

/** Who sent a span: its run is theirs. */
export interface SpanOwner {
  readonly userId: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  readonly ownerId: string | null;
}

/** What is known of a span without reading what it says. */
export interface SpanHead {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly isLocalRoot: boolean;
  readonly receivedAt: number;
  readonly ownerId: string | null;
  /** Null: it waits. Empty: it belongs to no run. */
  readonly runId: string | null;
  /** It could not be made a run, and is not tried any more. */
  readonly isSetAside: boolean;
}

/** A span that waits for the others of its run. */
export interface WaitingSpan extends SpanHead {
  readonly span: ReceivedSpan;
  readonly owner: SpanOwner;
  /** How often it could not be made a run. */
  readonly attempts: number;
  /** When that is tried again. */
  readonly nextAt: number;
}

/** No span of the same process stands above it. */
export const isLocalRoot = ({ parentSpanId, isParentRemote }: ReceivedSpan): boolean =>
  parentSpanId === null || isParentRemote === true;

/** A trace that may have become runs. */
export interface ReadyTrace {
  readonly tenantId: string;
  readonly traceId: string;
  /** When the first of its spans came that wait. */
  readonly since: number;
}

interface StoredSpan {
  readonly span: ReceivedSpan;
  readonly labels: SpanOwner['labels'];
}

interface HeadRow {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly is_local_root: number;
  readonly received_at: number;
  readonly owner_id: string | null;
  readonly run_id: string | null;
  readonly set_aside: string | null;
}

const headColumns = [
  'trace_id',
  'span_id',
  'parent_span_id',
  'is_local_root',
  'received_at',
  'owner_id',
  'run_id',
  'set_aside',
] as const;

const headOf = (row: HeadRow): SpanHead => ({
  traceId: row.trace_id,
  spanId: row.span_id,
  parentSpanId: row.parent_span_id,
  isLocalRoot: row.is_local_root === 1,
  receivedAt: row.received_at,
  ownerId: row.owner_id,
  runId: row.run_id,
  isSetAside: row.set_aside !== null,
});

// Few enough for the parameters that a statement may have.
const spansPerWrite = 100;

const inChunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / spansPerWrite) }, (_, at) =>
    list.slice(at * spansPerWrite, (at + 1) * spansPerWrite),
  );

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
        user_id: owner.userId,
        owner_id: owner.ownerId,
        run_id: null,
        ...{ attempts: 0, next_at: 0, set_aside: null },
        span: JSON.stringify({ span, labels: owner.labels } satisfies StoredSpan),
      }),
    );
    for (const some of inChunks(rows))
      await storage.db
        .insertInto('external_spans')
        .values(some)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
  },
  /** Those of these runs that are stored already. */
  async stored(tenantId: string, runIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const some of inChunks(runIds)) {
      const rows = await storage.db
        .selectFrom('runs')
        .select('id')
        .where('tenant_id', '=', tenantId)
        .where('id', 'in', some)
        .execute();
      for (const { id } of rows) found.add(id);
    }
    return found;
  },
  /** All spans of some traces, by trace. */
  async heads(tenantId: string, traceIds: readonly string[]): Promise<ReadonlyMap<string, readonly SpanHead[]>> {
    const rows = await storage.db
      .selectFrom('external_spans')
      .select(headColumns)
      .where('tenant_id', '=', tenantId)
      .where('trace_id', 'in', traceIds)
      .execute();
    return Map.groupBy(rows.map(headOf), ({ traceId }) => traceId);
  },
  /** Spans of one trace that are no part of a run, and may become one. */
  async waiting(tenantId: string, traceId: string): Promise<readonly WaitingSpan[]> {
    const rows = await storage.db
      .selectFrom('external_spans')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('trace_id', '=', traceId)
      .where('run_id', 'is', null)
      .where('set_aside', 'is', null)
      .execute();
    return rows.map((sealed) => {
      const row = storage.rows.open('external_spans', tenantId, sealed);
      const { span, labels } = JSON.parse(row.span ?? '{}') as StoredSpan;
      const owner = { userId: row.user_id, labels, ownerId: row.owner_id };
      return { ...headOf(row), span, owner, attempts: row.attempts, nextAt: Number(row.next_at) };
    });
  },
  /** Spans that are part of a run now, or of none (empty). What they said is in the run. */
  async taken(tenantId: string, traceId: string, spanIds: readonly string[], runId: string): Promise<void> {
    for (const some of inChunks(spanIds))
      await storage.db
        .updateTable('external_spans')
        .set({ run_id: runId, span: null, user_id: null })
        .where('tenant_id', '=', tenantId)
        .where('trace_id', '=', traceId)
        .where('span_id', 'in', some)
        .execute();
  },
  /** How often spans of a trace that wait could not be made a run; null for `spanIds`: all of them. */
  async attempts(tenantId: string, traceId: string, spanIds: readonly string[] | null): Promise<number> {
    const rows = await storage.db
      .selectFrom('external_spans')
      .select(['span_id', 'attempts'])
      .where('tenant_id', '=', tenantId)
      .where('trace_id', '=', traceId)
      .where('run_id', 'is', null)
      .where('set_aside', 'is', null)
      .execute();
    const meant = spanIds === null ? null : new Set(spanIds);
    const counts = rows.filter(({ span_id: id }) => meant?.has(id) !== false).map(({ attempts }) => attempts);
    return Math.max(0, ...counts);
  },
  /** Another attempt has failed; how many spans there are. */
  async failed(
    tenantId: string,
    traceId: string,
    spanIds: readonly string[] | null,
    outcome: { readonly attempts: number; readonly nextAt: number; readonly setAside: string | null },
  ): Promise<number> {
    const { attempts, nextAt, setAside } = outcome;
    const writes = (spanIds === null ? [null] : inChunks(spanIds)).map((some) =>
      storage.db
        .updateTable('external_spans')
        .set({ attempts, next_at: nextAt, set_aside: setAside })
        .where('tenant_id', '=', tenantId)
        .where('trace_id', '=', traceId)
        .where('run_id', 'is', null)
        .where('set_aside', 'is', null)
        .$if(some !== null, (query) => query.where('span_id', 'in', some))
        .executeTakeFirstOrThrow(),
    );
    let count = 0;
    for (const write of writes) count += Number((await write).numUpdatedRows);
    return count;
  },
  /** Tries again what was set aside; how many spans that are. */
  async resumed(): Promise<number> {
    const { numUpdatedRows } = await storage.db
      .updateTable('external_spans')
      .set({ attempts: 0, next_at: 0, set_aside: null })
      .where('run_id', 'is', null)
      .where('set_aside', 'is not', null)
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  },
  /**
   * Traces with a root that waits since before one time, or where nothing came since before another; oldest first, and
   * after the one that is given.
   */
  async ready(
    rootsBefore: number,
    othersBefore: number,
    now: number,
    after: ReadyTrace | null,
    limit: number,
  ): Promise<readonly ReadyTrace[]> {
    const rows = await storage.db
      .selectFrom('external_spans')
      .select(({ fn }) => ['tenant_id', 'trace_id', fn.min('received_at').as('since')])
      .where('run_id', 'is', null)
      .where('set_aside', 'is', null)
      .where('next_at', '<=', now)
      .groupBy(['tenant_id', 'trace_id'])
      .having((eb) =>
        eb.or([
          eb.and([eb(eb.fn.max('is_local_root'), '=', 1), eb(eb.fn.min('received_at'), '<', rootsBefore)]),
          eb(eb.fn.max('received_at'), '<', othersBefore),
        ]),
      )
      .$if(after !== null, (query) =>
        query.having(
          sql<boolean>`(min(received_at), tenant_id, trace_id) > (${after?.since}, ${after?.tenantId}, ${after?.traceId})`,
        ),
      )
      .orderBy((eb) => eb.fn.min('received_at'))
      .orderBy('tenant_id')
      .orderBy('trace_id')
      .limit(limit)
      .execute();
    return rows.map(({ tenant_id: tenantId, trace_id: traceId, since }) => ({
      ...{ tenantId, traceId, since: Number(since) },
    }));
  },
  /** How many spans are set aside, of all tenants. */
  async setAsideCount(): Promise<number> {
    const { count } = await storage.db
      .selectFrom('external_spans')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('set_aside', 'is not', null)
      .executeTakeFirstOrThrow();
    return Number(count);
  },
  /** Removes what was set aside and came before a time; how many spans of which tenant that were. */
  async drop(before: number): Promise<ReadonlyMap<string, number>> {
    const overdue = await storage.db
      .selectFrom('external_spans')
      .select('tenant_id')
      .distinct()
      .where('set_aside', 'is not', null)
      .where('received_at', '<', before)
      .orderBy('tenant_id')
      .execute();
    const dropped = new Map<string, number>();
    for (const { tenant_id: tenantId } of overdue) {
      const { numDeletedRows } = await storage.db
        .deleteFrom('external_spans')
        .where('set_aside', 'is not', null)
        .where('received_at', '<', before)
        .where('tenant_id', '=', tenantId)
        .executeTakeFirstOrThrow();
      // None where another process was first: what is gone is told once.
      if (numDeletedRows > 0n) dropped.set(tenantId, Number(numDeletedRows));
    }
    return dropped;
  },
  /** Forgets which spans became runs before a time. */
  async forget(before: number): Promise<void> {
    await storage.db
      .deleteFrom('external_spans')
      .where('received_at', '<', before)
      .where('run_id', 'is not', null)
      .execute();
  },
}));

export type ExternalSpanStore = StoreOf<typeof externalSpanStore>;
