import { jobText, type ShownJob } from '../../text/job-line.ts';
import { safeLine } from '../../text/text-width.ts';
import { choiceIndex, chosenRow } from '../state/choice.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { type Column, layOutColumns } from './columns.ts';
import { aboutJob, itemsText, itemsTone, jobStatusSpan, jobTimeText } from './job-cells.ts';
import { blank, fitHeight, type Line, line, ruleLine, span, windowStart } from './line.ts';
import { ageText, shownId, tokensText } from './run-cells.ts';

const detailRows = 3;
const barCells = 8;

const columns = (now: number): readonly Column<ShownJob>[] => [
  { heading: 'TARGET', width: null, cell: ({ targetName }) => span(safeLine(targetName), 'strong') },
  { heading: 'KIND', width: 18, from: 90, cell: ({ handlerKey }) => span(safeLine(handlerKey), 'dim') },
  { heading: 'STATUS', width: 11, cell: jobStatusSpan },
  { heading: 'ITEMS', width: 20, from: 64, cell: (job) => span(itemsText(job, barCells), itemsTone(job)) },
  { heading: 'AGE', width: 4, align: 'right', from: 50, cell: ({ createdAt }) => span(ageText(createdAt, now), 'dim') },
  { heading: 'TIME', width: 7, align: 'right', cell: (job) => span(jobTimeText(job, now)) },
];

const emptyText = ({ jobs }: ScreenState): string => {
  if (jobs.refusal !== '') return safeLine(jobs.refusal);
  if (!jobs.loaded) return 'Reading the jobs …';
  return jobs.filter === null ? 'No jobs yet.' : `No job is ${jobs.filter.toLowerCase()}. f shows others.`;
};

const position = ({ jobs }: ScreenState, start: number, height: number): string => {
  const count = jobs.rows.length;
  if (count === 0) return '';
  return `${start + 1}–${Math.min(start + height, count)} of ${jobs.complete ? '' : 'the newest '}${tokensText(count)}`;
};

/** What is not in the row of the chosen job. */
const detail = (state: ScreenState, where: string, width: number): readonly Line[] => {
  const job = chosenRow(state.jobs);
  if (job === null) return [ruleLine('', '', width), blank, blank];
  return [
    ruleLine(shownId(job.id, width), where, width),
    line(`  ${aboutJob(job, state.now)}`),
    line(span(`  ${safeLine(jobText(job, state.now))}`, job.status === 'Failed' ? 'bad' : 'dim')),
  ];
};

export const jobsView = (state: ScreenState, width: number, height: number): readonly Line[] => {
  const { jobs, now } = state;
  const withDetail = height >= detailRows + 5;
  const listHeight = height - 1 - (withDetail ? detailRows : 0);
  const { heading, row } = layOutColumns(columns(now), width);
  const at = choiceIndex(jobs);
  const start = windowStart(at, jobs.rows.length, listHeight);
  const rows = jobs.rows.slice(start, start + listHeight).map((job, index) => row(job, start + index === at));
  const list = rows.length === 0 || jobs.refusal !== '' ? [blank, line(span(`  ${emptyText(state)}`, 'dim'))] : rows;
  return [
    heading,
    ...fitHeight(list, listHeight),
    ...(withDetail ? detail(state, position(state, start, listHeight), width) : []),
  ];
};
