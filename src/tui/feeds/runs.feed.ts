import { AcpError } from '../../contract/errors.ts';
import { filterKey, filterQuery } from '../state/run-filter.ts';
import type { RunPage } from '../state/run-list.ts';
import { type Feed, type FeedContext, polling } from './feed.ts';

/** With a frame and an answer this is below 100 ms: what a run does then comes with its events. */
const probeIntervalMs = 40;
/** Rows of a look: a few cost as much as one, and runs that came meanwhile are listed without a second look. */
const probed = 5;
/** The whole page is read this often, for what changes without events: runs whose events are not followed. */
const pageIntervalMs = 800;
const olderIntervalMs = 400;
const newestPageSize = 100;
const olderPageSize = 200;

const read = async ({ client, store, signal }: FeedContext, skip: number, take: number): Promise<RunPage> => {
  const { filter } = store.get().runs;
  const query = { ...filterQuery(filter, Date.now()), skip, take };
  const { body: rows } = await client.runs.list({ query, signal });
  return { key: filterKey(filter), skip, take, rows };
};

/** More runs have come than were read, so what is listed does not go on from them. */
const leavesGap = ({ store }: FeedContext, { rows, take }: RunPage): boolean => {
  const newest = store.get().runs.rows[0]?.id ?? '';
  return rows.length === take && newest < (rows.at(-1)?.id ?? '');
};

/** The newest runs of the filter, again and again. */
export const newestRuns: Feed = (context) => {
  let readAt = Number.NEGATIVE_INFINITY;
  const look = polling(
    () => probeIntervalMs,
    async () => {
      const isDue = performance.now() - readAt >= pageIntervalMs;
      let page = await read(context, 0, isDue ? newestPageSize : probed);
      if (!isDue && leavesGap(context, page)) page = await read(context, 0, newestPageSize);
      if (page.take === newestPageSize) readAt = performance.now();
      context.store.dispatch({ type: 'runs', page });
      return true;
    },
  );
  return look(context);
};

/** One more page of older runs. */
export const olderRuns: Feed = polling(
  () => olderIntervalMs,
  async (context) => {
    const page = await read(context, context.store.get().runs.rows.length, olderPageSize);
    context.store.dispatch({ type: 'runs', page });
    return false;
  },
);

const agentsIntervalMs = 5_000;

/** Names for the search: of the agents there are, and of the runs that are listed. */
export const agentNames: Feed = polling(
  () => agentsIntervalMs,
  async ({ client, store, signal }) => {
    const listed = store.get().runs.rows.map(({ agentName }) => agentName);
    const ofAgents = await client.agents
      .list({ signal })
      .then(({ body }) => body.map(({ name }) => name))
      .catch((error: unknown) => {
        // A key for runs alone may not list agents.
        if (error instanceof AcpError) return [];
        throw error;
      });
    store.dispatch({ type: 'agents', names: [...new Set([...ofAgents, ...listed])].sort() });
    return false;
  },
);
