import { setTimeout as pause } from 'node:timers/promises';
import { AcpError } from '../../contract/errors.ts';
import type { CommandHost } from '../command-host.ts';
import { servingAddress } from '../connect.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

const pollMs = 100;
const requestTimeoutMs = 2000;
const maxSeconds = 3600;

const secondsOf = (text: string): number => {
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (seconds > 0 && seconds <= maxSeconds) return seconds;
  throw new AcpError('validation-failed', `--timeout is a number of seconds up to ${maxSeconds}, not "${text}".`);
};

/** Where the service answers: `--url`, else the owner of the configured store, else `Host:Url`; null: it has not started yet. */
const addressOf = async (session: Session): Promise<string | null> => {
  const { url = session.environment['ACP_URL'] ?? '' } = session.globals;
  if (url !== '') return url.replace(/\/+$/, '');
  const { Host, Service } = (await readConfig(session)).values;
  // The lock of a store file names its service; stores on a server, and in memory, have no such file.
  if (Service.Persistence.Provider === 'Sqlite') return (await servingAddress(session))?.url ?? null;
  return `${Host.Url.replace(/\/+$/, '')}${Host.Prefix}`;
};

/** Status of an answer, without its body; null: no response came. */
const statusOf = async (url: string): Promise<number | null> => {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(requestTimeoutMs), redirect: 'manual' });
    await answer.body?.cancel();
    return answer.status;
  } catch {
    // Not listening yet, or not any more: the next poll tells.
    return null;
  }
};

const readyPath = async (session: Session): Promise<string> => {
  const named = session.globals.url ?? session.environment['ACP_URL'] ?? '';
  return named === '' ? ((await readConfig(session)).values.Host.Health.ReadyPath ?? '') : '/health/ready';
};

/** Whether a service takes requests: by its readiness, or by its metadata where it has no such route. */
const isReady = async (url: string, path: string): Promise<boolean> => {
  if (path !== '') {
    const status = await statusOf(new URL(path, url).href);
    if (status !== 404) return status === 200;
  }
  return (await statusOf(`${url}/api/meta`)) === 200;
};

const wait = async (session: Session, seconds: number): Promise<void> => {
  const path = await readyPath(session);
  const { closed } = session.terminal;
  const deadline = performance.now() + seconds * 1000;
  let url: string | null = null;
  for (;;) {
    url = await addressOf(session);
    if (url !== null && (await isReady(url, path))) break;
    if (performance.now() >= deadline) {
      const where = url === null ? 'The configured store has no service' : `${url} was not ready`;
      throw new AcpError(
        'cannot-connect',
        `${where} after ${seconds} s. Start it with \`acp serve\`, name another address with --url, or wait longer with --timeout.`,
      );
    }
    await pause(pollMs, undefined, { signal: closed });
  }
  if (session.globals.json) await session.terminal.writeJson(`${JSON.stringify({ url })}\n`);
};

/** `acp wait`: until the service takes requests, for scripts that start it in the background. */
export const registerWait = (host: CommandHost): void => {
  host.program
    .command('wait')
    .description('wait until the service of this configuration, or of --url, accepts requests')
    .option('--timeout <seconds>', 'maximum time to wait', '60')
    .action(host.act((session, { options }) => wait(session, secondsOf(String(options['timeout'])))));
};
