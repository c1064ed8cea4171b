import { AcpError } from '../../contract/errors.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { SpanKind } from '../../core/telemetry/span.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import { type RunJournal, type StoredSpan, sensitiveText } from '../../engine/record/index.ts';
import { retryDelayMs } from '../../scheduler/retry-delay.ts';
import type { ExternalRunRecord } from './external-run-record.ts';
import { assembleRuns, type ExternalTree } from './external-runs.rules.ts';
import {
  externalSpanStore,
  isLocalRoot,
  type ReadyTrace,
  type SpanOwner,
  type WaitingSpan,
} from './external-spans.store.ts';
import { traceAttributes } from './genai-spans.rules.ts';
import type { ReceivedSpan } from './received-spans.ts';
import { isStillWhole, lateOf, readyParts } from './span-parts.rules.ts';

export interface ExternalSpansDeps {
  readonly storage: Pick<Storage, 'transaction' | 'stores'>;
  readonly journal: Pick<RunJournal, 'trace'>;
  readonly record: Pick<ExternalRunRecord, 'statements'>;
  /** Tells of runs that are stored now: quotas have their cost. */
  stored(tenantId: string, tree: ExternalTree): void;
  /** Tells of spans that are not tried any more. */
  setAside(count: number): void;
  /** Tells of spans that were set aside for so long that they are gone now. */
  dropped(count: number): void;
  readonly settings: {
    /** How long the spans below a root may stay away. */
    readonly settleAfterMs: number;
    /** How long spans wait for the one above them. */
    readonly orphansAfterMs: number;
    /** How old spans may get that no run could be made of. */
    readonly setAsideForMs: number;
    /** Null: traces are not stored. */
    readonly maxSpansPerRun: number | null;
    readonly recordSensitiveData: boolean;
    readonly maxPayloadLength: number;
  };
  readonly log: Pick<Logger, 'error' | 'warn'>;
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
const tracesAtOnce = 100;
const tracesPerUnit = 100;
const looksPerWait = 4;
// Where no spans are taken any more, what is left of those that were.
const leftoversEveryMs = 3_600_000;
// Longer than any exporter repeats what it sent.
const knownForMs = 24 * 3_600_000;
// With the pauses of jobs that is a quarter of an hour.
const maxAttempts = 8;
const kinds: readonly SpanKind[] = ['Internal', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'];

/** Why spans were set aside: a code of the service's errors, or the class of what was thrown. */
const reasonOf = (error: unknown): string =>
  error instanceof AcpError ? error.code : error instanceof Error ? error.name.slice(0, 64) : 'Error';

const labelsOf = (owner: SpanOwner, { traceId, serviceName, runs: [root] }: ExternalTree) => {
  const told: [string, string][] = [
    ['source', 'otlp'],
    ['trace', traceId],
    ...(serviceName === null ? [] : [['service', serviceName] as [string, string]]),
    ...(root.conversationId === null ? [] : [['conversation', root.conversationId] as [string, string]]),
  ];
  return {
    ...owner.labels,
    ...Object.fromEntries(told.map(([key, text]) => [key, text.slice(0, 256).toWellFormed()])),
  };
};

const byStart = (a: ReceivedSpan, b: ReceivedSpan): number =>
  a.startedAt - b.startedAt || (a.spanId < b.spanId ? -1 : 1);

/** Spans of one of several trees in a part. Parents come before what is below them. */
const spansBelow = ({ runs: [top] }: ExternalTree, spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] => {
  const inside = new Set([top.spanId]);
  return spans.filter(({ spanId, parentSpanId }) => {
    if (spanId !== top.spanId && !inside.has(parentSpanId ?? '')) return false;
    inside.add(spanId);
    return true;
  });
};

/** Makes runs of spans: a part of a trace becomes runs when its root has come and nothing has followed for a while. */
export const createExternalSpans = (deps: ExternalSpansDeps) => {
  const { storage, journal, record, settings, clock, newId } = deps;

  const traceOf = (tenantId: string, tree: ExternalTree, spans: readonly ReceivedSpan[]): Statement[] => {
    const { maxSpansPerRun, recordSensitiveData } = settings;
    if (maxSpansPerRun === null) return [];
    const [root] = tree.runs;
    const runOf = new Map(tree.runs.map(({ spanId, id }) => [spanId, id]));
    const kept = [...spans].sort(byStart).slice(0, maxSpansPerRun * tree.runs.length);
    const idOf = new Map(kept.map(({ spanId }) => [spanId, newId()]));
    const contentOf = recordSensitiveData ? (text: string) => sensitiveText(text, settings) : null;
    const stored = kept.map((span): StoredSpan => {
      const runId = runOf.get(span.spanId);
      return {
        id: idOf.get(span.spanId) ?? '',
        parentId: idOf.get(span.parentSpanId ?? '') ?? null,
        spanId: span.spanId,
        name: span.name,
        kind: kinds[span.kind] ?? 'Internal',
        startedAt: span.startedAt,
        endedAt: span.endedAt,
        status: span.isError ? 'Error' : 'Unset',
        attributes: { ...traceAttributes(span, contentOf), ...(runId === undefined ? {} : { 'acp.run.id': runId }) },
      };
    });
    const { traceId } = tree;
    return [
      journal.trace({
        ...{ id: newId(), tenantId, runId: root.id, traceId },
        ...{ startedAt: root.startedAt, endedAt: root.endedAt, spans: stored },
      }),
    ];
  };

  /** Stores the runs of one part, unless somebody else has or another span has come; those that are new. */
  const storePart = async (
    tenantId: string,
    part: readonly [WaitingSpan, ...WaitingSpan[]],
  ): Promise<readonly ExternalTree[]> => {
    const [{ span: top, owner, traceId }] = part;
    const spans = part.map(({ span }) => span);
    const trees = assembleRuns(tenantId, top, spans);
    // Compiled ahead: in the unit a statement could not be.
    const writes = trees.map((tree) => ({
      tree,
      rootId: tree.runs[0].id,
      statements: [
        ...record.statements(tenantId, owner, labelsOf(owner, tree), tree),
        ...traceOf(tenantId, tree, trees.length === 1 ? spans : spansBelow(tree, spans)),
      ],
    }));
    const spanIds = part.map(({ spanId }) => spanId);
    return storage.transaction(async (unit) => {
      const store = unit(externalSpanStore);
      const heads = (await store.heads(tenantId, [traceId])).get(traceId) ?? [];
      if (!isStillWhole(part, heads)) return [];
      // Their spans may have been forgotten since.
      const already = await store.stored(
        tenantId,
        writes.map(({ rootId }) => rootId),
      );
      const fresh = writes.filter(({ rootId }) => !already.has(rootId));
      for (const { statements } of fresh) await unit.write(statements);
      await store.taken(tenantId, traceId, spanIds, writes[0]?.rootId ?? '');
      return fresh.map(({ tree }) => tree);
    }, `traces:${tenantId}`);
  };

  const take = (
    tenantId: string,
    owner: SpanOwner,
    traces: readonly (readonly [string, readonly ReceivedSpan[]])[],
  ): Promise<RefusedSpans> =>
    storage.transaction(async (unit) => {
      const store = unit(externalSpanStore);
      const heads = await store.heads(
        tenantId,
        traces.map(([traceId]) => traceId),
      );
      const receivedAt = clock.now();
      const taken: ReceivedSpan[] = [];
      let refused: RefusedSpans = { late: 0, tooMany: 0 };
      for (const [traceId, spans] of traces) {
        const before = heads.get(traceId) ?? [];
        const known = new Set(before.map(({ spanId }) => spanId));
        const fresh = spans
          .filter(({ spanId }) => !known.has(spanId))
          .map((span) => {
            const { spanId, parentSpanId } = span;
            const head = { traceId, spanId, parentSpanId, isLocalRoot: isLocalRoot(span), receivedAt };
            const state = { runId: null, isSetAside: false };
            return { ...head, ...state, ownerId: owner.ownerId, span };
          });
        const late = lateOf(fresh, before);
        const inTime = fresh.filter((span) => !late.has(span));
        const fitting = inTime.slice(0, Math.max(maxSpansPerTrace - before.length, 0));
        taken.push(...fitting.map(({ span }) => span));
        const tooMany = inTime.length - fitting.length;
        refused = { late: refused.late + late.size, tooMany: refused.tooMany + tooMany };
      }
      await store.add(tenantId, owner, taken, receivedAt);
      return refused;
    }, `traces:${tenantId}`);

  /** What cannot be made a run is tried again later and later, then set aside. Null for `spanIds`: all that wait. */
  const failed = async (
    { tenantId, traceId }: Pick<ReadyTrace, 'tenantId' | 'traceId'>,
    spanIds: readonly string[] | null,
    error: unknown,
  ): Promise<void> => {
    // The store is away, which says nothing of the spans.
    if (error instanceof AcpError && error.code === 'store-unavailable') throw error;
    const setAside = await storage.transaction(async (unit) => {
      const store = unit(externalSpanStore);
      const attempts = (await store.attempts(tenantId, traceId, spanIds)) + 1;
      const isLast = attempts >= maxAttempts;
      const reason = isLast ? reasonOf(error) : null;
      const nextAt = clock.now() + retryDelayMs(attempts);
      const count = await store.failed(tenantId, traceId, spanIds, { attempts, nextAt, setAside: reason });
      return isLast ? count : 0;
    }, `traces:${tenantId}`);
    if (setAside > 0) deps.setAside(setAside);
    const what = setAside > 0 ? 'were set aside' : 'could not be made a run';
    deps.log.error({ tenantId, traceId, spans: spanIds?.length, error }, `Spans from outside ${what}`);
  };

  const settleTrace = async (trace: ReadyTrace, now: number): Promise<void> => {
    const { tenantId, traceId } = trace;
    const waiting = await storage.stores(externalSpanStore).waiting(tenantId, traceId);
    for (const part of readyParts(waiting, now - settings.settleAfterMs, now - settings.orphansAfterMs)) {
      if (part.some(({ nextAt }) => nextAt > now)) continue;
      const spanIds = part.map(({ spanId }) => spanId);
      // A part that cannot be stored keeps no other from it.
      try {
        for (const tree of await storePart(tenantId, part)) deps.stored(tenantId, tree);
      } catch (error) {
        await failed(trace, spanIds, error);
      }
    }
  };

  let isResumed = false;
  /** What kept spans from being a run may be mended since this process was started. */
  const resume = async (): Promise<void> => {
    if (isResumed) return;
    const count = await storage.stores(externalSpanStore).resumed();
    isResumed = true;
    if (count > 0) deps.log.warn({ spans: count }, 'Spans from outside that were set aside are tried again');
  };

  /** They hold what people said, and would stay for ever where nobody mends what keeps them from being a run. */
  const dropOld = async (now: number): Promise<void> => {
    const { setAsideForMs } = settings;
    const gone = await storage.stores(externalSpanStore).drop(now - setAsideForMs);
    for (const [tenantId, spans] of gone) {
      deps.dropped(spans);
      const fields = { tenantId, spans, days: Math.floor(setAsideForMs / 86_400_000) };
      deps.log.error(fields, 'Spans from outside that were set aside are too old now, and were removed');
    }
  };

  const settle = async (): Promise<void> => {
    const store = storage.stores(externalSpanStore);
    const now = clock.now();
    await dropOld(now);
    await resume();
    let last: ReadyTrace | null = null;
    do {
      const ready: readonly ReadyTrace[] = await store.ready(
        now - settings.settleAfterMs,
        now - settings.orphansAfterMs,
        now,
        last,
        tracesAtOnce,
      );
      // One that cannot be read, or that more has come of, keeps no other from it.
      for (const trace of ready) await settleTrace(trace, now).catch((error: unknown) => failed(trace, null, error));
      last = ready.length < tracesAtOnce ? null : (ready.at(-1) ?? null);
    } while (last !== null);
    await store.forget(now - knownForMs);
  };

  let looking: Timer | null = null;
  let current: Promise<void> | null = null;
  const look = (): Promise<void> => {
    current ??= settle()
      .catch((error: unknown) => deps.log.error({ error }, 'Spans from outside could not be looked through'))
      .finally(() => {
        current = null;
      });
    return current;
  };
  return {
    /** Keeps spans of one tenant until they are runs. */
    async receive(tenantId: string, owner: SpanOwner, spans: readonly ReceivedSpan[]): Promise<RefusedSpans> {
      // Within one request, too, a span counts once.
      const unique = new Map(spans.map((span) => [`${span.traceId}${span.spanId}`, span]));
      const traces = [...Map.groupBy(unique.values(), ({ traceId }) => traceId)];
      let refused: RefusedSpans = { late: 0, tooMany: 0 };
      for (let at = 0; at < traces.length; at += tracesPerUnit) {
        const { late, tooMany } = await take(tenantId, owner, traces.slice(at, at + tracesPerUnit));
        refused = { late: refused.late + late, tooMany: refused.tooMany + tooMany };
      }
      return refused;
    },
    /** `isOpen`: spans are taken; otherwise only those are left that were taken before. */
    start(isOpen: boolean): void {
      looking = clock.every(isOpen ? Math.max(settings.settleAfterMs / looksPerWait, 1) : leftoversEveryMs, look);
    },
    async stop(): Promise<void> {
      looking?.stop();
      await current;
    },
  };
};

export type ExternalSpans = ReturnType<typeof createExternalSpans>;
