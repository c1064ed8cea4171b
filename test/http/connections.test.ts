import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { ok } from '../../src/contract/operation.ts';
import { ListenError } from '../../src/http/node-server.ts';
import { makeServer, openRaw, startServer } from './support.ts';

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const post = (path: string, body: string, headers = 'Content-Type: application/json\r\n') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const countOf = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;

const refused: readonly (readonly [string, string, number])[] = [
  ['malformed JSON', post('/api/items', '{'), 400],
  ['a wrong content type', post('/api/items', 'x', 'Content-Type: text/plain\r\n'), 415],
  ['an invalid content type', post('/api/items', 'x', 'Content-Type: ;;\r\n'), 415],
  ['a missing credential with an unread body', post('/api/items', '{}', 'Authorization: Bearer bad\r\n'), 401],
  [
    'a missing role',
    post('/api/items', '{}', 'Content-Type: application/json\r\nAuthorization: Bearer nobody\r\n'),
    403,
  ],
  ['a body over the limit', post('/api/items/validate', `"${'x'.repeat(5000)}"`), 413],
  ['an unknown path with a body', post('/nothing', 'x'.repeat(5000), ''), 404],
  ['a wrong method with a body', post('/api/items/a', 'x'.repeat(5000), ''), 405],
  ['a bad path with a body', post('/api/%zz', 'x'.repeat(5000), ''), 400],
  ['a page with a body', `${get('/openapi.json', 'Content-Length: 3\r\n')}abc`, 200],
];

test('keep-alive: after every refusal the next request on the connection is answered', async (t) => {
  const { port } = await startServer(t);
  for (const [name, bytes, status] of refused)
    await t.test(name, async (t) => {
      const raw = await openRaw(t, port);
      raw.send(bytes);
      await raw.until(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*\\}$`));
      raw.send(get('/api/items/after'));
      assert.match(await raw.until(/"name":"after"/), /HTTP\/1\.1 200 OK/);
    });
});

test('pipelining: requests sent together are answered in their order, refused ones included', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  raw.send([get('/api/items/first'), ...refused.map(([, bytes]) => bytes), get('/api/items/last')].join(''));
  const text = await raw.until(/"name":"last"/);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  assert.deepEqual(statuses, [200, ...refused.map(([, , status]) => status), 200]);
  assert.ok(text.indexOf('"name":"first"') < text.indexOf('"name":"last"'));
});

test('bytes that are not HTTP are answered with a problem and the connection is closed', async (t) => {
  const { port } = await startServer(t);
  const malformed = [
    'HELLO\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET /api/items HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n',
    'GET /api/items HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n',
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    'GET /api/it ems HTTP/1.1\r\nHost: x\r\n\r\n',
  ];
  for (const bytes of malformed) {
    const raw = await openRaw(t, port);
    raw.send(bytes);
    const text = await raw.closed();
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\nContent-Type: application\/problem\+json\r\n/, bytes);
    assert.match(text, /"code":"request-malformed"/);
  }
});

test('a chunk that is not one ends a body in progress', async (t) => {
  const { port } = await startServer(t);
  const raw = await openRaw(t, port);
  raw.send(
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  );
  assert.match(await raw.closed(), /^HTTP\/1\.1 400 /);
});

test('headers or a URL beyond the limit are 431', async (t) => {
  const { port } = await startServer(t);
  for (const bytes of [
    get('/api/items', `X-Long: ${'x'.repeat(20_000)}\r\n`),
    get(`/api/items?label=${'x'.repeat(20_000)}`),
  ]) {
    const raw = await openRaw(t, port);
    raw.send(bytes);
    assert.match(await raw.closed(), /^HTTP\/1\.1 431 [\s\S]*"code":"headers-too-large"/);
  }
});

test('malformed bytes behind a request in progress do not disturb its answer', async (t) => {
  const release = Promise.withResolvers<void>();
  const { port } = await startServer(t, {
    wait: async () => {
      await release.promise;
      return ok({ waited: true });
    },
  });
  const raw = await openRaw(t, port);
  raw.send(`${get('/api/items/a/wait')}NOT HTTP\r\n\r\n`);
  const text = raw.closed();
  release.resolve();
  assert.equal(countOf(await text, /HTTP\/1\.1 /g), 1);
});

const impatient = { headersTimeoutMs: 60, requestTimeoutMs: 60, timeoutCheckMs: 20 };

test('connections beyond the limit are closed as they come, and make room for others when they end', async (t) => {
  const { port } = await startServer(t, {}, { limits: { maxConnections: 2 } });
  const open = [await openRaw(t, port), await openRaw(t, port)];
  for (const raw of open) {
    raw.send(get('/api/items/a'));
    await raw.until(/"name":"a"/);
  }
  assert.equal(await (await openRaw(t, port)).closed(), '');
  open[0]?.socket.end();
  await open[0]?.closed();
  const next = await openRaw(t, port);
  next.send(get('/api/items/b'));
  await next.until(/"name":"b"/);
});

test('slow headers and slow bodies are ended with 408', async (t) => {
  const { port } = await startServer(t, {}, { limits: impatient });
  const slowHeaders = await openRaw(t, port);
  slowHeaders.send('GET /api/items HTTP/1.1\r\nHost:');
  assert.match(await slowHeaders.closed(), /^HTTP\/1\.1 408 [\s\S]*"code":"request-timeout"/);
  const slowBody = await openRaw(t, port);
  slowBody.send('POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{');
  assert.match(await slowBody.closed(), /^HTTP\/1\.1 408 /);
});

test('an answer may take longer than a request may', async (t) => {
  const otherTimedOut = Promise.withResolvers<void>();
  const { url, port } = await startServer(
    t,
    {
      wait: async () => {
        await otherTimedOut.promise;
        return ok({});
      },
    },
    { limits: impatient },
  );
  const answer = fetch(`${url}/api/items/a/wait`);
  for (let round = 0; round < 2; round += 1) {
    const slow = await openRaw(t, port);
    slow.send('GET /api/items');
    assert.match(await slow.closed(), /^HTTP\/1\.1 408 /);
  }
  otherTimedOut.resolve();
  assert.equal((await answer).status, 200);
});

test('a client that leaves while it waits aborts the signal; one that stays does not', async (t) => {
  const signals: AbortSignal[] = [];
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const { url, port, server } = await startServer(t, {
    list: async ({ signal }) => {
      signals.push(signal);
      return ok({});
    },
    wait: async ({ signal }) => {
      started.resolve();
      await once(signal, 'abort');
      aborted.resolve();
      return ok({});
    },
  });
  await (await fetch(`${url}/api/items`)).json();
  const raw = await openRaw(t, port);
  raw.send(get('/api/items/a/wait'));
  await started.promise;
  raw.socket.destroy();
  await aborted.promise;
  await server.close();
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false],
  );
});

test('a client that leaves in the middle of its body reaches no handler', async (t) => {
  let calls = 0;
  const authenticated = Promise.withResolvers<void>();
  const { port, server } = await startServer(
    t,
    {
      create: async (_context, { body }) => {
        calls += 1;
        return { status: 201, body };
      },
    },
    {
      authenticate: (request) => {
        authenticated.resolve();
        throw new Error(request.path);
      },
    },
  );
  const raw = await openRaw(t, port);
  raw.send(
    'POST /api/items HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"name":',
  );
  await authenticated.promise;
  raw.socket.destroy();
  await server.close();
  assert.equal(calls, 0);
});

test('an address that cannot be taken is a ListenError that names it', async (t) => {
  const { port } = await startServer(t);
  const refusedWith = (code: string, message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof ListenError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
  const inUse = new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${port}: another program listens there\\.$`);
  await assert.rejects(makeServer(t).listen({ host: '127.0.0.1', port }), refusedWith('EADDRINUSE', inUse));
  const foreign = makeServer(t).listen({ host: '192.0.2.1', port: 0 });
  await assert.rejects(foreign, refusedWith('EADDRNOTAVAIL', /does not have that address/));
});

test('close ends idle connections at once and lets an answer in progress finish within its time', async (t) => {
  const started = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { port, server } = await startServer(t, {
    wait: async () => {
      started.resolve();
      await release.promise;
      return ok({ waited: true });
    },
  });
  const idle = await openRaw(t, port);
  idle.send(get('/api/items/a'));
  await idle.until(/\}$/);
  const busy = await openRaw(t, port);
  busy.send(get('/api/items/a/wait'));
  await started.promise;
  const closing = server.close(60_000);
  await idle.closed();
  release.resolve();
  assert.match(await busy.closed(), /"waited":true/);
  await closing;
});

test('close cuts what is still open when its time is over', async (t) => {
  const started = Promise.withResolvers<void>();
  const { port, server } = await startServer(t, {
    wait: () => {
      started.resolve();
      return new Promise(() => undefined);
    },
  });
  const half = await openRaw(t, port);
  half.send('GET /api/it');
  const busy = await openRaw(t, port);
  busy.send(get('/api/items/a/wait'));
  await started.promise;
  await server.close(20);
  assert.deepEqual([await busy.closed(), await half.closed()], ['', '']);
});

test('a stream that ends during the stop does not keep its connection', async (t) => {
  const ended = Promise.withResolvers<() => void>();
  const { port, server } = await startServer(t, {
    follow: async () => ({
      status: 200,
      stream: {
        subscribe(_onFrames, onEnd) {
          ended.resolve(onEnd);
          return () => undefined;
        },
      },
    }),
  });
  const raw = await openRaw(t, port);
  raw.send(get('/api/items/a/events'));
  const end = await ended.promise;
  await raw.until(/event-stream/);
  const closing = server.close(60_000);
  end();
  assert.match(await raw.closed(), /\r\n0\r\n\r\n$/);
  await closing;
});
