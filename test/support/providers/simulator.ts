import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { anthropicWire } from './anthropic.wire.ts';
import { azureWire, chatWire } from './chat.wire.ts';
import { embeddingsWire } from './embeddings.wire.ts';
import { geminiWire } from './gemini.wire.ts';
import { responsesWire } from './responses.wire.ts';
import type { Scenario, SimulatedFault, SimulatedRequest, Wire, WireName } from './scenario.ts';

export interface SimulatorOptions {
  /** Decides each answer while the queue is empty. */
  readonly respond?: (request: SimulatedRequest) => Scenario | Promise<Scenario>;
  /** Wait before each frame, in milliseconds; 0: one frame for each turn of the event loop. */
  readonly frameDelayMs?: number;
  readonly port?: number;
  /** Answer of a GET: a list of models. Default: no such route. */
  readonly models?: (path: string) => { readonly status: number; readonly body: unknown };
  /** False for long loads: nothing is kept. */
  readonly record?: boolean;
}

export interface ListRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

export interface ProviderSimulator {
  /** `http://127.0.0.1:port` without a path. */
  readonly url: string;
  /** Everything received so far. */
  readonly requests: SimulatedRequest[];
  /** Why requests were refused, as the real APIs would refuse them. */
  readonly objections: string[];
  /** GET requests, which ask for lists of models. */
  readonly listed: ListRequest[];
  /** Answers of the next requests, one each. */
  enqueue(...scenarios: Scenario[]): void;
  lastRequest(): SimulatedRequest;
  /** Connections that are open now. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

const wires: Record<WireName, Wire> = {
  chat: chatWire,
  embeddings: embeddingsWire,
  azure: azureWire,
  responses: responsesWire,
  anthropic: anthropicWire,
  gemini: geminiWire,
};

const defaultScenario: Scenario = {
  answer: { text: ['Hello', ' from', ' the', ' simulator.'], usage: { input: 12, output: 5 } },
};

const paths: readonly (readonly [RegExp, WireName])[] = [
  [/^\/openai\/(?:v1|deployments\/([^/]+))\/chat\/completions$/, 'azure'],
  [/\/chat\/completions$/, 'chat'],
  [/\/embeddings$/, 'embeddings'],
  [/\/responses$/, 'responses'],
  [/\/messages$/, 'anthropic'],
  [/\/models\/([^/:]+):(?:streamGenerateContent|generateContent)$/, 'gemini'],
];

interface Route {
  readonly wire: WireName;
  readonly pathModel: string | undefined;
}

const route = (path: string): Route | null => {
  for (const [pattern, wire] of paths) {
    const match = pattern.exec(path);
    if (match !== null) return { wire, pathModel: match[1] };
  }
  return null;
};

const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(Buffer.concat(chunks).toString()));
    request.on('error', reject);
  });

const describe = (incoming: IncomingMessage, text: string, response: ServerResponse): SimulatedRequest | null => {
  const [path = '', query = ''] = (incoming.url ?? '').split('?');
  const found = route(path);
  if (found === null) return null;
  const body = JSON.parse(text) as Record<string, unknown>;
  const streaming = found.wire === 'gemini' ? path.endsWith(':streamGenerateContent') : body['stream'] === true;
  return {
    wire: found.wire,
    method: incoming.method ?? '',
    path,
    query,
    headers: incoming.headers,
    body,
    streaming,
    model: found.pathModel ?? String(body['model'] ?? ''),
    aborted: new Promise((resolve) => {
      response.once('close', () => !response.writableFinished && resolve());
    }),
  };
};

const sendJson = (
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_simulated', ...headers });
  response.end(body);
};

const sendStatus = (response: ServerResponse, wire: Wire, fault: Extract<SimulatedFault, { kind: 'status' }>): void => {
  const body = fault.body ?? JSON.stringify(wire.error(fault.vendor ?? 'server', fault.status));
  sendJson(response, fault.status, body, fault.headers);
};

/** What takes the place of the rest of the frames, and how the answer ends. */
const breakOff = (response: ServerResponse, wire: Wire, fault: SimulatedFault): void => {
  switch (fault.kind) {
    case 'cut':
      response.socket?.resetAndDestroy();
      return;
    case 'end':
      response.end();
      return;
    case 'malformed':
      response.end(fault.frame ?? 'data: {"choices":[{"delta":{"content":"half\n\n');
      return;
    case 'event':
      response.end(wire.errorFrame(fault.vendor));
      return;
    default:
      // A stall: the connection stays open and nothing comes.
      return;
  }
};

const stream = (
  response: ServerResponse,
  wire: Wire,
  frames: readonly Buffer[],
  fault: SimulatedFault | null,
  delayMs: number,
): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const limit = fault !== null && 'after' in fault ? Math.min(fault.after, frames.length) : frames.length;
  let next = 0;
  const step = (): void => {
    if (response.destroyed) return;
    if (next < limit) {
      response.write(frames[next]);
      next += 1;
      delayMs > 0 ? setTimeout(step, delayMs) : setImmediate(step);
    } else if (fault === null) response.end();
    else breakOff(response, wire, fault);
  };
  step();
};

const sendDocument = (response: ServerResponse, wire: Wire, scenario: Scenario, request: SimulatedRequest): void => {
  const text = JSON.stringify(wire.document(scenario.answer ?? {}, request));
  const fault = scenario.fault;
  if (fault === undefined || fault.kind === 'event') sendJson(response, 200, text);
  else if (fault.kind === 'malformed') sendJson(response, 200, fault.frame ?? text.slice(0, text.length / 2));
  else if (fault.kind !== 'stall') {
    // Half of a body whose length was announced: cut and end are the same here.
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
    response.write(text.slice(0, text.length / 2), () => response.socket?.resetAndDestroy());
  }
};

/** The data of the events of a stream, as one list. */
const sendList = (response: ServerResponse, frames: readonly Buffer[]): void =>
  sendJson(
    response,
    200,
    `[${frames
      .map((frame) =>
        frame
          .toString()
          .replace(/^data: /, '')
          .trim(),
      )
      .join(',\n')}]`,
  );

const listen = (server: Server, port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });

/**
 * A server on loopback that speaks the wire formats of all providers; the path decides which:
 * `/v1/chat/completions`, `/v1/responses`, `/v1/messages`, `/v1beta/models/{model}:streamGenerateContent`,
 * `/openai/v1/chat/completions` and `/openai/deployments/{name}/chat/completions`.
 */
export const startProviderSimulator = async (options: SimulatorOptions = {}): Promise<ProviderSimulator> => {
  const requests: SimulatedRequest[] = [];
  const listed: ListRequest[] = [];
  const objections: string[] = [];
  const queue: Scenario[] = [];
  const delayMs = options.frameDelayMs ?? 0;
  // Under load the same answer is sent over and over; its frames are made once.
  const encoded = new WeakMap<object, Map<string, Buffer[]>>();

  const framesOf = (wire: Wire, scenario: Scenario, request: SimulatedRequest): Buffer[] => {
    const answer = scenario.answer ?? {};
    const key = `${request.wire} ${request.model} ${JSON.stringify(request.body['stream_options'] ?? null)}`;
    const cache = encoded.get(answer) ?? new Map<string, Buffer[]>();
    encoded.set(answer, cache);
    const frames = cache.get(key) ?? wire.frames(answer, request).map((frame) => Buffer.from(frame));
    cache.set(key, frames);
    return frames;
  };

  const handleList = (incoming: IncomingMessage, response: ServerResponse): void => {
    const [path = ''] = (incoming.url ?? '').split('?');
    listed.push({ path, headers: incoming.headers });
    const answer = options.models?.(path) ?? { status: 404, body: '{}' };
    sendJson(response, answer.status, typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
  };

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (incoming.method === 'GET') {
      handleList(incoming, response);
      return;
    }
    const request = describe(incoming, await readBody(incoming), response);
    if (request === null) {
      sendJson(response, 404, '{"error":{"message":"Unknown request URL","type":"invalid_request_error"}}');
      return;
    }
    if (options.record !== false) requests.push(request);
    const wire = wires[request.wire];
    const objection = wire.objection(request);
    if (objection !== null) {
      objections.push(objection);
      sendJson(response, 400, JSON.stringify(wire.error('bad-request', 400)), { 'x-objection': objection });
      return;
    }
    const scenario = queue.shift() ?? (await options.respond?.(request)) ?? defaultScenario;
    if (scenario.fault?.kind === 'status') sendStatus(response, wire, scenario.fault);
    else if (scenario.form === 'list') sendList(response, framesOf(wire, scenario, request));
    else if (scenario.form === undefined ? request.streaming : scenario.form === 'events')
      stream(response, wire, framesOf(wire, scenario, request), scenario.fault ?? null, delayMs);
    else sendDocument(response, wire, scenario, request);
  };

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  server.keepAliveTimeout = 60_000;
  const url = await listen(server, options.port ?? 0);

  return {
    url,
    requests,
    objections,
    listed,
    enqueue: (...scenarios) => void queue.push(...scenarios),
    lastRequest() {
      const last = requests.at(-1);
      if (last === undefined) throw new Error('The simulator received no request');
      return last;
    },
    connections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
};
