import { mcpMeta, statelessVersion } from '../../contract/mcp.ts';
import type { Answer, Channel, SendOptions } from './channel.ts';
import { McpFailure } from './mcp-failure.ts';
import type { Connection, McpClientDeps, McpRequestOptions, McpTarget } from './mcp-target.ts';
import { encodeHeaderValue } from './wire/header-value.ts';
import { mcpHeader } from './wire/protocol.ts';

// Nobody waits for what is said with it.
export const farewellMs = 2000;

/** Sends requests to one server, with its credential and in either generation. Throws McpFailure. */
export const createSender = (target: McpTarget, deps: Pick<McpClientDeps, 'clientInfo'>) => {
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
  const meta = ({ capabilities, trace }: McpRequestOptions) => ({
    [mcpMeta.protocolVersion]: statelessVersion,
    [mcpMeta.clientInfo]: deps.clientInfo,
    [mcpMeta.clientCapabilities]: capabilities ?? {},
    ...trace,
  });

  const sendStateless = async (
    channel: Channel,
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: McpRequestOptions,
  ): Promise<Answer> => {
    const { name, parameterHeaders, signal, timeoutMs } = options;
    return authorized((own) =>
      channel.request(
        {
          jsonrpc: '2.0',
          id: nextId++,
          method,
          params: { ...params, _meta: meta(options) },
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
  };

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
    { trace, signal, timeoutMs }: McpRequestOptions,
  ): Promise<Answer> => {
    const id = nextId++;
    const options: SendOptions = { headers, signal, timeoutMs, answersRequests: true };
    const withTrace = trace?.traceparent === undefined ? params : { ...params, _meta: trace };
    try {
      return await connection.channel.request({ jsonrpc: '2.0', id, method, params: withTrace }, options);
    } catch (error) {
      const given = error instanceof McpFailure ? error.outbound : null;
      // A program is told by its channel, in either generation.
      if (target.channel === undefined && (given === 'canceled' || given === 'timed-out'))
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

  return {
    newId: (): number => nextId++,
    ownHeaders,
    authorized,
    sessionHeaders,
    stateless: sendStateless,
    inSession: sendInSession,
  };
};

export type Sender = ReturnType<typeof createSender>;
