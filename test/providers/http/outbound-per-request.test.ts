import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { HostResolver } from '../../../src/providers/http/egress.ts';
import { createOutboundHttp, type OutboundRequest } from '../../../src/providers/http/outbound.ts';
import { isTlsFailure, OutboundError } from '../../../src/providers/http/outbound-error.ts';
import { issuedCertificate, whyNoCertificates } from '../../support/certificates.ts';
import { startServer } from './loopback-server.ts';

const outbound = (t: TestContext, options: { allowPrivate?: boolean; resolve: HostResolver }) => {
  const http = createOutboundHttp({ allowPrivate: true, lookupPerRequest: true, ...options });
  t.after(() => http.close());
  return (url: string, request: Partial<OutboundRequest> = {}) =>
    http.request({ method: 'POST', url: new URL(url), body: '{}', maxBodyBytes: 1000, dropBody: true, ...request });
};

const loopback = { address: '127.0.0.1', family: 4 };
const other = { address: '127.0.0.2', family: 4 };

const failure = async (call: Promise<unknown>): Promise<OutboundError> => {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof OutboundError);
  return error;
};

test('WEBHOOK-25 every request looks its host up once, and one connection serves several', async (t) => {
  const server = await startServer((_request, response) => response.end('ok'));
  t.after(() => server.close());
  const asked: string[] = [];
  const send = outbound(t, {
    async resolve(hostname) {
      asked.push(hostname);
      return [loopback];
    },
  });
  for (let count = 0; count < 5; count += 1)
    assert.equal((await send(`http://hooks.example:${server.port}/`)).status, 200);
  assert.deepEqual(asked, Array(5).fill('hooks.example'));
  // One more where the next request comes before the connection is seen to be free.
  assert.ok(server.connections() <= 2, String(server.connections()));
});

test('WEBHOOK-25 a name that means something else by the next request gets another connection, or none', async (t) => {
  const server = await startServer((_request, response) => response.end('ok'));
  t.after(() => server.close());
  const answers = [[loopback], [other], [loopback]];
  let looked = 0;
  const send = outbound(t, { resolve: async () => answers[looked++] ?? [] });
  const url = `http://hooks.example:${server.port}/`;
  await send(url);
  // What is kept open to the address of before is not used: nobody listens at this one.
  assert.equal((await failure(send(url))).code, 'unreachable');
  await send(url);
  assert.equal((await failure(send(url))).code, 'unresolved');
  assert.equal(server.received.length, 2);
});

test('WEBHOOK-25 what is connected to is what was checked, though the name changes at once', async (t) => {
  const server = await startServer((_request, response) => response.end('ok'));
  t.after(() => server.close());
  let looked = 0;
  const send = outbound(t, {
    allowPrivate: false,
    async resolve() {
      looked += 1;
      return looked === 1
        ? [
            { address: '192.0.2.1', family: 4 },
            { address: '8.8.8.8', family: 4 },
          ]
        : [loopback];
    },
  });
  const url = `http://hooks.example:${server.port}/`;
  for (let count = 1; count <= 2; count += 1) {
    assert.equal((await failure(send(url))).code, 'target-not-allowed');
    assert.equal(looked, count, 'there is no second look-up');
  }
  assert.equal(server.received.length, 0);
});

test('WEBHOOK-28 a look-up that hangs ends with the time of the request', async (t) => {
  const send = outbound(t, { resolve: () => new Promise(() => undefined) });
  assert.equal((await failure(send('http://hooks.example/', { timeoutMs: 50 }))).code, 'timed-out');
});

test('WEBHOOK-28 a body that goes on is cut off, and a small one leaves its connection open', async (t) => {
  const server = await startServer(({ url }, response) => response.end('x'.repeat(url === '/long' ? 100_000 : 10)));
  t.after(() => server.close());
  const send = outbound(t, { resolve: async () => [loopback] });
  for (const path of ['/', '/', '/', '/', '/long', '/'])
    assert.equal((await send(`http://hooks.example:${server.port}${path}`)).status, 200);
  assert.ok(server.connections() <= 3, String(server.connections()));
});

test('WEBHOOK-27 certificates are verified: of another name and of an unknown authority there is no request', {
  skip: whyNoCertificates() ?? false,
}, async (t) => {
  const { authority, key, cert } = issuedCertificate(t, 'right.example');
  const before = getCACertificates('default');
  t.after(() => setDefaultCACertificates(before));
  let requests = 0;
  const server = createTlsServer({ key, cert }, (_request, response) => {
    requests += 1;
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  const send = outbound(t, { resolve: async () => [loopback] });
  const unknown = await failure(send(`https://right.example:${port}/`));
  assert.equal(isTlsFailure(unknown), true);
  setDefaultCACertificates([...before, authority]);
  // A dispatcher has made its settings of TLS with its first connection.
  const trusting = outbound(t, { resolve: async () => [loopback] });
  assert.equal((await trusting(`https://right.example:${port}/`)).status, 200);
  const wrong = await failure(trusting(`https://wrong.example:${port}/`));
  assert.deepEqual([wrong.code, isTlsFailure(wrong)], ['unreachable', true]);
  assert.equal(requests, 1);
  const closed = await failure(outbound(t, { resolve: async () => [other] })(`https://right.example:${port}/`));
  assert.equal(isTlsFailure(closed), false, 'a connection that was refused is another failure');
});
