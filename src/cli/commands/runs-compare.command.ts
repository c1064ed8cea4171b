import type { Command } from 'commander';
import type { RunComparisonSide } from '../../features/runs/runs.schema.ts';
import { formatCost, formatDuration } from '../../text/format.ts';
import type { Style } from '../../text/style.ts';
import { safeText } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { renderTable } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';

const model = ({ modelProvider, modelId }: RunComparisonSide): string =>
  modelId === null ? '' : `${modelProvider ?? '?'}/${modelId}`;

const scoresOf = ({ scores }: RunComparisonSide): string =>
  scores.map(({ name, value, textValue }) => `${name} ${value ?? textValue ?? ''}`).join(', ');

/** What is shown of each run, line by line. */
const aspects: readonly (readonly [string, (side: RunComparisonSide) => string])[] = [
  ['agent', (side) => (side.agentVersion === null ? side.agentName : `${side.agentName} v${side.agentVersion}`)],
  ['model', model],
  ['status', (side) => side.status],
  ['error', (side) => side.errorClass ?? ''],
  ['duration', (side) => (side.durationMs === null ? '' : formatDuration(side.durationMs))],
  ['tokens', (side) => String(side.usage?.totalTokens ?? '')],
  ['cost', (side) => (side.cost?.totalCost == null ? '' : formatCost(side.cost.totalCost, side.cost.currency))],
  ['tool calls', (side) => String(side.toolCallCount)],
  ['scores', scoresOf],
  ['output', (side) => (side.output === null ? '' : `${side.output.length} characters`)],
];

type Names = readonly (readonly [name: 'A' | 'B', side: RunComparisonSide])[];

/** The ids stand above the table, whose columns they would fill on a narrow terminal. */
const headLines = (sides: Names, style: Style): string[] =>
  sides.map(([name, { runId, replayOfRunId }]) => {
    const source = sides.find(([, other]) => other.runId === replayOfRunId)?.[0];
    const replay = replayOfRunId === null ? '' : `  replay of ${source ?? replayOfRunId}`;
    return `${style.bold(name)}  ${runId}${replay}`;
  });

/** What each run said, or why it failed; an equal answer stands once. */
const answerLines = (sides: Names, style: Style): string[] => {
  const answers = sides.flatMap(([name, { output, errorMessage }]): [string, string][] => {
    const text = output ?? errorMessage;
    return text === null ? [] : [[name, text]];
  });
  const [first, second] = answers;
  if (first !== undefined && second !== undefined && first[1] === second[1])
    return ['', style.bold('A and B'), safeText(first[1])];
  return answers.flatMap(([name, text]) => ['', style.bold(name), safeText(text)]);
};

const rowsOf = (left: RunComparisonSide, right: RunComparisonSide) =>
  aspects.map(([aspect, show]) => ({
    aspect,
    A: show(left),
    B: show(right),
    // An answer of the same length may say something else.
    same: show(left) === show(right) && (aspect !== 'output' || left.output === right.output) ? 'yes' : 'no',
  }));

const renderComparison = (
  { left, right }: Readonly<Record<'left' | 'right', RunComparisonSide>>,
  terminal: Terminal,
): string => {
  const { style } = terminal;
  const sides: Names = [
    ['A', left],
    ['B', right],
  ];
  const table = renderTable(rowsOf(left, right), ['aspect', 'A', 'B', 'same'], terminal);
  const lines = [...headLines(sides, style), '', table.trimEnd(), ...answerLines(sides, style)];
  return lines.map((line) => `${line}\n`).join('');
};

/** `acp runs compare`: two runs side by side, and their answers below. */
export const registerRunsCompare = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('compare')
    .description('show two runs side by side, with their responses')
    .argument('<run-a>')
    .argument('<run-b>', 'second run, such as a replay of the first');
  covers(command, 'runs.compare').action(
    host.act(async ({ print, connected }, { args }) => {
      const [a, b] = args as [string, string];
      const { body } = await connected(({ client }) => client.runs.compare({ params: { a, b } }));
      await print(body, (terminal) => renderComparison(body, terminal));
    }),
  );
};
