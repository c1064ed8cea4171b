import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFrames } from '../../src/client/event-stream.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { collect } from './service.ts';

const bytesOf = async function* (text: string, chunkSize: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.subarray(at, at + chunkSize);
};

const stream = [
  ': a comment keeps the connection alive\n\n',
  'id: 0\nevent: run.started\ndata: {"a":"ü€😀"}\n\n',
  'id: 1\r\nevent: message.delta\r\ndata: {"text":"x"}\r\n\r\n',
  'event: error\ndata: {"code":"internal"}\n\n',
  'retry: soon\nsomething: else\nid: 2\nevent: run.completed\ndata: {}\n\n',
  'id: 3\nevent: cut\ndata: {"half":',
].join('');

test('frames are read whole, wherever the bytes were cut', async () => {
  for (const size of [1, 2, 3, 7, 64, 10_000]) {
    const frames = await collect(readFrames(bytesOf(stream, size)));
    assert.deepEqual(frames, [
      { id: 0, event: 'run.started', data: '{"a":"ü€😀"}' },
      { id: 1, event: 'message.delta', data: '{"text":"x"}' },
      { event: 'error', data: '{"code":"internal"}' },
      { id: 2, event: 'run.completed', data: '{}' },
    ]);
  }
});

test('an id that is no sequence is refused', async () => {
  const reading = collect(readFrames(bytesOf('id: abc\nevent: x\ndata: {}\n\n', 5)));
  await assert.rejects(reading, (error) => error instanceof AcpError && error.code === 'cannot-connect');
});

test('a body that is no event stream gives no frames', async () => {
  assert.deepEqual(await collect(readFrames(bytesOf('<html><body>Hello</body></html>\n\n', 9))), []);
});
