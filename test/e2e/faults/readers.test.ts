import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call, type EventStream, openSocket, openStream, readLog, type SseFrame } from '../wire.ts';

const model = { provider: 'demo', model: 'm' };
const longText = Array.from({ length: 400 }, (_, index) => `word${index} ünïcødé `).join('');

const script = [
  { when: { message: 'talk' }, reply: { text: longText, chunkSize: 100, delay: '21ms' } },
  { when: { message: 'hang' }, reply: { text: longText, chunkSize: 100, delay: '2ms', stall: true } },
  { when: { message: '/^flood (.*)$/s' }, reply: { text: '{{1}}'.repeat(16), chunkSize: 65_536, delay: '5ms' } },
];

const isEnd = (frame: SseFrame | undefined): boolean => /^run\.(completed|failed|canceled)$/.test(frame?.event ?? '');

describe('readers of event streams', () => {
  let site: Site;
  let service: ServiceProcess;

  before(async () => {
    site = openSite({ script });
    service = await site.serve();
    const created = await call(`${service.url}/api/agents`, { body: { name: 'talker', model } });
    assert.equal(created.status, 201, created.text);
  });

  after(async () => {
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
    await site.close();
  });

  const start = (message: string, query = ''): Promise<EventStream> =>
    openStream(`${service.url}/api/agents/talker/run${query}`, { body: { message } });
  const follow = (runId: string, after: number | undefined): Promise<EventStream> =>
    openStream(`${service.url}/api/runs/${runId}/events`, {
      headers: after === undefined ? {} : { 'last-event-id': String(after) },
    });
  const statusOf = async (runId: string): Promise<string> =>
    (await call(`${service.url}/api/runs/${runId}`)).json<{ status: string }>().status;

  /** Reads a run to its end with a connection that is lost again and again, at places that nobody chose. */
  const readInPieces = async (): Promise<{ runId: string; frames: SseFrame[]; pieces: number }> => {
    let stream = await start('talk');
    const { runId } = stream;
    const frames: SseFrame[] = [];
    for (let pieces = 1; ; pieces += 1) {
      // The end may come sooner than so many frames.
      await stream.atLeast(randomInt(0, 25)).catch(() => undefined);
      stream.leave();
      await stream.ended;
      frames.push(...stream.frames);
      if (isEnd(frames.at(-1))) return { runId, frames, pieces };
      stream = await follow(runId, frames.at(-1)?.id ?? undefined);
    }
  };

  test('RUN-10 RUN-24 a client that comes back with Last-Event-ID misses and repeats nothing, wherever it was cut', async () => {
    const readings = await Promise.all(Array.from({ length: 12 }, readInPieces));
    for (const { runId, frames } of readings) {
      assert.deepEqual(
        frames.map(({ id }) => id),
        frames.map((_, index) => index),
      );
      assert.deepEqual(frames, await readLog(service.url, runId));
      assert.equal(await statusOf(runId), 'Completed');
    }
    assert.ok(
      readings.some(({ pieces }) => pieces > 3),
      'the connections were cut in the middle',
    );
  });

  test('RUN-24 fifty readers of one run, from any place on, get the same frames', async () => {
    const first = await start('talk');
    const readers: EventStream[] = [];
    for (let index = 0; index < 50; index += 1) {
      if (index % 5 === 0) await first.atLeast(index);
      readers.push(await follow(first.runId, index % 3 === 0 ? undefined : randomInt(0, 60)));
    }
    assert.deepEqual(await Promise.all([first, ...readers].map(({ ended }) => ended)), Array(51).fill('end'));
    for (const { frames } of readers) assert.deepEqual(frames, first.frames.slice(frames[0]?.id ?? 0));
    assert.equal(isEnd(first.frames.at(-1)), true);
  });

  test('RUN-25 a reader that stops reading is cut off, slows nobody, and has the rest when it comes back', async () => {
    const message = `flood ${'x'.repeat(500_000)}`;
    const slow = await start(message);
    slow.pause();
    const fast = await follow(slow.runId, undefined);
    assert.equal(await fast.ended, 'end');
    // Half of the output is 4 MB: more than the connection and the allowance together hold.
    await until('the end of the slow reader', () =>
      service.log().find((line) => line.message === 'A slow reader was cut off'),
    );
    slow.resume();
    assert.equal(await slow.ended, 'cut');
    const log = await readLog(service.url, slow.runId);
    assert.deepEqual(fast.frames, log);
    assert.equal(isEnd(log.at(-1)), true);
    assert.ok(slow.frames.length < log.length);
    assert.deepEqual(log.slice(0, slow.frames.length), slow.frames);
    const rest = await readLog(service.url, slow.runId, slow.frames.at(-1)?.id ?? undefined);
    assert.deepEqual([...slow.frames, ...rest], log);
    const { output } = JSON.parse(log.at(-1)?.data ?? '') as { output: string };
    assert.equal(output.length, 16 * 500_000);
  });

  test('RUN-10 with onDisconnect=cancel a stream that is left ends its run, otherwise the run goes on', async () => {
    const [left, kept] = [await start('hang', '?onDisconnect=cancel'), await start('talk')];
    for (const stream of [left, kept]) {
      await stream.atLeast(5);
      stream.leave();
    }
    const log = await readLog(service.url, left.runId);
    assert.equal(log.at(-1)?.event, 'run.canceled');
    assert.equal((JSON.parse(log.at(-1)?.data ?? '') as { cause: string }).cause, 'Disconnected');
    assert.equal((await readLog(service.url, kept.runId)).at(-1)?.event, 'run.completed');
  });

  test('RUN-10 with onDisconnect=cancel a JSON caller that leaves ends its run', async () => {
    const body = JSON.stringify({ message: 'hang', stream: false });
    const socket = await openSocket(service.url);
    socket.write(
      `POST /api/agents/talker/run?onDisconnect=cancel HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const running = async () =>
      (await call(`${service.url}/api/runs?status=Running`)).json<{ id: string; isStreaming: boolean }[]>()[0];
    const run = await until('a run in progress', running);
    socket.destroy();
    await until('the end of the run', async () => (await statusOf(run.id)) === 'Canceled');
  });
});
