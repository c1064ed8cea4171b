import { AcpError } from '../contract/errors.ts';
import type { JobDetailResponse, JobRecord } from '../features/jobs/jobs.schema.ts';
import { hasEnded, type ShownJob } from '../text/job-line.ts';
import type { Client } from './client.ts';
import { passesByItself, pause } from './follow-events.ts';

export interface FollowJobOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long a service that does not answer is asked again, before the last error is thrown; default 2 minutes. */
  readonly patienceMs?: number | undefined;
  /** Told before each new attempt. */
  readonly onRetry?: ((error: AcpError) => void) | undefined;
}

const defaultPatienceMs = 120_000;
const shortestMs = 500;
const longestMs = 10_000;
const firstRetryMs = 250;
const longestRetryMs = 5_000;

/** What the service says of a job, without what it was given: that may be thousands of items. */
const shown = ({ payload: _payload, ...job }: JobRecord): ShownJob => job;

/** Leases are renewed while nothing happens. */
const changeKey = ({ status, attempt, doneItems, failedItems, totalItems, errorCode }: ShownJob): string =>
  JSON.stringify([status, attempt, doneItems, failedItems, totalItems, errorCode]);

/**
 * Looks again and again until `look` has given its last word, over dropped connections and restarts. A first look that
 * fails, and errors that do not pass by themselves, are thrown at once. A look that costs is repeated more rarely.
 */
const looks = async function* <T>(
  look: () => Promise<T>,
  isLast: (seen: T) => boolean,
  { signal, patienceMs = defaultPatienceMs, onRetry }: FollowJobOptions,
): AsyncGenerator<T, void, undefined> {
  let answeredAt: number | null = null;
  let failures = 0;
  for (;;) {
    const startedAt = performance.now();
    let seen: T;
    try {
      seen = await look();
    } catch (error) {
      signal?.throwIfAborted();
      if (answeredAt === null || !passesByItself(error)) throw error;
      const wait = error.details.retryAfterMs ?? Math.min(firstRetryMs * 2 ** failures, longestRetryMs);
      if (performance.now() + wait - answeredAt > patienceMs) throw error;
      failures += 1;
      onRetry?.(error);
      await pause(wait, signal);
      continue;
    }
    answeredAt = performance.now();
    failures = 0;
    yield seen;
    if (isLast(seen)) return;
    await pause(Math.min(Math.max(10 * (answeredAt - startedAt), shortestMs), longestMs), signal);
  }
};

export interface FollowedJob {
  readonly job: ShownJob;
  /** Once it has ended, those that have failed. */
  readonly items: JobDetailResponse['items'];
}

/** A job, whenever something about it has changed, up to and with its end. Throws what cannot be asked again. */
export const followJob = async function* (
  client: Client,
  id: string,
  options: FollowJobOptions = {},
): AsyncGenerator<FollowedJob, void, undefined> {
  let last = '';
  const look = async (): Promise<FollowedJob> => {
    const ask = async (items: 'Failed' | 'None') =>
      (await client.jobs.get({ params: { id }, query: { items }, signal: options.signal })).body;
    // Thousands of items are read once, at the end, and only those that have something to say.
    const going = await ask('None');
    const { job, items } = hasEnded(going.job) && going.job.failedItems > 0 ? await ask('Failed') : going;
    return { job: shown(job), items };
  };
  for await (const seen of looks(look, ({ job }) => hasEnded(job), options)) {
    const key = changeKey(seen.job);
    if (key === last) continue;
    last = key;
    yield seen;
  }
};

/** Which jobs are followed; absent members let all through. */
export interface JobFilter {
  readonly handlerKey?: string;
  readonly lane?: string;
  readonly scheduleId?: string;
}

const pageSize = 200;
/** Jobs that are on no list of the look are asked for one by one, so many a look: the others have their turn in the next. */
const singleLooks = 16;
// A queue may hold a million; those that have been seen first are given up first.
const maxOpen = 5_000;

/** Reads what is on the way, and remembers what was told of it. */
const jobWatcher = (client: Client, filter: JobFilter, signal: AbortSignal | undefined) => {
  /** Jobs by id as they were last seen, the one that waits longest for a look first. */
  let seen: Map<string, ShownJob> | null = null;
  /** How far back the last look went, as a `createdAt`. */
  let reached = '';

  const page = async (skip: number, status?: 'Leased' | 'Running'): Promise<ShownJob[]> => {
    const query = { background: false, ...filter, skip, take: pageSize, ...(status === undefined ? {} : { status }) };
    return (await client.jobs.list({ query, signal })).body.map(shown);
  };

  /**
   * The newest jobs, back to one that was there before, and the time that they reach back to; those at work are listed by
   * themselves where that is not all.
   */
  const listed = async (known: ReadonlyMap<string, ShownJob> | null) => {
    const rows = new Map<string, ShownJob>();
    const take = (more: readonly ShownJob[]): void => {
      for (const row of more) rows.set(row.id, row);
    };
    let since = '';
    for (let skip = 0; ; skip += pageSize) {
      const newest = await page(skip);
      take(newest);
      if (newest.length < pageSize) return { rows, since: '' };
      since = newest.at(-1)?.createdAt ?? '';
      if (known === null || newest.some(({ id }) => known.has(id))) break;
    }
    for (const status of ['Leased', 'Running'] as const) take(await page(0, status));
    return { rows, since };
  };

  /** Those that were open and are on no list; null: gone. */
  const asked = async (ids: readonly string[]): Promise<Map<string, ShownJob | null>> => {
    const rows = new Map<string, ShownJob | null>();
    for (const id of ids)
      try {
        rows.set(id, shown((await client.jobs.get({ params: { id }, query: { items: 'None' }, signal })).body.job));
      } catch (error) {
        // Retention has removed it.
        if (!(error instanceof AcpError) || error.code !== 'not-found') throw error;
        rows.set(id, null);
      }
    return rows;
  };

  return async (): Promise<readonly ShownJob[]> => {
    const before = seen ?? new Map<string, ShownJob>();
    const { rows, since } = await listed(seen);
    const open = [...before.values()].filter((job) => !hasEnded(job) && !rows.has(job.id));
    // Those that were at work end first.
    const next = open.toSorted((a, b) => Number(a.status === 'Pending') - Number(b.status === 'Pending'));
    const singles = await asked(next.slice(0, singleLooks).map(({ id }) => id));
    const isFirst = seen === null;
    const after = new Map(open.filter(({ id }) => !singles.has(id)).map((job) => [job.id, job]));
    for (const [id, job] of singles) if (job !== null) after.set(id, job);
    const changed: ShownJob[] = [];
    for (const job of [...[...singles.values()].filter((one) => one !== null), ...[...rows.values()].reverse()]) {
      after.set(job.id, job);
      const known = before.get(job.id);
      // What ended before the first look is no news, nor what comes back to the list since newer ones were removed.
      const isOld = hasEnded(job) && (isFirst || job.createdAt < reached);
      if (known === undefined ? !isOld : changeKey(known) !== changeKey(job)) changed.push(job);
    }
    reached = since;
    for (const id of [...after.keys()].slice(0, Math.max(0, after.size - maxOpen))) after.delete(id);
    seen = after;
    return changed;
  };
};

/**
 * Every job that is on its way or comes, whenever something about it has changed: what one look has found, the oldest
 * first. The first yield comes with the first answer, also when nothing is on its way. It ends with the signal alone.
 */
export const followJobs = (
  client: Client,
  filter: JobFilter,
  options: FollowJobOptions = {},
): AsyncGenerator<readonly ShownJob[], void, undefined> =>
  looks(jobWatcher(client, filter, options.signal), () => false, {
    patienceMs: Number.POSITIVE_INFINITY,
    ...options,
  });
