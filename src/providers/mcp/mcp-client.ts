import { mcpCodes } from '../../contract/mcp.ts';
import { OutboundError } from '../http/outbound-error.ts';
import type { Answer } from './channel.ts';
import { McpFailure } from './mcp-failure.ts';
import type { Connection, McpClient, McpClientDeps, McpRequestOptions, McpTarget } from './mcp-target.ts';
import { opensConnection } from './opening.ts';
import { createSender, farewellMs } from './sender.ts';

const canceled = (): McpFailure => new McpFailure('no-answer', { cause: new OutboundError('canceled') });

/** Rejects as soon as the signal is aborted or the time is over; the work goes on for others who wait for it. */
const within = <T>(
  work: Promise<T>,
  { signal, timeoutMs }: Pick<McpRequestOptions, 'signal' | 'timeoutMs'>,
): Promise<T> => {
  if (signal?.aborted === true) return Promise.reject(canceled());
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(canceled());
    const timer = setTimeout(
      () => reject(new McpFailure('no-answer', { cause: new OutboundError('timed-out') })),
      timeoutMs,
    );
    signal?.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    });
  });
};

const gone: ReadonlySet<number | null> = new Set([400, 404, 405]);
// What libraries answer for a session that they do not know, or a request before one.
const noSession: ReadonlySet<number | null> = new Set([-32000, -32001]);

// Statuses other than 404 for a session that the server has lost: it has not processed the request.
const lost: ReadonlySet<number | null> = new Set([401, 410]);
/** In an answer that succeeds; the number stands for a request that took too long as well. */
const sessionNotFound = -32_001;
const calls: ReadonlySet<string> = new Set(['tools/call', 'tasks/update', 'tasks/cancel']);

// After what came too long nothing more is read.
const cuts: ReadonlySet<string | null> = new Set(['unreachable', 'response-too-large']);

/** Whether a server has refused a request for how it was spoken to: it has not looked at what was asked. */
const refusesManner = (inSession: boolean, { kind, code, status }: McpFailure): boolean => {
  if (kind === 'rpc' && code === mcpCodes.unsupportedVersion) return true;
  if (kind === 'http' && gone.has(status)) return true;
  if (inSession && lost.has(status)) return true;
  if (kind !== 'rpc') return false;
  if (inSession && status === 404) return true;
  return gone.has(status) && noSession.has(code);
};

/** Whether a server may have lost the session, by an answer that has other meanings as well. */
const mayHaveLost = ({ code, status }: McpFailure): boolean =>
  (status ?? 0) >= 500 || (code === sessionNotFound && (status === null || status === 200));

export const createMcpClient = (target: McpTarget, deps: McpClientDeps): McpClient => {
  const sender = createSender(target, deps);
  const open = opensConnection(target, deps, sender);
  // What is said both ways lasts as long as one stream, or one process.
  const isKept = target.transport === 'Sse' || target.channel !== undefined;
  const closing = new AbortController();
  let opened: Connection | null = null;
  let opening: Promise<Connection> | null = null;

  const connect = (): Promise<Connection> => {
    opening ??= open(closing.signal)
      .then((connection) => {
        if (closing.signal.aborted) {
          connection.channel.close();
          throw canceled();
        }
        opened = connection;
        return connection;
      })
      .finally(() => {
        opening = null;
      });
    opening.catch(() => undefined);
    return opening;
  };
  const current = async (limits: Pick<McpRequestOptions, 'signal' | 'timeoutMs'>): Promise<Connection> => {
    // It has ended while nobody used it: no call is lost with it.
    if (opened?.channel.isOpen() === false) opened = null;
    return opened ?? within(connect(), limits);
  };
  const forget = (connection: Connection): void => {
    if (opened === connection) opened = null;
    connection.channel.close();
  };

  const send = (connection: Connection, ...request: Parameters<McpClient['request']>): Promise<Answer> =>
    connection.generation === 'Stateless'
      ? sender.stateless(connection.channel, ...request)
      : sender.inSession(connection, ...request);
  /**
   * Leaves a connection that is of no more use. True: the request may be sent over another one, since the server refused
   * its form and did not process it, or it only reads, so that no call is made twice.
   */
  const leaves = (connection: Connection, method: string, error: unknown): boolean => {
    if (!(error instanceof McpFailure)) return false;
    const inSession = connection.sessionId !== null || target.transport === 'Sse';
    const isRefused = refusesManner(inSession, error);
    const isCut = isKept && cuts.has(error.outbound);
    const isLost = inSession && mayHaveLost(error);
    if (isRefused || isCut || isLost) forget(connection);
    return isRefused || (isLost && !calls.has(method));
  };

  return {
    session: current,
    renew() {
      if (!isKept && opened?.sessionId !== null) opened = null;
    },
    async request(method, params, options) {
      const endsAt = performance.now() + options.timeoutMs;
      for (let attempt = 1; ; attempt += 1) {
        const connection = await current(options);
        const timeoutMs = Math.max(1, Math.ceil(endsAt - performance.now()));
        try {
          return (await send(connection, method, params, { ...options, timeoutMs })).result;
        } catch (error) {
          if (!leaves(connection, method, error) || attempt > 1) throw error;
        }
      }
    },
    async close() {
      closing.abort();
      const connection = opened;
      opened = null;
      await target.stop?.();
      if (connection === null) return;
      connection.channel.close();
      if (connection.sessionId === null) return;
      try {
        await deps.http.request({
          method: 'DELETE',
          url: new URL(target.endpoint),
          headers: sender.sessionHeaders(await sender.ownHeaders(), connection),
          timeoutMs: farewellMs,
          maxBodyBytes: 1024,
          dropBody: true,
        });
      } catch {
        // Best effort: a server forgets a session by itself.
      }
    },
  };
};
