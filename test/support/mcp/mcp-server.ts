import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { McpServer as SessionServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';

export type McpGeneration = 'Stateless' | 'Handshake';
export const generations: readonly McpGeneration[] = ['Stateless', 'Handshake'];

/** What the tools of a server have been called with, in order. */
export interface ToolCalls {
  readonly calls: { readonly tool: string; readonly args: unknown }[];
}

export interface OfficialServer extends LoopbackServer, ToolCalls {
  readonly endpoint: string;
  /** Forgets all sessions, as a restart does. */
  forgetSessions(): void;
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

const citySchema = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
};

/** Registers the same things on a server of either library. */
const fill = (server: {
  // biome-ignore lint/suspicious/noExplicitAny: the two libraries have the same methods with types of their own.
  registerTool(name: string, config: any, run: (args: any) => any): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: likewise.
  registerPrompt(name: string, config: any, run: (args: any) => any): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: likewise.
  registerResource(name: string, uri: string, config: any, run: (uri: URL) => any): unknown;
}, calls: ToolCalls['calls'], schema: unknown, argsSchema: unknown): void => {
  const tool = (name: string, config: object, run: (args: { city: string }) => unknown): void => {
    server.registerTool(name, { inputSchema: schema, ...config }, (args: { city: string }) => {
      calls.push({ tool: name, args });
      return run(args);
    });
  };
  tool('weather', { description: 'The weather of a city', annotations: { readOnlyHint: true } }, ({ city }) =>
    text(`It rains in ${city}`),
  );
  tool('erase', { description: 'Erases a city', annotations: { destructiveHint: true } }, ({ city }) =>
    text(`${city} is gone`),
  );
  tool('broken', { description: 'Says that it has failed' }, () => ({ ...text('no such city'), isError: true }));
  server.registerPrompt('greet', { description: 'Greets a city', argsSchema }, ({ city }) => ({
    messages: [
      { role: 'user', content: { type: 'text', text: `Hello ${city}` } },
      { role: 'assistant', content: { type: 'text', text: 'and goodbye' } },
    ],
  }));
  server.registerResource('notes', 'notes://all', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Take an umbrella' }],
  }));
};

const asRequest = ({ method, headers, body }: ReceivedRequest, url: string): Request =>
  new Request(url, {
    method,
    headers: headers as Record<string, string>,
    ...(method === 'POST' ? { body } : {}),
  });

const statelessHandler = (calls: ToolCalls['calls']) => {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'official', version: '2.0.0' });
      fill(server as never, calls, fromJsonSchema(citySchema), fromJsonSchema(citySchema));
      return server;
    },
    { legacy: 'reject' },
  );
  return (request: Request) => handler.fetch(request);
};

const handshakeHandler = async (calls: ToolCalls['calls'], sessions: Map<string, WebStandardStreamableHTTPServerTransport>) => {
  const { z } = await import('zod');
  return async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return new Response('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}', { status: 404, headers: { 'content-type': 'application/json' } });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (opened) => void sessions.set(opened, transport),
    });
    const server = new SessionServer({ name: 'official', version: '1.0.0' });
    fill(server as never, calls, { city: z.string() }, { city: z.string() });
    await server.connect(transport);
    return transport.handleRequest(request);
  };
};

/** A server of one generation, written with the official library. */
export const officialServer = async (t: TestContext, generation: McpGeneration): Promise<OfficialServer> => {
  const calls: ToolCalls['calls'] = [];
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const handle = generation === 'Stateless' ? statelessHandler(calls) : await handshakeHandler(calls, sessions);
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
