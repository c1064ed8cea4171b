import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { prepareCall } from '../../../src/engine/tools/prepared-call.ts';
import { createToolRegistry } from '../../../src/engine/tools/registry.ts';
import type { ToolOutcome } from '../../../src/engine/tools/tool-call.ts';
import { loadDeclaredTools } from '../../../src/features/tools/declared-tools.ts';
import { createOutboundHttp } from '../../../src/providers/http/outbound.ts';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';

type Answer = Parameters<typeof startServer>[0];

interface ToolUnderTest {
  readonly server: LoopbackServer;
  call(args: unknown, signal?: AbortSignal): Promise<ToolOutcome>;
  /** What the service received for a call that succeeded. */
  sent(args: unknown): Promise<ReceivedRequest>;
  readonly log: unknown[];
  readonly secrets: Map<string, string>;
}

/** A declared tool before a real server; `{base}` in its request stands for the server's address. */
const declare = async (t: TestContext, document: Record<string, unknown>, answer?: Answer): Promise<ToolUnderTest> => {
  const server = await startServer(
    answer ?? ((_request, response) => response.setHeader('content-type', 'application/json').end('{"ok":true}')),
  );
  t.after(() => server.close());
  const path = await mkdtemp(join(tmpdir(), 'acp-tools-'));
  t.after(() => rm(path, { recursive: true }));
  const whole = {
    name: 'tool',
    description: 'A tool',
    inputSchema: { type: 'object', additionalProperties: {} },
    ...document,
  };
  await writeFile(join(path, 'tool.yaml'), stringify(whole).replaceAll('{base}', server.url));
  const http = createOutboundHttp({ allowPrivate: true });
  t.after(() => http.close());
  const secrets = new Map([
    ['TOKEN', 'top-secret-token'],
    ['BASE', `${server.url}/base`],
  ]);
  const loaded = await loadDeclaredTools([path], {
    http,
    allowPrivate: true,
    resolveReference: (_kind, name) => secrets.get(name) ?? null,
  });
  const tool = createToolRegistry(loaded.registrations, loaded.problems).get('tool');
  const log: unknown[] = [];
  const call = async (args: unknown, signal = new AbortController().signal): Promise<ToolOutcome> => {
    const prepared = await prepareCall(
      {
        tool,
        toolName: 'tool',
        toolCallId: 'c1',
        argumentsText: JSON.stringify(args),
        run: { tenantId: 't', agentName: 'a', runId: 'r', rootRunId: 'r', sessionId: null, userId: null },
        principal: {
          kind: 'Anonymous',
          role: 'Admin',
          scopes: null,
          actor: null,
          userId: null,
          apiKey: null,
          permissions: null,
        },
        signal,
        idempotencyKey: 'idem-7',
        requestId: 'req',
        traceparent: 'of the call',
        tracestate: 'k=v',
      },
      { emit: () => undefined },
      {
        authorizer: null,
        defaultTimeoutMs: 10_000,
        defaultMaxOutputBytes: null,
        saveAttachment: async () => {
          throw new Error('No tool here saves attachments.');
        },
        log: { warn: (fields) => log.push(fields) },
      },
    );
    return 'status' in prepared ? prepared : prepared.execute();
  };
  return {
    server,
    call,
    log,
    secrets,
    async sent(args) {
      const outcome = await call(args);
      assert.equal(outcome.status, 'succeeded', outcome.text);
      const last = server.received.at(-1);
      assert.ok(last);
      return last;
    },
  };
};

const get = (url: string, more: Record<string, unknown> = {}) => ({ request: { url, ...more } });

test('TOOL-38 values in path and query are percent-encoded and stay where they are put', async (t) => {
  const tool = await declare(t, get('{base}/v1/{{city}}/x-{{day}}.json?q={{text}}&fixed=1'));
  const hostile = 'a/b?c=d&e#f%2e\\g h\r\ni"é😀{{day}}';
  const { url, method } = await tool.sent({ city: hostile, day: 3, text: hostile });
  const encoded = encodeURIComponent(hostile);
  assert.equal(method, 'GET');
  assert.equal(url, `/v1/${encoded}/x-3.json?q=${encoded}&fixed=1`);
});

test('TOOL-38 a value cannot climb out of its piece of the path', async (t) => {
  const tool = await declare(t, get('{base}/items/{{id}}/{{a}}{{b}}'));
  for (const args of [
    { id: '..', a: 'x', b: 'y' },
    { id: '.', a: 'x', b: 'y' },
    { id: '', a: 'x', b: 'y' },
    { id: 'x', a: '.', b: '.' },
    { id: 'x', a: '', b: '' },
  ]) {
    const { status, text } = await tool.call(args);
    assert.equal(status, 'failed');
    assert.equal(text, 'An argument in the address must not be empty or a relative path.');
  }
  assert.equal((await tool.call({ id: 'x', a: 'y' })).text, 'An argument that the address needs is missing.');
  assert.equal((await tool.call({ id: 'x', a: 'y', b: null })).text, 'An argument that the address needs is missing.');
  assert.equal(tool.server.received.length, 0);
  assert.equal((await tool.sent({ id: '%2e%2e', a: '..', b: 'c' })).url, '/items/%252e%252e/..c');
  assert.equal((await tool.sent({ id: '../../admin', a: 'c', b: 'd' })).url, '/items/..%2F..%2Fadmin/cd');
});

test('TOOL-38 query entries: numbers as written, lists repeat, missing ones are left out', async (t) => {
  const tool = await declare(
    t,
    get('{base}/search?page={{page}}&sort=asc', {
      query: { q: '{{q}}', tag: '{{tags}}', near: '{{place.city}}, {{place.land}}', v: 1, on: true, o: '{{place}}' },
    }),
  );
  assert.equal(
    (await tool.sent({ q: 'a&b', tags: ['x y', 2], place: { city: 'Köln', land: 'DE' } })).url,
    '/search?sort=asc&q=a%26b&tag=x%20y&tag=2&near=K%C3%B6ln%2C%20DE&v=1&on=true&o=%7B%22city%22%3A%22K%C3%B6ln%22%2C%22land%22%3A%22DE%22%7D',
  );
  assert.equal((await tool.sent({ page: 0, q: null, tags: [] })).url, '/search?page=0&sort=asc&v=1&on=true');
});

test('TOOL-38 a value cannot break out of a header', async (t) => {
  const tool = await declare(t, get('{base}/', { headers: { 'X-City': 'in {{city}}', Accept: 'text/csv' } }));
  const { headers } = await tool.sent({ city: 'München' });
  assert.equal(Buffer.from(headers['x-city'] as string, 'latin1').toString('latin1'), 'in München');
  assert.equal(headers['accept'], 'text/csv');
  assert.equal('x-city' in (await tool.sent({})).headers, false);
  const before = tool.server.received.length;
  for (const city of ['a\r\nX-Admin: 1', 'a\nb', 'a\0b', 'a\tb', '東京', 'a\u0085b']) {
    const { status, text } = await tool.call({ city });
    assert.equal(status, 'failed');
    assert.equal(text, 'The header x-city holds characters that cannot be sent.');
  }
  assert.equal(tool.server.received.length, before);
});

test('OBS-11 a tool that names its own trace is in that one alone', async (t) => {
  const plain = await declare(t, get('{base}/'));
  const { headers } = await plain.sent({});
  assert.deepEqual([headers['traceparent'], headers['tracestate']], ['of the call', 'k=v']);
  const tool = await declare(t, get('{base}/', { headers: { Traceparent: 'of its own' } }));
  const own = (await tool.sent({})).headers;
  assert.deepEqual([own['traceparent'], own['tracestate']], ['of its own', undefined]);
});

test('TOOL-38 a body written as a mapping keeps the types of whole placeholders', async (t) => {
  const tool = await declare(t, {
    effect: 'Write',
    request: {
      method: 'POST',
      url: '{base}/orders',
      body: {
        id: '{{id}}',
        note: 'for {{name}}: {{id}}',
        items: ['{{item}}', { deep: '{{flag}}' }, '{{gone}}', 7, null],
        all: '{{whole}}',
        gone: '{{gone}}',
        nothing: '{{nothing}}',
      },
    },
  });
  const args = { id: 12, name: '"},{"admin":true', item: [1, 'two'], flag: false, whole: { a: null }, nothing: null };
  const { body, headers } = await tool.sent(args);
  assert.equal(headers['content-type'], 'application/json');
  assert.deepEqual(JSON.parse(body), {
    id: 12,
    note: 'for "},{"admin":true: 12',
    items: [[1, 'two'], { deep: false }, 7, null],
    all: { a: null },
    nothing: null,
  });
});

test('TOOL-38 a body written as JSON text takes placeholders as whole values', async (t) => {
  const tool = await declare(t, {
    request: { method: 'PUT', url: '{base}/', body: `{"a": {{a}}, "b": [{{b}}], "s": \${env:TOKEN}}` },
  });
  const { body } = await tool.sent({ a: '"x"\n', s: 1 });
  assert.deepEqual(JSON.parse(body), { a: '"x"\n', b: [null], s: 'top-secret-token' });
  const alone = await declare(t, { request: { method: 'POST', url: '{base}/', body: '{{payload}}' } });
  assert.deepEqual(JSON.parse((await alone.sent({ payload: { a: [1] } })).body), { a: [1] });
});

test('TOOL-38 values are filled in once and never read as templates', async (t) => {
  const tool = await declare(t, {
    request: { method: 'POST', url: '{base}/{{a}}', body: { a: '{{a}}', lit: `$\${x}` } },
  });
  const { body, url } = await tool.sent({ a: `\${env:TOKEN}{{b}}`, b: 'no' });
  assert.deepEqual(JSON.parse(body), { a: `\${env:TOKEN}{{b}}`, lit: `\${x}` });
  assert.equal(url, `/${encodeURIComponent(`\${env:TOKEN}{{b}}`)}`);
});

test('TOOL-38 arguments that only the prototype has are missing', async (t) => {
  const tool = await declare(t, get('{base}/{{constructor.name}}'));
  assert.equal((await tool.call({})).text, 'An argument that the address needs is missing.');
});

test('TOOL-38 secrets reach the service and nothing else', async (t) => {
  const tool = await declare(
    t,
    get(`{base}/?key=\${env:TOKEN}`, { headers: { Authorization: `Bearer \${env:TOKEN}` } }),
    (request, response) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ url: request.url, headers: request.headers, ok: 1 })),
  );
  const outcome = await tool.call({});
  assert.equal(tool.server.received[0]?.headers.authorization, 'Bearer top-secret-token');
  assert.equal(tool.server.received[0]?.url, '/?key=top-secret-token');
  assert.equal(outcome.status, 'succeeded');
  assert.doesNotMatch(JSON.stringify(outcome), /top-secret/);
  assert.match(outcome.text, /Bearer \*\*\*/);
});

test('TOOL-38 a rotated secret counts for the next call, a lost or unusable one is a tool error', async (t) => {
  const tool = await declare(t, get('{base}/', { headers: { Authorization: `Bearer \${env:TOKEN}` } }));
  tool.secrets.set('TOKEN', 'rotated-token');
  assert.equal((await tool.sent({})).headers.authorization, 'Bearer rotated-token');
  tool.secrets.set('TOKEN', 'line-end\n');
  assert.equal((await tool.call({})).text, 'The header authorization holds characters that cannot be sent.');
  tool.secrets.delete('TOKEN');
  const lost = await tool.call({});
  assert.equal(lost.text, 'A secret of this tool has no value.');
  assert.equal(lost.status, 'failed');
});

test('TOOL-38 a reference may give the base address, which then is fixed', async (t) => {
  const tool = await declare(t, get(`\${env:BASE}/items/{{id}}`));
  tool.secrets.set('BASE', 'http://127.0.0.1:9/other');
  assert.equal((await tool.sent({ id: 'a b' })).url, '/base/items/a%20b');
});

test('TOOL-39 Idempotency-Key goes with Write, Destructive and External, not with Read', async (t) => {
  for (const [effect, key] of [
    ['Write', 'idem-7'],
    ['Destructive', 'idem-7'],
    ['External', 'idem-7'],
    ['Read', undefined],
    [undefined, undefined],
  ]) {
    const tool = await declare(t, { ...(effect === undefined ? {} : { effect }), ...get('{base}/') });
    assert.equal((await tool.sent({})).headers['idempotency-key'], key);
  }
});

const answering = (t: TestContext, status: number, type: string | null, body: string | Uint8Array, more = {}) =>
  declare(t, get('{base}/'), (_request, response) =>
    response.writeHead(status, { ...(type === null ? {} : { 'content-type': type }), ...more }).end(body),
  );

test('TOOL-39 JSON comes back as JSON, other text as text, anything else is a tool error', async (t) => {
  const cases: [type: string | null, body: string | Uint8Array, status: string, text: string][] = [
    ['application/json; charset=utf-8', ' { "a" : 1 } ', 'succeeded', '{"a":1}'],
    ['application/problem+json', '"text"', 'succeeded', 'text'],
    ['Application/JSON', '\ufeff[1]', 'succeeded', '[1]'],
    ['application/json', '{"id": 12345678901234567890}', 'succeeded', '{"id": 12345678901234567890}'],
    ['application/json', '{"a":', 'failed', 'The answer is not valid JSON.'],
    ['application/json', '['.repeat(501), 'failed', 'The answer was not read: The JSON nests deeper than 500 levels.'],
    [
      'application/json',
      new Uint8Array([0x22, 0xff, 0x22]),
      'failed',
      'The answer is not text of the encoding that it names.',
    ],
    ['text/plain', 'hello', 'succeeded', 'hello'],
    ['text/html; charset=ISO-8859-1', new Uint8Array([0x4b, 0xf6]), 'succeeded', 'Kö'],
    ['application/xml', '<a/>', 'succeeded', '<a/>'],
    ['text/plain; charset=nonsense', 'x', 'failed', 'The answer is not text of the encoding that it names.'],
    ['image/png', 'x', 'failed', 'The answer is neither JSON nor text.'],
    [null, 'x', 'failed', 'The answer is neither JSON nor text.'],
    [null, '', 'succeeded', 'null'],
  ];
  for (const [type, body, status, text] of cases) {
    const outcome = await (await answering(t, 200, type, body)).call({});
    assert.deepEqual([outcome.status, outcome.text], [status, text], `${type} ${String(body)}`);
  }
  assert.equal((await (await answering(t, 204, null, '')).call({})).text, 'null');
  const gzip = await answering(t, 200, 'text/plain', 'x', { 'content-encoding': 'gzip' });
  assert.equal((await gzip.call({})).text, 'The answer is compressed, which was not asked for.');
});

test('TOOL-39 another status is a tool error that names the status and not the body; redirects are not followed', async (t) => {
  for (const status of [301, 302, 307, 400, 401, 404, 429, 500, 503]) {
    const tool = await answering(t, status, 'text/plain', 'internal detail', { location: '/elsewhere' });
    const outcome = await tool.call({});
    assert.equal(outcome.status, 'failed');
    assert.equal(outcome.text, `The service answered with HTTP ${status}.`);
    assert.equal(tool.server.received.length, 1);
  }
});

test('TOOL-39 at most 1 MiB is read', async (t) => {
  const fits = await answering(t, 200, 'text/plain', 'x'.repeat(1_048_576));
  assert.equal((await fits.call({})).text.length, 1_048_576);
  const tooLarge = await answering(t, 200, 'text/plain', 'x'.repeat(1_048_577));
  assert.equal((await tooLarge.call({})).text, 'The answer is too large.');
});

test('TOOL-39 a service that cannot be reached is a tool error without an address, and the cause is logged', async (t) => {
  const tool = await declare(t, get('{base}/'), (_request, response) => response.destroy());
  const outcome = await tool.call({});
  assert.equal(outcome.text, 'The connection failed.');
  assert.equal(tool.log.length, 1);
});

test('TOOL-22 cancelling the run ends the request', async (t) => {
  const arrived = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const tool = await declare(t, get('{base}/'), (_request, response) => {
    response.once('close', () => gone.resolve());
    arrived.resolve();
  });
  const controller = new AbortController();
  const pending = tool.call({}, controller.signal);
  await arrived.promise;
  controller.abort();
  assert.equal((await pending).status, 'canceled');
  await gone.promise;
});
