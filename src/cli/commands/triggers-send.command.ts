import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { InboundTrigger } from '../../features/triggers/triggers.schema.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { readText } from '../files/read-body.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

interface SendOptions {
  readonly data?: string;
  readonly file?: string;
  readonly id?: string;
  readonly secretFile?: string;
}

const bodyOf = ({ data, file }: SendOptions, { terminal }: Session): Promise<string> | string => {
  if (data !== undefined && file !== undefined)
    throw new AcpError('validation-failed', '--data and --file are two bodies: give one.');
  if (data !== undefined) return data;
  if (file !== undefined) return readText(file, terminal);
  throw new AcpError(
    'validation-failed',
    'Give the body with --data <text> or --file <path>; - is the standard input.',
  );
};

/** There is no option for the secret itself: command lines are public. */
const secretOf = async ({ secretFile }: SendOptions, trigger: InboundTrigger, session: Session): Promise<string> => {
  if (secretFile !== undefined) {
    const text = await readFile(secretFile, 'utf8').catch((cause: unknown) => {
      throw new AcpError('validation-failed', `The secret file ${secretFile} cannot be read.`, { cause });
    });
    return text.replace(/\r?\n$/, '');
  }
  const stated = session.environment['ACP_TRIGGER_SECRET'];
  if (stated) return stated;
  const [{ resolveSecret }, { values }] = await Promise.all([
    import('../../core/config/index.ts'),
    readConfig(session),
  ]);
  const secret = resolveSecret(values, trigger.secretConfigurationKey);
  if (secret !== null) return secret;
  throw new AcpError(
    'validation-failed',
    `${trigger.secretConfigurationKey} has no value in the configuration here. Give the secret with --secret-file <path> or in ACP_TRIGGER_SECRET.`,
  );
};

/** A 401 of a trigger is about its signature, and never about the credential of whoever sends. */
const withHint = (error: unknown, { name, enabled, resolved, secretConfigurationKey }: InboundTrigger): unknown => {
  if (!(error instanceof AcpError) || error.code !== 'unauthenticated') return error;
  const why = !enabled
    ? `The trigger ${name} is switched off.`
    : resolved
      ? `The secret must be that of ${secretConfigurationKey} at the service, and the clocks must agree.`
      : `${secretConfigurationKey} has no value at the service.`;
  return new AcpError('unauthenticated', `The trigger did not accept the signature. ${why}`, {
    cause: error,
    details: { hint: 'Give the secret of the trigger with --secret-file <path> or in ACP_TRIGGER_SECRET.' },
  });
};

/** `acp triggers send`: signs a call in the way of the trigger and sends it, as its real sender would. */
export const registerTriggersSend = (triggers: Command, host: CommandHost): void => {
  const command = triggers
    .command('send')
    .description('sign a call as its sender would and send it')
    .argument('<name>')
    .option('-d, --data <text>', 'the body')
    .option('-f, --file <path>', 'file with the body, sent unchanged; `-` is the standard input')
    .option('--id <id>', 'id of the call, if it is not in the body; default: a new one')
    .option(
      '--secret-file <path>',
      'file with the secret; default: ACP_TRIGGER_SECRET, else its key in the local configuration',
    );
  covers(command, 'triggers.accept').action(
    host.act(async (session, { args, options }) => {
      const [name] = args as [string];
      const sending = options as SendOptions;
      const body = await bodyOf(sending, session);
      await session.connected(async ({ client }) => {
        const { body: trigger } = await client.triggers.get({ params: { name } });
        const [secret, { webhookScheme }] = await Promise.all([
          secretOf(sending, trigger, session),
          import('../../core/webhook-schemes.ts'),
        ]);
        const message = { id: sending.id ?? randomUUID(), timestamp: Math.floor(Date.now() / 1000), body };
        const headers = webhookScheme[trigger.scheme].sign(secret, message);
        if (headers === null)
          throw new AcpError('validation-failed', 'The secret makes no key: it is empty, or no base64.');
        const { tenantId } = trigger;
        const call = { params: { tenantId, name }, headers, body };
        const reply = await client.triggers.accept(call).catch((error: unknown) => {
          throw withHint(error, trigger);
        });
        if (session.globals.json || reply.status === 200) return session.print(reply.body);
        const { runId } = reply.body;
        session.terminal.note(`Accepted: run ${runId} is queued. Follow it with \`acp runs tail ${runId}\`.`);
        await session.terminal.write(`${runId}\n`);
      });
    }),
  );
};
