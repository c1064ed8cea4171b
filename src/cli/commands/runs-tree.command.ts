import type { Command } from 'commander';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { runSummary } from '../output/event-line.ts';
import { printReply } from '../output/print-reply.ts';
import type { Style, StyleName } from '../output/style.ts';
import { safeLine } from '../output/text-width.ts';

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

/** The tree as lines with branches. A run whose parent is cut off by the service's limit stands at the top. */
export const renderRunTree = (runs: readonly RunRecord[], style: Style): string => {
  const known = new Set(runs.map(({ id }) => id));
  const childrenOf = Map.groupBy(runs, ({ parentRunId }) =>
    parentRunId !== null && known.has(parentRunId) ? parentRunId : null,
  );
  const branch = (run: RunRecord, lead: string, isLast: boolean): string[] => [
    `${lead}${isLast ? '└─ ' : '├─ '}${describe(run, style)}`,
    ...below(run, `${lead}${isLast ? '   ' : '│  '}`),
  ];
  const below = (run: RunRecord, lead: string): string[] => {
    const children = childrenOf.get(run.id) ?? [];
    return children.flatMap((child, index) => branch(child, lead, index === children.length - 1));
  };
  const lines = (childrenOf.get(null) ?? []).flatMap((root) => [describe(root, style), ...below(root, '')]);
  return lines.map((line) => `${line}\n`).join('');
};

/** `acp runs tree`: a run with everything it called. */
export const registerRunsTree = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('tree')
    .description('show the whole run tree, from its root, whichever member is named')
    .argument('<run-id>');
  covers(command, 'runs.tree').action(
    host.act(async (session, { args }) => {
      const { terminal, globals } = session;
      const [runId] = args as [string];
      await session.connected(async ({ client }) => {
        const { body } = await client.runs.tree({ params: { runId } });
        if (globals.json) await printReply(terminal, body, { json: true });
        else await terminal.write(renderRunTree(body, terminal.style));
      });
      return undefined;
    }),
  );
};
