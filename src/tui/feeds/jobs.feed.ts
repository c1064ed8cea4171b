import { passesByItself } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import type { JobDetailResponse, JobRecord } from '../../features/jobs/jobs.schema.ts';
import { hasEnded, type ShownJob } from '../../text/job-line.ts';
import { type Feed, polling } from './feed.ts';

const intervalMs = 500;
/** What a look costs is at most this part of the time. */
const share = 10;
const pageSize = 200;

/** Without what the job was given: that may be thousands of items, and is read with the items. */
const shown = ({ payload: _payload, ...job }: JobRecord): ShownJob => job;

/** A refusal that asking again does not change; null for what passes by itself. */
const refusalOf = (error: unknown): string | null => {
  const refusal = error instanceof AcpError ? error.message : null;
  return passesByItself(error) ? null : refusal;
};

/** The newest jobs of the filter, again and again. */
export const newestJobs: Feed = (context) => {
  let tookMs = 0;
  const look = polling(
    () => Math.max(intervalMs, share * tookMs),
    async ({ client, store, signal }) => {
      const startedAt = performance.now();
      const { filter } = store.get().jobs;
      try {
        const query = { take: pageSize, background: false, ...(filter === null ? {} : { status: filter }) };
        const { body } = await client.jobs.list({ query, signal });
        const page = { filter, rows: body.map(shown), complete: body.length < pageSize };
        store.dispatch({ type: 'jobs', page });
      } catch (error) {
        // Who may not see jobs can still look at runs.
        const refusal = refusalOf(error);
        if (refusal === null) throw error;
        store.dispatch({ type: 'jobs-refused', refusal });
      }
      tookMs = performance.now() - startedAt;
      return true;
    },
  );
  return look(context);
};

/** One job with its items, up to its end. */
export const jobOf =
  (id: string): Feed =>
  (context) => {
    let tookMs = 0;
    let seen = '';
    let items: JobDetailResponse['items'] = [];
    const look = polling(
      () => Math.max(intervalMs, share * tookMs),
      async ({ client, store, signal }) => {
        const startedAt = performance.now();
        try {
          const { body: going } = await client.jobs.get({ params: { id }, query: { items: 'None' }, signal });
          const { status, attempt, doneItems, failedItems } = going.job;
          const state = `${status} ${attempt} ${doneItems} ${failedItems}`;
          if (state === seen) store.dispatch({ type: 'job', job: shown(going.job), items });
          else {
            // Thousands of items are read only when one of them has moved on.
            const { body } = await client.jobs.get({ params: { id }, signal });
            store.dispatch({ type: 'job', job: shown(body.job), items: body.items });
            ({ items } = body);
            seen = state;
          }
          tookMs = performance.now() - startedAt;
          return !hasEnded(going.job);
        } catch (error) {
          const refusal = refusalOf(error);
          if (refusal === null) throw error;
          store.dispatch({ type: 'notice', text: refusal, tone: 'bad' });
          return false;
        }
      },
    );
    return look(context);
  };
