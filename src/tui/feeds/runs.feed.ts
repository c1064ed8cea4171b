import { AcpError } from '../../contract/errors.ts';
import { filterKey, filterQuery } from '../state/run-filter.ts';
import { type Feed, type FeedContext, poll } from './feed.ts';

/** A run that has started is on the screen within this time; what it does then comes with its events. */
const PROBE_INTERVAL_MS = 80;
/** The whole page is read this often, for what changes without events: runs whose events are not followed. */
const PAGE_INTERVAL_MS = 800;
const OLDER_INTERVAL_MS = 400;
const NEWEST = 100;
const OLDER = 200;

const readPage = async ({ client, store, signal }: FeedContext, skip: number, take: number): Promise<void> => {
  const { filter } = store.get().runs;
  const query = { ...filterQuery(filter, Date.now()), skip, take };
  const { body: rows } = await client.runs.list({ query, signal });
  store.dispatch({ type: 'runs', page: { key: filterKey(filter), skip, take, rows } });
};

/** True when a run has come that is not listed. One row costs the service next to nothing. */
const hasNew = async ({ client, store, signal }: FeedContext): Promise<boolean> => {
  const { filter, rows } = store.get().runs;
  const query = { ...filterQuery(filter, Date.now()), take: 1 };
  const { body } = await client.runs.list({ query, signal });
  return body[0]?.id !== rows[0]?.id;
};

/** The newest runs of the filter, again and again. */
export const newestRuns: Feed = (context) => {
  let readAt = Number.NEGATIVE_INFINITY;
  return poll(
    context,
    () => PROBE_INTERVAL_MS,
    async () => {
      const isDue = performance.now() - readAt >= PAGE_INTERVAL_MS;
      if (!isDue && !(await hasNew(context))) return true;
      await readPage(context, 0, NEWEST);
      readAt = performance.now();
      return true;
    },
  );
};

/** One more page of older runs. */
export const olderRuns: Feed = (context) =>
  poll(
    context,
    () => OLDER_INTERVAL_MS,
    async () => {
      await readPage(context, context.store.get().runs.rows.length, OLDER);
      return false;
    },
  );

const AGENTS_INTERVAL_MS = 5_000;

/** Names for the search: of the agents there are, and of the runs that are listed. */
export const agentNames: Feed = (context) =>
  poll(
    context,
    () => AGENTS_INTERVAL_MS,
    async () => {
      const { client, store, signal } = context;
      const listed = store.get().runs.rows.map(({ agentName }) => agentName);
      const known = await client.agents
        .list({ signal })
        .then(({ body }) => body.map(({ name }) => name))
        .catch((error: unknown) => {
          // A key for runs alone may not list agents.
          if (error instanceof AcpError) return [];
          throw error;
        });
      store.dispatch({ type: 'agents', names: [...new Set([...known, ...listed])].sort() });
      return false;
    },
  );
