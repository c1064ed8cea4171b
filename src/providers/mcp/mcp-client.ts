import { handshakeVersions, mcpCodes, mcpMeta, statelessVersion } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';
import type { OutboundHttp } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import type { Answer, Channel, SendOptions } from './channel.ts';
import { httpChannel } from './http-channel.ts';
import { McpFailure } from './mcp-failure.ts';
import { type ChosenVersion, handshake, versionOfDiscovery, versionOfFailure } from './negotiation.ts';
import { openSseChannel } from './sse-channel.ts';
import { encodeHeaderValue } from './wire/header-value.ts';
import { type McpGeneration, mcpHeader, twoEndpointVersion } from './wire/protocol.ts';

/** A server as it is to be reached. */
export interface McpTarget {
  readonly endpoint: string;
  readonly transport: 'StreamableHttp' | 'Sse';
  readonly protocol: 'Auto' | McpGeneration;
  readonly headers: Readonly<Record<string, string>>;
  /** The whole Authorization header; null: none is sent. Asked for each request. Throws McpFailure. */
  authorization(): Promise<string | null>;
  /** The server has refused this one. True: there is another by now, and the request is sent once more. Throws McpFailure. */
  renewed?(refused: string): Promise<boolean>;
  /** The server has refused a request with 403, and says why (`WWW-Authenticate`). */
  forbidden?(challenge: string): void;
}

/** What is known of a server once it was reached. */
export interface McpSession {
  readonly generation: McpGeneration;
  readonly version: string;
  readonly serverName: string | null;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

export interface McpRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** For connecting and the whole call. */
  readonly timeoutMs: number;
  /** Tool or prompt, URI of a resource: what the request is about. */
  readonly name?: string;
  /** Further headers of the stateless generation. */
  readonly parameterHeaders?: Readonly<Record<string, string>>;
  readonly traceparent?: string | undefined;
}

/** One server. Everything throws McpFailure only. */
export interface McpClient {
  /** Reaches it, unless that has been done. */
  session(options: Pick<McpRequestOptions, 'signal' | 'timeoutMs'>): Promise<McpSession>;
  request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpRequestOptions,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Ends its session, best effort. */
  close(): Promise<void>;
}

export interface McpClientDeps {
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly connectTimeoutMs: number;
  readonly maxAnswerBytes: number;
}

interface Connection extends McpSession {
  readonly channel: Channel;
  readonly sessionId: string | null;
}

// Nobody waits for what is said with it.
const farewellMs = 2000;

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

const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

const nameOf = (info: unknown): string | null => {
  const { name } = record(info) as { readonly name?: unknown };
  return typeof name === 'string' ? name.slice(0, 200) : null;
};

const gone: ReadonlySet<number | null> = new Set([400, 404, 405]);
// What libraries answer for a session that they do not know, or a request before one.
const noSession: ReadonlySet<number | null> = new Set([-32000, -32001]);

/** Whether a server has refused a request for how it was spoken to: it has not looked at what was asked. */
const refusesManner = ({ sessionId }: Connection, { kind, code, status }: McpFailure): boolean => {
  if (kind === 'rpc' && code === mcpCodes.unsupportedVersion) return true;
  if (kind === 'http' && gone.has(status)) return true;
  if (kind !== 'rpc') return false;
  if (sessionId !== null && status === 404) return true;
  return gone.has(status) && noSession.has(code);
};

export const createMcpClient = (target: McpTarget, deps: McpClientDeps): McpClient => {
  const url = new URL(target.endpoint);
  let opened: Connection | null = null;
  let opening: Promise<Connection> | null = null;
  let nextId = 1;

  const ownHeaders = async (): Promise<Record<string, string>> => {
    const authorization = await target.authorization();
    return { ...target.headers, ...(authorization === null ? {} : { authorization }) };
  };
  /** One message with the credential of now; one that the server refuses for it is sent again with a renewed one, since nobody has looked at it. */
  const authorized = async <T>(send: (own: Readonly<Record<string, string>>) => Promise<T>): Promise<T> => {
    const own = await ownHeaders();
    try {
      return await send(own);
    } catch (error) {
      const { authorization } = own;
      if (error instanceof McpFailure && error.status === 403 && error.challenge !== null)
        target.forbidden?.(error.challenge);
      if (!(error instanceof McpFailure) || error.kind !== 'unauthorized' || authorization === undefined) throw error;
      if ((await target.renewed?.(authorization)) !== true) throw error;
      return send(await ownHeaders());
    }
  };
  const meta = (version: string, traceparent?: string) => ({
    [mcpMeta.protocolVersion]: version,
    [mcpMeta.clientInfo]: deps.clientInfo,
    [mcpMeta.clientCapabilities]: {},
    ...(traceparent === undefined ? {} : { traceparent }),
  });

  const sendStateless = async (
    channel: Channel,
    method: string,
    params: Readonly<Record<string, unknown>>,
    { name, parameterHeaders, traceparent, signal, timeoutMs }: McpRequestOptions,
  ): Promise<Answer> =>
    authorized((own) =>
      channel.request(
        {
          jsonrpc: '2.0',
          id: nextId++,
          method,
          params: { ...params, _meta: meta(statelessVersion, traceparent) },
        },
        {
          headers: {
            ...own,
            [mcpHeader.version]: statelessVersion,
            [mcpHeader.method]: method,
            ...(name === undefined ? {} : { [mcpHeader.name]: encodeHeaderValue(name) }),
            ...parameterHeaders,
          },
          signal,
          timeoutMs,
          answersRequests: false,
        },
      ),
    );

  const sessionHeaders = (
    own: Readonly<Record<string, string>>,
    { version, sessionId }: Pick<Connection, 'version' | 'sessionId'>,
  ) => ({
    ...own,
    [mcpHeader.version]: version,
    ...(sessionId === null ? {} : { [mcpHeader.session]: sessionId }),
  });

  const sendInSession = (
    connection: Connection,
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpRequestOptions,
  ): Promise<Answer> =>
    authorized((own) => sendWith(sessionHeaders(own, connection), connection, method, params, options));

  const sendWith = async (
    headers: Readonly<Record<string, string>>,
    connection: Connection,
    method: string,
    params: Readonly<Record<string, unknown>>,
    { traceparent, signal, timeoutMs }: McpRequestOptions,
  ): Promise<Answer> => {
    const id = nextId++;
    const options: SendOptions = { headers, signal, timeoutMs, answersRequests: true };
    const withTrace = traceparent === undefined ? params : { ...params, _meta: { traceparent } };
    try {
      return await connection.channel.request({ jsonrpc: '2.0', id, method, params: withTrace }, options);
    } catch (error) {
      const given = error instanceof McpFailure ? error.outbound : null;
      if (given === 'canceled' || given === 'timed-out')
        connection.channel
          .notify(
            { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } },
            { headers: options.headers, timeoutMs: farewellMs, answersRequests: false },
          )
          // Best effort: the stream is closed already.
          .catch(() => undefined);
      throw error;
    }
  };

  const initialize = async (asked: ChosenVersion): Promise<Connection> => {
    const timeoutMs = deps.connectTimeoutMs;
    const isTwoEndpoint = target.transport === 'Sse';
    const channel = isTwoEndpoint
      ? await authorized((headers) =>
          openSseChannel({ ...deps, url, headers, maxBytes: deps.maxAnswerBytes, timeoutMs }),
        )
      : httpChannel({ ...deps, url, maxBytes: deps.maxAnswerBytes });
    try {
      const { result, headers } = await authorized((own) =>
        channel.request(
          {
            jsonrpc: '2.0',
            id: nextId++,
            method: 'initialize',
            params: { protocolVersion: asked.version, capabilities: {}, clientInfo: deps.clientInfo },
          },
          { headers: own, timeoutMs, answersRequests: true },
        ),
      );
      const version = result['protocolVersion'];
      const spoken: readonly unknown[] = isTwoEndpoint ? [...handshakeVersions, twoEndpointVersion] : handshakeVersions;
      if (typeof version !== 'string' || !spoken.includes(version)) throw new McpFailure('no-common-version');
      const connection: Connection = {
        channel,
        generation: 'Handshake',
        version,
        sessionId: headers[mcpHeader.session] ?? null,
        serverName: nameOf(result['serverInfo']),
        capabilities: record(result['capabilities']),
      };
      await channel.notify(
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        { headers: sessionHeaders(await ownHeaders(), connection), timeoutMs, answersRequests: true },
      );
      return connection;
    } catch (error) {
      channel.close();
      throw error;
    }
  };

  const discover = async (isSecond = false): Promise<Connection> => {
    const channel = httpChannel({ ...deps, url, maxBytes: deps.maxAnswerBytes });
    let chosen: ChosenVersion;
    try {
      const { result } = await sendStateless(channel, 'server/discover', {}, { timeoutMs: deps.connectTimeoutMs });
      chosen = versionOfDiscovery(result);
      if (chosen.generation === 'Stateless')
        return {
          channel,
          generation: 'Stateless',
          version: statelessVersion,
          sessionId: null,
          serverName: nameOf(record(result['_meta'])[mcpMeta.serverInfo] ?? result['serverInfo']),
          capabilities: record(result['capabilities']),
        };
    } catch (error) {
      const told = error instanceof McpFailure ? versionOfFailure(error) : null;
      if (told === null) throw error;
      chosen = told;
    }
    // It refuses the version and names it as one of its own: asked once more, and not a third time.
    if (chosen.generation === 'Stateless' && !isSecond) return discover(true);
    if (target.protocol === 'Stateless' || chosen.generation === 'Stateless') throw new McpFailure('no-common-version');
    return initialize(chosen);
  };

  const connect = (): Promise<Connection> => {
    opening ??= (target.protocol === 'Handshake' || target.transport === 'Sse' ? initialize(handshake) : discover())
      .then((connection) => {
        opened = connection;
        return connection;
      })
      .finally(() => {
        opening = null;
      });
    opening.catch(() => undefined);
    return opening;
  };
  const current = async (limits: Pick<McpRequestOptions, 'signal' | 'timeoutMs'>): Promise<Connection> =>
    opened ?? within(connect(), limits);
  const forget = (connection: Connection): void => {
    if (opened === connection) opened = null;
    connection.channel.close();
  };

  const send = (connection: Connection, ...request: Parameters<McpClient['request']>): Promise<Answer> =>
    connection.generation === 'Stateless'
      ? sendStateless(connection.channel, ...request)
      : sendInSession(connection, ...request);
  /**
   * Leaves a connection that is of no more use. True: the request may be sent over another one, since it was refused for how
   * it was spoken and not looked at, so that no call is made twice.
   */
  const leaves = (connection: Connection, error: unknown): boolean => {
    if (!(error instanceof McpFailure)) return false;
    const isRefused = refusesManner(connection, error);
    const isCut = target.transport === 'Sse' && error.outbound === 'unreachable';
    if (isRefused || isCut) forget(connection);
    return isRefused;
  };

  return {
    session: current,
    async request(method, params, options) {
      const endsAt = performance.now() + options.timeoutMs;
      for (let attempt = 1; ; attempt += 1) {
        const connection = await current(options);
        const timeoutMs = Math.max(1, Math.ceil(endsAt - performance.now()));
        try {
          return (await send(connection, method, params, { ...options, timeoutMs })).result;
        } catch (error) {
          if (!leaves(connection, error) || attempt > 1) throw error;
        }
      }
    },
    async close() {
      const connection = opened;
      opened = null;
      if (connection === null) return;
      connection.channel.close();
      if (connection.sessionId === null) return;
      try {
        await deps.http.request({
          method: 'DELETE',
          url,
          headers: sessionHeaders(await ownHeaders(), connection),
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
