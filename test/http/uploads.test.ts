import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import type { UploadedFile } from '../../src/contract/operation.ts';
import { RequestAbortedError } from '../../src/http/body.ts';
import { openUpload } from '../../src/http/uploads.ts';

const boundary = 'b0und';
const part = (disposition: string, content = ''): string =>
  `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
const file = (content: string, name = 'file'): string => part(`name="${name}"; filename="a.txt"`, content);
const end = `--${boundary}--\r\n`;

interface Outcome {
  readonly name?: string | null;
  readonly text?: string;
  readonly code?: string;
}

const outcomeOf = async (upload: () => Promise<UploadedFile>): Promise<Outcome> => {
  try {
    const { name, bytes } = await upload();
    let text = '';
    for await (const chunk of bytes) text += Buffer.from(chunk).toString('latin1');
    return { name, text };
  } catch (error) {
    if (error instanceof RequestAbortedError) return { code: 'aborted' };
    assert.ok(error instanceof AcpError, String(error));
    return { code: error.code };
  }
};

/** A server whose one request is read by `use`; the socket is the client's. */
const serveOne = async (
  t: TestContext,
  use: (upload: () => Promise<UploadedFile>, socket: Socket) => Promise<void>,
): Promise<Socket> => {
  const server = createServer((request, response) => {
    const open = async (): Promise<UploadedFile> =>
      openUpload(request, response, { part: 'file', description: '' }).file;
    void use(open, request.socket).finally(() => response.end('read'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.after(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  await once(socket, 'connect');
  return socket;
};

const head = (length: number, type = `multipart/form-data; boundary=${boundary}`): string =>
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;

/** What becomes of a body of which only the first `sent` bytes arrive before the client closes. */
const send = async (
  t: TestContext,
  body: string,
  options: { readonly type?: string; readonly sent?: number; readonly declared?: number } = {},
): Promise<Outcome> => {
  const done = Promise.withResolvers<Outcome>();
  const socket = await serveOne(t, async (upload) => done.resolve(await outcomeOf(upload)));
  const bytes = Buffer.from(body, 'latin1');
  socket.write(head(options.declared ?? bytes.length, options.type));
  socket.write(bytes.subarray(0, options.sent));
  if (options.sent !== undefined) socket.end();
  return done.promise;
};

test('ATT-1 the file part is read, and whatever else a form has is ignored', async (t) => {
  const body =
    part('name="note"', 'hello') + file('other', 'thumbnail') + file('content') + part('name="file"', 'text');
  assert.deepEqual(await send(t, body + end), { name: 'a.txt', text: 'content' });
});

test('ATT-1 a form needs exactly one file part of the name', async (t) => {
  assert.deepEqual(await send(t, end), { code: 'file-required' });
  assert.deepEqual(await send(t, file('x', 'upload') + end), { code: 'file-required' });
  assert.deepEqual(await send(t, part('name="file"', 'no file') + end), { code: 'file-required' });
  assert.deepEqual(await send(t, file('x') + file('y') + end), { code: 'file-required' });
});

test('ATT-1 another kind of body is 415, one without boundary is 400', async (t) => {
  for (const type of [
    'application/json',
    'multipart/mixed; boundary=b0und',
    'text/plain',
    'multipart/form-dataX; boundary=b',
  ])
    assert.deepEqual(await send(t, file('x') + end, { type }), { code: 'unsupported-media-type' }, type);
  assert.deepEqual(await send(t, file('x') + end, { type: 'multipart/form-data' }), { code: 'multipart-malformed' });
});

test('a form that is cut off anywhere is never a whole file', async (t) => {
  const body = file('x'.repeat(1000)) + end;
  for (const kept of [1, 40, 100, 500, body.length - 30, body.length - 6]) {
    // The body ends as it was announced, but in the middle of the form.
    const outcome = await send(t, body.slice(0, kept), {});
    assert.ok(
      ['multipart-malformed', 'file-required'].includes(outcome.code ?? ''),
      `${kept}: ${JSON.stringify(outcome)}`,
    );
    // The client goes away before it has sent what it announced.
    assert.deepEqual(await send(t, body, { sent: kept }), { code: 'aborted' }, `${kept}`);
  }
});

test('a form of ten thousand parts, of huge headers, or of much beside its file is refused', async (t) => {
  const bomb = part('name="a"', 'b').repeat(10_000);
  assert.deepEqual(await send(t, bomb + file('x') + end), { code: 'payload-too-large' });
  assert.deepEqual(await send(t, file('', 'a').repeat(10_000) + end), { code: 'payload-too-large' });
  assert.deepEqual(await send(t, part('name="a"', 'x'.repeat(3_000_000)) + file('x') + end), {
    code: 'payload-too-large',
  });
  assert.deepEqual(await send(t, file('x'.repeat(3_000_000), 'other') + file('x') + end), {
    code: 'payload-too-large',
  });
  const header = `--${boundary}\r\n${'X-A: b\r\n'.repeat(100_000)}Content-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n`;
  const outcome = await send(t, header + end);
  assert.ok(
    ['payload-too-large', 'file-required', 'multipart-malformed'].includes(outcome.code ?? ''),
    JSON.stringify(outcome),
  );
});

test('a reader that stops, stops the sender: no more than a few buffers are ever held', async (t) => {
  const offered = 64 * 1024 * 1024;
  const held = Promise.withResolvers<number>();
  const socket = await serveOne(t, async (upload, server) => {
    const iterator = (await upload()).bytes[Symbol.asyncIterator]();
    let read = (await iterator.next()).value?.byteLength ?? 0;
    // Nothing is taken until what the service itself has read stands still.
    for (let before = -1; before !== server.bytesRead; ) {
      before = server.bytesRead;
      for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    held.resolve(server.bytesRead - read);
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
      read += next.value.byteLength;
    assert.equal(read, offered);
    done.resolve();
  });
  const done = Promise.withResolvers<void>();
  const start = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`;
  const tail = `\r\n${end}`;
  socket.write(head(start.length + offered + tail.length) + start);
  for (let at = 0; at < offered; at += 1024 * 1024) socket.write(Buffer.alloc(1024 * 1024, 'x'));
  socket.write(tail);
  const bytes = await held.promise;
  assert.ok(bytes < 1024 * 1024, `${bytes} bytes were held`);
  await done.promise;
});

test('a reader that leaves ends the reading', async (t) => {
  const left = Promise.withResolvers<number>();
  const socket = await serveOne(t, async (upload, server) => {
    for await (const _chunk of (await upload()).bytes) break;
    left.resolve(server.bytesRead);
  });
  socket.write(head(50_000_000) + file('x'.repeat(100_000)));
  assert.ok((await left.promise) < 1024 * 1024);
});
