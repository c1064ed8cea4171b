import type { Command } from 'commander';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import type { Session } from '../session.ts';

const decide =
  (approved: boolean) =>
  async ({ terminal, globals, print, connected }: Session, { args, options }: Invocation): Promise<void> => {
    const [id] = args as [string];
    const { reason } = options as { readonly reason?: string };
    const body = { approved, ...(reason === undefined ? {} : { reason }) };
    await connected(async ({ client, local }) => {
      const { body: decided } = await client.approvals.decide({ params: { id }, body });
      await print(decided);
      if (globals.json) return;
      const { continuationRunId, toolName } = decided;
      if (continuationRunId === null)
        terminal.note(`${decided.status} ${toolName}. The run goes on when its other calls are decided.`);
      else terminal.note(`${decided.status} ${toolName}. Follow it with: acp runs tail ${continuationRunId}`);
      if (local && continuationRunId !== null)
        terminal.note('It goes on when a service runs on this store: `acp serve`.');
    });
  };

/** `acp approvals approve` and `reject`: a person's decision about a call that waits. */
export const registerApprovals = (approvals: Command, host: CommandHost): void => {
  for (const [name, approved, what] of [
    ['approve', true, 'approve a waiting tool call'],
    ['reject', false, 'reject a waiting tool call and inform the model'],
  ] as const) {
    const command = approvals
      .command(name)
      .description(what)
      .argument('<id>', 'id from `acp approvals list`')
      .option(
        '--reason <text>',
        approved ? 'reason to store with the decision' : 'reason to store with the decision and send to the model',
      );
    covers(command, 'approvals.decide').action(host.act(decide(approved)));
  }
};
