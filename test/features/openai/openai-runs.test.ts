import assert from 'node:assert/strict';
import { forEachHttpService, overHttp, type TestApp } from '../../support/app.ts';
import { connected, mcpSetup, rawServer, tool as remoteTool, withTools } from '../mcp-servers/mcp-world.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { followToEnd, Gate, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';

type Json = Record<string, unknown>;

const hello = [{ role: 'user', content: 'Hello' }];

const send = (app: TestApp, path: string, body: Json | null, init: RequestInit = {}): Promise<Response> =>
  fetch(`${app.url}/v1${path}`, {
    method: body === null ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
    ...init,
  });

const chat = (app: TestApp, more: Json = {}, init: RequestInit = {}): Promise<Response> =>
  send(app, '/chat/completions', { model: 'helper', messages: hello, ...more }, init);

const codeOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { code: string } }).error.code;

const waiting = (gate: Gate) =>
  helperSetup({
    tools: [
      tool('wait', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'waited';
      }),
    ],
    agents: [{ name: 'helper', model: local, toolNames: ['wait'] }],
  });

forEachHttpService('OAI-3 every answer has the id of its request, and that of a start its run', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(says('Hi.'), says('Hi.'));
  const started = [await chat(app), await send(app, '/responses', { model: 'helper', input: 'Hi', stream: true })];
  const others = [
    await send(app, '/models', null),
    await send(app, '/models/nobody', null),
    await send(app, '/nowhere', null),
    await chat(app, { messages: [] }),
    await send(app, '/models', null, { headers: {} }),
  ];
  assert.deepEqual(
    others.map(({ status }) => status),
    [200, 404, 404, 400, 401],
  );
  const all = [...started, ...others];
  await Promise.all(all.map((response) => response.text()));
  const ids = all.map(({ headers }) => headers.get('x-request-id') ?? '');
  for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(new Set(ids).size, ids.length);
  const { body: runs } = await app.client.runs.list();
  assert.deepEqual(started.map(({ headers }) => headers.get('x-run-id')).sort(), runs.map(({ id }) => id).sort());
  assert.ok(others.every(({ headers }) => !headers.has('x-run-id')));
});

forEachHttpService(
  'OAI-12 a caller who may not start the run is told so before quotas are, and no run is kept',
  async (open) => {
    const policy = { allowed: true };
    const app = await open({
      ...helperSetup(),
      module: { runAuthorization: { authorize: async () => ({ ...policy }) } },
    });
    app.simulator.enqueue(says('Hi.'));
    assert.equal((await chat(app)).status, 200);
    await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
    assert.equal((await chat(app)).status, 429);
    policy.allowed = false;
    for (const stream of [false, true])
      for (const refused of [
        await chat(app, { stream }),
        await send(app, '/responses', { model: 'helper', input: 'Hi', stream }),
      ])
        assert.deepEqual([refused.status, await codeOf(refused)], [403, 'permission_denied']);
    policy.allowed = true;
    assert.equal((await app.client.runs.list()).body.length, 1);
  },
);

forEachHttpService('OAI-13 instructions of a request come after those of the agent, for its run only', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(says('Salve.'), says('Hi.'));
  const messages = [{ role: 'system', content: 'Speak Latin.' }, { role: 'developer', content: 'Be kind.' }, ...hello];
  assert.equal((await chat(app, { messages })).status, 200);
  const [system = '', ...rest] = conversation(app.simulator.lastRequest());
  assert.match(system, /^system: Be brief\..*Speak Latin\..*Be kind\./s);
  assert.deepEqual(rest, ['user: Hello']);
  const ask = (body: Json) =>
    send(app, '/responses', { model: 'helper', conversation: 'talk', input: 'Hello', ...body });
  assert.equal((await ask({ instructions: 'Speak Greek.' })).status, 200);
  assert.match(conversation(app.simulator.lastRequest())[0] ?? '', /^system: Be brief\..*Speak Greek\./s);
  app.simulator.enqueue(says('Hello.'));
  assert.equal((await ask({})).status, 200);
  assert.equal(conversation(app.simulator.lastRequest())[0], 'system: Be brief.');
});

forEachHttpService('OAI-17 a client that leaves does not cancel its run, unless it asks for that', async (open) => {
  for (const [query, end] of [
    ['', 'run.completed'],
    ['?onDisconnect=cancel', 'run.canceled'],
  ] as const) {
    const gate = new Gate();
    const app = await open(waiting(gate));
    app.simulator.enqueue(calls('wait', {}), says('Over.'));
    const gone = new AbortController();
    const body = { model: 'helper', messages: hello, stream: true };
    const answer = await send(app, `/chat/completions${query}`, body, { signal: gone.signal });
    await gate.reached;
    gone.abort();
    if (query === '') gate.open();
    const last = (await followToEnd(app.client, answer.headers.get('x-run-id') ?? '')).at(-1);
    assert.equal(last?.type, end);
  }
});

forEachHttpService(
  'OAI-24 OAI-39 a stream says that nobody may keep it, and its failure is its last frame',
  async (open) => {
    const gate = new Gate();
    const app = await open(waiting(gate));
    app.simulator.enqueue(
      { answer: { text: ['Wait.'], toolCalls: [{ id: 'c1', name: 'wait', arguments: '{}' }] } },
      { fault: { kind: 'status', status: 400, vendor: 'bad-request' } },
    );
    const answer = await chat(app, { stream: true });
    await gate.reached;
    gate.open();
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('x-accel-buffering'), 'no');
    const data = [...(await answer.text()).matchAll(/^data: ?(.*)$/gm)].map(([, text = '']) => text);
    assert.ok(!data.includes('[DONE]'));
    const frames = data.map((text) => JSON.parse(text) as Json);
    assert.deepEqual(
      frames.filter((frame) => 'error' in frame),
      frames.slice(-1),
    );
    const { error } = frames.at(-1) as { error: Json };
    assert.equal(error['code'], 'provider_error');
    const replayed = await send(app, '/responses', { model: 'helper', input: 'Hi', stream: true });
    assert.equal(replayed.headers.get('cache-control'), 'no-store');
    assert.equal(replayed.headers.get('x-accel-buffering'), 'no');
    await replayed.text();
  },
);

forEachHttpService(
  'OAI-30 what the service ran is no call for the client, and stands before it in its order',
  async (open) => {
    const app = await open(helperSetup());
    app.simulator.enqueue(calls('add', {}, 'c1'), calls('weather', { city: 'Rome' }, 'c2'));
    const response = await send(app, '/responses', { model: 'helper', input: 'Hi' });
    const { output } = (await response.json()) as { output: Json[] };
    assert.deepEqual(
      output.map(({ id, ...item }) => item),
      [
        {
          type: 'mcp_call',
          server_label: 'acp',
          name: 'add',
          arguments: '{}',
          output: 'four',
          error: null,
          status: 'completed',
        },
        { type: 'function_call', call_id: 'c2', name: 'weather', arguments: '{"city":"Rome"}', status: 'completed' },
      ],
    );
  },
);

forEachHttpService(
  'OAI-41 OAI-45 a conversation is not there before it is reserved, and empty until it is used',
  async (open) => {
    const app = await open(helperSetup());
    const conversations = [
      ['GET', ''],
      ['POST', ''],
      ['DELETE', ''],
      ['GET', '/items'],
      ['GET', '/items/msg_0'],
    ] as const;
    for (const [method, rest] of conversations) {
      const body = method === 'POST' ? { metadata: {} } : null;
      const unknown = await send(app, `/conversations/talk${rest}`, body, { method });
      assert.deepEqual([unknown.status, await codeOf(unknown)], [404, 'conversation_not_found'], `${method} ${rest}`);
    }
    const { id } = (await (await send(app, '/conversations', {})).json()) as { id: string };
    const items = await send(app, `/conversations/${id}/items`, null);
    assert.deepEqual(await items.json(), { object: 'list', data: [], first_id: null, last_id: null, has_more: false });
  },
);

overHttp('OAI-30 a call of a remote tool has the name of its server', async (open, t) => {
  const server = await rawServer(t, (asked) =>
    asked.method === 'tools/call'
      ? { resultType: 'complete', content: [{ type: 'text', text: 'Rain' }] }
      : withTools([remoteTool('look')])(asked),
  );
  const app = await open(helperSetup(mcpSetup()));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.client.agents.create({
    body: { name: 'remote', model: local, toolNames: ['weather_look', 'add', 'wipe'] },
  });
  app.simulator.enqueue(
    calls('weather_look', {}, 'c1'),
    calls('add', {}, 'c2'),
    calls('wipe', {}, 'c3'),
    says('Done.'),
  );
  const labels = (items: readonly Json[]) =>
    items.flatMap((item) => (item['type'] === 'mcp_call' ? [`${item['name']} of ${item['server_label']}`] : []));
  const expected = ['weather_look of weather', 'add of acp', 'wipe of acp'];
  const results = (items: readonly Json[]) =>
    items.flatMap(({ type, output: result, error, status }) =>
      type === 'mcp_call' ? [[result, error !== null, status]] : [],
    );
  const response = await send(app, '/responses', { model: 'remote', input: 'Hi', conversation: 'talk' });
  const { id, output } = (await response.json()) as { id: string; output: Json[] };
  assert.deepEqual(labels(output), expected);
  const again = (await (await send(app, `/responses/${id}`, null)).json()) as { output: Json[] };
  assert.deepEqual(labels(again.output), expected);
  const listed = (await (await send(app, '/conversations/talk/items?order=asc', null)).json()) as { data: Json[] };
  assert.deepEqual(labels(listed.data), expected);
  for (const items of [output, listed.data])
    assert.deepEqual(results(items), [
      ['Rain', false, 'completed'],
      ['four', false, 'completed'],
      [null, true, 'failed'],
    ]);
  await app.client.mcpServers.save({
    params: { name: 'weather' },
    body: { endpoint: server.endpoint, enabled: false },
  });
  const later = (await (await send(app, '/conversations/talk/items?order=asc', null)).json()) as { data: Json[] };
  assert.deepEqual(labels(later.data), expected, 'a server that is switched off still is the one');
});
