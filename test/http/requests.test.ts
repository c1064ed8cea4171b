import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { ok } from '../../src/contract/operation.ts';
import { clientAddressReader } from '../../src/core/caller/client-address.ts';
import { type LogLine, openRaw, problemOf, recordingLogger, startServer } from './support.ts';

const json = { 'content-type': 'application/json' };
const item = { name: 'a', color: 'Red', count: 1 };

interface Hostile {
  readonly name: string;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  readonly path?: string;
  readonly status: number;
  readonly code: string;
  readonly detail: RegExp;
}

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

const hostile: readonly Hostile[] = [
  { name: 'malformed JSON', body: '{"name":', status: 400, code: 'malformed-json', detail: /not valid JSON/ },
  { name: 'text after the JSON', body: '{} {}', status: 400, code: 'malformed-json', detail: /not valid JSON/ },
  { name: 'no body', status: 400, code: 'validation-failed', detail: /body is required/ },
  { name: 'an array for an object', body: '[]', status: 400, code: 'validation-failed', detail: /body/ },
  { name: 'null for an object', body: 'null', status: 400, code: 'validation-failed', detail: /body/ },
  {
    name: 'a wrong type',
    body: JSON.stringify({ ...item, count: '1' }),
    status: 400,
    code: 'validation-failed',
    detail: /^count /,
  },
  {
    name: 'an unknown member',
    body: JSON.stringify({ ...item, colour: 1 }),
    status: 400,
    code: 'validation-failed',
    detail: /^colour is not a known field/,
  },
  {
    name: 'a missing member',
    body: JSON.stringify({ name: 'a', color: 'Red' }),
    status: 400,
    code: 'validation-failed',
    detail: /^count is required/,
  },
  {
    name: 'a word outside the enumeration',
    body: JSON.stringify({ ...item, color: 'Blue' }),
    status: 400,
    code: 'validation-failed',
    detail: /^color must be one of Red, Green/,
  },
  {
    name: 'invalid UTF-8',
    body: Uint8Array.from([0x22, 0xc3, 0x28, 0x22]),
    status: 400,
    code: 'malformed-json',
    detail: /UTF-8/,
  },
  {
    name: 'a truncated UTF-8 sequence',
    body: Uint8Array.from([0x22, 0xe2, 0x82, 0x22]),
    status: 400,
    code: 'malformed-json',
    detail: /UTF-8/,
  },
  {
    name: 'UTF-16',
    body: Uint8Array.from(Buffer.from('{}', 'utf16le')),
    status: 400,
    code: 'malformed-json',
    detail: /JSON/,
  },
  { name: 'deep nesting', body: nested(65), status: 400, code: 'validation-failed', detail: /64 levels/ },
  { name: 'very deep nesting', body: nested(100_000), status: 400, code: 'validation-failed', detail: /64 levels/ },
  {
    name: '__proto__',
    body: '{"__proto__":{"role":"Admin"}}',
    status: 400,
    code: 'validation-failed',
    detail: /__proto__/,
  },
  {
    name: 'an escaped __proto__, below',
    body: '{"name":{"a":[{"\\u005f_proto__":1}]}}',
    status: 400,
    code: 'validation-failed',
    detail: /__proto__/,
  },
  {
    name: 'constructor.prototype',
    body: '{"constructor":{"prototype":{"a":1}}}',
    status: 400,
    code: 'validation-failed',
    detail: /constructor/,
  },
  {
    name: 'another media type',
    body: 'name=a',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    code: 'unsupported-media-type',
    detail: /application\/json/,
  },
  {
    name: 'another charset',
    body: '{}',
    headers: { 'content-type': 'application/json; charset=latin1' },
    status: 415,
    code: 'unsupported-media-type',
    detail: /application\/json/,
  },
  {
    name: 'a media type that is none',
    body: '{}',
    headers: { 'content-type': 'application/json/x;;=' },
    status: 415,
    code: 'unsupported-media-type',
    detail: /./,
  },
  {
    name: 'a body over the limit',
    body: `"${'x'.repeat(1_048_576)}"`,
    status: 413,
    code: 'payload-too-large',
    detail: /1048576 bytes/,
  },
  {
    name: "a body over the operation's own limit",
    path: '/api/items/validate',
    body: `"${'x'.repeat(64)}"`,
    status: 413,
    code: 'payload-too-large',
    detail: /64 bytes/,
  },
  {
    name: 'a body where none is taken',
    path: '/api/items/a/touch',
    body: '{"force":true}',
    status: 400,
    code: 'validation-failed',
    detail: /takes no body/,
  },
];

test('a hostile body is refused with a problem that names what is wrong, and the connection goes on', async (t) => {
  const { url } = await startServer(t);
  for (const { name, body, headers, path = '/api/items', status, code, detail } of hostile)
    await t.test(name, async () => {
      const answer = await fetch(url + path, {
        method: 'POST',
        headers: headers ?? (body === undefined ? {} : json),
        ...(body === undefined ? {} : { body }),
      });
      const problem = await problemOf(answer);
      assert.deepEqual([problem.status, problem.code], [status, code]);
      assert.match(problem.detail, detail);
      assert.equal(answer.headers.get('content-type'), 'application/problem+json');
      assert.equal(problem.problem['requestId'], answer.headers.get('x-request-id'));
      assert.equal(problem.problem['instance'], path);
      assert.equal(problem.problem['type'], `urn:acp:problem:${code}`);
    });
});

test('a body is taken as it was sent: byte order mark, unusual spacing and every character that a store holds', async (t) => {
  const bodies: (Uint8Array | null)[] = [];
  const { url } = await startServer(t, {
    validate: async (context, { body }) => {
      bodies.push(context.rawBody);
      return ok({ received: body });
    },
  });
  const text = '\uFEFF { "a" :\t"é 🙂\\u0000" } ';
  const headers = { 'content-type': 'Application/JSON; charset="UTF-8"' };
  const answer = await fetch(`${url}/api/items/validate`, { method: 'POST', headers, body: text });
  // The handler gets what stores hold; the bytes as they came are there for signatures and fingerprints.
  assert.deepEqual(await answer.json(), { received: { a: 'é 🙂\ufffd' } });
  assert.equal(Buffer.from(bodies[0] ?? []).toString('utf8'), text);
});

test('an empty object, or a content type alone, is no body', async (t) => {
  const { url } = await startServer(t);
  for (const init of [{ headers: json, body: ' {} ' }, { headers: { 'content-type': 'text/plain' } }, {}]) {
    const answer = await fetch(`${url}/api/items/a/touch`, { method: 'POST', ...init });
    assert.equal(answer.status, 204);
    assert.equal(await answer.text(), '');
    assert.equal(answer.headers.get('content-length'), null);
  }
});

test('a chunked body over the limit is refused and the connection stays usable', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  const chunk = `40\r\n${'x'.repeat(64)}\r\n`;
  raw.send('POST /api/items/validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n');
  raw.send(`Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`);
  assert.match(await raw.until(/requestId/), /^HTTP\/1\.1 413 /);
  raw.send(`${chunk.repeat(50)}0\r\n\r\nGET /api/items/next HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.match(await raw.until(/"name":"next"/), /HTTP\/1\.1 200 OK/);
});

test('a declared length over the limit is refused before the body is sent', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  raw.send(
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n{',
  );
  assert.match(await raw.until(/requestId/), /^HTTP\/1\.1 413 /);
});

test('SEC-1 the credential comes before the body: a bad one is 401 whatever the body is', async (t) => {
  const { url } = await startServer(t);
  const headers = { ...json, authorization: 'Bearer bad' };
  for (const body of ['{', '{}', JSON.stringify(item), `"${'x'.repeat(2_000_000)}"`]) {
    const answer = await fetch(`${url}/api/items`, { method: 'POST', headers, body });
    assert.equal((await problemOf(answer)).code, 'unauthenticated');
    assert.equal(answer.status, 401);
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
  }
});

test('SEC-1 role and scope come before the content of the body', async (t) => {
  const { url } = await startServer(t);
  const headers = { ...json, authorization: 'Bearer reader' };
  const answer = await fetch(`${url}/api/items`, { method: 'POST', headers, body: '{"unknown":1}' });
  const { code, problem } = await problemOf(answer);
  assert.deepEqual([answer.status, code, problem['requiredRole']], [403, 'insufficient-role', 'Operator']);
});

test('a query is parsed strictly: repeated names are lists, numbers are parsed, wrong values are named', async (t) => {
  const { url } = await startServer(t);
  const ask = (query: string) => fetch(`${url}/api/items?${query}`);
  assert.deepEqual(await (await ask('take=3&label=a%20b+c%26&ids=1')).json(), { take: 3, label: 'a b c&', ids: ['1'] });
  assert.deepEqual(await (await ask('ids=1&ids=2')).json(), { ids: ['1', '2'] });
  assert.match((await problemOf(await ask('take=x'))).detail, /^take /);
  assert.match((await problemOf(await ask('label=a&label=b'))).detail, /^label /);
  assert.match((await problemOf(await ask('label=%'))).detail, /percent-encoded/);
  assert.match((await problemOf(await ask('label=%ff'))).detail, /percent-encoded/);
  assert.equal((await ask('__proto__=1&constructor=2')).status, 200);
});

test('header values can carry nothing into the answer: a line break or a control character is an internal error', async (t) => {
  const lines: LogLine[] = [];
  const log = recordingLogger(lines);
  const bad = ['/a\r\nSet-Cookie: x=1', 'a\u0000', 'é'];
  const { url } = await startServer(
    t,
    { create: async (_context, { body }) => ({ status: 201, body, headers: { Location: bad[body.count] ?? '' } }) },
    { log },
  );
  for (const [count] of bad.entries()) {
    const answer = await fetch(`${url}/api/items`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ ...item, count }),
    });
    assert.equal(answer.status, 500);
    assert.equal(answer.headers.get('set-cookie'), null);
    assert.equal((await problemOf(answer)).code, 'internal');
  }
  assert.equal(lines.length, bad.length);
});

test('an unexpected failure is 500 with a request id that the log explains, and nothing else', async (t) => {
  const lines: LogLine[] = [];
  const failure = new Error('secret detail of a driver');
  const { url } = await startServer(t, { get: () => Promise.reject(failure) }, { log: recordingLogger(lines) });
  const answer = await fetch(`${url}/api/items/a`);
  const text = await answer.text();
  assert.equal(answer.status, 500);
  assert.doesNotMatch(text, /secret|support\.ts|at /);
  assert.equal(lines[0]?.level, 'error');
  assert.equal(lines[0]?.fields['error'], failure);
  assert.equal(lines[0]?.fields['requestId'], answer.headers.get('x-request-id'));
});

test('a body that cannot be serialised is an internal error, not a hanging request', async (t) => {
  const { url } = await startServer(t, { list: async () => ok({ value: 1n }) });
  assert.equal((await fetch(`${url}/api/items`)).status, 500);
});

test('details become headers: Retry-After in whole seconds, rounded up, and X-Run-Id', async (t) => {
  const errors: Record<string, AcpError> = {
    limited: new AcpError('rate-limited', 'Slow down.', { details: { retryAfterMs: 1001 } }),
    draining: new AcpError('draining', 'Stopping.'),
    run: new AcpError('provider-error', 'It failed.', { cause: new Error('foreign'), details: { runId: 'r-1' } }),
  };
  const { url } = await startServer(t, {
    get: async (_context, { params }) => {
      throw errors[params.name] ?? new Error(params.name);
    },
  });
  const limited = await fetch(`${url}/api/items/limited`);
  assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '2']);
  assert.equal((await problemOf(limited)).problem['retryAfterMs'], 1001);
  const draining = await fetch(`${url}/api/items/draining`);
  assert.deepEqual([draining.status, draining.headers.get('retry-after')], [503, '1']);
  const run = await fetch(`${url}/api/items/run`);
  assert.deepEqual([run.status, run.headers.get('x-run-id')], [502, 'r-1']);
  assert.doesNotMatch(await run.text(), /foreign|runId/);
});

test('SEC-9 the log names the client of a failed request, as a trusted proxy tells it', async (t) => {
  for (const [proxies, client] of [
    [['127.0.0.1'], '203.0.113.9'],
    [[], '127.0.0.1'],
  ] as const) {
    const lines: LogLine[] = [];
    const { url } = await startServer(
      t,
      { get: () => Promise.reject(new Error('broken')) },
      { log: recordingLogger(lines), clientAddress: clientAddressReader(proxies) },
    );
    await fetch(`${url}/api/items/a`, { headers: { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' } });
    assert.equal(lines[0]?.fields['client'], client);
  }
});
