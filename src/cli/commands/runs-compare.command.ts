import type { Command } from 'commander';
import type { RunComparisonSide } from '../../features/runs/runs.schema.ts';
import { formatCost, formatDuration } from '../../text/format.ts';
import { safeText } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { printReply } from '../output/print-reply.ts';
import { renderTable } from '../output/table.ts';

const model = ({ modelProvider, modelId }: RunComparisonSide): string =>
  modelId === null ? '' : `${modelProvider ?? '?'}/${modelId}`;

const scores = ({ scores: given }: RunComparisonSide): string =>
  given.map(({ name, value, textValue }) => `${name} ${value ?? textValue ?? ''}`).join(', ');

/** What is shown of each run, line by line. */
const aspects: readonly (readonly [string, (side: RunComparisonSide) => string])[] = [
  ['agent', (side) => (side.agentVersion === null ? side.agentName : `${side.agentName} v${side.agentVersion}`)],
  ['model', model],
  ['status', (side) => side.status],
  ['duration', (side) => (side.durationMs === null ? '' : formatDuration(side.durationMs))],
  ['tokens', (side) => String(side.usage?.totalTokens ?? '')],
  ['cost', (side) => (side.cost?.totalCost == null ? '' : formatCost(side.cost.totalCost, side.cost.currency))],
  ['tool calls', (side) => String(side.toolCallCount)],
  ['error', (side) => (side.errorClass === null ? '' : `${side.errorClass}: ${side.errorMessage ?? ''}`)],
  ['replay of', (side) => side.replayOfRunId ?? ''],
  ['scores', scores],
];

const rowsOf = (left: RunComparisonSide, right: RunComparisonSide) =>
  aspects.map(([aspect, show]) => ({
    aspect,
    [left.runId]: show(left),
    // Under one id there is one column.
    ...(left.runId === right.runId ? {} : { [right.runId]: show(right) }),
    same: show(left) === show(right) ? 'yes' : 'no',
  }));

/** `acp runs compare`: two runs side by side, and their answers below. */
export const registerRunsCompare = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('compare')
    .description('show two runs side by side')
    .argument('<run-a>')
    .argument('<run-b>');
  covers(command, 'runs.compare').action(
    host.act(async (session, { args }) => {
      const { terminal, globals } = session;
      const [a, b] = args as [string, string];
      await session.connected(async ({ client }) => {
        const { body } = await client.runs.compare({ params: { a, b } });
        if (globals.json) return printReply(terminal, body, { json: true });
        const { left, right } = body;
        const rows = rowsOf(left, right);
        const { style, width } = terminal;
        await terminal.write(
          renderTable(rows, [...new Set(['aspect', left.runId, right.runId, 'same'])], { style, width }),
        );
        for (const side of new Set([left, right]))
          if (side.output !== null) await terminal.write(`\n${style.bold(side.runId)}\n${safeText(side.output)}\n`);
        return undefined;
      });
      return undefined;
    }),
  );
};
