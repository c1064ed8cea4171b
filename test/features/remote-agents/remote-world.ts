import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import type { RunRecord } from '../../../src/features/runs/runs.schema.ts';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';
import type { AppSetup, TestApp } from '../../support/app.ts';

// biome-ignore lint/suspicious/noExplicitAny: what goes over the wire is read by the members that a test means.
export type Wire = any;

export interface RemoteSide extends LoopbackServer {
  readonly cardUrl: string;
  /** JSON-RPC requests in their order. */
  readonly asked: Wire[];
}

const cardPath = '/.well-known/agent-card.json';

/** A card of version 1.0. */
export const cardOf = (url: string, more: Readonly<Record<string, unknown>> = {}) => ({
  name: 'Partner',
  description: 'Answers.',
  version: '7',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'talk', name: 'Talk', description: 'Talks.', tags: [] }],
  ...more,
});

/** The same of version 0.3. */
export const legacyCardOf = (url: string, more: Readonly<Record<string, unknown>> = {}) => {
  const { supportedInterfaces: _newer, ...card } = cardOf(url);
  return { ...card, url, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0', ...more };
};

export interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: Wire;
  readonly request: ReceivedRequest;
  readonly response: ServerResponse;
}

export interface RawAgent extends RemoteSide {
  /** What its card is from now on: a document, or what writes the answer. */
  card: Readonly<Record<string, unknown>> | ((response: ServerResponse) => void);
}

type Answers = (asked: Asked) => Readonly<Record<string, unknown>> | null;

/** An agent that answers each request as a test says: a result, or null where the test has written the answer itself. */
export const openRawAgent = async (how: Answers): Promise<RawAgent> => {
  const asked: Wire[] = [];
  const server = await startServer((request, response) => {
    if (request.url?.split('?')[0] === cardPath) {
      if (typeof agent.card === 'function') return agent.card(response);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(agent.card));
      return;
    }
    const message = JSON.parse(request.body);
    asked.push(message);
    const result = how({ ...message, request, response });
    if (result === null) return;
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  });
  const agent: RawAgent = { ...server, asked, cardUrl: `${server.url}${cardPath}`, card: cardOf(`${server.url}/a2a`) };
  return agent;
};

/** The same for one test. */
export const rawAgent = async (t: TestContext, how: Answers): Promise<RawAgent> => {
  const agent = await openRawAgent(how);
  t.after(() => agent.close());
  return agent;
};

/** Frames of a stream that then breaks off. */
export const writeFrames = (response: ServerResponse, id: number, results: readonly unknown[]): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const result of results) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
};

export const task = (state: string, more: Readonly<Record<string, unknown>> = {}) => ({
  id: 'task-1',
  contextId: 'context-1',
  status: { state: `TASK_STATE_${state}` },
  ...more,
});

export const artifact = (text: string) => ({ artifactId: 'output', parts: [{ text }] });

const part = (value: string) => ({
  content: { $case: 'text', value },
  filename: '',
  mediaType: '',
  metadata: undefined,
});

const completed = 3;
const canceled = 5;
const working = 2;

/**
 * Answers `echo TEXT`, streams its answer in two pieces, and works on `wait` until it is canceled. Of `cut` it streams the
 * second piece once somebody has subscribed again.
 */
const echo = (heard: string[], subscribed: Promise<void>): AgentExecutor => {
  const status = (taskId: string, contextId: string, state: number): Wire => ({
    taskId,
    contextId,
    status: { state, message: undefined, timestamp: new Date().toISOString() },
    metadata: undefined,
  });
  const contexts = new Map<string, string>();
  return {
    async execute({ taskId, contextId, userMessage }: Wire, bus: Wire) {
      const text: string = userMessage.parts[0].content.value;
      heard.push(userMessage.messageId);
      contexts.set(taskId, contextId);
      const task = { id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined };
      bus.publish(AgentEvent.task({ ...task, status: status(taskId, contextId, working).status } as Wire));
      if (text === 'wait') return;
      const pieces = ['echo ', text];
      for (const [index, piece] of pieces.entries()) {
        if (text === 'cut' && index > 0) await subscribed;
        bus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: { artifactId: 'output', name: '', description: '', parts: [part(piece)], extensions: [] },
            append: index > 0,
            lastChunk: index === pieces.length - 1,
            metadata: undefined,
          } as Wire),
        );
      }
      bus.publish(AgentEvent.statusUpdate(status(taskId, contextId, completed)));
      bus.finished();
    },
    async cancelTask(taskId: string, bus: Wire) {
      bus.publish(AgentEvent.statusUpdate(status(taskId, contexts.get(taskId) ?? '', canceled)));
      bus.finished();
    },
  };
};

export interface SdkAgent extends RemoteSide {
  /** Ids of messages, in their order. */
  readonly heard: readonly string[];
}

/** An agent written with the official library, in one version of the protocol. */
export const sdkAgent = async (t: TestContext, version: '1.0' | '0.3', streaming: boolean): Promise<SdkAgent> => {
  const asked: Wire[] = [];
  const heard: string[] = [];
  const subscription = version === '1.0' ? 'SubscribeToTask' : 'tasks/resubscribe';
  const { promise: subscribed, resolve: goOn } = Promise.withResolvers<void>();
  let handle: (body: Wire, context: ServerCallContext) => Promise<Wire>;
  const server = await startServer((request, response) => {
    const send = async (): Promise<void> => {
      if (request.url?.split('?')[0] === cardPath) {
        const card = version === '1.0' ? cardOf : legacyCardOf;
        const body = card(`${server.url}/a2a`, { capabilities: { streaming } });
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
        return;
      }
      const message = JSON.parse(request.body);
      asked.push(message);
      const requestedVersion = String(request.headers['a2a-version'] ?? '');
      const answer = await handle(message, new ServerCallContext({ requestedVersion }));
      if (typeof answer[Symbol.asyncIterator] !== 'function') {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const isCut = JSON.stringify(message).includes('"cut"');
      for await (const event of answer) {
        response.write(`data: ${JSON.stringify(event)}\n\n`);
        if (isCut && JSON.stringify(event).includes('artifact')) return void setImmediate(() => response.destroy());
        if (message.method === subscription) goOn();
      }
      response.end();
    };
    send().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  t.after(() => server.close());
  const requests = new DefaultRequestHandler(
    cardOf(`${server.url}/a2a`, { capabilities: { streaming }, securityRequirements: [], extensions: [] }) as Wire,
    new InMemoryTaskStore(),
    echo(heard, subscribed),
  );
  const transport =
    version === '1.0' ? new JsonRpcTransportHandler(requests) : new LegacyJsonRpcTransportHandler(requests);
  handle = (body, context) => transport.handle(body, context);
  return { ...server, asked, heard, cardUrl: `${server.url}${cardPath}` };
};

export type Settings = Readonly<Record<string, unknown>>;

/** A service that may call the agent `partner`, whom the agent `boss` asks what it is asked. */
export const remoteSetup = (
  cardUrl: string,
  partner: Settings = {},
  { service, host, ...more }: AppSetup = {},
): AppSetup => ({
  script: [
    { when: { tool: 'call_partner' }, reply: { text: '{{last}}' } },
    {
      when: { message: '/^ask (?<what>.+)$/', call: 1 },
      reply: { toolCalls: [{ name: 'call_partner', arguments: { message: '{{what}}' } }] },
    },
    { reply: { text: '{{last}}' } },
  ],
  agents: [{ name: 'boss', callableAgentNames: ['partner'] }],
  ...more,
  host: { ...host, RemoteAgents: { partner: { CardUrl: cardUrl, RequiresApproval: false, ...partner } } },
  service: {
    Egress: { AllowPrivateNetworkTargets: true },
    McpSecrets: { partner: 'Bearer s3cret-of-the-partner' },
    ...service,
  },
});

/** The run that the newest call of a remote agent has made. */
export const childOf = async ({ client }: Pick<TestApp, 'client'>, runId: string): Promise<RunRecord | undefined> =>
  (await client.runs.list({ query: { includeChildren: true, take: 100 } })).body.find(
    ({ parentRunId }) => parentRunId === runId,
  );
