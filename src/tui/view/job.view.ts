import { jobText, progressOf } from '../../text/job-line.ts';
import { progressCells } from '../../text/progress-bar.ts';
import { fitText, safeLine } from '../../text/text-width.ts';
import { choiceIndex } from '../state/choice.ts';
import type { JobItem, OpenJob } from '../state/job-list.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { type Column, layOutColumns } from './columns.ts';
import { aboutJob, itemStatusSpan, jobStatusSpan } from './job-cells.ts';
import { fitHeight, type Line, line, ruleLine, span, windowStart } from './line.ts';
import { shownId, tokensText } from './run-cells.ts';

// A row shows less.
const summaryLength = 400;

/** Why an item failed, else what it is to do. */
const itemText = ({ error, input }: JobItem): string => {
  if (error !== null) return safeLine(error);
  if (input === null) return '';
  return safeLine(fitText(typeof input === 'string' ? input : JSON.stringify(input), summaryLength));
};

const columns: readonly Column<JobItem>[] = [
  { heading: 'ITEM', width: 7, align: 'right', cell: ({ seq }) => span(tokensText(seq), 'dim') },
  { heading: 'STATUS', width: 11, cell: itemStatusSpan },
  { heading: 'RUN', width: 7, from: 60, cell: ({ runId }) => span(runId === null ? '' : `…${runId.slice(-6)}`, 'dim') },
  { heading: 'WHAT', width: null, cell: (item) => span(itemText(item), item.error === null ? 'plain' : 'bad') },
];

/** All of the width that the words leave. */
const barLine = ({ job }: OpenJob, width: number): Line => {
  const progress = progressOf(job);
  if (progress.total === 0) return line();
  const { done, failed, left } = progressCells(progress, Math.max(1, width - 2));
  return line(' ', span(done, 'good'), span(failed, 'bad'), span(left, 'dim'));
};

const emptyText = ({ job, loaded }: OpenJob): string => {
  if (!loaded) return 'Reading the job …';
  return job.totalItems === 0 ? 'This job has no items.' : 'The items are not there any more.';
};

export const jobView = (state: ScreenState, width: number, height: number): readonly Line[] => {
  const { openJob: open, now } = state;
  if (open === null) return [];
  const { job, rows } = open;
  const head = [
    line(' ', span(safeLine(job.targetName), 'strong'), '  ', jobStatusSpan(job)),
    line(span(` ${safeLine(jobText(job, now))}`, job.status === 'Failed' ? 'bad' : 'plain')),
    barLine(open, width),
    line(span(` ${shownId(job.id, width)} · ${aboutJob(job, now)}`, 'dim')),
  ];
  const at = choiceIndex(open);
  const listHeight = Math.max(1, height - head.length - 2);
  const start = windowStart(at, rows.length, listHeight);
  const where =
    rows.length === 0 ? '' : `${start + 1}–${Math.min(start + listHeight, rows.length)} of ${tokensText(rows.length)}`;
  const { heading, row } = layOutColumns(columns, width);
  const list =
    rows.length === 0
      ? [line(span(`  ${emptyText(open)}`, 'dim'))]
      : rows.slice(start, start + listHeight).map((item, index) => row(item, start + index === at));
  return [...head, ruleLine('Items', where, width), heading, ...fitHeight(list, listHeight)];
};
