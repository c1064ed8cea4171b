import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { TaskReading } from '../../providers/a2a/task-reading.ts';
import { safeLine, safeText } from '../../text/text-width.ts';
import type { CommandHost, Invocation } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import { answerText, authorizationVariable, taskReport, withRemoteAgent } from '../remote-agent.ts';
import type { Session } from '../session.ts';

const failedExitCode = 1;
const longestWaitMs = 3_600_000;

const noteEnd = ({ terminal }: Session, { task }: TaskReading): void => {
  if (task === null) return;
  terminal.note(terminal.noteStyle.dim(safeLine(`${task.state} · task ${task.id} · context ${task.contextId ?? '-'}`)));
};

/** Writes what the answer has grown by; one that is begun anew is written on a line of its own. */
const growing = ({ terminal }: Session) => {
  let written = '';
  return async (text: string): Promise<void> => {
    if (text === written) return;
    const isMore = text.startsWith(written);
    const more = isMore ? text.slice(written.length) : `\n${text}`;
    written = text;
    await terminal.write(safeText(more));
  };
};

const send = async (session: Session, { args, options }: Invocation, streams: boolean): Promise<number> => {
  const [address, text] = args as [string, string];
  const { terminal, globals, environment } = session;
  using interruption = leaveOnInterrupt();
  // Awaited: what is used is let go with the function, not with what it returns.
  return await withRemoteAgent(address, environment, async ({ client }) => {
    const write = growing(session);
    let line = Promise.resolve();
    let taskId: string | null = null;
    const asked = client.ask({
      text,
      messageId: (options['messageId'] as string | undefined) ?? randomUUID(),
      signal: AbortSignal.any([interruption.signal, terminal.closed]),
      timeoutMs: longestWaitMs,
      told(reading) {
        taskId = reading.task?.id ?? null;
        if (streams && !globals.json) line = line.then(() => write(answerText(reading)));
      },
    });
    const reading = await asked.catch(async (error: unknown) => {
      // Nobody waits for it any more.
      if (interruption.exitCode !== null && taskId !== null) await client.cancel(taskId);
      if (interruption.exitCode !== null) return null;
      throw error;
    });
    await line;
    if (reading === null) return interruption.exitCode ?? failedExitCode;
    if (globals.json) await session.print(taskReport(reading));
    else {
      if (!streams) await write(answerText(reading));
      await terminal.write('\n');
      noteEnd(session, reading);
    }
    return taskReport(reading).state === 'COMPLETED' ? 0 : failedExitCode;
  });
};

const onTask =
  (method: 'look' | 'end') =>
  async ({ environment, print }: Session, { args }: Invocation): Promise<void> => {
    const [address, taskId] = args as [string, string];
    await withRemoteAgent(address, environment, async ({ client }) => print(taskReport(await client[method](taskId))));
  };

/** `acp a2a card`, `send`, `stream`, `get` and `cancel`: for any agent, by the address of its card. */
export const registerA2a = (group: Command, host: CommandHost): void => {
  const byCard = (name: string, description: string): Command =>
    group
      .command(name)
      .description(description)
      .argument('<card-url>', 'address of the card; a credential for it is read from A2A_AUTHORIZATION')
      .addHelpText(
        'after',
        `\n${authorizationVariable} is the complete Authorization header; it is sent only to the origin of the card.`,
      );
  byCard('card', 'show the card of an agent of another system').action(
    host.act(({ environment, print }, { args }) =>
      withRemoteAgent(String(args[0]), environment, async ({ document }) => print(document)),
    ),
  );
  for (const streams of [false, true])
    byCard(
      streams ? 'stream' : 'send',
      streams
        ? 'send a message to an agent of another system and print its response as it streams'
        : 'send a message to an agent of another system and wait for its response',
    )
      .argument('<message>', 'message for the agent')
      .option('--message-id <id>', 'id of the message, by which agents can recognize a repeat; default: a new one')
      .action(host.act((session, invocation) => send(session, invocation, streams)));
  byCard('get', 'show a task of an agent of another system')
    .argument('<task-id>', 'task id of the agent')
    .action(host.act(onTask('look')));
  byCard('cancel', 'cancel a task of an agent of another system')
    .argument('<task-id>', 'task id of the agent')
    .action(host.act(onTask('end')));
};
