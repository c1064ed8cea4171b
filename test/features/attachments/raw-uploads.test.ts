import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { exchange, openSocket, received } from '../../e2e/wire.ts';
import { overHttp, type TestApp } from '../../support/app.ts';

const boundary = 'b0und';
const maxBytes = 1000;
const opening = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`;
const closing = `\r\n--${boundary}--\r\n`;
const formOf = (content: string): string => opening + content + closing;

const headOf = (framing: string): string =>
  `POST /api/attachments HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\n${framing}\r\n\r\n`;
const withLength = (body: string): string => `${headOf(`Content-Length: ${Buffer.byteLength(body)}`)}${body}`;
/** The body in chunks of so many bytes. */
const inChunks = (body: string, size: number): string => {
  const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, index) =>
    body.slice(index * size, (index + 1) * size),
  );
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  return `${headOf('Transfer-Encoding: chunked')}${framed}0\r\n\r\n`;
};

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
const bodyOf = (answer: string) =>
  JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Record<string, unknown>;

const filesOf = (app: TestApp): string[] => {
  const folder = join(app.folder, 'data', 'acp.db-attachments');
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
        entry.isFile() ? entry.name : [],
      )
    : [];
};

const openLimited = (open: Parameters<Parameters<typeof overHttp>[1]>[0]) =>
  open({ service: { Attachments: { MaxBytes: maxBytes } } });

overHttp('ATT-2 the limit counts the bytes of the file alone, to the byte, however they arrive', async (open) => {
  const app = await openLimited(open);
  // Bytes that look like the end of the part until the last one.
  const almost = `\r\n--${boundary.slice(0, -1)}`;
  const contents = ['x'.repeat(maxBytes), almost.repeat(maxBytes).slice(0, maxBytes), '\r\n'.repeat(maxBytes / 2)];
  for (const content of contents) {
    for (const [text, status] of [
      [content, 201],
      [`${content}y`, 413],
      [`${content}${almost}`, 413],
    ] as const)
      for (const request of [withLength(formOf(text)), inChunks(formOf(text), 1), inChunks(formOf(text), 7)]) {
        const answer = await exchange(app.url, request);
        assert.equal(statusOf(answer), status, answer);
        if (status === 201) {
          assert.equal(bodyOf(answer)['byteSize'], maxBytes);
          assert.equal(bodyOf(answer)['sha256'], createHash('sha256').update(text).digest('hex'));
        } else assert.equal(bodyOf(answer)['code'], 'attachment-too-large');
      }
  }
  const hashes = contents.map((content) => createHash('sha256').update(content).digest('hex'));
  assert.deepEqual(filesOf(app).sort(), hashes.sort(), 'nothing of what was refused is kept');
});

overHttp('ATT-2 a file that is too large is answered before it has been sent', async (open) => {
  const app = await openLimited(open);
  const socket = await openSocket(app.url);
  const first = once(socket, 'data');
  // One byte too many, of a gigabyte that is announced and never comes.
  socket.write(`${headOf('Content-Length: 1073741824')}${opening}${'x'.repeat(maxBytes + 1)}`);
  const text = String((await first)[0]);
  socket.destroy();
  assert.equal(statusOf(text), 413, text);
  assert.deepEqual(filesOf(app), []);
});

overHttp(
  'ATT-1 ATT-2 a form that ends in the middle of its file is not kept, nor is one that is left',
  async (open) => {
    const app = await openLimited(open);
    const cut = opening + 'x'.repeat(maxBytes);
    const answer = await exchange(app.url, withLength(cut));
    assert.deepEqual([statusOf(answer), bodyOf(answer)['code']], [400, 'multipart-malformed']);
    const socket = await openSocket(app.url);
    const closed = received(socket);
    socket.write(`${headOf('Content-Length: 100000')}${cut}`);
    socket.end();
    await closed;
    const { body } = await app.client.attachments.list();
    assert.deepEqual(body, []);
    await app.close();
    assert.deepEqual(filesOf(app), []);
  },
);
