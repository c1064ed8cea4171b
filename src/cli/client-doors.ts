import { AcpError } from '../contract/errors.ts';
import { isRecord } from '../contract/record.ts';
import { version } from '../core/version.ts';
import type { Connectable } from './client-snippets.ts';

/** The door of a service that a client speaks to. */
interface Door {
  readonly path: string;
  readonly request: Readonly<Record<string, unknown>> | null;
  /** Why it may be closed. */
  readonly closed: string;
  readonly scopes: string;
}

const openAi: Door = {
  path: '/v1',
  request: null,
  closed: 'Host:OpenAi:Enabled is false there',
  scopes: 'AgentsRead, and RunsWrite to start runs',
};

const mcp: Door = {
  path: '/mcp',
  request: {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'acp', version } },
  },
  closed: 'Host:McpServer offers neither agents (Agents) nor operations (ControlPlane) there, or has another Path',
  scopes: 'ExternalInvoke',
};

const doorOf = (client: Connectable): Door => (client === 'openai' ? openAi : mcp);

/** The address that a client is told. */
export const doorAddress = (client: Connectable, serviceUrl: string, path?: string): string =>
  serviceUrl.replace(/\/+$/, '') + (path ?? doorOf(client).path);

const timeoutMs = 10_000;

const ask = async (address: string, { request }: Door, token: string | undefined): Promise<Response> => {
  const headers = {
    accept: 'application/json, text/event-stream',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return request === null
      ? await fetch(`${address}/models`, { headers, signal })
      : await fetch(address, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(request),
          signal,
        });
  } catch (cause) {
    throw new AcpError('cannot-connect', `Nothing answers at ${address}.`, { cause });
  }
};

/** What the answer says is wrong with the door or the credential; null: nothing. */
const problemOf = (status: number, address: string, { closed, scopes }: Door, hasToken: boolean): string | null => {
  if (status === 200) return null;
  if (status === 401)
    return hasToken
      ? 'The service does not accept the credential.'
      : 'The service wants a credential: set ACP_TOKEN, or use --token-file.';
  if (status === 403) return `The credential lacks the role or the scope: ${scopes}.`;
  if (status === 404) return `There is no such door at ${address}: ${closed}.`;
  return `The service answered with status ${status}.`;
};

/** An answer of the protocol; anything else is some other program. */
const isOfProtocol = (text: string, { request }: Door): boolean => {
  const [, data] = /^data: ?(\{.*)$/m.exec(text) ?? [];
  try {
    const answer: unknown = JSON.parse(data ?? text);
    return isRecord(answer) && (request === null ? answer['object'] === 'list' : isRecord(answer['result']));
  } catch {
    // No JSON at all.
    return false;
  }
};

/** Sends what the client would send first; null: it works, else what is wrong, in a sentence. */
export const doorProblem = async (
  client: Connectable,
  address: string,
  token: string | undefined,
): Promise<string | null> => {
  const door = doorOf(client);
  const response = await ask(address, door, token);
  const problem = problemOf(response.status, address, door, token !== undefined);
  const text = await response.text();
  if (problem !== null) return problem;
  return isOfProtocol(text, door) ? null : `What answers at ${address} is not this service.`;
};
