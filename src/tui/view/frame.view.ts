import { safeLine } from '../../text/text-width.ts';
import { describeFilter } from '../state/run-filter.ts';
import type { Overlay, ScreenState } from '../state/screen-state.ts';
import { waitingRun } from '../state/waiting-run.ts';
import { answerPanel } from './answer.view.ts';
import { approvalsView } from './approvals.view.ts';
import { jobView } from './job.view.ts';
import { jobsView } from './jobs.view.ts';
import { blank, fitHeight, fitLine, type Line, line, lineText, ruleLine, type Span, span, spreadLine } from './line.ts';
import { overlayHeight, overlayRows } from './long-text.ts';
import { filterPanel, promptHints, promptLine } from './prompt.view.ts';
import { runView } from './run.view.ts';
import { runsView } from './runs.view.ts';

const smallest = { columns: 40, rows: 10 };
/** From here on there is room for the name of the program. */
const withName = 48;

const tab = (name: string, active: boolean): Span => (active ? span(`[${name}]`, 'strong') : span(` ${name} `, 'dim'));

/** Where one is, and whether what is shown is still true. */
const header = (state: ScreenState, width: number): Line => {
  const waiting = state.inbox.rows.length;
  const at = state.screen === 'run' ? state.cameFrom : state.screen;
  const tabs = [
    span(width >= withName ? ' acp ' : '', 'accent'),
    tab('Runs', at === 'runs'),
    tab(`Approvals${waiting === 0 ? '' : ` ${waiting}`}`, at === 'approvals'),
    tab('Jobs', at === 'jobs' || at === 'job'),
  ];
  const link = state.lost === null ? span('● connected ', 'good') : span('✗ reconnecting ', 'bad');
  const target = width >= 70 ? [span(`${safeLine(state.target)}  `, 'dim')] : [];
  return spreadLine(tabs, [...target, link], width);
};

const hintsOf = (state: ScreenState): readonly string[] => {
  if (state.overlay !== null) return ['↑↓ scroll', 'esc close'];
  if (state.prompt !== null) return promptHints(state.prompt, state);
  switch (state.screen) {
    case 'runs':
      return [
        'enter open',
        'f filter',
        '/ agent',
        'c cancel',
        's score',
        'tab approvals',
        'y copy id',
        'o command line',
      ];
    case 'approvals':
      return ['a approve', 'r reject', 'enter details', 'o run', 'tab jobs'];
    case 'jobs':
      return ['enter open', 'f filter', 'c cancel', 'i record', 'tab runs', 'y copy id'];
    case 'job':
      return ['esc back', 'enter run', 'c cancel', 'i record', 'y copy id'];
    case 'run': {
      const tree = (state.open?.tree.length ?? 0) > 1 ? ['tab tree'] : [];
      const answer = state.open !== null && waitingRun(state.open, state.inbox) !== null ? ['a answer'] : [];
      return [
        'esc back',
        ...answer,
        'enter details',
        ...tree,
        'c cancel',
        's score',
        'i record',
        'y copy id',
        'o command line',
      ];
    }
  }
};

const hintSpans = (hint: string): Span[] => {
  const [key = '', ...words] = hint.split(' ');
  return [span(key, 'strong'), span(`${words.length === 0 ? '' : ` ${words.join(' ')}`}  `, 'dim')];
};

/** As many hints as there is room for; how to get help and out is always there. */
const hintLine = (state: ScreenState, width: number): Line => {
  const isAsking = state.overlay !== null || state.prompt !== null;
  const always = isAsking ? [] : ['? help', 'q quit'].flatMap(hintSpans);
  const room = width - lineText(line(...always)).length - 1;
  const spans: Span[] = [span(' ')];
  for (const hint of hintsOf(state)) {
    const next = hintSpans(hint);
    if (lineText(line(...spans, ...next)).length > room) break;
    spans.push(...next);
  }
  return spreadLine(spans, always, width);
};

const messageLine = (state: ScreenState): Line => {
  if (state.prompt !== null) return promptLine(state.prompt);
  if (state.lost !== null) return line(span(` ${safeLine(state.lost)}`, 'bad'));
  if (state.notice !== null) return line(span(` ${safeLine(state.notice.text)}`, state.notice.tone));
  return blank;
};

const titleLine = (state: ScreenState, width: number): Line => {
  if (state.screen === 'run') return ruleLine('Run', '', width);
  if (state.screen === 'approvals') return ruleLine('Approvals', '', width);
  if (state.screen === 'jobs') return ruleLine('Jobs', state.jobs.filter?.toLowerCase() ?? '', width);
  if (state.screen === 'job') return ruleLine('Job', '', width);
  const filter = describeFilter(state.runs.filter);
  return ruleLine('Runs', filter === '' ? '' : safeLine(filter), width);
};

const overlaid = (overlay: Overlay, state: ScreenState, width: number): readonly Line[] => {
  const rows = overlayRows(overlay, state.size);
  const height = overlayHeight(state.size);
  const top = Math.min(overlay.top, Math.max(0, rows.length - height));
  const where = rows.length <= height ? '' : `${top + 1}–${Math.min(top + height, rows.length)} of ${rows.length}`;
  return [
    ruleLine(overlay.title, where, width, 'strong'),
    ...fitHeight(
      rows.slice(top, top + height).map((text) => line(` ${text}`)),
      height,
    ),
  ];
};

const screenBody = (state: ScreenState, width: number, height: number): readonly Line[] => {
  switch (state.screen) {
    case 'run':
      return runView(state, width, height);
    case 'runs':
      return runsView(state, width, height);
    case 'approvals':
      return approvalsView(state, width, height);
    case 'jobs':
      return jobsView(state, width, height);
    case 'job':
      return jobView(state, width, height);
  }
};

const tooSmall = ({ columns, rows }: ScreenState['size']): readonly Line[] =>
  [
    line('The window is too small.'),
    line(`It has ${columns}×${rows}; ${smallest.columns}×${smallest.rows} is enough.`),
    line('q quits.'),
  ].slice(0, Math.max(1, rows));

/** The whole screen, row by row, each as wide as the window; a pure function. */
export const frameView = (state: ScreenState): readonly Line[] => {
  const { columns: width, rows } = state.size;
  const fill = (lines: readonly Line[]): readonly Line[] => fitHeight(lines, rows).map((one) => fitLine(one, width));
  if (width < smallest.columns || rows < smallest.rows) return fill(tooSmall(state.size));
  if (state.overlay !== null)
    return fill([header(state, width), ...overlaid(state.overlay, state, width), hintLine(state, width)]);
  const panel = [...filterPanel(state, width, rows - 5), ...answerPanel(state, width, Math.floor((rows - 4) * 0.6))];
  const height = Math.max(1, rows - 4 - panel.length);
  return fill([
    header(state, width),
    titleLine(state, width),
    ...fitHeight(screenBody(state, width, height), height),
    ...panel,
    messageLine(state),
    hintLine(state, width),
  ]);
};
