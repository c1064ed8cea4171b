import type { Frame } from '../../contract/operation.ts';
import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import type { RunScore } from '../../features/scores/scores.schema.ts';
import type { ShownJob } from '../../text/job-line.ts';
import { type Asked, withAsked } from './asked.ts';
import { emptyInbox, type Inbox, withoutApproval } from './inbox.ts';
import { emptyJobs, type JobItem, type JobList, type JobPage, type OpenJob, receiveJobs } from './job-list.ts';
import { type OpenRun, openRun, receiveFrames, receiveTree, type StreamState } from './open-run.ts';
import type { Prompt } from './prompt.ts';
import { type Activity, addPage, emptyList, type RunList, type RunPage, replaceRun } from './run-list.ts';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A text laid over the screen: the help, or all of one event. */
export interface Overlay {
  readonly title: string;
  readonly lines: readonly string[];
  /** First row shown. */
  readonly top: number;
}

export interface Notice {
  readonly text: string;
  readonly tone: 'good' | 'bad';
  /** Epoch milliseconds after which it goes. */
  readonly until: number;
}

export interface ScreenState {
  /** Where the runs come from, as people call it. */
  readonly target: string;
  /** Epoch milliseconds, advanced every second. */
  readonly now: number;
  readonly size: Size;
  readonly screen: 'runs' | 'approvals' | 'jobs' | 'job' | 'run';
  /** Screen that `esc` goes back to from a run. */
  readonly cameFrom: 'runs' | 'approvals' | 'jobs' | 'job';
  readonly runs: RunList;
  readonly inbox: Inbox;
  readonly jobs: JobList;
  readonly open: OpenRun | null;
  readonly openJob: OpenJob | null;
  readonly overlay: Overlay | null;
  readonly prompt: Prompt | null;
  readonly notice: Notice | null;
  /** Why nothing can be read at the moment; null while the service answers. */
  readonly lost: string | null;
  /** Names of the agents there are, for the search. */
  readonly agentNames: readonly string[];
  readonly asked: Asked;
}

/** What happens outside of the keyboard. */
export type ScreenEvent =
  | { readonly type: 'tick'; readonly now: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'link'; readonly lost: string | null }
  | { readonly type: 'runs'; readonly page: RunPage }
  | { readonly type: 'activity'; readonly runId: string; readonly activity: Activity }
  | { readonly type: 'run'; readonly run: RunRecord }
  | { readonly type: 'tree'; readonly runId: string; readonly runs: readonly RunRecord[] }
  | { readonly type: 'frames'; readonly runId: string; readonly frames: readonly Frame[] }
  | { readonly type: 'stream'; readonly runId: string; readonly stream: StreamState }
  | { readonly type: 'approvals'; readonly rows: readonly PendingApproval[] }
  | { readonly type: 'approvals-refused'; readonly refusal: string }
  | { readonly type: 'jobs'; readonly page: JobPage }
  | { readonly type: 'jobs-refused'; readonly refusal: string }
  | { readonly type: 'job'; readonly job: ShownJob; readonly items: readonly JobItem[] }
  | { readonly type: 'decided'; readonly approvalId: string }
  | { readonly type: 'scores'; readonly runId: string; readonly scores: readonly RunScore[] }
  | { readonly type: 'went-on'; readonly runId: string }
  | { readonly type: 'continued'; readonly runId: string; readonly by: string }
  | { readonly type: 'asked'; readonly runId: string; readonly text: string }
  | { readonly type: 'agents'; readonly names: readonly string[] }
  | { readonly type: 'notice'; readonly text: string; readonly tone: Notice['tone'] };

const noticeMs = 6_000;

export const initialState = (target: string, now: number, size: Size): ScreenState => ({
  target,
  now,
  size,
  screen: 'runs',
  cameFrom: 'runs',
  runs: emptyList(),
  inbox: emptyInbox,
  jobs: emptyJobs(),
  open: null,
  openJob: null,
  overlay: null,
  prompt: null,
  notice: null,
  lost: null,
  agentNames: [],
  asked: new Map(),
});

/** What comes of another run than the one on screen is too late. */
const inOpen = (state: ScreenState, { runId }: { runId: string }, change: (open: OpenRun) => OpenRun): ScreenState =>
  state.open?.runId === runId ? { ...state, open: change(state.open) } : state;

/** The same state where nothing changed, so that nothing is drawn. */
const withRuns = (state: ScreenState, runs: RunList): ScreenState => (runs === state.runs ? state : { ...state, runs });

const tick = (state: ScreenState, now: number): ScreenState => ({
  ...state,
  now,
  notice: state.notice !== null && state.notice.until <= now ? null : state.notice,
});

/** The state after something happened; a pure function. */
export const receive = (state: ScreenState, event: ScreenEvent): ScreenState => {
  switch (event.type) {
    case 'tick':
      return tick(state, event.now);
    case 'resized':
      return { ...state, size: event.size };
    case 'link':
      return { ...state, lost: event.lost };
    case 'runs':
      return withRuns(state, addPage(state.runs, event.page));
    case 'activity': {
      const activity = new Map(state.runs.activity).set(event.runId, event.activity);
      return { ...state, runs: { ...state.runs, activity } };
    }
    case 'run':
      return { ...state, runs: replaceRun(state.runs, event.run) };
    case 'tree':
      return inOpen(state, event, (open) => receiveTree(open, event.runs));
    case 'frames':
      return inOpen(state, event, (open) => receiveFrames(open, event.frames));
    case 'stream':
      return inOpen(state, event, (open) => ({ ...open, stream: event.stream }));
    case 'approvals':
      return { ...state, inbox: { ...state.inbox, rows: event.rows, loaded: true, refusal: '' } };
    case 'approvals-refused':
      return { ...state, inbox: { ...state.inbox, loaded: true, refusal: event.refusal } };
    case 'jobs': {
      const jobs = receiveJobs(state.jobs, event.page);
      return jobs === state.jobs ? state : { ...state, jobs };
    }
    case 'jobs-refused':
      return { ...state, jobs: { ...state.jobs, loaded: true, refusal: event.refusal } };
    case 'job': {
      const { openJob } = state;
      // Whoever looks at something else by now stays there.
      if (openJob?.job.id !== event.job.id) return state;
      return { ...state, openJob: { ...openJob, job: event.job, rows: event.items, loaded: true } };
    }
    case 'decided':
      return { ...state, inbox: withoutApproval(state.inbox, event.approvalId) };
    case 'scores':
      return inOpen(state, event, (open) => ({ ...open, scores: event.scores }));
    case 'went-on':
      return inOpen(state, event, (open) => ({ ...open, wentOn: true }));
    case 'continued':
      // Whoever looks at something else by now stays there.
      return inOpen(state, event, () => openRun(event.by, null));
    case 'asked':
      return { ...state, asked: withAsked(state.asked, event.runId, event.text) };
    case 'agents':
      return { ...state, agentNames: event.names };
    case 'notice':
      return { ...state, notice: { text: event.text, tone: event.tone, until: state.now + noticeMs } };
  }
};
