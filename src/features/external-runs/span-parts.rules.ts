import type { SpanHead } from './external-spans.store.ts';

/** What two spans of one run have in common: the run is of one owner. */
const sameOwner = (a: SpanHead, b: SpanHead): boolean => a.ownerId === b.ownerId;

const keyOf = (spanId: string | null, ownerId: string | null): string => `${spanId}\n${ownerId ?? ''}`;

/**
 * Takes spans with all that wait below them, as far as the next span that begins a part of its own. A span is taken once,
 * so that all parts of a trace together visit each of its spans once.
 */
const partTaker = <T extends SpanHead>(waiting: readonly T[]) => {
  const children = waiting.filter(({ parentSpanId, isLocalRoot }) => parentSpanId !== null && !isLocalRoot);
  const below = Map.groupBy(children, ({ parentSpanId, ownerId }) => keyOf(parentSpanId, ownerId));
  const taken = new Set<T>();
  return {
    isTaken: (span: T): boolean => taken.has(span),
    take(top: T): readonly [T, ...T[]] {
      const part: [T, ...T[]] = [top];
      taken.add(top);
      // The list grows while it is gone over.
      for (const { spanId, ownerId } of part)
        for (const child of below.get(keyOf(spanId, ownerId)) ?? [])
          if (!taken.has(child)) {
            taken.add(child);
            part.push(child);
          }
      return part;
    },
  };
};

const newest = (part: readonly SpanHead[]): number =>
  part.reduce((last, { receivedAt }) => Math.max(last, receivedAt), 0);

/** Parts that nothing more is waited for, each with its uppermost span first. */
export const readyParts = <T extends SpanHead>(
  waiting: readonly T[],
  rootsBefore: number,
  othersBefore: number,
): readonly (readonly [T, ...T[]])[] => {
  const ofRoots = partTaker(waiting);
  const rooted = waiting.filter(({ isLocalRoot }) => isLocalRoot).map(ofRoots.take);
  const parts = rooted.filter((part) => newest(part) < rootsBefore);
  const settled = new Set(parts.flat());
  const left = waiting.filter((span) => !settled.has(span));
  if (left.length === 0 || newest(left) >= othersBefore) return parts;
  const known = new Map(left.map((span) => [span.spanId, span]));
  const isTop = (span: T): boolean => {
    const parent = known.get(span.parentSpanId ?? '');
    return parent === undefined || !sameOwner(parent, span);
  };
  const others = partTaker(left);
  parts.push(...left.filter(isTop).map(others.take));
  // Spans that name each other as their parents: whichever is first is as good as any.
  for (const span of left) if (!others.isTaken(span)) parts.push(others.take(span));
  return parts;
};

/** Of spans that have just come: those that belong to a run that is stored, with all below them. */
export const lateOf = <T extends SpanHead>(fresh: readonly T[], known: readonly SpanHead[]): ReadonlySet<T> => {
  const closed = new Map(known.filter(({ runId }) => runId !== null).map((span) => [span.spanId, span]));
  const late = partTaker(fresh);
  for (const span of fresh) {
    const parent = closed.get(span.parentSpanId ?? '');
    if (!span.isLocalRoot && parent !== undefined && sameOwner(parent, span) && !late.isTaken(span)) late.take(span);
  }
  return new Set(fresh.filter(late.isTaken));
};

/** Those parts whose spans still wait, without another that has come below them. */
export const stillWhole = <P extends readonly [SpanHead, ...SpanHead[]]>(
  parts: readonly P[],
  heads: readonly SpanHead[],
): readonly P[] => {
  const waiting = heads.filter(({ runId, isSetAside }) => runId === null && !isSetAside);
  const tops = new Map(waiting.map((span) => [span.spanId, span]));
  const now = partTaker(waiting);
  return parts.filter((part) => {
    const top = tops.get(part[0].spanId);
    if (top === undefined || now.isTaken(top)) return false;
    const spanIds = new Set(now.take(top).map(({ spanId }) => spanId));
    return spanIds.size === part.length && part.every(({ spanId }) => spanIds.has(spanId));
  });
};
