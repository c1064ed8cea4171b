import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import { fitText, safeLine } from '../../text/text-width.ts';
import { wrapText } from '../../text/wrap-text.ts';
import { choiceIndex, chosenRow } from '../state/choice.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { type Column, layOutColumns } from './columns.ts';
import { blank, fitHeight, type Line, line, ruleLine, span, windowStart } from './line.ts';
import { approvalText } from './long-text.ts';
import { ageText } from './run-cells.ts';

// Longer arguments are in the text below the list.
const summaryLength = 200;

/** What the call would do: the presenter's sentence, else its arguments. */
const summary = ({ presentation, arguments: args }: PendingApproval): string => {
  if (typeof presentation?.message === 'string' && presentation.message !== '') return safeLine(presentation.message);
  return args === null ? 'arguments not recorded' : fitText(safeLine(JSON.stringify(args)), summaryLength);
};

/** `in 3h`; time runs on after the last look at the service. */
const expiry = (expiresAt: string | null, now: number): string => {
  if (expiresAt === null) return 'never';
  const left = Date.parse(expiresAt) - now;
  return left <= 0 ? 'now' : `in ${ageText(new Date(now - left).toISOString(), now)}`;
};

const columns = (now: number): readonly Column<PendingApproval>[] => [
  { heading: 'TOOL', width: 20, cell: ({ toolName }) => span(safeLine(toolName), 'strong') },
  { heading: 'AGENT', width: 16, from: 64, cell: ({ agentName }) => span(safeLine(agentName)) },
  { heading: 'CALL', width: null, cell: (approval) => span(summary(approval)) },
  { heading: 'AGE', width: 4, align: 'right', cell: ({ createdAt }) => span(ageText(createdAt, now), 'dim') },
  {
    heading: 'EXPIRES',
    width: 7,
    align: 'right',
    from: 78,
    cell: ({ expiresAt }) => span(expiry(expiresAt, now), 'dim'),
  },
];

const emptyText = ({ inbox }: ScreenState): string => {
  if (inbox.refusal !== '') return inbox.refusal;
  return inbox.loaded ? 'Nothing waits for an approval.' : 'Reading the approvals …';
};

export const approvalsView = (state: ScreenState, width: number, height: number): readonly Line[] => {
  const { inbox, now } = state;
  const { heading, row } = layOutColumns(columns(now), width);
  const at = choiceIndex(inbox);
  const chosen = chosenRow(inbox);
  const detail = chosen === null ? [] : wrapText(approvalText(chosen), width - 2);
  const listHeight = Math.max(
    1,
    detail.length === 0 ? height - 1 : Math.min(inbox.rows.length, Math.floor(height / 2)),
  );
  const start = windowStart(at, inbox.rows.length, listHeight);
  const rows = inbox.rows
    .slice(start, start + listHeight)
    .map((approval, index) => row(approval, start + index === at));
  if (chosen === null) return [heading, blank, line(span(`  ${safeLine(emptyText(state))}`, 'dim'))];
  const left = height - 1 - listHeight - 1;
  const cut = detail.length > left ? [...detail.slice(0, left - 1), '… Enter shows all of it'] : detail;
  return [
    heading,
    ...fitHeight(rows, listHeight),
    ruleLine('Call', `${at + 1} of ${inbox.rows.length}`, width),
    ...cut.map((text) => line(`  ${text}`)),
  ];
};
