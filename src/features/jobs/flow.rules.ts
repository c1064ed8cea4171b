import { createHash } from 'node:crypto';
import { highestPriority } from '../../contract/flow-settings.ts';
import { formatDuration } from '../../core/config/duration.ts';
import { valueAtPointer } from '../../core/documents/json-pointer.ts';
import type { DropCause } from '../../engine/active-run.ts';
import type { AgentFlow, WindowLimit } from '../../engine/compiled-agent.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { FlowUse } from './flow.store.ts';
import type { PlaceLimit } from './flow-places.store.ts';
import type { JobHold, JobReason } from './jobs.store.ts';

type Debounce = NonNullable<AgentFlow['debounce']>;
type Priority = NonNullable<AgentFlow['priority']>;
type Singleton = NonNullable<AgentFlow['singleton']>;

/** A run that is not to start, and what its record says of it. */
export interface Drop {
  readonly cause: DropCause;
  readonly failure: RunFailure;
}

/** What the job of such a run says. */
export const jobReason = ({ type, message }: RunFailure): JobReason => ({ code: type.replaceAll('_', '-'), message });

/**
 * What has a flow, and where its keys lead into: the run request of an agent, the body of a trigger's call. For that of a
 * lane, the request of a run or the payload of another job.
 */
export interface FlowSource {
  readonly kind: 'agent' | 'lane' | 'trigger';
  readonly name: string;
  readonly flow: AgentFlow;
  readonly keyed: unknown;
}

/** A lane has other jobs than those of runs, too. */
const work = ({ kind }: FlowSource): string => (kind === 'lane' ? 'job' : 'run');

const named = ({ kind, name }: FlowSource): string => `${kind} "${name}"`;

/** The key of a request as JSON, so that 1 and "1" are two; nothing where the pointer leads to no plain value. */
const keyOf = (keyed: unknown, pointer: string | null): string => {
  const value = pointer === null ? undefined : valueAtPointer(keyed, pointer);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? JSON.stringify(value)
    : '';
};

const hashOf = (...parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** Names the window that a request counts in, without a word of the request. Another length or key begins anew. */
const windowId = (
  gate: 'rateLimit' | 'throttle',
  tenantId: string,
  { kind, name, keyed }: FlowSource,
  { windowMs, key }: WindowLimit,
): string => hashOf(tenantId, kind, name, gate, windowMs, key, keyOf(keyed, key));

/** Names what runs of one key have to themselves. Another key begins anew. */
export const lineId = (
  gate: 'concurrency' | 'debounce' | 'singleton' | 'job-debounce' | 'job-singleton',
  tenantId: string,
  { kind, name, keyed }: FlowSource,
  key: string | null,
): string => hashOf(tenantId, kind, name, gate, key, keyOf(keyed, key));

/** How a request counts in a window. */
export const windowUse = (
  gate: 'rateLimit' | 'throttle',
  { tenantId, now }: Pick<FlowUse, 'tenantId' | 'now'>,
  source: FlowSource,
  limit: WindowLimit,
): FlowUse => ({
  id: windowId(gate, tenantId, source, limit),
  ...{ tenantId, now, limit: limit.limit, windowMs: limit.windowMs },
});

/** Of all that something waits for, what it waits for longest. */
export const latestOf = (holds: readonly (JobHold | null)[]): JobHold | null =>
  holds.reduce((latest, hold) => ((hold?.until ?? 0) > (latest?.until ?? 0) ? hold : latest), null);

/** Units of one line would wait for each other in the store; this process executes one after another. */
export const workLine = (tenantId: string, sources: readonly FlowSource[]): string =>
  sources
    .map((source) => {
      const { rateLimit, throttle, debounce, singleton, concurrency } = source.flow;
      const first = rateLimit ?? throttle ?? debounce ?? singleton ?? concurrency;
      return lineId('singleton', tenantId, source, first?.key ?? null);
    })
    .join();

const forEach = (key: string | null): string => (key === null ? '' : ` for each value at ${key}`);
const allowed = ({ limit, windowMs, key }: WindowLimit): string =>
  `${limit} in ${formatDuration(windowMs)}${forEach(key)}`;

/** Why a run over the limit did not start. Names the key and never its value, which the request holds. */
export const overRateLimit = (source: FlowSource, limit: WindowLimit): Drop => ({
  cause: 'RateLimited',
  failure: new RunFailure(
    'Canceled',
    'flow_rate_limited',
    `The rateLimit of ${named(source)} allows ${allowed(limit)}.`,
  ),
});

/** Why a run waits for its window; null: its window is open. */
export const throttled = (source: FlowSource, limit: WindowLimit, now: number, until: number): JobHold | null =>
  until <= now
    ? null
    : { until, code: 'flow-throttled', message: `The throttle of ${named(source)} allows ${allowed(limit)}.` };

/** Why a run waits for others that may take its place; null: the first of them has waited long enough. */
export const debounced = (
  source: FlowSource,
  { windowMs, maxWaitMs, key }: Debounce,
  now: number,
  since: number,
): JobHold | null => {
  const until = Math.min(now + windowMs, maxWaitMs === null ? Number.POSITIVE_INFINITY : since + maxWaitMs);
  const waits = `The debounce of ${named(source)} waits ${formatDuration(windowMs)} for a later ${work(source)}${forEach(key)}.`;
  return until <= now ? null : { until, code: 'flow-debounced', message: waits };
};

const priorityAt = (keyed: unknown, { key, values, default: other }: Priority): number => {
  const value = key === null ? undefined : valueAtPointer(keyed, key);
  if (values !== null) {
    const name = typeof value === 'string' ? value : JSON.stringify(value);
    return name !== undefined && Object.hasOwn(values, name) ? (values[name] ?? other) : other;
  }
  if (typeof value !== 'number' || !Number.isInteger(value)) return other;
  return Math.min(Math.max(value, -highestPriority), highestPriority);
};

/**
 * Where a run stands among those of its tenant that wait: lower ones go first. That of a trigger stands before that of its
 * agent, and that before the one of its lane.
 */
export const rankOf = (sources: readonly FlowSource[]): number => {
  const source = sources.findLast(({ flow }) => flow.priority !== null);
  const priority = source?.flow.priority;
  // Zero has one sign in a store.
  return source === undefined || priority == null ? 0 : 0 - priorityAt(source.keyed, priority);
};

/**
 * The line in which a run takes turns with others of its lane; empty: that of all without a key. What the lane says comes
 * last: it is the same for all of them where it has no key.
 */
export const keyLine = (tenantId: string, sources: readonly FlowSource[]): string => {
  for (const source of sources.toSorted((a, b) => Number(a.kind === 'lane') - Number(b.kind === 'lane'))) {
    const { concurrency, throttle } = source.flow;
    const limited = concurrency ?? throttle;
    if (limited !== null) return lineId('concurrency', tenantId, source, limited.key);
  }
  return '';
};

/** So many runs of a key may be at work at once; null: as many as there are workers. */
export const placeLimit = (tenantId: string, source: FlowSource): PlaceLimit | null => {
  const { concurrency } = source.flow;
  if (concurrency === null) return null;
  const { limit, key } = concurrency;
  return {
    id: lineId('concurrency', tenantId, source, key),
    most: limit,
    message: `The concurrency of ${named(source)} allows ${limit} at a time${forEach(key)}.`,
  };
};

const one = (source: FlowSource, { key }: Singleton): string =>
  `The singleton of ${named(source)} has one ${work(source)} at a time${forEach(key)}`;

export const skipped = (source: FlowSource, singleton: Singleton): Drop => ({
  cause: 'Skipped',
  failure: new RunFailure('Canceled', 'flow_skipped', `${one(source, singleton)}, and another one was there.`),
});

/** Of a run whose place a later one takes. */
export const replaced = (source: FlowSource): Drop => {
  const { debounce, singleton } = source.flow;
  const why =
    singleton === null
      ? `The debounce of ${named(source)} starts the last ${work(source)}${forEach(debounce?.key ?? null)}`
      : one(source, singleton);
  return {
    cause: 'Replaced',
    failure: new RunFailure('Canceled', 'flow_replaced', `${why}, and a later one took its place.`),
  };
};
