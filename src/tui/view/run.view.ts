import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { joined } from '../../text/format.ts';
import { providerReasonText } from '../../text/provider-reason.ts';
import type { TreeRow } from '../../text/run-tree.ts';
import { safeLine } from '../../text/text-width.ts';
import { type OpenRun, shownRun, treeIndex } from '../state/open-run.ts';
import { isOpen } from '../state/run-status.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { waitingRun, waitsInInbox } from '../state/waiting-run.ts';
import { type Column, layOutColumns } from './columns.ts';
import { beside, fitHeight, type Line, line, ruleLine, type Span, span, windowStart } from './line.ts';
import { aboutTexts, costText, durationText, scoreText, shownId, statusSpan, tokensText } from './run-cells.ts';
import { timelineView } from './timeline.view.ts';

/** From here on the tree stands beside the events, not above them. */
const twoColumnsFrom = 110;
const treeShare = 0.4;
const widestTree = 64;

const usageText = (run: RunRecord, { timeline }: OpenRun): string => {
  const usage = run.usage ?? timeline.usage;
  if (usage === null || usage.totalTokens === null) return '';
  const parts = [
    usage.inputTokens === null ? '' : `${tokensText(usage.inputTokens)} in`,
    usage.outputTokens === null ? '' : `${tokensText(usage.outputTokens)} out`,
  ];
  const detail = joined(parts, ', ');
  return `${tokensText(usage.totalTokens)} tokens${detail === '' ? '' : ` (${detail})`}`;
};

const treeText = (root: RunRecord | undefined, count: number): string => {
  if (root === undefined || count < 2) return '';
  const tokens = root.treeUsage?.totalTokens;
  const parts = [
    tokens === null || tokens === undefined ? '' : `${tokensText(tokens)} tokens`,
    costText(root.treeCost?.totalCost, root.treeCost?.currency),
  ];
  const sums = joined(parts, ', ');
  return sums === '' ? `tree of ${count} runs` : `tree of ${count} runs: ${sums}`;
};

/** Newest first; as many as fit on the row, and all of them behind `i`. */
const scoresLine = ({ scores }: OpenRun): Line => {
  const texts = scores.map((score) => {
    const comment = score.comment === null || score.comment === '' ? '' : ` “${score.comment}”`;
    // People without a name are most people; a judge has one in its source.
    const who = score.author ?? (score.source === 'human' || score.source === 'api' ? null : score.source);
    return safeLine(`${score.name} ${scoreText(score)}${comment}${who === null ? '' : ` by ${who}`}`);
  });
  return line(span(' Scores: ', 'dim'), texts.join(' · '));
};

/** What a run needs before its session goes on, and where that is given. */
const waitingLine = (run: RunRecord, open: OpenRun, inbox: ScreenState['inbox']): readonly Line[] => {
  if (run.continuedBy !== null) return [line(span(` Went on in run ${run.continuedBy}.`, 'dim'))];
  const waiting = waitingRun(open, inbox);
  if (waiting !== null) {
    const tools = waiting.calls.map(({ toolName }) => safeLine(toolName)).join(', ');
    return [line(span(` Waits for your answer about ${tools}: a`, 'warn'))];
  }
  if (run.status === 'AwaitingApproval' && run.jobId === null && open.wentOn)
    return [line(span(' The session has gone on since.', 'dim'))];
  if (waitsInInbox(open, inbox))
    return [line(span(' Its calls are decided under Approvals, where they still wait.', 'dim'))];
  if (run.status === 'AwaitingInput')
    return [line(span(' Waits for results of client-side tools: `acp run --tool-result` gives them.', 'warn'))];
  return [];
};

const errorLines = ({ error }: RunRecord): readonly Line[] => {
  if (error === null) return [];
  const reason = error.provider === undefined ? [] : [line(span(` ${providerReasonText(error.provider)}`, 'dim'))];
  return [line(span(` ${safeLine(`${error.type}: ${error.message}`)}`, 'bad')), ...reason];
};

const warningLines = ({ warnings }: RunRecord): readonly Line[] =>
  warnings === undefined
    ? []
    : [line(span(' The record is incomplete: the store did not take all events and results of this run.', 'warn'))];

const askedLine = (text: string): readonly Line[] => (text === '' ? [] : [line(span(' Asked: ', 'dim'), text)]);

/** What there is to say about the run: who, how it stands, what it used, and where it belongs. */
const head = (run: RunRecord, open: OpenRun, { now, asked, inbox }: ScreenState, width: number): readonly Line[] => {
  const cost = run.cost ?? open.timeline.cost;
  const version = run.agentVersion === null ? '' : ` v${run.agentVersion}`;
  const numbers = joined([
    durationText(run, now),
    usageText(run, open),
    costText(cost?.totalCost, cost?.currency),
    treeText(open.tree[0]?.node, open.tree.length),
  ]);
  const about = joined([shownId(run.id, width), ...aboutTexts(run, now, width)]);
  const title: Span[] = [span(` ${safeLine(run.agentName)}${version}`, 'strong'), span('  '), statusSpan(run)];
  return [
    line(...title, span(numbers === '' ? '' : ` · ${numbers}`)),
    line(span(` ${safeLine(about)}`, 'dim')),
    ...askedLine(asked.get(run.id) ?? ''),
    ...errorLines(run),
    ...warningLines(run),
    ...(open.scores.length === 0 ? [] : [scoresLine(open)]),
    ...waitingLine(run, open, inbox),
  ];
};

const treeColumns = (now: number): readonly Column<TreeRow>[] => [
  { heading: 'RUN', width: null, cell: ({ node, lead }) => span(`${lead}${safeLine(node.agentName)}`, 'strong') },
  { heading: 'STATUS', width: 16, from: 44, cell: ({ node }) => statusSpan(node) },
  { heading: 'TIME', width: 7, align: 'right', cell: ({ node }) => span(durationText(node, now)) },
  {
    heading: 'TOKENS',
    width: 8,
    align: 'right',
    from: 46,
    cell: ({ node }) => span(tokensText(node.usage?.totalTokens)),
  },
];

const treeView = (open: OpenRun, now: number, width: number, height: number): readonly Line[] => {
  const { row } = layOutColumns(treeColumns(now), width);
  const at = treeIndex(open);
  const start = windowStart(at, open.tree.length, height - 1);
  const running = open.tree.filter(({ node }) => isOpen(node)).length;
  const note = running === 0 ? '' : `${running} running`;
  const title = ruleLine(`Tree of ${open.tree.length} runs`, note, width, open.focus === 'tree' ? 'strong' : 'dim');
  const rows = open.tree.slice(start, start + height - 1).map((entry, index) => row(entry, start + index === at));
  return [title, ...rows];
};

const body = (open: OpenRun, now: number, width: number, height: number): readonly Line[] => {
  if (open.tree.length < 2) return timelineView(open, width, height);
  if (width >= twoColumnsFrom) {
    const own = Math.min(widestTree, Math.floor(width * treeShare));
    const events = timelineView(open, width - own - 3, height);
    return beside(fitHeight(treeView(open, now, own, height), height), events, own, width);
  }
  // At most a third, so that most of the screen is for what happens.
  const treeHeight = Math.min(open.tree.length + 1, Math.max(3, Math.floor(height / 3)));
  const tree = fitHeight(treeView(open, now, width, treeHeight), treeHeight);
  return [...tree, ...timelineView(open, width, height - treeHeight)];
};

export const runView = (state: ScreenState, width: number, height: number): readonly Line[] => {
  const { open, now } = state;
  if (open === null) return [];
  const run = shownRun(open);
  const top = run === null ? [line(span(` ${shownId(open.runId, width)}`, 'dim'))] : head(run, open, state, width);
  return [...top, ...body(open, now, width, height - top.length)];
};
