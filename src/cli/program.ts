import process from 'node:process';
import { Command, CommanderError } from 'commander';
import { AcpError } from '../contract/errors.ts';
import { environment } from '../core/environment.ts';
import { version } from '../core/version.ts';
import { operations } from '../operations.ts';
import { type CommandAction, type CommandHost, childOf, collect } from './command-host.ts';
import { operateHeading, registerCommands } from './commands/index.ts';
import { completionWord } from './completion/completion-script.ts';
import { connect } from './connect.ts';
import { addGeneratedCommands } from './generate.ts';
import { reportError } from './output/error-report.ts';
import { printReply } from './output/print-reply.ts';
import { notePlain } from './output/store-note.ts';
import { OutputClosedError, openTerminal } from './output/terminal.ts';
import type { GlobalOptions, Session } from './session.ts';

const usageExitCode = 2;

interface ProgramState {
  exitCode: number;
}

const openSession = (globals: GlobalOptions): Session => {
  const variables = environment();
  const terminal = openTerminal({ color: globals.color, environment: variables });
  const target = { globals, environment: variables, cwd: process.cwd() };
  const note = (text: string): void => notePlain({ terminal, globals }, text);
  return {
    ...target,
    terminal,
    print: (body, shown) => printReply(terminal, globals.json, body, shown),
    connected: (work, access = 'work') => connect(target, work, { access, note }),
  };
};

const createProgram = (): Command =>
  new Command('acp')
    .description('Agent Control Plane: runs AI agents for a team and keeps them under control')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option('--url <url>', 'address of the service (ACP_URL); default: the owner of the store, else this process')
    .option('--token-file <path>', 'file with the token or API key; ACP_TOKEN works too')
    .option('--json', "print the service's JSON")
    .option('--config <path>', 'configuration file; default: service.yaml when there is one (ACP_CONFIG)')
    .option('--set <key=value>', 'one setting, such as Service:Scheduling:Enabled=false (repeatable)', collect)
    .option('--no-color', 'plain text; NO_COLOR works too')
    .usage('[options] <command>');

const globalOptions = (program: Command): GlobalOptions => {
  const options = program.opts<Partial<GlobalOptions>>();
  return { ...options, json: options.json ?? false, set: options.set ?? [], color: options.color ?? true };
};

/** The command of some words. Throws for words that are no command. */
const commandAt = (program: Command, words: readonly string[]): Command =>
  words.reduce((parent, word, index) => {
    const child = childOf(parent, word);
    if (child !== undefined) return child;
    const name = ['acp', ...words.slice(0, index)].join(' ');
    throw new AcpError('validation-failed', `There is no command "${word}" in \`${name}\`; see \`${name} --help\`.`);
  }, program);

/** The whole command tree. `state` receives the exit code of the command that ran. */
export const buildProgram = (state: ProgramState = { exitCode: 0 }): Command => {
  const program = createProgram();
  const act =
    (action: CommandAction) =>
    async (...raw: unknown[]): Promise<void> => {
      const command = raw.at(-1) as Command;
      const session = openSession(globalOptions(program));
      const call = action(session, { args: command.processedArgs, options: command.opts() });
      const exitCode = await call.catch(async (error: unknown) => {
        if (session.globals.json) throw error;
        const { namedInputFault } = await import('./input-faults.ts');
        throw namedInputFault(error, command);
      });
      state.exitCode = exitCode ?? 0;
    };
  const host: CommandHost = { program, act };
  registerCommands(host);
  program.helpCommand(false);
  program
    .command('help')
    .argument('[command...]', 'its words, such as `runs tail`')
    .description('print help of a command')
    .helpGroup(operateHeading)
    .action((words: readonly string[]) => commandAt(program, words).outputHelp());
  addGeneratedCommands(host, operations);
  return program;
};

const globalOptionsNote =
  '\nEvery command takes --url, --token-file, --json, --config, --set and --no-color; see `acp --help`.\n';

/** Makes every command throw instead of ending the process, and leave usage errors to the report below. */
const takeOverExit = (command: Command): void => {
  command.exitOverride().configureOutput({ outputError: () => undefined });
  for (const child of command.commands) {
    child.addHelpText('after', globalOptionsNote);
    takeOverExit(child);
  }
};

const usageError = (error: CommanderError): AcpError =>
  new AcpError('validation-failed', error.message.replace(/^error: /, ''));

const report = (error: unknown, globals: GlobalOptions): number => {
  if (error instanceof OutputClosedError) return 0;
  if (error instanceof CommanderError) {
    // Help that was asked for, or printed because a group was named without a command.
    if (error.code.startsWith('commander.help') || error.code === 'commander.version')
      return error.exitCode === 0 ? 0 : usageExitCode;
    return report(usageError(error), globals);
  }
  const terminal = openTerminal({ color: globals.color, environment: environment() });
  const told = reportError(error);
  if (globals.json) terminal.noteJson(JSON.stringify(told.problem, null, 2));
  else terminal.note(told.text(terminal.noteStyle));
  if (told.exitCode === 1 && error instanceof Error && (environment()['ACP_DEBUG'] ?? '') !== '')
    terminal.note(error.stack ?? '');
  return told.exitCode;
};

/** Help and versions are written without a terminal; a reader that leaves early, such as `head`, is no error there either. */
const watchStreams = (): void => {
  const { stdout, stderr } = process;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && stdout.listenerCount('error') === 1) throw error;
  });
  stderr.on('error', () => undefined);
};

/**
 * Runs one command line, `process.argv` as it is, and gives the process its exit code: 0, the code of the error table,
 * 2 for a wrong command line, 130 or 143 after an interrupt.
 */
export const run = async (argv: readonly string[]): Promise<number> => {
  const state: ProgramState = { exitCode: 0 };
  const program = buildProgram(state);
  watchStreams();
  if (argv[2] === completionWord) {
    const { answerShell } = await import('./completion/complete.ts');
    return answerShell(program, argv.slice(4), { environment: environment(), cwd: process.cwd() });
  }
  takeOverExit(program);
  try {
    await program.parseAsync([...argv]);
    return state.exitCode;
  } catch (error) {
    return report(error, globalOptions(program));
  }
};
