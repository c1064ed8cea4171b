import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { message, openA2A, post, refusalOf, result, rpc, send, stream, type Wire, working } from './a2a-world.ts';

const request = (more: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {}, ...more });

overHttp(
  'A2A-13 what is no request of JSON-RPC is refused by its number and status, and starts nothing',
  async (open) => {
    const app = await openA2A(open);
    for (const [body, code, id] of [
      ['{', -32700, null],
      ['', -32700, null],
      ['nonsense', -32700, null],
      ['\u00ff', -32600, null],
      [`[${request({})}]`, -32600, null],
      ['[]', -32600, null],
      ['"text"', -32600, null],
      [request({ jsonrpc: '1.0' }), -32600, 1],
      [request({ jsonrpc: undefined }), -32600, 1],
      [request({ id: undefined }), -32600, null],
      [request({ id: null }), -32600, null],
      [request({ id: {} }), -32600, null],
      [request({ method: undefined }), -32600, 1],
      [request({ method: 5 }), -32600, 1],
      [request({ method: undefined, result: {} }), -32600, null],
      ['{"__proto__": {"a": 1}, "jsonrpc": "2.0", "id": 1, "method": "ListTasks"}', -32600, null],
      ['['.repeat(200) + ']'.repeat(200), -32600, null],
    ] as const) {
      const { status, body: answer } = await post(app, body === '\u00ff' ? Uint8Array.of(0xff, 0xfe) : body);
      const expected = body === '\u00ff' ? -32700 : code;
      // One readable object is answered as a call, whatever it lacks; a body that holds none is a bad request for HTTP, too.
      const isObject = body.startsWith('{"') && !body.includes('__proto__');
      assert.deepEqual(
        [status, answer.error?.code, answer.id],
        [isObject ? 200 : 400, expected, id],
        body.slice(0, 80),
      );
      assert.equal(answer.jsonrpc, '2.0');
    }
    assert.deepEqual(await refusalOf(app, 'ListTasks', []), [-32602, 'INVALID_PARAMS']);
    assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);
    const { status, body } = await post(app, JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'ListTasks' }));
    assert.deepEqual([status, body.id, body.result.tasks], [200, 'x', []]);
  },
);

overHttp('A2A-13 types, sizes and answers that are not taken are refused by HTTP', async (open) => {
  const app = await openA2A(open, { host: { A2A: { MaxRequestBytes: 4096 } } });
  const problem = async (body: string, headers: Readonly<Record<string, string | undefined>>) => {
    const answer = await post(app, body, { headers });
    return [answer.status, answer.body.code];
  };
  for (const type of ['text/plain', 'application/xml', 'application/json; charset=utf-16'])
    assert.deepEqual(await problem(request({}), { 'content-type': type }), [415, 'unsupported-media-type'], type);
  const large = request({ params: { x: 'a'.repeat(4096) } });
  assert.deepEqual(await problem(large, {}), [413, 'payload-too-large']);
  assert.deepEqual(await problem(request({}), { accept: 'text/html' }), [406, 'not-acceptable']);
  assert.deepEqual(await problem(request({}), { accept: 'text/event-stream' }), [406, 'not-acceptable']);
  for (const method of ['SendStreamingMessage', 'SubscribeToTask'])
    assert.deepEqual(await problem(request({ method }), { accept: 'application/json' }), [406, 'not-acceptable']);
  const { status, headers } = await post(app, request({}), { headers: { accept: '*/*' } });
  assert.deepEqual([status, headers.get('a2a-version')], [200, '1.0']);
  const wrong = await fetch(`${app.url}/a2a/helper`, { method: 'PUT', body: '{}' });
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
});

overHttp('A2A-13 a body is as large as the setting says, beyond the usual limit', async (open) => {
  const app = await openA2A(open);
  const text = 'a'.repeat(2_500_000);
  const { status, body } = await rpc(app, 'GetTask', { id: text });
  assert.deepEqual([status, body.error.code], [200, -32001]);
  assert.ok(JSON.stringify(body).length < 1000, 'what was sent is not sent back');
  assert.equal((await rpc(app, 'GetTask', { id: 'a'.repeat(10_485_760) })).status, 413);
});

overHttp('A2A-12 A2A-13 the version decides which methods there are, and is stated', async (open) => {
  const app = await openA2A(open);
  const seen = async (version: string | undefined, method: string) => {
    const { headers, body } = await rpc(app, method, { id: 'x', message: {} }, { headers: { 'a2a-version': version } });
    return [body.error?.code ?? 'ok', headers.get('a2a-version')];
  };
  for (const [version, method, code, stated] of [
    ['1.0', 'GetTask', -32001, '1.0'],
    ['1.0.7', 'GetTask', -32001, '1.0'],
    [undefined, 'GetTask', -32001, '1.0'],
    ['1.0', 'tasks/get', -32601, '1.0'],
    ['0.3', 'tasks/get', -32001, '0.3'],
    ['0.3.0', 'tasks/get', -32001, '0.3'],
    [undefined, 'tasks/get', -32001, '0.3'],
    ['0.3', 'GetTask', -32601, '0.3'],
    ['0.3', 'ListTasks', -32601, '0.3'],
    ['0.3', 'tasks/list', -32601, '0.3'],
    ['1.0', 'NonExistentMethod', -32601, '1.0'],
    ['1.0', 'constructor', -32601, '1.0'],
    [undefined, 'NonExistentMethod', -32601, '0.3'],
    ['2.0', 'GetTask', -32009, '1.0'],
    ['1.1', 'GetTask', -32009, '1.0'],
    ['0.2', 'tasks/get', -32009, '1.0'],
    ['99.0', 'SendMessage', -32009, '1.0'],
    ['one', 'GetTask', -32009, '1.0'],
  ] as const)
    assert.deepEqual(await seen(version, method), [code, stated], `${version} ${method}`);
  const { body } = await rpc(app, 'GetTask', { id: 'x' }, { headers: { 'a2a-version': '9.9' } });
  assert.equal(body.error.data[0].metadata.supportedVersions, '1.0, 0.3');
});

overHttp('A2A-12 without the layer for it version 0.3 is not supported', async (open) => {
  const app = await openA2A(open, { host: { A2A: { LegacyCompat: false } } });
  const seen = async (version: string | undefined, method: string) =>
    (await rpc(app, method, { id: 'x' }, { headers: { 'a2a-version': version } })).body.error;
  for (const [version, method] of [
    ['0.3', 'tasks/get'],
    [undefined, 'tasks/get'],
    ['0.3', 'GetTask'],
  ] as const) {
    const error = await seen(version, method);
    assert.deepEqual([error.code, error.data[0].metadata.supportedVersions], [-32009, '1.0'], `${version} ${method}`);
  }
  assert.equal((await seen(undefined, 'GetTask')).code, -32001);
});

overHttp('A2A-14 each error has its number and its reason, and none has more than that', async (open) => {
  const app = await openA2A(open);
  const push = { message: message('Hi'), configuration: { taskPushNotificationConfig: { url: 'https://x.example' } } };
  for (const name of ['Create', 'Get', 'Delete'])
    assert.deepEqual(await refusalOf(app, `${name}TaskPushNotificationConfig`, {}), [
      -32003,
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ]);
  assert.deepEqual(await refusalOf(app, 'ListTaskPushNotificationConfigs', {}), [
    -32003,
    'PUSH_NOTIFICATION_NOT_SUPPORTED',
  ]);
  assert.deepEqual(await refusalOf(app, 'SendMessage', push), [-32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED']);
  assert.deepEqual(await refusalOf(app, 'GetExtendedAgentCard', {}), [-32007, 'EXTENDED_AGENT_CARD_NOT_CONFIGURED']);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);

  const restore = await app.store.refuse('runs');
  const { status, body } = await rpc(app, 'SendMessage', { message: message('Hi') });
  await restore();
  assert.deepEqual([status, body.code], [503, 'store-unavailable']);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);
});

overHttp('A2A-15 an extension that cannot be done without is refused, and every other is ignored', async (open) => {
  const app = await openA2A(open);
  const uri = 'https://example.org/extension';
  const required = { message: message('Hi', { extensions: [{ uri, required: true }] }) };
  assert.deepEqual(await refusalOf(app, 'SendMessage', required), [-32008, 'EXTENSION_SUPPORT_REQUIRED']);
  const headers = { 'a2a-extensions': `${uri};required=true` };
  assert.deepEqual(await refusalOf(app, 'ListTasks', {}, { headers }), [-32008, 'EXTENSION_SUPPORT_REQUIRED']);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);
  const task = await send(
    app,
    'Hi',
    { extensions: [uri, { uri, required: false }] },
    { headers: { 'a2a-extensions': uri } },
  );
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
});

overHttp('A2A-26 a caller that goes away ends nothing, wherever it goes', async (open) => {
  const app = await openA2A(open);
  const taken: Wire[] = [];
  for (const method of ['SendMessage', 'SendStreamingMessage']) {
    const gone = new AbortController();
    const params = { message: message('wait') };
    const call = rpc(app, method, params, {
      signal: gone.signal,
      headers: { accept: 'application/json, text/event-stream' },
    }).catch(() => null);
    const known = new Set(taken.map(({ id }) => id));
    const task = await eventually<Promise<Wire>>('a task that is in progress', async () => {
      const { tasks } = await result(app, 'ListTasks', { status: 'TASK_STATE_WORKING' });
      return tasks.find(({ id }: Wire) => !known.has(id));
    });
    taken.push(task);
    gone.abort();
    await call;
  }
  const subscribed = await stream(app, 'SubscribeToTask', { id: taken[0].id });
  subscribed.close();
  const after = await working(app);
  for (const { id } of [...taken, after])
    assert.equal((await result(app, 'GetTask', { id })).status.state, 'TASK_STATE_WORKING');
});
