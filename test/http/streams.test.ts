import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import type { Frame, FrameSource } from '../../src/contract/operation.ts';
import { framesThenEnd, openRaw, problemOf, startServer } from './support.ts';

/** A source that the test pushes to. */
class ManualSource implements FrameSource {
  subscribed = Promise.withResolvers<void>();
  unsubscribed = Promise.withResolvers<void>();
  push: (frames: readonly Frame[]) => void = () => undefined;
  end: () => void = () => undefined;
  drained: () => Promise<void> | undefined = () => undefined;

  subscribe(
    onFrames: (frames: readonly Frame[]) => void,
    onEnd: () => void,
    drained?: () => Promise<void> | undefined,
  ): () => void {
    this.push = onFrames;
    this.end = onEnd;
    this.drained = drained ?? this.drained;
    this.subscribed.resolve();
    return () => this.unsubscribed.resolve();
  }
}

const follow = (stream: FrameSource, headers: Record<string, string> = {}) => ({
  follow: async () => ({ status: 200, stream, headers }) as const,
});

const frame = (id: number, data = '{}'): Frame => ({ id, event: 'message.delta', data });

test('RUN-22 RUN-23 frames are written as server-sent events under the stream headers', async (t) => {
  const source = framesThenEnd([
    { id: 0, event: 'run.started', data: '{"a":"é\\n"}' },
    { event: 'error', data: '{"code":"x"}' },
    { id: 1, event: 'run.failed', data: '{}' },
  ]);
  const { url } = await startServer(t, follow(source, { 'X-Run-Id': 'r1', 'Content-Location': '/api/runs/r1/events' }));
  const answer = await fetch(`${url}/api/items/a/events`);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'text/event-stream');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('x-accel-buffering'), 'no');
  assert.equal(answer.headers.get('x-run-id'), 'r1');
  assert.equal(answer.headers.get('content-location'), '/api/runs/r1/events');
  assert.ok(answer.headers.has('x-request-id'));
  assert.equal(
    await answer.text(),
    'id: 0\nevent: run.started\ndata: {"a":"é\\n"}\n\nevent: error\ndata: {"code":"x"}\n\nid: 1\nevent: run.failed\ndata: {}\n\n',
  );
});

test('the status line does not wait for the first frame', async (t) => {
  const source = new ManualSource();
  const { url } = await startServer(t, follow(source));
  const answer = await fetch(`${url}/api/items/a/events`);
  assert.equal(answer.status, 200);
  source.push([frame(0)]);
  source.end();
  assert.match(await answer.text(), /^id: 0\n/);
});

test('a source that is already finished is answered at once, with its frames or without any', async (t) => {
  for (const frames of [[], [frame(0), frame(1)]]) {
    const source: FrameSource = {
      subscribe(onFrames, onEnd) {
        if (frames.length > 0) onFrames(frames);
        onEnd();
        return () => undefined;
      },
    };
    const { url } = await startServer(t, follow(source));
    const text = await (await fetch(`${url}/api/items/a/events`)).text();
    assert.equal(text.split('\n\n').length - 1, frames.length);
  }
});

test('a connection that has carried a stream carries the next request', async (t) => {
  const { port } = await startServer(t, follow(framesThenEnd([frame(0)])));
  const raw = await openRaw(t, port);
  const get = 'GET /api/items/a/events HTTP/1.1\r\nHost: x\r\n\r\n';
  raw.send(get);
  await raw.until(/\r\n0\r\n\r\n$/);
  raw.send(`${get}${get}`);
  await raw.until(/(?:[\s\S]*\r\n0\r\n\r\n){3}$/);
});

test('RUN-24 Last-Event-ID reaches the operation as a number; anything else is 400', async (t) => {
  const seen: unknown[] = [];
  const { url } = await startServer(t, {
    follow: async (_context, { headers }) => {
      seen.push(headers['last-event-id']);
      return { status: 200, stream: framesThenEnd([]) };
    },
  });
  const ask = (id: string) => fetch(`${url}/api/items/a/events`, { headers: { 'Last-Event-ID': id } });
  assert.equal((await ask('7')).status, 200);
  for (const id of ['-1', '1.5', 'x', '1e3', '1, 2'])
    assert.deepEqual([(await ask(id)).status, (await problemOf(await ask(id))).code], [400, 'validation-failed'], id);
  assert.deepEqual(seen, [7]);
});

test('a failure before the stream begins is a problem with its own status', async (t) => {
  const failing: FrameSource = {
    subscribe() {
      throw new AcpError('not-found', 'Gone.');
    },
  };
  const { url } = await startServer(t, follow(failing));
  assert.equal((await fetch(`${url}/api/items/a/events`)).status, 404);
  const bad = await startServer(t, follow(framesThenEnd([]), { 'X-Bad': 'a\nb' }));
  assert.equal((await fetch(`${bad.url}/api/items/a/events`)).status, 500);
});

test('RUN-23 a comment keeps a silent stream alive, again and again', async (t) => {
  const source = new ManualSource();
  const { port } = await startServer(t, follow(source), { limits: { pingMs: 15 } });
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/events HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until(/3\r\n:\n\n\r\n3\r\n:\n\n\r\n/);
  source.push([frame(0)]);
  await raw.until(/id: 0\nevent: message\.delta\ndata: \{\}\n\n\r\n3\r\n:\n\n\r\n/);
  source.end();
  await raw.until(/\r\n0\r\n\r\n$/);
});

test('a client that leaves ends the subscription and aborts the signal', async (t) => {
  const source = new ManualSource();
  const aborted = Promise.withResolvers<void>();
  const { url } = await startServer(t, {
    follow: async (context) => {
      context.signal.addEventListener('abort', () => aborted.resolve());
      return { status: 200, stream: source };
    },
  });
  const control = new AbortController();
  await fetch(`${url}/api/items/a/events`, { signal: control.signal });
  control.abort();
  await Promise.all([source.unsubscribed.promise, aborted.promise]);
  source.push([frame(0)]);
  source.end();
});

test('a client that left before the handler was done leaves no subscription behind', async (t) => {
  const source = new ManualSource();
  const started = Promise.withResolvers<void>();
  const { port } = await startServer(t, {
    follow: async (context) => {
      started.resolve();
      await once(context.signal, 'abort');
      return { status: 200, stream: source };
    },
  });
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/events HTTP/1.1\r\nHost: x\r\n\r\n');
  await started.promise;
  raw.socket.destroy();
  await source.unsubscribed.promise;
});

test('the signal of a completed stream stays quiet', async (t) => {
  const signals: AbortSignal[] = [];
  const { url, server } = await startServer(t, {
    follow: async (context) => {
      signals.push(context.signal);
      return { status: 200, stream: framesThenEnd([frame(0)]) };
    },
  });
  await (await fetch(`${url}/api/items/a/events`)).text();
  await server.close();
  assert.equal(signals[0]?.aborted, false);
});

test('RUN-25 a reader that is too far behind is cut off, and others go on', async (t) => {
  const source = new ManualSource();
  const { url, port } = await startServer(t, follow(source), { limits: { maxBehindBytes: 100_000 } });
  const slow = request({ port, path: '/api/items/a/events' });
  slow.end();
  const [answer] = await once(slow, 'response');
  const cut = once(answer, 'error');
  const data = JSON.stringify({ text: 'x'.repeat(60_000) });
  let gone = false;
  void source.unsubscribed.promise.then(() => {
    gone = true;
  });
  // The reader takes nothing: what the kernel does not hold grows until the limit is passed.
  for (let id = 0; !gone && id < 2000; id += 1) {
    source.push([frame(id)]);
    source.push([frame(id, data)]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(gone, true);
  answer.resume();
  await cut;
  assert.equal((await fetch(`${url}/api/items/a`)).status, 200);
});

test('a source that replays a long log is told to wait for the reader, and nothing is lost', async (t) => {
  const data = JSON.stringify({ text: 'x'.repeat(50_000) });
  const pages = 200;
  const stream: FrameSource = {
    subscribe(onFrames, onEnd, drained) {
      const replay = async () => {
        for (let id = 0; id < pages; id += 1) {
          onFrames([frame(id, data)]);
          await drained?.();
        }
        onEnd();
      };
      void replay();
      return () => undefined;
    },
  };
  const { url } = await startServer(t, follow(stream));
  const text = await (await fetch(`${url}/api/items/a/events`)).text();
  assert.equal(text.match(/^id: /gm)?.length, pages);
});

test('a waiting replay is released when the reader leaves', async (t) => {
  const source = new ManualSource();
  const { port } = await startServer(t, follow(source), { limits: { maxBehindBytes: 1e9 } });
  const raw = await openRaw(t, port);
  raw.socket.pause();
  raw.send('GET /api/items/a/events HTTP/1.1\r\nHost: x\r\n\r\n');
  await source.subscribed.promise;
  let waiting: Promise<void> | undefined;
  while (waiting === undefined) {
    source.push([frame(0, 'x'.repeat(500_000))]);
    waiting = source.drained();
  }
  raw.socket.destroy();
  await Promise.all([waiting, source.unsubscribed.promise]);
});

test('an HTTP/1.0 client gets the frames plainly, and the end of the connection is the end of the stream', async (t) => {
  const { port } = await startServer(t, follow(framesThenEnd([frame(0)])));
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/events HTTP/1.0\r\nHost: x\r\n\r\n');
  assert.match(await raw.closed(), /\r\n\r\nid: 0\nevent: message\.delta\ndata: \{\}\n\n$/);
});
