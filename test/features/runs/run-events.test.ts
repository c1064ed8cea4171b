import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Frame } from '../../../src/contract/operation.ts';
import { newId } from '../../../src/core/ids.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { swept } from '../retention/retention-world.ts';
import { opensRun } from './other-process.ts';
import {
  assertWholeLog,
  callsTools,
  collect,
  eventsOf,
  Gate,
  getRun,
  readEvents,
  readUntil,
  refusal,
  runStream,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

const look = tool('look', async () => ({ found: [1, 'zwei', null] }));

forEachService('RUN-24 from every sequence of a finished log the rest comes, and nothing twice', async (open) => {
  const { client } = await open({
    tools: [look],
    script: callsTools('look', 'look'),
    agents: [{ name: 'helper', toolNames: ['look'] }],
  });
  const { runId, frames } = await runStream(client, 'helper', 'Hi');
  for (let last = 0; last < frames.length; last += 1)
    assert.deepEqual(await readEvents(client, runId, last), frames.slice(last + 1), `after ${last}`);
});

forEachService('RUN-24 past the terminal event there is nothing, and the stream closes', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const { runId, frames } = await runStream(client, 'helper', 'Hi');
  for (const last of [frames.length - 1, frames.length, 1_000_000])
    assert.deepEqual(await readEvents(client, runId, last), []);
});

forEachService('RUN-24 an empty Last-Event-ID is none, and a long one is past the end', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const { runId, frames } = await runStream(client, 'helper', 'Hi');
  assert.deepEqual(await readEvents(client, runId, ''), frames);
  for (const last of ['1000000000000000', '9'.repeat(20), '9'.repeat(400)])
    assert.deepEqual(await readEvents(client, runId, last), []);
  assert.deepEqual(await readEvents(client, runId, '0'.repeat(30)), frames.slice(1));
});

forEachService('RUN-24 a Last-Event-ID that is no sequence, and an unknown run, are refused', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runStream(client, 'helper', 'Hi');
  for (const last of ['-1', '1.5', 'abc', '1e3', '0x1', '9'.repeat(20).replace('9', '+')]) {
    const problem = await refusal(readEvents(client, runId, last));
    assert.deepEqual([problem.status, problem.code], [400, 'validation-failed'], last);
  }
  const unknown = await refusal(readEvents(client, '0190b6a2-0000-7000-8000-000000000000'));
  assert.deepEqual([unknown.status, unknown.code], [404, 'run-not-found']);
});

forEachDurableService('RUN-24 a log that retention has removed is an empty stream', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runStream(app.client, 'helper', 'Hi');
  const { length: maxRows } = (await runStream(app.client, 'helper', 'Hi')).frames;
  await app.client.retention.save({ params: { target: 'RunEvents' }, body: { maxRows } });
  await swept(app);
  assert.deepEqual(await readEvents(app.client, runId), []);
});

forEachService('RUN-24 RUN-25 readers of a live run get all of it, wherever they begin', async (open) => {
  const gate = new Gate();
  const { client } = await open(waitingSetup(gate));
  const own = await stream(client, 'helper', 'wait');
  await gate.reached;
  const early = client.runs.events({ params: { runId: own.runId } });
  const fromOne = client.runs.events({ params: { runId: own.runId }, headers: { 'last-event-id': '0' } });
  const future = client.runs.events({ params: { runId: own.runId }, headers: { 'last-event-id': '5000' } });
  const readers = (await Promise.all([early, fromOne, future])).map(({ frames }) => collect(frames));
  gate.open();
  const frames = await collect(own.frames);
  assertWholeLog(frames);
  assert.deepEqual(await Promise.all(readers), [frames, frames.slice(1), []]);
});

forEachService('RUN-24 a reader whose connection drops goes on where it was', async (open) => {
  const gate = new Gate();
  const { client } = await open(waitingSetup(gate));
  const gone = new AbortController();
  const own = await stream(client, 'helper', 'wait', { signal: gone.signal });
  const iterator = own.frames[Symbol.asyncIterator]();
  const seen = await readUntil(iterator, 'tool.invoking');
  gone.abort();
  await assert.rejects(collect({ [Symbol.asyncIterator]: () => iterator }));
  const { frames } = await client.runs.events({
    params: { runId: own.runId },
    headers: { 'last-event-id': String(seen.at(-1)?.id) },
  });
  gate.open();
  const rest = await collect(frames);
  assert.deepEqual([...seen, ...rest], await readEvents(client, own.runId));
  assertWholeLog([...seen, ...rest]);
});

forEachDurableService('RUN-24 a run that another process executes is followed through the store', async (open) => {
  const app = await open({
    host: { RunEventPollInterval: '1m' },
    service: { RunReconciliation: { Enabled: false } },
    agents: [{ name: 'helper' }],
  });
  const template = await runStream(app.client, 'helper', 'Hi');
  const other = app.store.open();
  const runs = other.stores(runStore);
  const journal = other.stores(createRunJournal(null, null));
  const runId = newId();
  await opensRun(other, runId);
  const packs = (await runs.packs('default', template.runId, 0, 100)).map(
    ({ firstSequence, lastSequence, events }) => ({
      firstSequence,
      write: () => other.write([journal.packed('default', runId, firstSequence, lastSequence, events)]),
    }),
  );
  const last = packs.pop() ?? assert.fail('the log is stored');
  for (const { write } of packs) await write();
  app.clock.stand();
  const begun = app.clock.now();
  const reply = await app.client.runs.events({ params: { runId } });
  const iterator = reply.frames[Symbol.asyncIterator]();
  const seen: Frame[] = [];
  for (let index = 0; index < last.firstSequence; index += 1) seen.push((await iterator.next()).value);
  await last.write();
  const row = (await runs.get('default', runId)) ?? assert.fail('the run is stored');
  await runs.closeFrom(row, 'Running', { status: 'Completed', completed_at: 1 });
  let foundAfterMs: number | null = null;
  const rest = (async () => {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      foundAfterMs ??= app.clock.now() - begun;
      seen.push(next.value);
    }
  })();
  await eventually('the rest of the log', async () => {
    await app.clock.jump(500);
    return foundAfterMs;
  });
  assert.ok(Number(foundAfterMs) >= 60_000, `found after ${foundAfterMs} ms`);
  await rest;
  const frames = template.frames.map((frame) => ({ ...frame, data: frame.data.replaceAll(template.runId, runId) }));
  assert.deepEqual(seen, frames);
});

const column = 'x'.repeat(60_000);

overHttp(
  'RUN-25 a long finished log reaches a reader that takes its time, whole and in one connection',
  async (open) => {
    const { client } = await open({
      tools: [look],
      script: [
        { when: { call: 60 }, reply: { text: 'Done.' } },
        { reply: { text: column, toolCalls: [{ name: 'look', arguments: {} }] } },
      ],
      service: { Tools: { MaxIterations: 100 }, AgentGraph: { MaxTotalTokens: 0 } },
      agents: [{ name: 'helper', toolNames: ['look'] }],
    });
    const { runId, frames } = await runStream(client, 'helper', 'Hi');
    const bytes = frames.reduce((sum, frame) => sum + frame.data.length, 0);
    assert.ok(bytes > 6_000_000, 'far more than a reader may be behind');
    const reply = await client.runs.events({ params: { runId } });
    const slow: Frame[] = [];
    for await (const frame of reply.frames) {
      slow.push(frame);
      if (slow.length % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(slow, frames);
  },
);

overHttp('RUN-25 a reader that does not read is cut off, and slows neither the run nor the others', async (open) => {
  const gate = new Gate();
  const app = await open({
    tools: [
      look,
      tool('wait', async () => {
        await gate.pass();
        return 'waited';
      }),
    ],
    script: [
      { when: { call: 1 }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
      { when: { call: 200 }, reply: { text: 'Done.' } },
      { reply: { text: column, toolCalls: [{ name: 'look', arguments: {} }] } },
    ],
    service: { Tools: { MaxIterations: 300 }, AgentGraph: { MaxTotalTokens: 0 } },
    agents: [{ name: 'helper', toolNames: ['look', 'wait'] }],
  });
  const own = await stream(app.client, 'helper', 'Hi');
  await gate.reached;
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  const cut = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  socket.write(`GET /api/runs/${own.runId}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  // The first bytes show that the reader is subscribed; then it stops reading.
  await new Promise<void>((resolve) => socket.once('data', () => resolve()));
  socket.pause();
  gate.open();
  const events = assertWholeLog(await collect(own.frames));
  assert.equal(events.at(-1)?.type, 'run.completed');
  socket.resume();
  await cut;
  assert.ok(app.log.some((line) => line.message === 'A slow reader was cut off'));
  assert.deepEqual(eventsOf(await readEvents(app.client, own.runId)), events);
});

forEachService('RUN-22 the log of a run with tools tells its whole story in order', async (open) => {
  const { client } = await open({
    tools: [look],
    script: callsTools('look'),
    agents: [{ name: 'helper', toolNames: ['look'] }],
  });
  const { runId, events } = await runStream(client, 'helper', 'Hi');
  assert.deepEqual(typesOf(events), [
    'run.started',
    'message.delta',
    'message.completed',
    'usage.updated',
    'tool.invoking',
    'tool.invoked',
    'message.delta',
    'message.completed',
    'usage.updated',
    'run.completed',
  ]);
  const [started, , spoken, usage, invoking, invoked] = events;
  const { timestamp: _at, ...rest } = started ?? { timestamp: '' };
  assert.deepEqual(rest, {
    runId,
    sequence: 0,
    type: 'run.started',
    agentName: 'helper',
    agentVersion: 1,
    kind: 'Agent',
    attempt: 1,
    sessionId: null,
    modelProvider: 'demo',
    modelId: 'demo-1',
    isStreaming: true,
    parentRunId: null,
    continuedFromRunId: null,
    replayOfRunId: null,
  });
  assert.deepEqual([spoken?.['text'], spoken?.['finishReason']], ['I look.', 'ToolCalls']);
  assert.equal(events[1]?.['messageId'], spoken?.['messageId']);
  assert.ok(usage?.['usage'].totalTokens > 0);
  assert.deepEqual(usage?.['treeUsage'], usage?.['usage']);
  assert.deepEqual([invoking?.['toolName'], invoking?.['arguments'], invoking?.['source']], ['look', {}, null]);
  assert.equal(invoked?.['toolCallId'], invoking?.['toolCallId']);
  assert.equal(invoked?.['result'], '{"found":[1,"zwei",null]}');
  const done = events.at(-1);
  assert.deepEqual([done?.['output'], done?.['finishReason']], ['Done: {"found":[1,"zwei",null]}', 'Stop']);
  const run = await getRun(client, runId);
  assert.deepEqual(done?.['usage'], run.usage);
  assert.deepEqual(done?.['cost'], run.cost);
  assert.equal(done?.['durationMs'], run.durationMs);
});
