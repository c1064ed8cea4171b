import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { call, openSocket, openStream, received } from '../e2e/wire.ts';
import { eventually, inTime } from '../support/eventually.ts';
import { startRoundRobinProxy } from '../support/round-robin-proxy.ts';

const target = async (context: TestContext, listener: RequestListener) => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  context.after(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
};

const proxyFor = async (context: TestContext, targets: readonly string[]) => {
  const proxy = await startRoundRobinProxy(targets);
  context.after(proxy.close);
  return proxy;
};

test('one request after another goes to the next target, with its body and its headers', async (context) => {
  const named =
    (name: string): RequestListener =>
    async (request, response) => {
      let text = '';
      for await (const part of request) text += String(part);
      response.setHeader('x-name', name).end(`${request.method} ${request.url} ${request.headers['x-who']} ${text}`);
    };
  const targets = await Promise.all(['a', 'b'].map((name) => target(context, named(name))));
  const proxy = await proxyFor(
    context,
    targets.map(({ url }) => url),
  );
  const names: unknown[] = [];
  for (let count = 0; count < 4; count += 1) {
    const answer = await call(`${proxy.url}/x?y=1`, { body: { count }, headers: { 'x-who': 'me' } });
    assert.equal(answer.text, `POST /x?y=1 me {"count":${count}}`);
    names.push(answer.headers['x-name']);
  }
  assert.deepEqual(names, ['a', 'b', 'a', 'b']);
});

test('who gave each answer is told, with what it was asked', async (context) => {
  const answering: RequestListener = (_, response) => response.setHeader('x-run-id', 'r').end();
  const targets = await Promise.all([target(context, answering), target(context, answering)]);
  const urls = targets.map(({ url }) => url);
  const told: unknown[] = [];
  const proxy = await startRoundRobinProxy(urls, (from, request, answer) =>
    told.push([from, request.url, request.headers['x-who'], answer.headers['x-run-id']]),
  );
  context.after(proxy.close);
  for (const path of ['/a', '/b']) await call(proxy.url + path, { headers: { 'x-who': 'me' } });
  assert.deepEqual(told, [
    [urls[0], '/a', 'me', 'r'],
    [urls[1], '/b', 'me', 'r'],
  ]);
});

test('a target that takes no connection is passed over, and one that had the request never gets it twice', async (context) => {
  let arrived = 0;
  const dead = await target(context, () => undefined);
  const dies = await target(context, (request) => {
    arrived += 1;
    request.socket.destroy();
  });
  const lives = await target(context, (_, response) => response.end('alive'));
  dead.close();
  const proxy = await proxyFor(context, [dead.url, lives.url]);
  for (let count = 0; count < 4; count += 1) assert.equal((await call(proxy.url, { body: 'x' })).text, 'alive');
  proxy.use([dies.url, lives.url]);
  const statuses: number[] = [];
  for (let count = 0; count < 4; count += 1) statuses.push((await call(proxy.url, { body: 'x' })).status);
  assert.deepEqual(statuses.sort(), [200, 200, 502, 502]);
  assert.equal(arrived, 2);
  proxy.use([]);
  assert.equal((await call(proxy.url)).status, 502);
});

test('a stream arrives while it is written, and is cut where the proxy is told to', async (context) => {
  const streams = await target(context, (_, response) => {
    response.setHeader('content-type', 'text/event-stream').write('event: a\ndata: 1\n\n');
  });
  const proxy = await proxyFor(context, [streams.url]);
  const stream = await openStream(proxy.url);
  await stream.first('a');
  proxy.cut();
  assert.equal(await stream.ended, 'cut');
});

test('what a target answers before it has read the body leaves the connection free for the next request', async (context) => {
  const early = await target(context, (request, response) => response.end(`answer to ${request.url}`));
  const proxy = await proxyFor(context, [early.url]);
  const socket = await openSocket(proxy.url);
  let text = '';
  socket.on('data', (part) => {
    text += String(part);
  });
  const ended = received(socket);
  socket.write('POST /first HTTP/1.1\r\nHost: proxy\r\nContent-Length: 100000\r\n\r\nx');
  await eventually('the first answer', () => text.includes('answer to /first'));
  socket.write('x'.repeat(99_999));
  socket.write('GET /second HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n');
  assert.match(await inTime('the second answer', ended), /answer to \/second/);
});
