import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PartStream } from '../../../../src/providers/models/chat-completions/part-stream.ts';
import type { ModelPart } from '../../../../src/providers/models/index.ts';
import { collect } from '../../../support/providers/model-calls.ts';

const recorded = (): { stream: PartStream; events: string[] } => {
  const events: string[] = [];
  const stream = new PartStream({
    start: () => void events.push('start'),
    pause: () => void events.push('pause'),
    resume: () => void events.push('resume'),
    cancel: () => void events.push('cancel'),
  });
  return { stream, events };
};

const word = (index: number): ModelPart => ({ type: 'text-delta', text: String(index) });

describe('the queue between a connection and its reader', () => {
  test('starts at the first read and delivers in order', async () => {
    const { stream, events } = recorded();
    assert.deepEqual(events, []);
    const all = collect(stream);
    stream.push(word(1));
    stream.push(word(2));
    stream.end();
    assert.deepEqual(await all, [word(1), word(2)]);
    assert.deepEqual(events, ['start']);
  });

  test('delivers what came before a failure, then the failure once', async () => {
    const { stream } = recorded();
    const first = stream.next();
    stream.push(word(1));
    stream.push(word(2));
    stream.fail(new Error('lost'));
    assert.deepEqual(await first, { done: false, value: word(1) });
    assert.deepEqual(await stream.next(), { done: false, value: word(2) });
    await assert.rejects(stream.next(), /lost/);
    assert.equal((await stream.next()).done, true);
  });

  test('holds the connection back while the reader is slow', async () => {
    const { stream, events } = recorded();
    const first = stream.next();
    for (let index = 0; index < 1000; index += 1) stream.push(word(index));
    assert.deepEqual(events, ['start', 'pause']);
    await first;
    for (let index = 1; index < 1000; index += 1) await stream.next();
    assert.deepEqual(events, ['start', 'pause', 'resume']);
  });

  test('a reader that stops early cancels, one that read to the end does not', async () => {
    const early = recorded();
    const first = early.stream.next();
    early.stream.push(word(1));
    await first;
    await early.stream.return();
    early.stream.push(word(2));
    assert.equal((await early.stream.next()).done, true);
    assert.deepEqual(early.events, ['start', 'cancel']);

    const whole = recorded();
    const all = collect(whole.stream);
    whole.stream.end();
    await all;
    await whole.stream.return();
    assert.deepEqual(whole.events, ['start']);
  });
});
