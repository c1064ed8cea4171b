import assert from 'node:assert/strict';
import { positionMember } from '../../../src/features/a2a/task-streams.ts';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import {
  joined,
  message,
  next,
  openA2A,
  refusalOf,
  result,
  send,
  stream,
  streamed,
  type Wire,
  working,
} from './a2a-world.ts';

const extension = { 'a2a-extensions': 'urn:acp:a2a:resume:1' };
const kindOf = (event: Wire): string => Object.keys(event).join();

/** Positions of the updates; the task that a stream begins with has one, too. */
const positionsOf = (events: readonly Wire[]): string[] =>
  events.map((event) => (event.task ?? event.statusUpdate ?? event.artifactUpdate).metadata[positionMember]);

forEachHttpService(
  'A2A-33 A2A-34 a stream has the task, its updates in their order, and ends with its last status',
  async (open) => {
    const app = await openA2A(open);
    const said = { message: message('slowly') };
    const events = await streamed(app, 'SendStreamingMessage', said);
    const [first] = events;
    const last = events.at(-1);
    assert.equal(kindOf(first), 'task');
    assert.deepEqual([first.task.status.state, first.task.artifacts], ['TASK_STATE_SUBMITTED', undefined]);
    assert.equal(last.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
    const ids = events.map((event) => {
      const { id, taskId, contextId } = event.task ?? event.statusUpdate ?? event.artifactUpdate;
      return [id ?? taskId, contextId];
    });
    assert.deepEqual(new Set(ids.map(String)).size, 1);
    const chunks = events.flatMap(({ artifactUpdate }) => (artifactUpdate === undefined ? [] : [artifactUpdate]));
    assert.ok(chunks.length > 1);
    assert.deepEqual(
      chunks.map(({ append, lastChunk }) => [append, lastChunk]),
      chunks.map((_chunk, index) => [index > 0, index === chunks.length - 1]),
    );
    const task = await result(app, 'GetTask', { id: first.task.id });
    assert.equal(joined(events), 'A slow answer.');
    assert.equal(task.artifacts[0].parts[0].text, joined(events));
    assert.ok(
      events.every((event) => !JSON.stringify(event).includes('position')),
      'nobody asked for positions',
    );
    // Sent again it is the same stream, which says the same.
    const again = await streamed(app, 'SendStreamingMessage', said);
    assert.equal(joined(again), joined(events));
    assert.deepEqual([again[0], again.at(-1)], [first, last]);
    assert.equal((await result(app, 'ListTasks', {})).totalSize, 1);
  },
);

overHttp('A2A-34 what an agent says before it calls a tool is replaced by its answer', async (open) => {
  const app = await openA2A(open, {
    tools: [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' }, execute: () => 'seen' }] as never,
    script: [
      { when: { tool: 'look' }, reply: { text: 'It is blue.', chunkSize: 4 } },
      { reply: { text: 'Let me see.', chunkSize: 3, toolCalls: [{ name: 'look', arguments: {} }] } },
    ],
    agents: [
      { name: 'seer', toolNames: ['look'] },
      { name: 'typed', toolNames: ['look'], model: { provider: 'demo', model: 'd', responseFormat: { kind: 'Text' } } },
    ],
    host: { A2A: { Agents: ['seer'] } },
  });
  const events = await streamed(app, 'SendStreamingMessage', { message: message('Hi') }, { agent: 'seer' });
  assert.equal(joined(events), 'It is blue.');
  const fresh = events.filter(({ artifactUpdate }) => artifactUpdate?.append === false);
  assert.equal(fresh.length, 2);
  assert.doesNotMatch(JSON.stringify(events.at(-1)), /Let me see/);
  assert.doesNotMatch(JSON.stringify(events), /look|seen/, 'a tool is nobody else\u2019s');
});

overHttp('A2A-34 an answer in JSON is one piece of data, and a failure ends a stream with its status', async (open) => {
  const app = await openA2A(open, {
    script: [
      { when: { message: 'fail' }, reply: { text: 'Half', chunkSize: 2, error: 'provider_error' } },
      { reply: { text: '{"a": 1}', chunkSize: 2 } },
    ],
    agents: [{ name: 'typed', model: { provider: 'demo', model: 'd', responseFormat: { kind: 'Json' } } }],
    host: { A2A: { Agents: ['typed', 'helper'] } },
  });
  const events = await streamed(app, 'SendStreamingMessage', { message: message('Hi') }, { agent: 'typed' });
  const updates = events.flatMap(({ artifactUpdate }) => (artifactUpdate === undefined ? [] : [artifactUpdate]));
  assert.deepEqual(
    updates.map(({ artifact, append, lastChunk }) => [artifact.parts, append, lastChunk]),
    [[[{ data: { a: 1 }, mediaType: 'application/json' }], false, true]],
  );
  const failed = await streamed(app, 'SendStreamingMessage', { message: message('fail') });
  const { status } = failed.at(-1).statusUpdate;
  assert.equal(status.state, 'TASK_STATE_FAILED');
  assert.match(status.message.parts[0].text, /^The task failed \(provider_error\)\. Its run is [0-9a-f-]+\.$/);
});

forEachHttpService(
  'A2A-35 who subscribes has what there is, and misses and repeats nothing from then on',
  async (open) => {
    const app = await openA2A(open);
    const task = await working(app);
    const [one, two] = [
      await stream(app, 'SubscribeToTask', { id: task.id }),
      await stream(app, 'SubscribeToTask', { id: task.id }),
    ];
    for (const subscribed of [one, two]) {
      const first = await next(subscribed);
      assert.equal(first.task.status.state, 'TASK_STATE_WORKING');
      assert.equal(first.task.history[0].parts[0].text, 'wait');
    }
    // One that goes takes nobody with it.
    one.close();
    await result(app, 'CancelTask', { id: task.id });
    const rest: Wire[] = [];
    for await (const event of two.events) rest.push(event);
    assert.equal(rest.at(-1).statusUpdate.status.state, 'TASK_STATE_CANCELED');
    assert.ok(rest.slice(0, -1).every((event) => kindOf(event) === 'artifactUpdate'));
    const headers = { accept: 'text/event-stream' };
    const done = await send(app, 'Hi');
    assert.deepEqual(await refusalOf(app, 'SubscribeToTask', { id: done.id }, { headers }), [-32004, 'TASK_FINAL']);
    // The text that came before, and that which comes after, are the answer.
    const slow = await working(app, {}, 'slowly');
    const late = await stream(app, 'SubscribeToTask', { id: slow.id }).catch(() => null);
    if (late === null) return;
    const begun = await next(late);
    const then: Wire[] = [];
    for await (const event of late.events) then.push(event);
    const before = begun.task.artifacts?.[0].parts[0].text ?? '';
    const continued = then.filter(({ artifactUpdate }) => artifactUpdate !== undefined);
    assert.ok(before === '' || continued[0].artifactUpdate.append, 'it goes on');
    const text = continued.reduce(
      (sofar: string, { artifactUpdate: { append, artifact } }) => (append ? sofar : '') + artifact.parts[0].text,
      before,
    );
    assert.equal(text, 'A slow answer.');
  },
);

forEachHttpService(
  'A2A-35 with positions a stream that was cut anywhere goes on after what its caller has',
  async (open) => {
    const app = await openA2A(open);
    const whole = await stream(app, 'SendStreamingMessage', { message: message('slowly') }, { headers: extension });
    assert.equal(whole.headers.get('a2a-extensions'), extension['a2a-extensions']);
    const events: Wire[] = [];
    for await (const event of whole.events) events.push(event);
    const positions = positionsOf(events);
    assert.equal(new Set(positions).size, positions.length);
    const { id } = events[0].task;
    for (const [index, seen] of positions.slice(0, -1).entries()) {
      const headers = { ...extension, 'last-event-id': seen };
      const [first, ...rest] = await streamed(app, 'SubscribeToTask', { id }, { headers });
      assert.deepEqual(
        [kindOf(first), first.task.artifacts, first.task.metadata[positionMember]],
        ['task', undefined, seen],
      );
      assert.deepEqual(rest, events.slice(index + 1), `after ${seen}`);
    }
    const refused = (seen: string) =>
      refusalOf(
        app,
        'SubscribeToTask',
        { id },
        { headers: { ...extension, accept: 'text/event-stream', 'last-event-id': seen } },
      );
    assert.deepEqual(await refused(positions.at(-1) ?? ''), [-32004, 'TASK_FINAL']);
    for (const bad of ['x', '1.2.3', '-2', '99999', '1e3'])
      assert.deepEqual(await refused(bad), [-32602, 'POSITION_INVALID'], bad);
    // Without the extension the header says nothing.
    const headers = { accept: 'text/event-stream', 'last-event-id': positions[0] };
    assert.deepEqual(await refusalOf(app, 'SubscribeToTask', { id }, { headers }), [-32004, 'TASK_FINAL']);
  },
);

overHttp('A2A-36 a drain closes streams without a last status', async (open) => {
  const app = await openA2A(open, { service: { Drain: { Timeout: '1s' } } });
  const task = await working(app);
  const subscribed = await stream(app, 'SubscribeToTask', { id: task.id });
  assert.equal(kindOf(await next(subscribed)), 'task');
  const closing = app.app.drain();
  const rest: Wire[] = [];
  for await (const event of subscribed.events) rest.push(event);
  assert.ok(rest.every((event) => kindOf(event) === 'artifactUpdate'));
  await app.clock.advance(1000);
  await closing;
});
