import { AcpError } from '../../contract/errors.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
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
import { createExternalTrace, type ExternalTraceDeps, spansOfTrees } from './external-trace.ts';
import type { ReceivedSpan } from './received-spans.ts';
import { lateOf, readyParts, stillWhole } from './span-parts.rules.ts';

export interface ExternalSpansDeps extends Pick<ExternalTraceDeps, 'journal' | 'newId'> {
  readonly storage: Pick<Storage, 'transaction' | 'stores'>;
  readonly record: Pick<ExternalRunRecord, 'statements'>;
  /** Tells of runs that are stored now: quotas have their cost. */
  stored(tenantId: string, tree: ExternalTree): void;
  /** Tells of spans that are not tried any more. */
  setAside(count: number): void;
  /** Tells of spans that were set aside for so long that they are gone now. */
  dropped(count: number): void;
  readonly settings: ExternalTraceDeps['settings'] & {
    /** How long the spans below a root may stay away. */
    readonly settleAfterMs: number;
    /** How long spans wait for the one above them. */
    readonly orphansAfterMs: number;
    /** How old spans may get that no run could be made of. */
    readonly setAsideForMs: number;
  };
  readonly log: Pick<Logger, 'error' | 'warn'>;
  /** On which the processes of a store agree. */
  readonly clock: Clock;
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
// Others wait for the store as long as that takes.
const spansPerUnit = 500;
const looksPerWait = 4;
// Where no spans are taken any more, what is left of those that were.
const leftoversEveryMs = 3_600_000;
// Longer than any exporter repeats what it sent.
const knownForMs = 24 * 3_600_000;
// With the pauses of jobs that is a quarter of an hour.
const maxAttempts = 8;

type Part = readonly [WaitingSpan, ...WaitingSpan[]];

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

/** Parts whose spans are few enough to be written at once, or one that has more. */
const inUnits = (parts: readonly Part[]): readonly (readonly Part[])[] => {
  const units: Part[][] = [];
  let spans = spansPerUnit;
  for (const part of parts) {
    spans += part.length;
    if (spans > spansPerUnit) {
      units.push([]);
      spans = part.length;
    }
    units.at(-1)?.push(part);
  }
  return units;
};

/**
 * Makes runs of spans: a part of a trace becomes runs when its root has come and nothing has followed for a while.
 * Design: docs/design/traces.md.
 */
export const createExternalSpans = (deps: ExternalSpansDeps) => {
  const { storage, record, settings, clock } = deps;
  const traceOf = createExternalTrace(deps);

  /** What one part becomes. Compiled ahead of its unit: in there a statement could not be. */
  const writesOf = (tenantId: string, part: Part) => {
    const [{ span: top, owner }] = part;
    const spans = part.map(({ span }) => span);
    const trees = assembleRuns(tenantId, top, spans);
    const spansOf = trees.length === 1 ? null : spansOfTrees(trees, spans);
    return trees.map((tree) => ({
      tree,
      rootId: tree.runs[0].id,
      statements: [
        ...record.statements(tenantId, owner, labelsOf(owner, tree), tree),
        ...traceOf(tenantId, tree, spansOf?.get(tree.runs[0].spanId) ?? spans),
      ],
    }));
  };

  /** Stores the runs of some parts of one trace, unless another process has done so or other spans have come. Returns the new runs. */
  const storeParts = async (
    { tenantId, traceId }: ReadyTrace,
    parts: readonly Part[],
  ): Promise<readonly ExternalTree[]> => {
    const writes = new Map(parts.map((part) => [part, writesOf(tenantId, part)]));
    return storage.transaction(async (unit) => {
      const store = unit(externalSpanStore);
      const heads = (await store.heads(tenantId, [traceId])).get(traceId) ?? [];
      const whole = stillWhole(parts, heads).map((part) => ({ part, trees: writes.get(part) ?? [] }));
      const all = whole.flatMap(({ trees }) => trees);
      // Their spans may have been forgotten since.
      const already = await store.stored(
        tenantId,
        all.map(({ rootId }) => rootId),
      );
      const fresh = all.filter(({ rootId }) => !already.has(rootId));
      for (const { statements } of fresh) await unit.write(statements);
      const byRun = Map.groupBy(whole, ({ trees }) => trees[0]?.rootId ?? '');
      for (const [runId, some] of byRun) {
        const spanIds = some.flatMap(({ part }) => part.map(({ spanId }) => spanId));
        await store.taken(tenantId, traceId, spanIds, runId);
      }
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

  const settleParts = async (trace: ReadyTrace, parts: readonly Part[]): Promise<void> => {
    try {
      for (const tree of await storeParts(trace, parts)) deps.stored(trace.tenantId, tree);
    } catch (error) {
      // A part that cannot be stored keeps no other from it.
      if (parts.length > 1) for (const part of parts) await settleParts(trace, [part]);
      else
        await failed(
          trace,
          parts.flat().map(({ spanId }) => spanId),
          error,
        );
    }
  };

  const settleTrace = async (trace: ReadyTrace, now: number): Promise<void> => {
    const waiting = await storage.stores(externalSpanStore).waiting(trace.tenantId, trace.traceId);
    const parts = readyParts(waiting, now - settings.settleAfterMs, now - settings.orphansAfterMs);
    const due = parts.filter((part) => part.every(({ nextAt }) => nextAt <= now));
    const turn = createTurns();
    for (const some of inUnits(due)) {
      await settleParts(trace, some);
      await turn();
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
      const turn = createTurns();
      let refused: RefusedSpans = { late: 0, tooMany: 0 };
      for (let at = 0; at < traces.length; at += tracesPerUnit) {
        await turn();
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
