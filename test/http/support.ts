import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import Type from 'typebox';
import { AcpError } from '../../src/contract/errors.ts';
import { defineOperations, type Frame, type FrameSource, noContent, ok } from '../../src/contract/operation.ts';
import { closed, namePattern, oneOf } from '../../src/contract/schema.ts';
import type { CallerRequest } from '../../src/core/caller/caller-request.ts';
import type { ApiHandlers, Caller } from '../../src/core/context.ts';
import { createDispatch } from '../../src/core/dispatch.ts';
import { type Logger, silentLogger } from '../../src/core/logger.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../src/http/server.ts';

const Item = closed({ name: Type.String(), color: oneOf(['Red', 'Green']), count: Type.Integer() }, { title: 'Item' });
const ItemName = Type.Object({ name: Type.String({ pattern: namePattern }) });
const ItemEvent = Type.Object({ text: Type.String() }, { title: 'ItemEvent' });

const read = { tag: 'Items', role: 'Reader', scope: 'RunsRead' } as const;
const write = { tag: 'Items', role: 'Operator', scope: 'RunsWrite' } as const;

/** A table that has one operation of every kind, and nothing of the product. */
export const table = {
  items: defineOperations({
    list: {
      ...read,
      method: 'GET',
      path: '/api/items',
      summary: 'List items',
      query: Type.Object({
        take: Type.Optional(Type.Integer()),
        label: Type.Optional(Type.String()),
        ids: Type.Optional(Type.Array(Type.String())),
      }),
      responses: { 200: Type.Unknown() },
      errors: [],
    },
    create: {
      ...write,
      method: 'POST',
      path: '/api/items',
      summary: 'Create an item',
      body: Item,
      responses: { 201: Item },
      errors: ['agent-name-taken'],
    },
    validate: {
      ...write,
      method: 'POST',
      path: '/api/items/validate',
      summary: 'Validate a small item',
      body: Type.Unknown(),
      maxBodyBytes: 64,
      responses: { 200: Type.Unknown() },
      errors: [],
    },
    get: {
      ...read,
      method: 'GET',
      path: '/api/items/{name}',
      summary: 'Show an item',
      params: ItemName,
      responses: { 200: Type.Object({ name: Type.String(), path: Type.String() }) },
      errors: ['not-found'],
    },
    remove: {
      ...write,
      method: 'DELETE',
      path: '/api/items/{name}',
      summary: 'Remove an item',
      params: ItemName,
      responses: { 204: null },
      errors: ['not-found'],
    },
    touch: {
      ...write,
      method: 'POST',
      path: '/api/items/{name}/touch',
      summary: 'Touch an item',
      params: ItemName,
      responses: { 204: null },
      errors: [],
    },
    follow: {
      ...read,
      method: 'GET',
      path: '/api/items/{name}/events',
      summary: 'Follow an item',
      params: ItemName,
      headers: Type.Object({ 'last-event-id': Type.Optional(Type.Integer({ minimum: 0 })) }),
      responses: {},
      stream: ItemEvent,
      errors: ['not-found'],
    },
    wait: {
      ...read,
      method: 'GET',
      path: '/api/items/{name}/wait',
      summary: 'Wait for an item',
      params: ItemName,
      responses: { 200: Type.Unknown() },
      inParts: true,
      errors: [],
    },
  }),
  open: defineOperations({
    get: {
      tag: 'Open',
      role: null,
      scope: null,
      method: 'GET',
      path: '/api/open',
      summary: 'Ask without a credential',
      responses: { 200: Type.Unknown() },
      errors: [],
    },
  }),
};

type ItemHandlers = ApiHandlers<typeof table>['items'];

/** Frames from the start, then the end. */
export const framesThenEnd = (frames: readonly Frame[]): FrameSource => ({
  subscribe(onFrames, onEnd) {
    const timer = setImmediate(() => {
      onFrames(frames);
      onEnd();
    });
    return () => clearImmediate(timer);
  },
});

const items: ItemHandlers = {
  list: async (_context, { query }) => ok(query),
  create: async (_context, { body }) => ({ status: 201, body, headers: { Location: `/api/items/${body.name}` } }),
  validate: async (_context, { body }) => ok({ received: body }),
  get: async (context, { params }) => ok({ name: params.name, path: context.path }),
  remove: async () => noContent(),
  touch: async () => noContent(),
  follow: async () => ({ status: 200, stream: framesThenEnd([]) }),
  wait: async () => ok({}),
};

export const admin: Caller = {
  tenantId: 'default',
  principal: {
    kind: 'Anonymous',
    role: 'Admin',
    scopes: null,
    actor: null,
    userId: null,
    apiKey: null,
    permissions: null,
  },
};

/** Bearer `good` is an administrator, `reader` and `nobody` are less, anything else is refused. */
const authenticate = (request: CallerRequest): Caller => {
  const token = request.header('authorization');
  if (token === undefined || token === 'Bearer good') return admin;
  const role = token === 'Bearer reader' ? 'Reader' : null;
  if (role !== null || token === 'Bearer nobody') return { ...admin, principal: { ...admin.principal, role } };
  throw new AcpError('unauthenticated', 'A valid credential is required.');
};

export interface LogLine {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export const recordingLogger = (lines: LogLine[]): Logger => {
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, fields, message });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
};

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly server: HttpServer;
}

/** A server that does not listen yet. */
export const makeServer = (
  t: TestContext,
  handlers: Partial<ItemHandlers> = {},
  options: Partial<HttpServerOptions> = {},
): HttpServer => {
  const dispatch = createDispatch(table, { items: { ...items, ...handlers }, open: { get: async () => ok({}) } });
  const server = createHttpServer({
    dispatch,
    prefix: '',
    version: '1.2.3',
    title: 'Test',
    authenticate,
    health: async () => ({ status: 'Healthy', draining: false }),
    livePath: '/health/live',
    readyPath: '/health/ready',
    log: silentLogger,
    ...options,
  });
  t.after(() => server.close());
  return server;
};

export const startServer = async (
  t: TestContext,
  handlers: Partial<ItemHandlers> = {},
  options: Partial<HttpServerOptions> = {},
): Promise<TestServer> => {
  const server = makeServer(t, handlers, options);
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  return { url, port: Number(new URL(url).port), server };
};

/** A raw connection: writes bytes as they are and reads what comes. */
export interface RawConnection {
  readonly socket: Socket;
  send(bytes: string | Uint8Array): void;
  /** Text received so far, once it matches. Rejects when the connection ends before. */
  until(pattern: RegExp): Promise<string>;
  /** All text, once the other side has closed. */
  closed(): Promise<string>;
}

export const openRaw = async (t: TestContext, port: number): Promise<RawConnection> => {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  let text = '';
  let failure: Error | undefined;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  // A reset after the answer is one of the ways in which a server may end a connection.
  socket.on('error', (error) => {
    failure = error;
  });
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    async until(pattern) {
      while (!pattern.test(text)) {
        if (socket.closed) throw new Error(`The connection ended before ${pattern}: ${text}`, { cause: failure });
        await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      }
      return text;
    },
    async closed() {
      if (!socket.closed) await once(socket, 'close');
      return text;
    },
  };
};

export interface ProblemAnswer {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly problem: Record<string, unknown>;
}

export const problemOf = async (answer: Response): Promise<ProblemAnswer> => {
  const problem = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, code: String(problem['code']), detail: String(problem['detail']), problem };
};
