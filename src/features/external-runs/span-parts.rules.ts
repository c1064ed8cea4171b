import type { SpanHead } from './external-spans.store.ts';

/** What two spans of one run have in common: the run is of one owner. */
const sameOwner = (a: SpanHead, b: SpanHead): boolean => a.ownerId === b.ownerId;

/** A span with all that wait below it, as far as the next span that begins a part of its own. */
const partBelow = <T extends SpanHead>(top: T, waiting: readonly T[]): readonly [T, ...T[]] => {
  const below = new Map<string, T[]>();
  for (const span of waiting)
    if (span !== top && span.parentSpanId !== null && !span.isLocalRoot && sameOwner(span, top))
      below.getOrInsertComputed(span.parentSpanId, () => []).push(span);
  const part: [T, ...T[]] = [top];
  // The list grows while it is gone over. A span is met once: it has one parent.
  for (const span of part) {
    part.push(...(below.get(span.spanId) ?? []));
    below.delete(span.spanId);
  }
  return part;
};

/** Parts that nothing more is waited for, each with its uppermost span first. */
export const readyParts = <T extends SpanHead>(
  waiting: readonly T[],
  rootsBefore: number,
  othersBefore: number,
): readonly (readonly [T, ...T[]])[] => {
  const parts: (readonly [T, ...T[]])[] = [];
  const taken = new Set<T>();
  const take = (part: readonly [T, ...T[]]): void => {
    parts.push(part);
    for (const span of part) taken.add(span);
  };
  const newest = (part: readonly T[]): number => Math.max(...part.map(({ receivedAt }) => receivedAt));
  for (const root of waiting.filter(({ isLocalRoot }) => isLocalRoot)) {
    const part = partBelow(root, waiting);
    if (newest(part) < rootsBefore) take(part);
  }
  const left = (): T[] => waiting.filter((span) => !taken.has(span));
  if (left().length === 0 || newest(left()) >= othersBefore) return parts;
  const known = new Map(left().map((span) => [span.spanId, span]));
  const isTop = (span: T): boolean => {
    const parent = known.get(span.parentSpanId ?? '');
    return parent === undefined || !sameOwner(parent, span);
  };
  for (const top of left().filter(isTop)) take(partBelow(top, left()));
  // Spans that name each other as their parents: whichever is first is as good as any.
  for (let rest = left(); rest[0] !== undefined; rest = left()) take(partBelow(rest[0], rest));
  return parts;
};

/** Of spans that have just come: those that belong to a run that is stored, with all below them. */
export const lateOf = <T extends SpanHead>(fresh: readonly T[], known: readonly SpanHead[]): ReadonlySet<T> => {
  const closed = new Map(known.filter(({ runId }) => runId !== null).map((span) => [span.spanId, span]));
  const late = new Set<T>();
  for (const span of fresh) {
    const parent = closed.get(span.parentSpanId ?? '');
    if (span.isLocalRoot || parent === undefined || !sameOwner(parent, span)) continue;
    for (const one of partBelow(span, fresh)) late.add(one);
  }
  return late;
};

/** Whether the spans of a part still wait, and no other has come below them. */
export const isStillWhole = (part: readonly [SpanHead, ...SpanHead[]], heads: readonly SpanHead[]): boolean => {
  const waiting = heads.filter(({ runId, isSetAside }) => runId === null && !isSetAside);
  const top = waiting.find(({ spanId }) => spanId === part[0].spanId);
  if (top === undefined) return false;
  const now = new Set(partBelow(top, waiting).map(({ spanId }) => spanId));
  return now.size === part.length && part.every(({ spanId }) => now.has(spanId));
};
