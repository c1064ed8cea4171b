import process from 'node:process';
import type { Client } from '../../client/client.ts';
import type { Transport } from '../../client/transport.ts';
import { AcpError } from '../../contract/errors.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import { globalWords, shellLine } from '../runs/next-commands.ts';
import type { Session } from '../session.ts';

/** `127.0.0.1:7070`: what tells services apart, without what all addresses share. */
const nameOf = ({ target }: Transport, local: boolean): string => {
  if (target !== null) return target.replace(/^https?:\/\//, '');
  return local ? 'store of this folder, no service' : 'shared store';
};

/** What the command line says of the run that the screens were left with, and what it can be asked next. */
const goOn = async ({ terminal, globals, print }: Session, client: Client, runId: string): Promise<void> => {
  const command = (verb: string): string => shellLine(['acp', 'runs', verb, runId, ...globalWords(globals)]);
  terminal.note(terminal.noteStyle.dim(`$ ${command('get')}`));
  const { body } = await client.runs.get({ params: { runId } });
  await print(body);
  terminal.note(['', ...['tail', 'tree', 'tools', 'trace'].map(command)].join('\n'));
};

const show = async (session: Session): Promise<number> => {
  const { terminal } = session;
  if (!terminal.interactive || process.stdin.isTTY !== true)
    throw new AcpError(
      'validation-failed',
      'The screens need a terminal. `acp runs list` and `acp runs tail` write to files and pipes.',
    );
  using interruption = leaveOnInterrupt();
  const signal = AbortSignal.any([interruption.signal, terminal.closed]);
  await session.connected(async ({ client, transport, local }) => {
    // A service that is not there, or that refuses, is told as every command tells it.
    await client.runs.list({ query: { take: 1 }, signal });
    const { openScreens } = await import('../../tui/index.ts');
    const target = nameOf(transport, local);
    const runId = await openScreens({ client, target, color: terminal.colored, signal });
    if (runId !== null) await goOn(session, client, runId);
  });
  return interruption.exitCode ?? 0;
};

/** `acp tui`: runs, their events and approvals on the terminal, live. */
export const registerTui = (host: CommandHost): void => {
  const command = host.program
    .command('tui')
    .description('watch runs live on the terminal: events, cost, approvals, jobs; keys cancel and score');
  covers(command, 'runs.list', 'runs.tree', 'runs.events').action(host.act(show));
};
