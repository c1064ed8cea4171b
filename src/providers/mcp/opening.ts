import { handshakeVersions, statelessVersion } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';
import type { Channel } from './channel.ts';
import { httpChannel } from './http-channel.ts';
import { McpFailure } from './mcp-failure.ts';
import type { Connection, McpClientDeps, McpTarget } from './mcp-target.ts';
import { type ChosenVersion, handshake, versionOfDiscovery, versionOfFailure } from './negotiation.ts';
import type { Sender } from './sender.ts';
import { serverNameIn } from './server-name.ts';
import { openSseChannel } from './sse-channel.ts';
import { firstVersion, mcpHeader } from './wire/protocol.ts';

const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

/** Finds out how a server is spoken to, and begins. Throws McpFailure. */
export const opensConnection = (target: McpTarget, deps: McpClientDeps, sender: Sender) => {
  const openChannel = async (): Promise<Channel> =>
    (await target.channel?.()) ??
    httpChannel({ ...deps, url: new URL(target.endpoint), maxBytes: deps.maxAnswerBytes });

  const initialize = async (asked: ChosenVersion, signal: AbortSignal): Promise<Connection> => {
    const timeoutMs = deps.connectTimeoutMs;
    const isTwoEndpoint = target.transport === 'Sse';
    const channel = isTwoEndpoint
      ? await sender.authorized((headers) =>
          openSseChannel({
            ...{ ...deps, url: new URL(target.endpoint), headers },
            ...{ maxBytes: deps.maxAnswerBytes, timeoutMs, signal },
          }),
        )
      : await openChannel();
    try {
      const { result, headers } = await sender.authorized((own) =>
        channel.request(
          {
            jsonrpc: '2.0',
            id: sender.newId(),
            method: 'initialize',
            params: { protocolVersion: asked.version, capabilities: {}, clientInfo: deps.clientInfo },
          },
          { headers: own, signal, timeoutMs, answersRequests: true },
        ),
      );
      const version = result['protocolVersion'];
      // What a program says is the same in the first revision, which many that are in use know alone.
      const knowsFirst = isTwoEndpoint || target.channel !== undefined;
      const spoken: readonly unknown[] = knowsFirst ? [...handshakeVersions, firstVersion] : handshakeVersions;
      if (typeof version !== 'string' || !spoken.includes(version)) throw new McpFailure('no-common-version');
      const connection: Connection = {
        channel,
        generation: 'Handshake',
        version,
        sessionId: headers[mcpHeader.session] ?? null,
        serverName: serverNameIn(result),
        capabilities: record(result['capabilities']),
      };
      await channel.notify(
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        {
          headers: sender.sessionHeaders(await sender.ownHeaders(), connection),
          ...{ signal, timeoutMs, answersRequests: true },
        },
      );
      return connection;
    } catch (error) {
      channel.close();
      throw error;
    }
  };

  const discover = async (signal: AbortSignal, isSecond = false): Promise<Connection> => {
    const channel = await openChannel();
    let chosen: ChosenVersion;
    try {
      const { result } = await sender.stateless(
        channel,
        'server/discover',
        {},
        { signal, timeoutMs: deps.connectTimeoutMs },
      );
      chosen = versionOfDiscovery(result);
      if (chosen.generation === 'Stateless')
        return {
          channel,
          generation: 'Stateless',
          version: statelessVersion,
          sessionId: null,
          serverName: serverNameIn(result),
          capabilities: record(result['capabilities']),
        };
    } catch (error) {
      const told = error instanceof McpFailure ? versionOfFailure(error) : null;
      if (told === null) throw error;
      chosen = told;
    }
    // It refuses the version and names it as one of its own: asked once more, and not a third time.
    if (chosen.generation === 'Stateless' && !isSecond) return discover(signal, true);
    if (target.protocol === 'Stateless' || chosen.generation === 'Stateless') throw new McpFailure('no-common-version');
    return initialize(chosen, signal);
  };

  return (signal: AbortSignal): Promise<Connection> =>
    target.protocol === 'Handshake' || target.transport === 'Sse' ? initialize(handshake, signal) : discover(signal);
};
