import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import { systemCode } from '../../core/files/system-code.ts';
import { type WebhookEventType, webhookEventTypes } from '../../features/webhooks/webhooks.schema.ts';
import { formatTime } from '../../text/format.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, collect, covers, type Invocation } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

interface ListenOptions {
  readonly events?: readonly string[];
  readonly port?: string;
  readonly publicUrl?: string;
  readonly secretConfigurationKey: string;
  readonly secretFile?: string;
}

// Summaries are some hundred bytes.
const maxBodyBytes = 262_144;

/** There is no option for the secret itself: command lines are public. */
const secretOf = async (session: Session, options: ListenOptions): Promise<string> => {
  if (options.secretFile !== undefined) {
    const text = await readFile(options.secretFile, 'utf8').catch((cause: unknown) => {
      throw new AcpError('validation-failed', `The secret file ${options.secretFile} cannot be read.`, { cause });
    });
    return text.replace(/\r?\n$/, '');
  }
  const stated = session.environment['ACP_WEBHOOK_SECRET'];
  if (stated) return stated;
  const key = options.secretConfigurationKey;
  const [{ resolveSecret }, { values }] = await Promise.all([
    import('../../core/config/index.ts'),
    readConfig(session),
  ]);
  const secret = resolveSecret(values, key);
  if (secret !== null) return secret;
  throw new AcpError(
    'validation-failed',
    `${key} has no value in the configuration here. Give the secret with --secret-file <path> or in ACP_WEBHOOK_SECRET.`,
  );
};

const portOf = ({ port = '0' }: ListenOptions): number => {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new AcpError('validation-failed', `--port is a number from 0 to 65535, not "${port}".`);
  return Number(port);
};

/** Null: it is too long. */
const bodyOf = async (request: IncomingMessage): Promise<string | null> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > maxBodyBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

/** `run.completed agentName=helper status=Completed …`, what is unknown left out. */
const membersOf = (data: unknown): string =>
  Object.entries(isRecord(data) ? data : {})
    .filter(([name, value]) => value !== null && name !== 'tenantId')
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');

const print = async ({ terminal, globals }: Session, id: string, body: string): Promise<void> => {
  if (globals.json) return terminal.writeJson(`${body}\n`);
  const { style } = terminal;
  const { type, timestamp, data } = JSON.parse(body) as { type: string; timestamp: string; data: unknown };
  const time = style.dim(formatTime(timestamp).slice(-8));
  await terminal.write(
    `${time} ${style.cyan(safeLine(type))} ${style.dim(safeLine(id))} ${safeLine(membersOf(data))}\n`,
  );
};

/** Takes deliveries, and prints those that carry a signature of the secret. */
const receive = (session: Session, secret: string) => {
  const headerOf = ({ headers }: IncomingMessage, name: string): string => String(headers[name] ?? '');
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { webhookFault } = await import('../../core/standard-webhooks.ts');
    const body = await bodyOf(request);
    if (body === null) return void response.writeHead(413).end();
    const id = headerOf(request, 'webhook-id');
    const headers = {
      id,
      timestamp: headerOf(request, 'webhook-timestamp'),
      signature: headerOf(request, 'webhook-signature'),
    };
    const fault = webhookFault([secret], headers, body, { now: Date.now() });
    response.writeHead(fault === null ? 204 : 401).end();
    if (fault === null) return print(session, id, body);
    session.terminal.note(`A request was refused: ${fault}.`);
  };
};

/** The webhook of this session, from its registration to the end of the work. */
const registered = async (
  client: Client,
  session: Session,
  url: string,
  { events = webhookEventTypes, secretConfigurationKey }: ListenOptions,
  work: () => Promise<unknown>,
): Promise<void> => {
  const name = `listen-${randomUUID().slice(0, 8)}`;
  const params = { name };
  await client.webhooks.save({
    params,
    // The service says which kind it does not know.
    body: { url, events: [...events] as WebhookEventType[], secretConfigurationKey },
  });
  const { terminal } = session;
  terminal.note(terminal.noteStyle.dim(`webhook ${name} sends to ${url}; Ctrl-C ends and removes it`));
  try {
    await work();
  } finally {
    await client.webhooks.remove({ params }).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      terminal.note(`The webhook ${name} was not removed: ${why} Remove it with: acp webhooks delete ${name}`);
    });
  }
};

const listen = async (session: Session, { options }: Invocation): Promise<number> => {
  const listening = options as unknown as ListenOptions;
  using interruption = leaveOnInterrupt();
  const signal = AbortSignal.any([interruption.signal, session.terminal.closed]);
  const port = portOf(listening);
  const secret = await secretOf(session, listening);
  const take = receive(session, secret);
  const server = createServer((request, response) => {
    // A sender that goes away in the middle is nobody's failure here.
    take(request, response).catch(() => response.destroy());
  }).listen(port, '127.0.0.1');
  await once(server, 'listening').catch((cause: unknown) => {
    const why = systemCode(cause) === 'EADDRINUSE' ? 'another program listens there' : systemCode(cause);
    throw new AcpError('validation-failed', `--port ${port} cannot be used: ${why}.`, { cause });
  });
  const url = listening.publicUrl ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    await session.connected(async ({ client, local }) => {
      if (local) throw new AcpError('cannot-connect', 'No service runs on this store, so nothing would be sent.');
      await registered(client, session, url, listening, async () => {
        if (!signal.aborted) await once(signal, 'abort');
      });
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return interruption.exitCode ?? 0;
};

/** `acp webhooks listen`: a receiver for the time that it runs. */
export const registerWebhooksListen = (webhooks: Command, host: CommandHost): void => {
  const command = webhooks
    .command('listen')
    .description('receive, verify and print webhook deliveries while the command runs')
    .option('--events <value>', 'kind of event; default: all (repeatable)', collect)
    .option('--port <n>', 'port on 127.0.0.1; default: a free one')
    .option('--public-url <url>', 'URL at which the service reaches that port; default: http://127.0.0.1 and the port')
    .option(
      '--secret-configuration-key <key>',
      'key of the signing secret in the configuration of the service',
      'Service:WebhookSecrets:listen',
    )
    .option(
      '--secret-file <path>',
      'file with the secret; default: ACP_WEBHOOK_SECRET, else its key in the local configuration',
    );
  covers(command, 'webhooks.save', 'webhooks.remove').action(host.act(listen));
};
