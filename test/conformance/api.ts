import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { secondOwnerOf } from './second-owner.ts';
import { type Send, secondTenantOf } from './second-tenant.ts';
import type { Target } from './server.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are what the server sent; each test asserts on the members it means.
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed when it is JSON, else undefined. */
  readonly body: Body;
  readonly text: string;
}

export interface Frame {
  readonly id: number | null;
  readonly event: string;
  readonly data: Body;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is; default: `body` as JSON. */
  readonly raw?: string | Uint8Array | FormData;
}

/** The service as any HTTP client sees it: no code of the product stands between a test and the wire. */
export interface Api {
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  get(path: string, options?: CallOptions): Promise<Answer>;
  post(path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  put(path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  del(path: string, options?: CallOptions): Promise<Answer>;
  /** The answer as it comes, for what has to be read piece by piece. */
  fetch(
    method: string,
    path: string,
    body?: unknown,
    options?: CallOptions & { signal?: AbortSignal },
  ): Promise<Response>;
  /** All frames of a stream, to its end. */
  frames(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Frame[]>;
  /** The same service with another credential; null: none. */
  as(token: string | null): Api;
  inTenant(tenant: string): Api;
  /** The same without those who watch, whose requests take time: for what has to be done before something lapses. */
  readonly unwatched: Api;
  /** The same caller at each process that serves, past the proxy; only itself where one serves. */
  readonly processes: readonly Api[];
  /** An API key with these scopes, as a client. */
  withKey(role: string, scopes: readonly string[]): Promise<Api>;
  /** Creates an agent on the scripted model and returns its name. */
  agent(definition?: Record<string, unknown>): Promise<string>;
  /** Runs to the end with one JSON answer. */
  run(agent: string, body: string | Record<string, unknown>, options?: CallOptions): Promise<Answer>;
}

/** A name that no other test uses: the server is shared. */
export const unique = (kind: string): string => `${kind}-${randomUUID().slice(0, 8)}`;

const parseFrame = (block: string): Frame | null => {
  const fields = block.split('\n').flatMap((line): [string, string][] => {
    const match = /^(\w+): ?(.*)$/.exec(line);
    return match === null ? [] : [[match[1] ?? '', match[2] ?? '']];
  });
  const field = (name: string) => fields.find(([key]) => key === name)?.[1];
  const data = field('data');
  if (data === undefined) return null;
  const id = field('id');
  return { id: id === undefined ? null : Number(id), event: field('event') ?? 'message', data: JSON.parse(data) };
};

export const parseFrames = (text: string): Frame[] => text.split('\n\n').flatMap((block) => parseFrame(block) ?? []);

const read = async (response: Response): Promise<Answer> => {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined, text };
};

const senderOf =
  (target: Target): Send =>
  async (method, path, token, body, more = {}) => {
    const sent = more.raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...more.headers,
    };
    return read(await fetch(target.url + path, { method, headers, ...(sent === undefined ? {} : { body: sent }) }));
  };

export const createApi = (
  target: Target,
  token: string | null = target.token,
  tenant: string | null = null,
  isWatched = true,
): Api => {
  const send: Api['fetch'] = (method, path, body, options = {}) =>
    fetch(target.url + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(tenant === null ? {} : { 'x-service-tenant': tenant }),
        ...(body !== undefined && options.raw === undefined ? { 'content-type': 'application/json' } : {}),
        ...options.headers,
      },
      ...(options.raw !== undefined
        ? { body: options.raw as NonNullable<RequestInit['body']> }
        : body === undefined
          ? {}
          : { body: JSON.stringify(body) }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  const call: Api['call'] = async (method, path, body, options) => {
    const answer = await read(await send(method, path, body, options));
    if (!isWatched) return answer;
    const watched = { method, path, headers: options?.headers ?? {} };
    const server = target.watched ?? target;
    for (const watcherOf of [secondTenantOf, secondOwnerOf])
      await (await watcherOf(server, senderOf(server)))?.watch(watched, answer);
    return answer;
  };
  const api: Api = {
    fetch: send,
    call,
    get: (path, options) => call('GET', path, undefined, options),
    post: (path, body, options) => call('POST', path, body, options),
    put: (path, body, options) => call('PUT', path, body, options),
    del: (path, options) => call('DELETE', path, undefined, options),
    async frames(method, path, body, options) {
      const answer = await call(method, path, body, options);
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/);
      return parseFrames(answer.text);
    },
    as: (other) => createApi(target, other, tenant, isWatched),
    inTenant: (other) => createApi(target, token, other, isWatched),
    get unwatched() {
      return createApi(target, token, tenant, false);
    },
    get processes() {
      return target.processes?.map((process) => createApi(process, token, tenant, isWatched)) ?? [api];
    },
    async withKey(role, scopes) {
      const answer = await call('POST', '/api/api-keys', { name: unique('key'), role, scopes });
      assert.equal(answer.status, 200, answer.text);
      return createApi(target, answer.body.plaintextKey as string, null, isWatched);
    },
    async agent(definition = {}) {
      const name = unique('agent');
      const body = { name, model: { provider: 'demo', model: 'demo-1' }, ...definition };
      const answer = await call('POST', '/api/agents', body);
      assert.equal(answer.status, 201, answer.text);
      return body.name;
    },
    run: (agent, body, options) =>
      call(
        'POST',
        `/api/agents/${agent}/run`,
        { stream: false, ...(typeof body === 'string' ? { message: body } : body) },
        options,
      ),
  };
  return api;
};

/** A problem as every error of the service has to be (RFC 9457). */
export const assertProblem = (answer: Answer, status: number, code: string): Body => {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/problem+json');
  assert.equal(answer.body.code, code, answer.text);
  assert.equal(answer.body.status, status);
  assert.equal(answer.body.type, `urn:acp:problem:${code}`);
  assert.equal(typeof answer.body.requestId, 'string');
  return answer.body;
};

/** Paths of the fields that a problem names. */
export const errorPaths = (problem: Body): string[] => (problem.errors ?? []).map(({ path }: { path: string }) => path);
