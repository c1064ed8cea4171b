import { hasEnded, type ShownJob } from '../../text/job-line.ts';
import { safeLine } from '../../text/text-width.ts';
import { chosenRow, moveChoice } from '../state/choice.ts';
import { emptyJobs, nextJobFilter, openJob, runOfJob } from '../state/job-list.ts';
import { openRun } from '../state/open-run.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { jsonText } from '../view/long-text.ts';
import type { Key } from './key.ts';
import { ask, movement, notice, overlaid, type Step, stay } from './step.ts';

const jobName = ({ targetName, id }: ShownJob): string => `${safeLine(targetName)} …${id.slice(-6)}`;

/** Keys that mean the same in the list and in one job. */
const pressOnJob = (state: ScreenState, job: ShownJob, key: Key): Step => {
  const name = jobName(job);
  if (key.text === 'y') return { state, request: { kind: 'copy', text: job.id } };
  if (key.text === 'i') return overlaid(state, `Job ${job.id}`, jsonText(job));
  if (key.text !== 'c') return stay(state);
  if (hasEnded(job)) return notice(state, `${name} has ended.`);
  const request = { kind: 'cancel-job', jobId: job.id, name } as const;
  return ask(state, { kind: 'confirm', question: `Cancel the job ${name}?`, request });
};

const enterJob = (state: ScreenState, job: ShownJob): Step => {
  const runId = runOfJob(job);
  return stay(
    runId === null
      ? { ...state, screen: 'job', openJob: openJob(job) }
      : { ...state, screen: 'run', cameFrom: 'jobs', open: openRun(runId, null) },
  );
};

export const pressInJobs = (state: ScreenState, key: Key): Step => {
  const by = movement(state, key);
  if (by !== null) return stay({ ...state, jobs: moveChoice(state.jobs, by) });
  if (key.name === 'tab' || key.name === 'escape') return stay({ ...state, screen: 'runs' });
  if (key.text === 'f') return stay({ ...state, jobs: emptyJobs(nextJobFilter(state.jobs.filter)) });
  const job = chosenRow(state.jobs);
  if (job === null) return stay(state);
  return key.name === 'enter' ? enterJob(state, job) : pressOnJob(state, job, key);
};

export const pressInJob = (state: ScreenState, key: Key): Step => {
  const open = state.openJob;
  if (open === null || key.name === 'escape') return stay({ ...state, screen: 'jobs', openJob: null });
  const by = movement(state, key);
  if (by !== null) return stay({ ...state, openJob: moveChoice(open, by) });
  if (key.name !== 'enter') return pressOnJob(state, open.job, key);
  const item = chosenRow(open);
  if (item === null) return stay(state);
  if (item.runId === null) return overlaid(state, `Item ${item.seq}`, jsonText(item));
  return stay({ ...state, screen: 'run', cameFrom: 'job', open: openRun(item.runId, null) });
};
