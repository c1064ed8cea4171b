import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';

export type McpGeneration = 'Stateless' | 'Handshake';
export const generations: readonly McpGeneration[] = ['Stateless', 'Handshake'];

interface Call {
  readonly tool: string;
  readonly args: unknown;
}

export interface OfficialServer extends LoopbackServer {
  readonly endpoint: string;
  /** What its tools have been called with, in order. */
  readonly calls: readonly Call[];
  /** Forgets all sessions, as a restart does. */
  forgetSessions(): void;
}

const citySchema = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
};

const tools = [
  { name: 'weather', description: 'The weather of a city', annotations: { readOnlyHint: true } },
  { name: 'erase', description: 'Erases a city', annotations: { destructiveHint: true } },
  { name: 'broken', description: 'Says that it has failed', annotations: {} },
];

const said = (name: string, city: string) => {
  const text = { weather: `It rains in ${city}`, erase: `${city} is gone` }[name] ?? 'no such city';
  return { content: [{ type: 'text' as const, text }], ...(name === 'broken' ? { isError: true } : {}) };
};

const messages = (city: string) => ({
  messages: [
    { role: 'user' as const, content: { type: 'text' as const, text: `Hello ${city}` } },
    { role: 'assistant' as const, content: { type: 'text' as const, text: 'and goodbye' } },
  ],
});

const notes = { uri: 'notes://all', name: 'notes', mimeType: 'text/plain' };
const noted = { contents: [{ ...notes, text: 'Take an umbrella' }] };

const statelessHandler = (calls: Call[]) => {
  const schema = fromJsonSchema<{ city: string }>(citySchema);
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'official', version: '2.0.0' });
      for (const { name, ...config } of tools)
        server.registerTool(name, { ...config, inputSchema: schema }, (args) => {
          calls.push({ tool: name, args });
          return said(name, args.city);
        });
      server.registerPrompt('greet', { description: 'Greets a city', argsSchema: schema }, ({ city }) =>
        messages(city),
      );
      server.registerResource(notes.name, notes.uri, { mimeType: notes.mimeType }, () => noted);
      return server;
    },
    { legacy: 'reject' },
  );
  return (request: Request): Promise<Response> => handler.fetch(request);
};

type Sessions = Map<string, WebStandardStreamableHTTPServerTransport>;

const sessionServer = (calls: Call[]): Server => {
  const server = new Server(
    { name: 'official', version: '1.0.0' },
    { capabilities: { tools: {}, prompts: {}, resources: {} } },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map((tool) => ({ ...tool, inputSchema: citySchema })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: args } }) => {
    calls.push({ tool: name, args });
    return said(name, String(args?.['city']));
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [{ name: 'greet', description: 'Greets a city', arguments: [{ name: 'city', required: true }] }],
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => messages(String(params.arguments?.['city'])));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [notes] }));
  server.setRequestHandler(ReadResourceRequestSchema, () => noted);
  return server;
};

/** How a server answers a session that it does not know: 404 by the protocol, and otherwise in the field. */
export type LostSession = 401 | 403 | 404 | 410 | 500 | 503 | 'error in 200';
/** The answers that a client can take for a lost session. */
export const lostSessions: readonly LostSession[] = [401, 404, 410, 500, 503, 'error in 200'];

const unknownSession = async (request: Request, lost: LostSession): Promise<Response> => {
  if (lost !== 404 && lost !== 'error in 200') return new Response('no such session', { status: lost });
  const { id = null } = request.method === 'POST' ? ((await request.json()) as { id?: unknown }) : {};
  const error = { code: -32001, message: 'Session not found' };
  return new Response(JSON.stringify({ jsonrpc: '2.0', error, id: lost === 404 ? null : id }), {
    status: lost === 404 ? 404 : 200,
    headers: { 'content-type': 'application/json' },
  });
};

const handshakeHandler =
  (calls: Call[], sessions: Sessions, lost: LostSession) =>
  async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return unknownSession(request, lost);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (opened) => void sessions.set(opened, transport),
    });
    await sessionServer(calls).connect(transport);
    return transport.handleRequest(request);
  };

const asRequest = ({ method, headers, body }: ReceivedRequest, url: string): Request =>
  new Request(url, { method, headers: headers as Record<string, string>, ...(method === 'POST' ? { body } : {}) });

/** A server of one generation, written with the official library of it. */
export const officialServer = async (
  t: TestContext,
  generation: McpGeneration,
  lost: LostSession = 404,
): Promise<OfficialServer> => {
  const calls: Call[] = [];
  const sessions: Sessions = new Map();
  const handle = generation === 'Stateless' ? statelessHandler(calls) : handshakeHandler(calls, sessions, lost);
  const server = await startServer((request, response) => {
    const answer = async (): Promise<void> => {
      const answered = await handle(asRequest(request, `http://127.0.0.1${request.url}`));
      response.writeHead(answered.status, Object.fromEntries(answered.headers));
      if (answered.body !== null) for await (const chunk of answered.body) response.write(chunk);
      response.end();
    };
    answer().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  t.after(() => server.close());
  return { ...server, endpoint: `${server.url}/mcp`, calls, forgetSessions: () => sessions.clear() };
};
