import { filterKey } from '../state/run-filter.ts';
import { wantsOlder } from '../state/run-list.ts';
import { isOpen } from '../state/run-status.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { waitingRun } from '../state/waiting-run.ts';
import { visibleRuns } from '../view/runs.view.ts';
import { waitingApprovals } from './approvals.feed.ts';
import { activityOf, eventsOf, treeOf } from './events.feed.ts';
import type { Feed, FeedContext } from './feed.ts';
import { jobOf, newestJobs } from './jobs.feed.ts';
import { askedOf, scoresOf, sessionOf } from './run.feed.ts';
import { agentNames, newestRuns, olderRuns } from './runs.feed.ts';

// Each followed run holds a connection.
const maxFollowed = 40;
// Inputs are read a few at a time, so that what happens now goes first.
const maxAsked = 4;

/** What has to be read for what is on the screen, each feed under a name that says for what. */
const wantedFeeds = (state: ScreenState): ReadonlyMap<string, Feed> => {
  const wanted = new Map<string, Feed>([['approvals', waitingApprovals]]);
  const { open, runs, prompt } = state;
  if (state.screen === 'run' && open !== null) {
    wanted.set(`tree ${open.runId}`, treeOf(open.runId));
    wanted.set(`events ${open.runId}`, eventsOf(open.runId));
    wanted.set(`scores ${open.runId}`, scoresOf(open.runId));
    if (!state.asked.has(open.runId)) wanted.set(`asked ${open.runId}`, askedOf(open.runId));
    const waiting = waitingRun(open, state.inbox);
    if (waiting !== null) wanted.set(`session ${waiting.runId}`, sessionOf(waiting.runId, waiting.sessionId));
    return wanted;
  }
  if (state.screen === 'jobs') wanted.set(`jobs ${state.jobs.filter}`, newestJobs);
  if (state.screen === 'job' && state.openJob !== null)
    wanted.set(`job ${state.openJob.job.id}`, jobOf(state.openJob.job.id));
  if (state.screen !== 'runs') return wanted;
  const key = filterKey(runs.filter);
  wanted.set(`runs ${key}`, newestRuns);
  if (wantsOlder(runs)) wanted.set(`older ${key} ${runs.rows.length}`, olderRuns);
  if (prompt?.kind === 'text' && prompt.purpose.kind === 'filter') wanted.set('agents', agentNames);
  for (const run of visibleRuns(state).filter(isOpen).slice(0, maxFollowed))
    wanted.set(`activity ${run.id}`, activityOf(run.id));
  for (const { id } of visibleRuns(state)
    .filter(({ id }) => !state.asked.has(id))
    .slice(0, maxAsked))
    wanted.set(`asked ${id}`, askedOf(id));
  return wanted;
};

/** Keeps the feeds that the state wants, and ends the others. */
export const superviseFeeds = (
  context: Omit<FeedContext, 'signal'>,
  onBug: (error: unknown) => void,
): { readonly close: () => Promise<void> } => {
  const running = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>();
  const start = (name: string, feed: Feed): void => {
    const stop = new AbortController();
    const done = feed({ ...context, signal: stop.signal }).catch((error: unknown) => {
      if (!stop.signal.aborted) onBug(error);
    });
    running.set(name, { stop, done });
  };
  const adjust = (): void => {
    const wanted = wantedFeeds(context.store.get());
    for (const [name, { stop }] of running) {
      if (wanted.has(name)) continue;
      running.delete(name);
      stop.abort(new Error('not on the screen any more'));
    }
    for (const [name, feed] of wanted) if (!running.has(name)) start(name, feed);
  };
  adjust();
  const unsubscribe = context.store.subscribe(adjust);
  return {
    async close() {
      unsubscribe();
      const last = [...running.values()];
      for (const { stop } of last) stop.abort(new Error('the screens were closed'));
      await Promise.all(last.map(({ done }) => done));
    },
  };
};
