import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { HostResolver } from '../../../src/providers/http/egress.ts';
import { createOutboundHttp, type OutboundRequest } from '../../../src/providers/http/outbound.ts';
import { OutboundError, type OutboundErrorCode } from '../../../src/providers/http/outbound-error.ts';
import { type LoopbackServer, startServer } from './loopback-server.ts';

const serve = async (
  t: TestContext,
  answer: Parameters<typeof startServer>[0] = (_request, response) => response.end('hello'),
): Promise<LoopbackServer> => {
  const server = await startServer(answer);
  t.after(() => server.close());
  return server;
};

const outbound = (t: TestContext, options: { allowPrivate?: boolean; resolve?: HostResolver } = {}) => {
  const http = createOutboundHttp({ allowPrivate: options.allowPrivate ?? false, ...options });
  t.after(() => http.close());
  return (url: string, request: Partial<OutboundRequest> = {}) =>
    http.request({ method: 'GET', url: new URL(url), maxBodyBytes: 1000, ...request });
};

const resolvesTo =
  (...addresses: string[]): HostResolver =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

const failsWith = (code: OutboundErrorCode) => (error: unknown) => {
  assert.ok(error instanceof OutboundError);
  assert.equal(error.code, code);
  assert.doesNotMatch(error.message, /127\.0\.0\.1|rebind/);
  return true;
};

test('EGR-2 private literals are refused unless allowed', async (t) => {
  const server = await serve(t);
  await assert.rejects(outbound(t)(server.url), failsWith('target-not-allowed'));
  assert.equal(server.received.length, 0);
  const answer = await outbound(t, { allowPrivate: true })(`${server.url}/a?b=1`);
  assert.equal(answer.status, 200);
  assert.equal(Buffer.from(answer.body).toString(), 'hello');
  assert.equal(server.received[0]?.url, '/a?b=1');
});

test('EGR-3 localhost counts as loopback even when the resolver says otherwise', async (t) => {
  const send = outbound(t, { resolve: resolvesTo('8.8.8.8') });
  await assert.rejects(send('http://localhost:1/'), failsWith('target-not-allowed'));
  await assert.rejects(send('http://x.localhost:1/'), failsWith('target-not-allowed'));
});

test('EGR-4 one private address among the resolved ones is enough to refuse', async (t) => {
  const server = await serve(t);
  for (const addresses of [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['::ffff:127.0.0.1'], ['::1', '8.8.8.8']]) {
    const send = outbound(t, { resolve: resolvesTo(...addresses) });
    await assert.rejects(send(`http://tools.example:${server.port}/`), failsWith('target-not-allowed'));
  }
  assert.equal(server.received.length, 0);
});

test('EGR-4 the socket takes the address that was checked: one lookup for each connection', async (t) => {
  const server = await serve(t);
  const asked: string[] = [];
  const send = outbound(t, {
    allowPrivate: true,
    resolve: async (hostname) => {
      asked.push(hostname);
      return [{ address: '127.0.0.1', family: 4 }];
    },
  });
  await send(`http://tools.example:${server.port}/`);
  assert.deepEqual(asked, ['tools.example']);
  assert.equal(server.received[0]?.headers.host, `tools.example:${server.port}`);
});

test('EGR-4 every connection is checked afresh, whatever an earlier lookup said', async (t) => {
  const server = await serve(t);
  const answers = [[], [{ address: '127.0.0.1', family: 4 }], [{ address: '8.8.8.8', family: 4 }]];
  let lookups = 0;
  const send = outbound(t, { resolve: async () => answers[lookups++] ?? [] });
  await assert.rejects(send(`http://rebind.example:${server.port}/`), failsWith('unresolved'));
  await assert.rejects(send(`http://rebind.example:${server.port}/`), failsWith('target-not-allowed'));
  // A second lookup for the refused connection would have used up the public answer.
  assert.equal(lookups, 2);
  assert.equal(server.received.length, 0);
});

test('EGR-5 a redirect is an answer like any other', async (t) => {
  const server = await serve(t, (_request, response) =>
    response.writeHead(302, { location: '/elsewhere' }).end('moved'),
  );
  const answer = await outbound(t, { allowPrivate: true })(server.url);
  assert.equal(answer.status, 302);
  assert.equal(answer.headers['location'], '/elsewhere');
  assert.equal(server.received.length, 1);
});

test('EGR-5 proxy variables are not used', async (t) => {
  const server = await serve(t);
  const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'];
  const before = names.map((name) => [name, process.env[name]] as const);
  for (const name of names) process.env[name] = 'http://127.0.0.1:9';
  t.after(() => {
    for (const [name, value] of before)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  assert.equal((await outbound(t, { allowPrivate: true })(server.url)).status, 200);
});

test('only http and https are spoken', async (t) => {
  await assert.rejects(outbound(t)('ftp://example.com/'), failsWith('invalid-request'));
  await assert.rejects(outbound(t)('file:///etc/passwd'), failsWith('invalid-request'));
});

test('a body over the limit is cut off, whether its length was announced or not', async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url === '/announced') response.writeHead(200, { 'content-length': '1001' }).end('x'.repeat(1001));
    else {
      response.write('x'.repeat(600));
      response.end('x'.repeat(600));
    }
  });
  const send = outbound(t, { allowPrivate: true });
  await assert.rejects(send(`${server.url}/announced`), failsWith('response-too-large'));
  await assert.rejects(send(`${server.url}/chunked`), failsWith('response-too-large'));
  assert.equal((await send(`${server.url}/announced`, { maxBodyBytes: 1001 })).body.byteLength, 1001);
});

test('the body of an error is left unread when nobody wants it', async (t) => {
  const server = await serve(t, (_request, response) => response.writeHead(500).end('y'.repeat(50_000)));
  const answer = await outbound(t, { allowPrivate: true })(server.url, { readErrorBody: false });
  assert.equal(answer.status, 500);
  assert.equal(answer.body.byteLength, 0);
});

test('a stalled answer ends with the time limit and with the signal', async (t) => {
  const server = await serve(t, (request, response) => {
    if (request.url === '/half') response.write('x');
  });
  const send = outbound(t, { allowPrivate: true });
  await assert.rejects(send(server.url, { timeoutMs: 30 }), failsWith('timed-out'));
  await assert.rejects(send(`${server.url}/half`, { timeoutMs: 30 }), failsWith('timed-out'));
  const controller = new AbortController();
  const pending = send(`${server.url}/half`, { signal: controller.signal });
  controller.abort();
  await assert.rejects(pending, failsWith('canceled'));
  await assert.rejects(send(server.url, { signal: AbortSignal.abort() }), failsWith('canceled'));
});

test('failures of the network are one typed error', async (t) => {
  const server = await startServer((_request, response) => response.destroy());
  const send = outbound(t, { allowPrivate: true });
  await assert.rejects(send(server.url), failsWith('unreachable'));
  await server.close();
  await assert.rejects(send(server.url), failsWith('unreachable'));
  const failing = outbound(t, { resolve: () => Promise.reject(new Error('SERVFAIL for rebind.example')) });
  await assert.rejects(failing('http://rebind.example/'), failsWith('unresolved'));
  await assert.rejects(outbound(t, { resolve: resolvesTo() })('http://empty.example/'), failsWith('unresolved'));
});

test('a header that would break the message is refused before anything is sent', async (t) => {
  const server = await serve(t);
  const send = outbound(t, { allowPrivate: true });
  await assert.rejects(send(server.url, { headers: { 'x-a': 'b\r\nx-c: d' } }), failsWith('invalid-request'));
  assert.equal(server.received.length, 0);
});
