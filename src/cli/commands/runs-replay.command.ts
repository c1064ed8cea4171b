import { type Command, Option } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import { toolModes } from '../../features/replays/replays.schema.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { answerText } from '../runs/stream-run.ts';

const versionOf = (option: unknown): number | null => {
  if (option === undefined) return null;
  const version = Number(option);
  if (Number.isSafeInteger(version) && version > 0) return version;
  throw new AcpError('validation-failed', `--agent-version must be a whole number from 1 up, not "${String(option)}".`);
};

/** `provider/model`; a model alone stays with the definition's provider. Names of models may have slashes. */
const modelOf = (option: unknown): { modelProvider: string | null; modelId: string | null } => {
  if (typeof option !== 'string') return { modelProvider: null, modelId: null };
  const slash = option.indexOf('/');
  if (slash === -1) return { modelProvider: null, modelId: option };
  return { modelProvider: option.slice(0, slash), modelId: option.slice(slash + 1) };
};

/** `acp runs replay`: the recorded input of a run again. */
export const registerRunsReplay = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('replay')
    .description('replay the recorded input of a run and wait for the end')
    .argument('<run-id>')
    .addOption(
      new Option('--tools <mode>', 'source of tool results: the recording, nothing, or the tools themselves')
        .choices(toolModes)
        .default('ReplayTools'),
    )
    .option('--agent-version <n>', 'version of the agent; default: the active one')
    .option('--model <provider/model>', 'model to use instead of that of the definition')
    .addHelpText(
      'after',
      '\nThe service starts a new run, without a session, with only the input of that turn. LiveTools needs the role Admin.\n' +
        '`acp runs export` and `acp replay` replay a complete run tree without a model.\n',
    );
  covers(command, 'replays.create').action(
    host.act(async (session, { args, options }) => {
      const { terminal, globals } = session;
      const [runId] = args as [string];
      const body = {
        toolMode: options['tools'] as (typeof toolModes)[number],
        agentVersion: versionOf(options['agentVersion']),
        ...modelOf(options['model']),
      };
      await session.connected(async ({ client }) => {
        const reply = client.replays.create({ params: { runId }, body, signal: terminal.closed });
        const { body: replayed } = await reply.catch((error: unknown) => {
          const failed = error instanceof AcpError ? error.details.runId : undefined;
          if (failed !== undefined && !globals.json) terminal.note(`Run ${failed} failed: acp runs tail ${failed}`);
          throw error;
        });
        if (globals.json) return session.print(replayed);
        await terminal.write(`${answerText(session, replayed.output ?? '')}\n`);
        terminal.note(`Run ${replayed.runId} ended ${replayed.status}.`);
        terminal.note(`Compare: acp runs compare ${replayed.sourceRunId} ${replayed.runId}`);
      });
    }),
  );
};
