import type { Command } from 'commander';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { runSummary } from '../../text/event-line.ts';
import { runTree } from '../../text/run-tree.ts';
import type { Style, StyleName } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';

const statusStyles: Partial<Readonly<Record<RunRecord['status'], StyleName>>> = {
  Completed: 'green',
  Failed: 'red',
  Canceled: 'yellow',
  AwaitingApproval: 'yellow',
  AwaitingInput: 'yellow',
};

const styledStatus = ({ status }: RunRecord, style: Style): string => {
  const name = statusStyles[status];
  return name === undefined ? status : style[name](status);
};

const describe = (run: RunRecord, style: Style): string =>
  [style.bold(safeLine(run.agentName)), styledStatus(run, style), runSummary({ ...run }), style.dim(run.id)]
    .filter((part) => part !== '')
    .join('  ');

/** The tree as lines with branches. */
export const renderRunTree = (runs: readonly RunRecord[], style: Style): string =>
  runTree(runs)
    .map(({ node, lead }) => `${lead}${describe(node, style)}\n`)
    .join('');

/** `acp runs tree`: a run with everything it called. */
export const registerRunsTree = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('tree')
    .description('show the complete run tree from its root, given any run of it')
    .argument('<run-id>');
  covers(command, 'runs.tree').action(
    host.act(async ({ print, connected }, { args }) => {
      const [runId] = args as [string];
      const { body } = await connected(({ client }) => client.runs.tree({ params: { runId } }));
      await print(body, ({ style }) => renderRunTree(body, style));
    }),
  );
};
