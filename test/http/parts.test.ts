import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { type LogLine, openRaw, problemOf, recordingLogger, startServer } from './support.ts';

const inParts = (parts: () => AsyncGenerator<string>) => ({
  wait: async () => ({ status: 200, parts: parts(), headers: { 'X-Kind': 'long' } }) as const,
});

test('JOB-21 a long answer is sent while the rest of it is made, and is JSON as a whole', async (t) => {
  const rest = Promise.withResolvers<void>();
  const { port, url } = await startServer(
    t,
    inParts(async function* () {
      yield '{"items":["é"';
      await rest.promise;
      yield ',2]}';
    }),
  );
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/wait HTTP/1.1\r\nHost: x\r\n\r\n');
  const head = await raw.until(/\{"items":\[/);
  assert.match(head, /^HTTP\/1\.1 200 [\s\S]*content-type: application\/json\r\n/i);
  rest.resolve();
  await raw.until(/,2\]\}\r\n0\r\n\r\n$/);
  const answer = await fetch(`${url}/api/items/a/wait`);
  assert.deepEqual([answer.headers.get('x-kind'), await answer.json()], ['long', { items: ['é', 2] }]);
});

test('a long answer whose making fails in its middle is cut off, never ended, and the log says so', async (t) => {
  const lines: LogLine[] = [];
  let fails = true;
  const heard = Promise.withResolvers<void>();
  const { port, url } = await startServer(
    t,
    inParts(async function* () {
      yield '[1';
      await heard.promise;
      if (fails) throw new AcpError('store-unavailable', 'The rest cannot be read.');
      yield ']';
    }),
    { log: recordingLogger(lines) },
  );
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/wait HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until(/\[1/);
  heard.resolve();
  assert.doesNotMatch(await raw.closed(), /\r\n0\r\n\r\n$/);
  const broken = lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    broken.map(({ fields, message }) => [fields['path'], message]),
    [['/api/items/a/wait', 'An answer broke off, and its connection was cut']],
  );
  fails = false;
  assert.deepEqual(await (await fetch(`${url}/api/items/a/wait`)).json(), [1], 'the next one is answered');
});

test('a long answer that fails before its first part is a problem with its own status', async (t) => {
  const { url } = await startServer(t, {
    wait: async () => {
      throw new AcpError('not-found', 'Gone.');
    },
  });
  const answer = await fetch(`${url}/api/items/a/wait`);
  assert.deepEqual([answer.status, (await problemOf(answer)).code], [404, 'not-found']);
});

test('a long answer is made as fast as it is read, and no further for a reader that leaves', async (t) => {
  const lines: LogLine[] = [];
  const ended = Promise.withResolvers<void>();
  const { port } = await startServer(
    t,
    inParts(async function* () {
      try {
        // Without an end: whoever does not wait for the reader never comes out of it.
        for (;;) yield 'x'.repeat(100_000);
      } finally {
        ended.resolve();
      }
    }),
    { log: recordingLogger(lines) },
  );
  const raw = await openRaw(t, port);
  raw.send('GET /api/items/a/wait HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until(/xxx/);
  raw.socket.destroy();
  await ended.promise;
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error'),
    [],
  );
});
