import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { ok } from '../../src/contract/operation.ts';
import type { CallerRequest } from '../../src/core/caller/caller-request.ts';
import type { HealthState } from '../../src/http/health.ts';
import { admin, openRaw, problemOf, startServer } from './support.ts';

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('every answer has a fresh X-Request-Id, a UUID of version 7, whatever the caller sends', async (t) => {
  const { url } = await startServer(t);
  const ids = new Set<string>();
  for (const path of ['/api/items', '/api/items/a', '/nothing', '/api/items/%zz', '/openapi.json', '/health/live']) {
    const answer = await fetch(url + path, { headers: { 'x-request-id': 'mine' } });
    const id = answer.headers.get('x-request-id') ?? '';
    assert.match(id, uuid7, path);
    ids.add(id);
  }
  assert.equal(ids.size, 6);
});

test('names are decoded once: dots, percent-encoded letters and spaces reach the operation as meant', async (t) => {
  const { url } = await startServer(t);
  const nameAt = async (path: string) => ((await (await fetch(url + path)).json()) as { name?: string }).name;
  assert.equal(await nameAt('/api/items/a.b-c_1'), 'a.b-c_1');
  assert.equal(await nameAt('/api/items/%61%2Eb'), 'a.b');
  assert.equal(await nameAt(`/api/items/${'n'.repeat(128)}`), 'n'.repeat(128));
});

test('a name that only a decoded path could break is refused as a name', async (t) => {
  const { url } = await startServer(t);
  const names = [
    'a%2Fb',
    'a%252Fb',
    '..%2f..%2fetc',
    'a%0D%0AX-Evil:%201',
    'a%00',
    '%E2%80%AE',
    'n'.repeat(129),
    'x'.repeat(9000),
  ];
  for (const name of names) {
    const answer = await fetch(`${url}/api/items/${name}`);
    const { code } = await problemOf(answer);
    assert.deepEqual([answer.status, code], [400, 'validation-failed'], name);
    assert.equal(answer.headers.get('x-evil'), null);
  }
});

test('wrong percent-encoding in a path is 400 on every route', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  for (const path of ['/api/items/%', '/api/items/%zz', '/api/%ff', '/%c3%28/x']) {
    raw.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    assert.match(await raw.until(new RegExp(`"instance":"${path}"`)), /HTTP\/1\.1 400 /);
  }
});

test('a fixed segment wins over a parameter, for its own method only', async (t) => {
  const { url } = await startServer(t);
  const shown = await fetch(`${url}/api/items/validate`);
  assert.deepEqual(await shown.json(), { name: 'validate', path: '/api/items/validate' });
  const headers = { 'content-type': 'application/json' };
  const validated = await fetch(`${url}/api/items/validate`, { method: 'POST', headers, body: '1' });
  assert.deepEqual(await validated.json(), { received: 1 });
});

test('an unknown path is 404 and a known one with another method 405 with Allow', async (t) => {
  const { url } = await startServer(t);
  for (const path of [
    '/',
    '/api',
    '/api/items//',
    '//api/items',
    '/API/items',
    '/api/items/a/b/c',
    '/api/items//events',
  ]) {
    const answer = await fetch(url + path);
    assert.deepEqual([answer.status, (await problemOf(answer)).code], [404, 'not-found'], path);
  }
  const wrong: readonly (readonly [string, string, string])[] = [
    ['PUT', '/api/items', 'GET, POST'],
    ['PATCH', '/api/items/a', 'DELETE, GET'],
    ['PUT', '/api/items/validate', 'DELETE, GET, POST'],
    ['OPTIONS', '/api/items/a/touch', 'POST'],
    ['POST', '/openapi.json', 'GET'],
    ['DELETE', '/docs', 'GET'],
    ['POST', '/health/live', 'GET'],
  ];
  for (const [method, path, allow] of wrong) {
    const answer = await fetch(url + path, { method });
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow], path);
    assert.equal((await problemOf(answer)).code, 'method-not-allowed');
  }
  assert.equal((await fetch(`${url}/api/items`, { method: 'HEAD' })).status, 405);
});

test('a slash at the end of any path means nothing', async (t) => {
  const { url } = await startServer(t, {}, { prefix: '/acp' });
  const answerOf = async (path: string, method = 'GET') => {
    const answer = await fetch(url + path, { method });
    return [answer.status, answer.headers.get('allow'), (await answer.text()).replace(/"requestId":"[^"]*"/, '')];
  };
  for (const [path, method, status] of [
    ['/acp/api/items', 'GET', 200],
    ['/acp/api/items/a', 'GET', 200],
    ['/acp/api/items/validate', 'GET', 200],
    ['/acp/openapi.json', 'GET', 200],
    ['/acp/docs', 'GET', 200],
    ['/health/live', 'GET', 200],
    ['/acp/api/items', 'PUT', 405],
    ['/acp/docs', 'DELETE', 405],
    ['/acp/nothing', 'GET', 404],
  ] as const) {
    const without = await answerOf(path, method);
    assert.equal(without[0], status, path);
    assert.deepEqual(await answerOf(`${path}/`, method), without, path);
    assert.deepEqual(await answerOf(`${path}/?x=1/`, method), await answerOf(`${path}?x=1/`, method), path);
  }
});

test('uncommon methods are answered like any wrong one', async (t) => {
  const { port } = await startServer(t);
  for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'QUERY']) {
    const raw = await openRaw(t, port);
    raw.send(`${method} /api/items HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi`);
    assert.match(await raw.until(/\}$/), /^HTTP\/1\.1 40[05] .*\r\n/, method);
  }
});

test('the absolute form of a target, as proxies send it, is the same request', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  raw.send('GET http://example.test/api/items/a?x=1 HTTP/1.1\r\nHost: example.test\r\n\r\n');
  assert.match(await raw.until(/\}$/), /"path":"\/api\/items\/a"/);
});

test('with a prefix, operations and pages are below it, health is not, and paths are told without it', async (t) => {
  const { url } = await startServer(t, {}, { prefix: '/acp/' });
  assert.deepEqual(await (await fetch(`${url}/acp/api/items/a`)).json(), { name: 'a', path: '/api/items/a' });
  assert.equal((await fetch(`${url}/api/items/a`)).status, 404);
  assert.equal((await fetch(`${url}/acp/openapi.json`)).status, 200);
  assert.equal((await fetch(`${url}/acp/docs`)).status, 200);
  assert.equal((await fetch(`${url}/health/ready`)).status, 200);
  const { problem } = await problemOf(await fetch(`${url}/acp/api/items/a`, { method: 'PUT' }));
  assert.equal(problem['instance'], '/acp/api/items/a');
});

test('authentication learns which operation is called, so that one without a role need not refuse', async (t) => {
  const { url } = await startServer(
    t,
    {},
    {
      authenticate: (_request, operation) => {
        if (operation?.role === null) return admin;
        throw new AcpError('unauthenticated', 'No.');
      },
    },
  );
  assert.equal((await fetch(`${url}/api/open`)).status, 200);
  assert.equal((await fetch(`${url}/api/items`)).status, 401);
  assert.equal((await fetch(`${url}/openapi.json`)).status, 401);
});

test('authentication sees the peer, the path below the prefix, and how often a header was sent', async (t) => {
  const seen: CallerRequest[] = [];
  const authenticate = (request: CallerRequest) => {
    seen.push(request);
    return admin;
  };
  const { port } = await startServer(t, {}, { prefix: '/acp', authenticate });
  const raw = await openRaw(t, port);
  raw.send(
    'GET /acp/api/items/a?key=1 HTTP/1.1\r\nHost: x\r\nX-Api-Key: one\r\nx-api-KEY: two\r\nOrigin: http://o\r\n\r\n',
  );
  await raw.until(/\}$/);
  const [request] = seen;
  assert.deepEqual([request?.peerAddress, request?.method, request?.path], ['127.0.0.1', 'GET', '/api/items/a']);
  assert.deepEqual([request?.headerCount('x-api-key'), request?.headerCount('authorization')], [2, 0]);
  assert.deepEqual([request?.header('origin'), request?.header('authorization')], ['http://o', undefined]);
});

test('an authentication that fails refuses: its own problem, or 500 for a bug, never a pass', async (t) => {
  let failure: Error = new AcpError('store-unavailable', 'The store is away.');
  let calls = 0;
  const handler = async () => {
    calls += 1;
    return ok({});
  };
  const { url } = await startServer(t, { list: handler }, { authenticate: () => Promise.reject(failure) });
  assert.equal((await fetch(`${url}/api/items`)).status, 503);
  failure = new Error('bug');
  assert.equal((await fetch(`${url}/api/items`)).status, 500);
  assert.equal((await fetch(`${url}/openapi.json`)).status, 500);
  assert.equal((await fetch(`${url}/docs`)).status, 500);
  assert.equal(calls, 0);
});

test('OBS-32 live is always 200; ready is 200 for Healthy and Degraded, else 503 with Retry-After', async (t) => {
  let state: HealthState = { status: 'Healthy' };
  let failing = false;
  const health = async () => {
    if (failing) throw new Error('secret');
    return state;
  };
  const authenticate = () => {
    throw new AcpError('unauthenticated', 'No.');
  };
  const { url } = await startServer(t, {}, { health, authenticate });
  const ready = async () => {
    const answer = await fetch(`${url}/health/ready`);
    return [answer.status, answer.headers.get('retry-after'), await answer.text()];
  };
  assert.deepEqual(await ready(), [200, null, '{"status":"Healthy"}']);
  state = { status: 'Degraded' };
  assert.deepEqual(await ready(), [200, null, '{"status":"Degraded"}']);
  state = { status: 'Unhealthy' };
  assert.deepEqual(await ready(), [503, '1', '{"status":"Unhealthy"}']);
  state = { status: 'Draining' };
  assert.deepEqual(await ready(), [503, '1', '{"status":"Draining"}']);
  failing = true;
  assert.deepEqual(await ready(), [503, '1', '{"status":"Unhealthy"}']);
  const live = await fetch(`${url}/health/live`);
  assert.deepEqual([live.status, await live.text()], [200, '{"status":"Healthy"}']);
});

test('OBS-32 a health path of null has no route', async (t) => {
  const { url } = await startServer(t, {}, { livePath: null, readyPath: '/ready' });
  assert.equal((await fetch(`${url}/health/live`)).status, 404);
  assert.equal((await fetch(`${url}/ready`)).status, 200);
});

const origin = 'https://console.example';
const corsHeaders = (answer: Response) =>
  [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));

test('SEC-46 without allowed origins no CORS header is sent and a preflight is any wrong method', async (t) => {
  const { url } = await startServer(t);
  const headers = { origin, 'access-control-request-method': 'POST' };
  const preflight = await fetch(`${url}/api/items`, { method: 'OPTIONS', headers });
  assert.deepEqual([preflight.status, corsHeaders(preflight)], [405, []]);
  assert.deepEqual(corsHeaders(await fetch(`${url}/api/items`, { headers })), []);
});

test('SEC-47 a listed origin is echoed on every answer, and its preflight needs no credential', async (t) => {
  const { url } = await startServer(t, {}, { allowedOrigins: [origin] });
  for (const path of ['/api/items', '/api/items/%2F', '/nothing', '/openapi.json']) {
    const answer = await fetch(url + path, { headers: { origin } });
    assert.equal(answer.headers.get('access-control-allow-origin'), origin, path);
    assert.equal(answer.headers.get('vary'), 'Origin');
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /X-Run-Id/);
    assert.equal(answer.headers.get('access-control-allow-credentials'), null);
  }
  const headers = { origin, 'access-control-request-method': 'DELETE', authorization: 'Bearer bad' };
  const preflight = await fetch(`${url}/api/items/a`, { method: 'OPTIONS', headers });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-methods'), 'DELETE, GET');
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Authorization.*Last-Event-ID/);
  assert.equal(preflight.headers.get('access-control-max-age'), '600');
});

test('SEC-47 a page of a listed origin may send and read what clients of other protocols do', async (t) => {
  const { url } = await startServer(t, {}, { allowedOrigins: [origin] });
  const ask = async (names: string) => {
    const headers = { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': names };
    const preflight = await fetch(`${url}/api/items`, { method: 'OPTIONS', headers });
    return (preflight.headers.get('access-control-allow-headers') ?? '').split(', ').slice(7);
  };
  const known = ['x-stainless-lang', 'OpenAI-Organization', 'mcp-protocol-version', 'a2a-extensions'];
  assert.deepEqual(await ask(`authorization, ${known.join(',')}`), known);
  assert.deepEqual(await ask('x-forwarded-for, x-real-ip, cookie, openai-, x-stainless-a b, *'), []);
  assert.equal((await ask(Array.from({ length: 100 }, (_, at) => `mcp-${at}`).join())).length, 32);
  const answer = await fetch(`${url}/api/items`, { headers: { origin } });
  const exposed = answer.headers.get('access-control-expose-headers') ?? '';
  for (const name of ['X-Request-Id', 'X-Should-Retry', 'Retry-After-Ms', 'MCP-Protocol-Version', 'A2A-Version'])
    assert.ok(exposed.split(', ').includes(name), name);
});

test('SEC-48 an unlisted origin gets no CORS header, and the request is handled as usual', async (t) => {
  const { url } = await startServer(t, {}, { allowedOrigins: [origin] });
  for (const foreign of ['https://evil.example', `${origin}.evil.example`, 'null']) {
    const answer = await fetch(`${url}/api/items`, { headers: { origin: foreign } });
    assert.deepEqual([answer.status, corsHeaders(answer)], [200, []]);
  }
});

test('answers are not cached or sniffed unless the operation says otherwise', async (t) => {
  const { url } = await startServer(t);
  const answer = await fetch(`${url}/api/items`);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(answer.headers.get('content-type'), 'application/json');
});
