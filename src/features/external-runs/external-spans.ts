import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { SpanKind } from '../../core/telemetry/span.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { RunJournal, StoredSpan } from '../../engine/record/index.ts';
import type { ExternalRunRecord } from './external-run-record.ts';
import { assembleRuns, type ExternalTree } from './external-runs.rules.ts';
import { externalSpanStore, type KeptSpan, type OwnedSpan, type SpanOwner } from './external-spans.store.ts';
import { keptAttributes } from './genai-spans.rules.ts';
import type { ReceivedSpan } from './otlp-spans.ts';

export interface ExternalSpansDeps {
  readonly storage: Pick<Storage, 'transaction' | 'stores'>;
  readonly journal: Pick<RunJournal, 'trace'>;
  readonly record: ExternalRunRecord;
  /** Tells of runs that are stored now: quotas have their cost. */
  stored(tenantId: string, runId: string): void;
  readonly settings: {
    /** How long a part of a trace waits for spans above it. */
    readonly settleAfterMs: number;
    /** Null: traces are not stored. */
    readonly maxSpansPerRun: number | null;
    readonly recordSensitiveData: boolean;
  };
  readonly log: Pick<Logger, 'error'>;
  /** On which the processes of a store agree. */
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Spans that came when their run had been stored, or beyond what one trace may have. */
export interface RefusedSpans {
  readonly late: number;
  readonly tooMany: number;
}

// An agent that works for a day makes some thousands; a part of a trace is read and stored at once.
export const maxSpansPerTrace = 5000;
const tracesPerLook = 100;
// Longer than any exporter repeats what it sent.
const knownForMs = 7 * 24 * 3_600_000;
const kinds: readonly SpanKind[] = ['Internal', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'];

/** A span with all that wait below it, as far as the next span that begins a part of its own. */
const partBelow = (root: KeptSpan, waiting: readonly KeptSpan[]): KeptSpan[] => {
  const below = new Map<string, KeptSpan[]>();
  for (const span of waiting)
    if (span !== root && span.parentSpanId !== null && !span.isLocalRoot)
      below.getOrInsertComputed(span.parentSpanId, () => []).push(span);
  const part = [root];
  // The list grows while it is gone over. A span is met once: it has one parent.
  for (const span of part) {
    part.push(...(below.get(span.spanId) ?? []));
    below.delete(span.spanId);
  }
  return part;
};

const received = ({ received: known }: KeptSpan): OwnedSpan | null => known;
const spansOf = (part: readonly KeptSpan[]): ReceivedSpan[] =>
  part.map(received).flatMap((known) => (known === null ? [] : [known.span]));

const labelsOf = (owner: SpanOwner, { traceId, serviceName, runs: [root] }: ExternalTree) => {
  const told: [string, string][] = [
    ['source', 'otlp'],
    ['trace', traceId],
    ...(serviceName === null ? [] : [['service', serviceName] as [string, string]]),
    ...(root.conversationId === null ? [] : [['conversation', root.conversationId] as [string, string]]),
  ];
  return { ...owner.labels, ...Object.fromEntries(told.map(([key, value]) => [key, value.slice(0, 256)])) };
};

/** Makes runs of spans: a part of a trace becomes runs when the span above all others has come, or nothing more comes. */
export const createExternalSpans = (deps: ExternalSpansDeps) => {
  const { storage, journal, record, settings, clock, newId } = deps;

  const traceOf = (tenantId: string, tree: ExternalTree, spans: readonly ReceivedSpan[]): Statement[] => {
    const { maxSpansPerRun, recordSensitiveData } = settings;
    if (maxSpansPerRun === null) return [];
    const [root] = tree.runs;
    const kept = [...spans]
      .sort((a, b) => a.startedAt - b.startedAt || (a.spanId < b.spanId ? -1 : 1))
      .slice(0, maxSpansPerRun * tree.runs.length);
    const idOf = new Map(kept.map(({ spanId }) => [spanId, newId()]));
    const stored = kept.map(
      (span): StoredSpan => ({
        id: idOf.get(span.spanId) ?? '',
        parentId: idOf.get(span.parentSpanId ?? '') ?? null,
        spanId: span.spanId,
        name: span.name.slice(0, 256),
        kind: kinds[span.kind] ?? 'Internal',
        startedAt: span.startedAt,
        endedAt: span.endedAt,
        status: span.isError ? 'Error' : 'Unset',
        attributes: keptAttributes(span, recordSensitiveData),
      }),
    );
    const { traceId } = tree;
    return [
      journal.trace({
        ...{ id: newId(), tenantId, runId: root.id, traceId },
        ...{ startedAt: root.startedAt, endedAt: root.endedAt, spans: stored },
      }),
    ];
  };

  /** Stores the runs of one part; the ids of their roots. */
  const storePart = async (unit: UnitOfWork, tenantId: string, part: readonly KeptSpan[]): Promise<string[]> => {
    const [root] = part;
    const known = root === undefined ? null : received(root);
    if (known === null) return [];
    const spans = spansOf(part);
    const store = unit(externalSpanStore);
    const trees = assembleRuns(tenantId, known.span, spans);
    const runs = trees.flatMap((tree) => tree.runs);
    const already = await store.stored(
      tenantId,
      runs.map(({ id }) => id),
    );
    const fresh = trees.filter(({ runs: [top] }) => !already.has(top.id));
    for (const tree of fresh)
      await unit.write([
        ...record(tenantId, known.owner, labelsOf(known.owner, tree), tree),
        ...traceOf(tenantId, tree, fresh.length === 1 ? spans : spansBelow(tree, spans)),
      ]);
    const runId = trees[0]?.runs[0].id ?? '';
    await store.taken(tenantId, known.span.traceId, new Map(part.map(({ spanId }) => [spanId, runId])));
    return fresh.map(({ runs: [top] }) => top.id);
  };

  /** Spans of one of several trees in a part. */
  const spansBelow = ({ runs: [top] }: ExternalTree, spans: readonly ReceivedSpan[]): ReceivedSpan[] => {
    const inside = new Set([top.spanId]);
    // Parents begin before their children.
    return [...spans]
      .sort((a, b) => a.startedAt - b.startedAt)
      .filter(({ spanId, parentSpanId }) => {
        if (spanId !== top.spanId && !inside.has(parentSpanId ?? '')) return false;
        inside.add(spanId);
        return true;
      });
  };

  /** In one unit for each trace, so that of two that complete the same part one finds it stored. */
  const inTrace = async <T>(
    tenantId: string,
    traceId: string,
    work: (unit: UnitOfWork) => Promise<{ readonly result: T; readonly runs: readonly string[] }>,
  ): Promise<T> => {
    const { result, runs } = await storage.transaction(work, `trace:${tenantId}:${traceId}`);
    for (const runId of runs) deps.stored(tenantId, runId);
    return result;
  };

  const takeTrace = (tenantId: string, owner: SpanOwner, spans: readonly ReceivedSpan[]): Promise<RefusedSpans> => {
    const traceId = spans[0]?.traceId ?? '';
    return inTrace(tenantId, traceId, async (unit) => {
      const store = unit(externalSpanStore);
      const before = await store.ofTrace(tenantId, traceId);
      const known = new Set(before.map(({ spanId }) => spanId));
      const fresh = spans.filter(({ spanId }) => !known.has(spanId));
      const taken = fresh.slice(0, Math.max(maxSpansPerTrace - before.length, 0));
      await store.add(tenantId, owner, taken, clock.now());
      const all = await store.ofTrace(tenantId, traceId);
      const waiting = all.filter(({ runId }) => runId === null);
      const closed = new Set(all.filter(({ runId }) => runId !== null).map(({ spanId }) => spanId));
      const runs: string[] = [];
      for (const root of waiting.filter(({ isLocalRoot }) => isLocalRoot))
        runs.push(...(await storePart(unit, tenantId, partBelow(root, waiting))));
      const late = waiting.filter(
        ({ isLocalRoot, parentSpanId }) => !isLocalRoot && parentSpanId !== null && closed.has(parentSpanId),
      );
      const lost = late.flatMap((span) => partBelow(span, waiting));
      await store.taken(tenantId, traceId, new Map(lost.map(({ spanId }) => [spanId, ''])));
      return { result: { late: lost.length, tooMany: fresh.length - taken.length }, runs };
    });
  };

  /** Makes runs of what nothing more has come for: the spans above it are exported elsewhere, or were lost. */
  const settleTrace = (tenantId: string, traceId: string, before: number): Promise<void> =>
    inTrace(tenantId, traceId, async (unit) => {
      const all = await unit(externalSpanStore).ofTrace(tenantId, traceId);
      const waiting = all.filter(({ runId }) => runId === null);
      const known = new Set(waiting.map(({ spanId }) => spanId));
      const runs: string[] = [];
      // Somebody has added to it meanwhile: it is looked at again when that is old enough.
      if (waiting.some(({ receivedAt }) => receivedAt >= before)) return { result: undefined, runs };
      for (const top of waiting.filter(({ parentSpanId }) => !known.has(parentSpanId ?? '')))
        runs.push(...(await storePart(unit, tenantId, partBelow(top, waiting))));
      return { result: undefined, runs };
    });

  const settle = async (): Promise<void> => {
    const store = storage.stores(externalSpanStore);
    const now = clock.now();
    const before = now - settings.settleAfterMs;
    for (const { tenant_id: tenantId, trace_id: traceId } of await store.waitingSince(before, tracesPerLook))
      await settleTrace(tenantId, traceId, before);
    await store.forget(now - knownForMs);
  };

  let looking: Timer | null = null;
  return {
    /** Keeps spans of one tenant, and makes runs of what is complete with them. */
    async receive(tenantId: string, owner: SpanOwner, spans: readonly ReceivedSpan[]): Promise<RefusedSpans> {
      const traces = Map.groupBy(spans, ({ traceId }) => traceId);
      let refused: RefusedSpans = { late: 0, tooMany: 0 };
      for (const ofTrace of traces.values()) {
        const { late, tooMany } = await takeTrace(tenantId, owner, ofTrace);
        refused = { late: refused.late + late, tooMany: refused.tooMany + tooMany };
      }
      return refused;
    },
    start(): void {
      looking = clock.every(settings.settleAfterMs, () =>
        settle().catch((error: unknown) => deps.log.error({ error }, 'Spans from outside could not be made runs')),
      );
    },
    stop(): void {
      looking?.stop();
    },
  };
};

export type ExternalSpans = ReturnType<typeof createExternalSpans>;
