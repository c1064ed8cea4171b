import type { TestContext } from 'node:test';
import type { Client } from '../../../src/client/client.ts';
import type { McpServerDefinition, McpServerRequest } from '../../../src/features/mcp-servers/mcp-servers.schema.ts';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';
import type { AppSetup } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';

export const mcpKey = 'Service:McpSecrets:weather';

/** A service whose servers may be on this machine. */
export const mcpSetup = ({ service, ...more }: AppSetup = {}): AppSetup => ({
  ...more,
  service: {
    Egress: { AllowPrivateNetworkTargets: true },
    McpSecrets: { weather: 'Bearer s3cret-of-the-weather' },
    ...service,
  },
});

export const save = async (
  client: Client,
  endpoint: string,
  { name = 'weather', ...more }: Partial<McpServerRequest> & { readonly name?: string } = {},
): Promise<McpServerDefinition> =>
  (await client.mcpServers.save({ params: { name }, body: { endpoint, ...more } })).body;

export const get = async (client: Client, name = 'weather'): Promise<McpServerDefinition> =>
  (await client.mcpServers.get({ params: { name } })).body;

export const refresh = async (client: Client, name?: string) =>
  (await client.mcpServers.refresh({ query: name === undefined ? {} : { name } })).body;

/** Saved and looked at. */
export const connected = async (client: Client, endpoint: string, more: Parameters<typeof save>[2] = {}) => {
  await save(client, endpoint, more);
  return refresh(client, more.name ?? 'weather');
};

export interface Asked {
  readonly id: string | number;
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: members differ by method, and a test asserts on the ones it means.
  readonly params: Record<string, any>;
  readonly request: ReceivedRequest;
}

type Reply =
  | Readonly<Record<string, unknown>>
  | { readonly raw: (response: Parameters<Parameters<typeof startServer>[0]>[1]) => void };

export interface RawServer extends LoopbackServer {
  readonly endpoint: string;
  readonly asked: Asked[];
  /** What it answers from now on. */
  answer(how: (asked: Asked) => Reply | null): void;
}

const discovered = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'raw', version: '1' } },
  ttlMs: 0,
  cacheScope: 'private',
};

/** A server of the stateless generation that answers as a test says: a result, bytes of its own, or null for method not found. */
export const rawServer = async (t: TestContext, how: (asked: Asked) => Reply | null): Promise<RawServer> => {
  const asked: Asked[] = [];
  let answer = how;
  const server = await startServer((request, response) => {
    const message = request.body === '' ? {} : (JSON.parse(request.body) as Partial<Asked>);
    const one = { ...message, request } as Asked;
    asked.push(one);
    const reply = answer(one) ?? (one.method === 'server/discover' ? discovered : null);
    if (reply !== null && 'raw' in reply && typeof reply.raw === 'function') return reply.raw(response);
    const body =
      reply === null
        ? { jsonrpc: '2.0', id: one.id, error: { code: -32601, message: 'secret words of the server' } }
        : { jsonrpc: '2.0', id: one.id, result: reply };
    response.writeHead(reply === null ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  t.after(() => server.close());
  return {
    ...server,
    endpoint: `${server.url}/mcp`,
    asked,
    answer: (next) => {
      answer = next;
    },
  };
};

export const tool = (name: string, more: Readonly<Record<string, unknown>> = {}) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  ...more,
});

/** Answers lists with these tools, and calls with `said`. */
export const withTools =
  (tools: readonly unknown[], said: Reply = { content: [{ type: 'text', text: 'done' }] }) =>
  ({ method }: Asked): Reply | null => {
    if (method === 'tools/list') return { resultType: 'complete', tools };
    return method === 'tools/call' ? said : null;
  };

/** The scripted model calls the tool on its first turn, and says what it got on its second. */
export const callsTool = (name: string, args: unknown = { city: 'Ulm' }) => [
  { when: { message: 'Hi', call: 1 }, reply: { toolCalls: [{ name, arguments: args }] } },
  { when: { tool: name }, reply: { text: '{{last}}' } },
];

/** Status and code of a refused call. */
export const refused = async (call: Promise<unknown>): Promise<readonly [number | undefined, unknown]> => {
  const { status, code } = await refusal(call);
  return [status, code];
};
