import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { joined } from '../../text/format.ts';
import { fitTextEnd, safeLine } from '../../text/text-width.ts';
import { choiceIndex, chosenRow } from '../state/choice.ts';
import { describeFilter } from '../state/run-filter.ts';
import { isOpen } from '../state/run-status.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { type Column, layOutColumns } from './columns.ts';
import { blank, fitHeight, type Line, line, ruleLine, span, windowStart } from './line.ts';
import { aboutTexts, ageText, costText, durationText, shownId, statusSpan, tokensText } from './run-cells.ts';

const detailRows = 4;
const writing = 'writing: ';

/** What a run does, or why it failed; of a message the end, which is what is new. */
const doing = (run: RunRecord, { runs }: ScreenState, cells: number): string => {
  if (run.error !== null) return safeLine(`${run.error.type}: ${run.error.message}`);
  const activity = isOpen(run) ? runs.activity.get(run.id) : undefined;
  if (activity === undefined) return '';
  if (activity.written === '') return activity.text;
  return `${writing}${fitTextEnd(activity.written, cells - writing.length)}`;
};

const askedOf = (run: RunRecord, { asked }: ScreenState): string => asked.get(run.id) ?? '';

/** What a run does or why it failed, else what it was asked. */
const what = (run: RunRecord, state: ScreenState, cells: number): string =>
  doing(run, state, cells) || askedOf(run, state);

/** From here on a column says what each run does. */
const wide = 110;

const columnsOf = (state: ScreenState): readonly Column<RunRecord>[] => {
  const { now, runs } = state;
  const live = (run: RunRecord) => (isOpen(run) ? runs.activity.get(run.id) : undefined);
  const agent: Column<RunRecord> = {
    heading: 'AGENT',
    width: state.size.columns >= wide ? 28 : null,
    cell: (run) => span(`${run.depth > 0 ? '└ ' : ''}${safeLine(run.agentName)}`, 'strong'),
  };
  const whatColumn: Column<RunRecord> = {
    heading: 'WHAT',
    width: null,
    cell: (run, cells) => span(what(run, state, cells), run.error === null ? 'dim' : 'bad'),
  };
  return [
    agent,
    { heading: 'STATUS', width: 16, cell: statusSpan },
    { heading: 'AGE', width: 4, align: 'right', from: 50, cell: (run) => span(ageText(run.createdAt, now), 'dim') },
    { heading: 'TIME', width: 7, align: 'right', cell: (run) => span(durationText(run, now)) },
    {
      heading: 'TOKENS',
      width: 9,
      align: 'right',
      from: 64,
      cell: (run) => span(tokensText(run.usage?.totalTokens ?? live(run)?.totalTokens)),
    },
    {
      heading: 'COST',
      width: 12,
      align: 'right',
      from: 78,
      cell: (run) => {
        const cost = run.cost ?? live(run);
        return span(costText(cost?.totalCost, cost?.currency));
      },
    },
    ...(state.size.columns >= wide ? [whatColumn] : []),
  ];
};

const emptyText = ({ runs }: ScreenState): string => {
  if (!runs.loaded) return 'Reading the runs …';
  return describeFilter(runs.filter) === ''
    ? 'No runs yet. `acp run <agent> "…"` starts one.'
    : 'No run matches the filters. f changes them.';
};

/** `1–15 of 200+` */
const position = ({ runs }: ScreenState, start: number, height: number): string => {
  const count = runs.rows.length;
  if (count === 0) return '';
  return `${start + 1}–${Math.min(start + height, count)} of ${tokensText(count)}${runs.complete ? '' : '+'}`;
};

/** What is not in the row of the chosen run. */
const detail = (state: ScreenState, where: string, width: number): readonly Line[] => {
  const run = chosenRow(state.runs);
  if (run === null) return [ruleLine('', '', width), blank, blank, blank];
  const called =
    run.childRunCount === 0 ? '' : `called ${run.childRunCount} ${run.childRunCount === 1 ? 'run' : 'runs'}`;
  const about = joined(aboutTexts(run, state.now, width, called));
  return [
    ruleLine(shownId(run.id, width), where, width),
    line(`  ${safeLine(about)}`),
    line(span(askedOf(run, state) === '' ? '' : '  Asked: ', 'dim'), askedOf(run, state)),
    line(span(`  ${doing(run, state, width - 2)}`, run.error === null ? 'dim' : 'bad')),
  ];
};

export const runsView = (state: ScreenState, width: number, height: number): readonly Line[] => {
  const { runs } = state;
  const withDetail = height >= detailRows + 5;
  const listHeight = height - 1 - (withDetail ? detailRows : 0);
  const { heading, row } = layOutColumns(columnsOf(state), width);
  const selected = choiceIndex(runs);
  const start = windowStart(selected, runs.rows.length, listHeight);
  const rows = runs.rows.slice(start, start + listHeight).map((run, index) => row(run, start + index === selected));
  const list = rows.length === 0 ? [blank, line(span(`  ${emptyText(state)}`, 'dim'))] : rows;
  const tail = withDetail ? detail(state, position(state, start, listHeight), width) : [];
  return [heading, ...fitHeight(list, listHeight), ...tail];
};

/** The rows that the list shows, or a few more: those whose events are worth following. */
export const visibleRuns = ({ runs, size }: ScreenState): readonly RunRecord[] => {
  const start = windowStart(choiceIndex(runs), runs.rows.length, size.rows);
  return runs.rows.slice(start, start + size.rows);
};
