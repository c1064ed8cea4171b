import type { Command } from 'commander';
import { errorTable } from '../../contract/errors.ts';
import type { JudgeRunResponse } from '../../features/judges/judges.schema.ts';
import { type CommandHost, covers } from '../command-host.ts';
import type { Session } from '../session.ts';

const columns = ['name', 'value', 'comment', 'evaluatorVersion', 'createdAt'];

const failedExitCode = errorTable['tool-failed'].exit;

const show = async ({ terminal, print }: Session, { scores, failures }: JudgeRunResponse): Promise<void> => {
  if (scores.length > 0) await print(scores, columns);
  else if (failures.length === 0)
    terminal.note('Nothing was scored: no judge has a verdict, or the run has no recorded input and output.');
  for (const { judgeName, errorType, isRetryable } of failures)
    terminal.note(`${judgeName} failed: ${errorType}${isRetryable ? '; it can be asked again' : ''}`);
};

/** `acp runs judge`: the scores as a table, and what went wrong on stderr. */
export const registerRunsJudge = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('judge')
    .description('have every judge score a completed run now; scoring it again replaces their scores')
    .argument('<run-id>')
    .addHelpText(
      'after',
      `\nJudges come with modules. Exit code ${failedExitCode}: a judge failed; the scores of the other judges are stored.\n`,
    );
  covers(command, 'judges.score').action(
    host.act(async (session, { args }) => {
      const [runId] = args as [string];
      const { body } = await session.connected(({ client }) => client.judges.score({ params: { runId } }));
      await (session.globals.json ? session.print(body) : show(session, body));
      return body.failures.length === 0 ? 0 : failedExitCode;
    }),
  );
};
