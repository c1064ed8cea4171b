import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ok } from '../../src/contract/operation.ts';
import { noTelemetry } from '../../src/core/telemetry/telemetry.ts';
import { framesThenEnd, openRaw, startServer } from './support.ts';

const always: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

const assertProtected = (headers: Headers, what: string): void => {
  for (const [name, value] of Object.entries(always)) assert.equal(headers.get(name), value, `${what}: ${name}`);
  const policy = headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/, what);
  assert.match(policy, /frame-ancestors 'none'/, what);
  assert.match(headers.get('cache-control') ?? '', /^no-(store|cache)$/, what);
};

const open = (t: TestContext) =>
  startServer(
    t,
    {
      follow: async () => ({ status: 200, stream: framesThenEnd([{ id: 1, event: 'a', data: '{}' }]) }),
      wait: async () => {
        throw new Error('broken');
      },
      list: async (_context, { query }) => ok(query),
    },
    {
      allowedOrigins: ['https://pages.example'],
      metrics: { path: '/metrics', telemetry: noTelemetry(), onlyTenant: null },
      limits: { maxHeaderBytes: 8192 },
    },
  );

const json = { 'content-type': 'application/json' };
const page = { origin: 'https://pages.example' };

/** What is asked, and the status that it gets. */
const calls: Readonly<Record<string, readonly [status: number, path: string, init?: RequestInit]>> = {
  'a JSON answer': [200, '/api/items'],
  'an answer without a body': [204, '/api/items/a/touch', { method: 'POST' }],
  'an event stream': [200, '/api/items/a/events'],
  'an operation without a credential': [200, '/api/open'],
  'a refused body': [400, '/api/items', { method: 'POST', headers: json, body: '{' }],
  'a body that is too large': [
    413,
    '/api/items/validate',
    { method: 'POST', headers: json, body: `"${'x'.repeat(99)}"` },
  ],
  'a foreign media type': [415, '/api/items', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'x' }],
  'a bad credential': [401, '/api/items', { headers: { authorization: 'Bearer bad' } }],
  'a role that is too low': [
    403,
    '/api/items/a/touch',
    { method: 'POST', headers: { authorization: 'Bearer reader' } },
  ],
  'an unknown path': [404, '/nothing'],
  'an empty parameter': [404, '/api/items//events'],
  'a wrong method': [405, '/api/items', { method: 'DELETE' }],
  'a path with wrong percent-encoding': [400, '/api/items/%zz'],
  'a failure': [500, '/api/items/a/wait'],
  'a preflight': [
    204,
    '/api/items',
    { method: 'OPTIONS', headers: { ...page, 'access-control-request-method': 'GET' } },
  ],
  'an answer to a listed page': [200, '/api/items', { headers: page }],
  liveness: [200, '/health/live'],
  readiness: [200, '/health/ready'],
  metrics: [200, '/metrics'],
  'refused metrics': [401, '/metrics', { headers: { authorization: 'Bearer bad' } }],
  'the API description': [200, '/openapi.json'],
  'the refused API description': [401, '/openapi.json', { headers: { authorization: 'Bearer bad' } }],
  'the API page': [200, '/docs'],
  'a script of the API page': [200, '/docs/page.js'],
};

test('SEC-16 every answer carries the headers that keep pages of other sites out', async (t) => {
  const { url } = await open(t);
  for (const [what, [status, path, init]] of Object.entries(calls)) {
    const answer = await fetch(url + path, init);
    await answer.arrayBuffer();
    assert.equal(answer.status, status, what);
    assertProtected(answer.headers, what);
  }
});

test('SEC-16 so does what never became a request', async (t) => {
  const { port } = await open(t);
  const many = Array.from({ length: 1100 }, (_, at) => `a${at}: 1\r\n`).join('');
  const sent: Readonly<Record<string, readonly [status: number, bytes: string]>> = {
    'bytes that are not HTTP': [400, 'not http\r\n\r\n'],
    'no Host header': [400, 'GET /api/items HTTP/1.1\r\n\r\n'],
    'headers that are too large': [431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(9000)}\r\n\r\n`],
    'too many headers': [431, `GET / HTTP/1.1\r\nHost: a\r\n${many}\r\n`],
    'an expectation that nobody knows': [200, 'GET /api/items HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n'],
    'HTTP/1.0': [200, 'GET /api/items HTTP/1.0\r\n\r\n'],
  };
  for (const [what, [status, bytes]] of Object.entries(sent)) {
    const raw = await openRaw(t, port);
    raw.send(bytes);
    const [first = '', ...lines] = (await raw.until(/\r\n\r\n/)).split('\r\n\r\n')[0]?.split('\r\n') ?? [];
    raw.socket.destroy();
    assert.match(first, new RegExp(`^HTTP/1\\.[01] ${status} `), what);
    assertProtected(
      new Headers(lines.map((line): [string, string] => [line.split(': ', 1)[0] ?? '', line.replace(/^[^:]*: /, '')])),
      what,
    );
  }
});
