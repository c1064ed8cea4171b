import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { Clock } from '../../src/core/clock.ts';
import { createMcpSubscriptions } from '../../src/features/mcp-endpoint/mcp-subscriptions.ts';
import type { McpCallContext } from '../../src/features/mcp-endpoint/mcp-tool.ts';
import { createOpenStreams } from '../../src/http/open-streams.ts';
import { message, openA2A, working } from '../features/a2a/a2a-world.ts';
import { statelessRequest } from '../features/mcp-endpoint/mcp-world.ts';
import { overHttp, type TestApp } from '../support/app.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';

interface Request {
  readonly method?: 'GET';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** What the runs are that streams follow. */
interface Followed {
  readonly runId: string;
  readonly responseId: string;
  readonly taskId: string;
}

const mcp = (method: string, params: Record<string, unknown>, meta = {}): Request => {
  const { body, headers } = statelessRequest(method, params, { meta });
  return {
    path: '/mcp',
    headers: { ...headers, accept: 'application/json, text/event-stream' },
    body: JSON.parse(body),
  };
};

const a2a = (method: string, params: unknown): Request => ({
  path: '/a2a/helper',
  headers: { 'a2a-version': '1.0', accept: 'text/event-stream' },
  body: { jsonrpc: '2.0', id: 1, method, params },
});

/** One request for every way to open a stream. */
const kinds: Readonly<Record<string, (followed: Followed) => Request>> = {
  'a run': () => ({ path: '/api/agents/helper/run', body: { message: 'wait' } }),
  'the events of a run': ({ runId }) => ({ method: 'GET', path: `/api/runs/${runId}/events` }),
  'a chat completion': () => ({
    path: '/v1/chat/completions',
    body: { model: 'helper', stream: true, messages: [{ role: 'user', content: 'wait' }] },
  }),
  'a response': () => ({ path: '/v1/responses', body: { model: 'helper', stream: true, input: 'wait' } }),
  'a response that was made before': ({ responseId }) => ({
    method: 'GET',
    path: `/v1/responses/${responseId}?stream=true`,
  }),
  'a message of A2A': () => a2a('SendStreamingMessage', { message: message('wait') }),
  'a subscription of A2A': ({ taskId }) => a2a('SubscribeToTask', { id: taskId }),
  'a subscription of MCP': () => mcp('subscriptions/listen', { notifications: { toolsListChanged: true } }),
  'a call of MCP': () =>
    mcp('tools/call', { name: 'helper', arguments: { message: 'wait' } }, { progressToken: 'one' }),
};

const limits = { Streams: { MaxPerCaller: 2, MaxPerTenant: 3 } };

const opened = (app: TestApp) => {
  const leaving: AbortController[] = [];
  // The garbage collector closes an answer without references.
  const held: Response[] = [];
  return {
    async ask(token: string, { method, path, headers, body }: Request): Promise<Response> {
      const gone = new AbortController();
      leaving.push(gone);
      const answer = await fetch(app.url + path, {
        method: method ?? 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
        signal: gone.signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      held.push(answer);
      return answer;
    },
    /** As a caller that goes away from the first `count` of its streams. */
    leave(count: number): void {
      for (const gone of leaving.splice(0, count)) gone.abort();
    },
  };
};

/** Status and the words of a refusal, in whichever envelope. */
const refusalOf = async (answer: Response): Promise<string> =>
  answer.status === 200 ? 'none' : `${answer.status} ${await answer.text()}`;

const keysOf = async (app: TestApp) => {
  const scopes = ['RunsRead', 'RunsWrite', 'ExternalInvoke'] as const;
  const key = async (client: TestApp['client'], name: string): Promise<string> =>
    (
      (await client.keys.create({ body: { name, role: 'Operator', scopes: [...scopes] } })).body as {
        plaintextKey: string;
      }
    ).plaintextKey;
  const acme = app.inTenant('acme');
  await acme.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  return { one: await key(app.client, 'one'), two: await key(app.client, 'two'), acme: await key(acme, 'acme') };
};

const host = { McpServer: { Agents: ['helper'] }, Tenancy: { Enabled: true }, OpenAi: { Enabled: true } };

const followedBy = async (app: TestApp, token: string): Promise<Followed> => {
  const { id: taskId } = await working(app, { token });
  const answer = await fetch(`${app.url}/v1/responses?onDisconnect=Continue`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: 'helper', stream: true, input: 'wait' }),
  });
  const runId = answer.headers.get('x-run-id') ?? '';
  await answer.body?.cancel();
  return { runId, responseId: `resp_${runId.replaceAll('-', '')}`, taskId };
};

for (const [kind, request] of Object.entries(kinds))
  overHttp(
    `SEC-1 ${kind} is refused beyond the limit of its key and of its tenant, and other tenants keep theirs`,
    async (open) => {
      const app = await openA2A(open, { service: limits, host });
      const keys = await keysOf(app);
      const followed = await followedBy(app, keys.one);
      const own = opened(app);
      const others = opened(app);
      const ask = (): Promise<Response> => own.ask(keys.one, request(followed));
      for (const count of [1, 2])
        await eventually(`stream ${count} of the key`, async () => {
          const { status } = await ask();
          return status === 200 || null;
        });
      const runs = async (): Promise<number> => (await app.client.runs.list({ query: { take: 100 } })).body.length;
      const before = await runs();
      const tooMany = await ask();
      assert.equal(tooMany.status, 429);
      assert.ok(Number(tooMany.headers.get('retry-after')) > 0);
      assert.match(await refusalOf(tooMany), /^429 .*This caller has 2 streams open.*Service:Streams:MaxPerCaller/);
      assert.equal(await runs(), before, 'nothing was begun for it');
      const listen = kinds['a subscription of MCP']?.(followed) as Request;
      assert.equal((await others.ask(keys.two, listen)).status, 200, 'another key');
      assert.match(await refusalOf(await others.ask(keys.two, listen)), /^429 .*Service:Streams:MaxPerTenant/);
      assert.equal((await others.ask(keys.acme, listen)).status, 200, 'another tenant');
      // What holds no stream is answered as ever.
      assert.equal((await others.ask(keys.one, { method: 'GET', path: `/api/runs/${followed.runId}` })).status, 200);
      own.leave(1);
      await eventually('a stream is free', async () => (await ask()).status === 200 || null);
      own.leave(10);
      others.leave(10);
    },
  );

overHttp('SEC-1 a stream that ends, and a request that fails, no longer count', async (open) => {
  const app = await openA2A(open, { service: { Streams: { MaxPerCaller: 1 } }, host });
  const { one } = await keysOf(app);
  const { ask } = opened(app);
  for (const agent of ['nobody', 'helper', 'nobody', 'helper']) {
    const answer = await ask(one, { path: `/api/agents/${agent}/run`, body: { message: 'hello' } });
    assert.equal(answer.status, agent === 'helper' ? 200 : 404, await answer.text());
  }
});

test('SEC-1 a response that has closed before its stream begins does not count', async (t) => {
  const caller = { principal: { apiKey: { id: 'k1' } }, tenantId: 'default' } as never;
  const streams = createOpenStreams({ maxPerCaller: 1, maxPerTenant: 1 });
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const responseOf = async () => {
    const asking = httpRequest({ port, host: '127.0.0.1', agent: false }).on('error', () => undefined);
    asking.end();
    const [, response] = await once(server, 'request');
    return { asking, response };
  };
  for (let count = 0; count < 2; count += 1) {
    const { asking, response } = await responseOf();
    const closed = once(response, 'close');
    asking.destroy();
    await closed;
    streams.open(caller, response);
  }
  const { asking, response } = await responseOf();
  streams.open(caller, response);
  assert.throws(() => streams.open(caller, response), { code: 'too-many-streams' });
  asking.destroy();
});

test('MCP-51 streams of one tenant share one poll', async () => {
  const clock = testClock({ stands: true });
  const asked: string[] = [];
  let list = 'old';
  const subscriptions = createMcpSubscriptions({
    tools: {
      async signature(tenantId) {
        asked.push(tenantId);
        return list;
      },
    },
    tasks: {
      find: async (_context: unknown, id: string) => ({ id, status: list === 'old' ? 'Running' : 'Completed' }),
      async heads(ids: readonly string[]) {
        asked.push(`${ids.length} tasks`);
        return new Map(ids.map((id) => [id, { status: list === 'old' ? 'Running' : 'Completed' }]));
      },
      isOpen: () => list === 'old',
      detailed: async (_context: unknown, { id }: { readonly id: string }) => ({ taskId: id }),
    } as never,
    ...{ lookEveryMs: 2000, clock },
    log: { warn: ({ error }) => assert.fail(String(error)) },
  });
  const told: string[] = [];
  const gone = new AbortController();
  const listen = async (tenantId: string, notifications: object, more: Partial<McpCallContext> = {}): Promise<void> => {
    const reply = await subscriptions.listen({ tenantId, signal: gone.signal, ...more } as McpCallContext, {
      ...{ kind: 'request', id: 1, method: 'subscriptions/listen' },
      params: { notifications: notifications as never },
    });
    reply.stream.subscribe(
      (frames) => told.push(...frames.map(({ data }) => `${tenantId} ${JSON.parse(data).method}`)),
      () => undefined,
    );
  };
  for (let count = 0; count < 50; count += 1) {
    await listen('acme', { toolsListChanged: true });
    await listen('globex', { toolsListChanged: true, taskIds: [`t${count}`] });
  }
  assert.deepEqual(asked.splice(0), ['acme', 'globex'], 'opened together, too');
  const tooMany = () => assert.fail('too many');
  await assert.rejects(listen('initech', { toolsListChanged: true }, { openStream: tooMany }), /too many/);
  await clock.advance(2000);
  assert.deepEqual(asked.splice(0), ['acme', '50 tasks', 'globex']);
  told.length = 0;
  list = 'new';
  await clock.advance(2000);
  const count = (text: string): number => told.filter((line) => line === text).length;
  assert.deepEqual(
    [
      'acme notifications/tools/list_changed',
      'globex notifications/tools/list_changed',
      'globex notifications/tasks',
    ].map(count),
    [50, 50, 50],
  );
  assert.equal(told.length, 150, 'and nothing without a subscription to it');
  asked.length = 0;
  gone.abort();
  await clock.advance(20_000);
  assert.deepEqual(asked, [], 'no poll without a subscriber');
});

test('MCP-51 a poll that takes longer than the interval is alone, and what failed or has left is not remembered', async () => {
  const timers = new Set<() => unknown>();
  const clock: Pick<Clock, 'every'> = {
    every(_ms, work) {
      timers.add(work);
      const timer = { stop: () => void timers.delete(work), unref: () => timer };
      return timer;
    },
  };
  const asked: string[] = [];
  let answer: () => Promise<string> = async () => 'old';
  const subscriptions = createMcpSubscriptions({
    tools: {
      signature(tenantId) {
        asked.push(tenantId);
        return answer();
      },
    },
    tasks: null,
    ...{ lookEveryMs: 2000, clock },
    log: { warn: ({ error }) => assert.fail(String(error)) },
  });
  const told: string[] = [];
  const listen = async (signal: AbortSignal): Promise<void> => {
    const reply = await subscriptions.listen({ tenantId: 'acme', signal } as McpCallContext, {
      ...{ kind: 'request', id: 1, method: 'subscriptions/listen' },
      params: { notifications: { toolsListChanged: true } },
    });
    reply.stream.subscribe(
      (frames) => told.push(...frames.map(({ data }) => JSON.parse(data).method)),
      () => undefined,
    );
  };
  answer = () => Promise.reject(new Error('The store is away'));
  await assert.rejects(listen(AbortSignal.abort()), /The store is away/);
  answer = async () => 'old';
  await listen(AbortSignal.abort());
  assert.deepEqual(asked.splice(0), ['acme', 'acme']);
  assert.equal(timers.size, 0, 'its caller had gone before it was open');
  answer = async () => 'new';
  const gone = new AbortController();
  await listen(gone.signal);
  assert.deepEqual(asked.splice(0), ['acme'], 'it opens with the list of that moment');
  told.length = 0;
  const { promise, resolve } = Promise.withResolvers<string>();
  answer = () => promise;
  const [poll = assert.fail] = timers;
  const polls = [poll(), poll()];
  await eventually('a poll', () => asked.length > 0 || null);
  resolve('new');
  await Promise.all(polls);
  assert.deepEqual([asked, told], [['acme'], []]);
  gone.abort();
  assert.equal(timers.size, 0);
});
