import assert from 'node:assert/strict';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { forEachDurableService } from '../../support/app.ts';
import {
  assertWholeLog,
  callsTools,
  collect,
  enqueue,
  eventsOf,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  readEvents,
  readUntil,
  refusal,
  runJson,
  runStream,
  start,
  stream,
  tool,
  waitingSetup,
} from './run-calls.ts';

const local = { provider: 'local', model: 'any' };

forEachDurableService(
  'OBS-2 RUN-27 without recorded deltas the log keeps their place, live readers get the text',
  async (open) => {
    const { client, simulator } = await open({
      simulator: { frameDelayMs: 25 },
      service: { RunRecording: { RecordMessageDeltas: false } },
      agents: [{ name: 'helper', model: local }],
    });
    simulator.enqueue({ answer: { text: ['Once', ' upon', ' a time'] } });
    const { runId, events } = await runStream(client, 'helper', 'Hi');
    const deltas = events.filter((event) => event.type === 'message.delta');
    assert.equal(deltas.map((event) => event['text']).join(''), 'Once upon a time');
    const stored = assertWholeLog(await readEvents(client, runId));
    assert.deepEqual(
      stored,
      events.map((event) => (event.type === 'message.delta' ? { ...event, text: null } : event)),
    );
    assert.equal(stored.find((event) => event.type === 'message.completed')?.['text'], 'Once upon a time');
  },
);

for (const recorded of [false, true])
  forEachDurableService(`OBS-3 RUN-27 reasoning is stored only when asked for: ${recorded}`, async (open) => {
    const app = await open({
      simulator: {},
      service: { RunRecording: { RecordReasoningDeltas: recorded } },
      agents: [{ name: 'helper', model: { provider: 'anthropic', model: 'any' } }],
    });
    app.simulator.enqueue({ answer: { reasoning: ['I wonder'], text: ['Yes.'] } });
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    const live = events.filter((event) => event.type === 'reasoning.delta');
    assert.equal(live.map((event) => event['text']).join(''), 'I wonder');
    const stored = eventsOf(await readEvents(app.client, runId)).filter((event) => event.type === 'reasoning.delta');
    assert.equal(stored.length, live.length);
    assert.equal(stored[0]?.['text'], recorded ? live[0]?.['text'] : null);
    assert.equal((await app.store.text()).includes('wonder'), recorded, 'kept nowhere');
  });

const echo = tool('echo', async (args) => ({ said: args as never, secret: 'xyzzy-result' }), {
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, additionalProperties: false },
});

const callsEcho = (text: string) => [
  { when: { tool: 'echo' }, reply: { text: 'Over.' } },
  { reply: { toolCalls: [{ name: 'echo', arguments: { text } }] } },
];

forEachDurableService(
  'OBS-4 RUN-27 TOOL-25 without recorded payloads no argument and no result is stored or streamed',
  async (open) => {
    const app = await open({
      tools: [echo],
      script: callsEcho('xyzzy-argument'),
      service: { RunRecording: { RecordToolPayloads: false } },
      agents: [{ name: 'helper', toolNames: ['echo'] }],
    });
    const { runId, frames, events } = await runStream(app.client, 'helper', 'Hi');
    assert.ok(!JSON.stringify(frames).includes('xyzzy'));
    assert.equal(events.find((event) => event.type === 'tool.invoking')?.['arguments'], null);
    assert.equal(events.find((event) => event.type === 'tool.invoked')?.['result'], null);
    assert.deepEqual(await readEvents(app.client, runId), frames);
    const [record] = (await app.client.runs.tools({ params: { runId } })).body;
    assert.deepEqual(
      [record?.arguments, record?.result, record?.truncated, record?.succeeded],
      [null, null, false, true],
    );
    assert.ok(!(await app.store.text()).includes('xyzzy'));
  },
);

forEachDurableService('OBS-5 RUN-27 long payloads are cut and marked; the model gets the whole', async (open) => {
  const long = 'ab😀'.repeat(20);
  const app = await open({
    simulator: {},
    tools: [
      tool('produce', async (_args, { emit }) => {
        emit('progress', { text: long });
        return long;
      }),
    ],
    service: { RunRecording: { MaxPayloadLength: 11 } },
    agents: [{ name: 'helper', model: local, toolNames: ['produce'] }],
  });
  app.simulator.enqueue(
    { answer: { toolCalls: [{ id: 'c1', name: 'produce', arguments: '{}' }] } },
    { answer: { text: ['A long answer is never cut, however long it is.'] } },
  );
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  const find = (type: string) => events.find((event) => event.type === type);
  assert.deepEqual([find('tool.invoked')?.['result'], find('tool.invoked')?.['truncated']], ['ab😀ab😀ab', true]);
  assert.deepEqual([find('custom')?.['payload'], find('custom')?.['truncated']], ['{"text":"ab', true]);
  assert.deepEqual([find('tool.invoking')?.['arguments'], find('tool.invoking')?.['truncated']], [{}, undefined]);
  assert.equal(events.at(-1)?.['output'], 'A long answer is never cut, however long it is.');
  const [record] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.deepEqual([record?.result, record?.truncated], ['ab😀ab😀ab', true]);
  const sent = app.simulator.lastRequest().body['messages'] as { role: string; content: unknown }[];
  assert.equal(sent.find((message) => message.role === 'tool')?.content, long);
});

forEachDurableService('OBS-5 a length of 0 is no limit', async (open) => {
  const { client } = await open({
    tools: [tool('produce', async () => 'x'.repeat(50_000))],
    script: callsTools('produce'),
    service: { RunRecording: { MaxPayloadLength: 0 } },
    agents: [{ name: 'helper', toolNames: ['produce'] }],
  });
  const { events } = await runStream(client, 'helper', 'Hi');
  const invoked = events.find((event) => event.type === 'tool.invoked');
  assert.deepEqual([invoked?.['result'].length, invoked?.['truncated']], [50_000, undefined]);
});

for (const recorded of [true, false])
  forEachDurableService(`OBS-6 RUN-50 the input is stored only when asked for: ${recorded}`, async (open) => {
    const app = await open({
      service: { RunRecording: { RecordRunInput: recorded } },
      agents: [{ name: 'helper' }],
    });
    const { runId } = await runJson(app.client, 'helper', { message: 'Hi', documents: [{ name: 'a', content: 'b' }] });
    const queuedId = await enqueue(app.client, 'helper', 'Ho');
    await followToEnd(app.client, queuedId);
    const inputOf = (id: string) => app.client.runs.input({ params: { runId: id } });
    if (!recorded) {
      for (const id of [runId, queuedId]) assert.equal((await refusal(inputOf(id))).code, 'run-input-not-recorded');
      return;
    }
    assert.equal((await inputOf(queuedId)).body.messages.length, 1);
    const [message] = (await inputOf(runId)).body.messages;
    assert.equal(message?.role, 'User');
    assert.deepEqual(message?.contents, [
      { type: 'Document', name: 'a', text: 'b' },
      { type: 'Text', text: 'Hi' },
    ]);
  });

forEachDurableService('OBS-1 RUN-28 without recording runs work and stream, and leave nothing', async (open) => {
  const gate = new Gate();
  gate.open();
  const app = await open({ ...waitingSetup(gate), service: { RunRecording: { Enabled: false } } });
  const { runId, events } = await runStream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  assert.equal(events.at(-1)?.['output'], 'It is over.');
  const answer = await runJson(app.client, 'helper', { message: 'two', sessionId: 's' });
  assert.equal(answer.output, 'Hello there.');
  assert.deepEqual(await listRuns(app.client), []);
  for (const call of [() => getRun(app.client, runId), () => readEvents(app.client, runId)])
    assert.equal((await refusal(call())).code, 'run-not-found');
  const queued = await refusal(start(app.client, 'helper', 'Hi', { headers: { prefer: 'respond-async' } }));
  assert.deepEqual([queued.status, queued.code], [501, 'run-recording-disabled']);
  const runs = app.store.open().stores(runStore);
  assert.equal(await runs.get('default', runId), undefined);
  assert.deepEqual(await runs.packs('default', runId, 0, 10), []);
  assert.equal(await runs.recordedInput('default', runId), null);
  assert.deepEqual(await runs.toolInvocations('default', runId, 10), []);
  assert.deepEqual((await app.client.jobs.list({ query: {} })).body, []);
  const { body: session } = await app.client.sessions.get({ params: { sessionId: 's' } });
  assert.deepEqual(
    [session.version, session.messageCount, session.activeRunId],
    [2, 6, null],
    'a conversation is no recording',
  );
});

forEachDurableService('OBS-1 without recording a failed and a cancelled turn free their session too', async (open) => {
  const gate = new Gate();
  const app = await open({
    ...waitingSetup(gate),
    script: [{ when: { message: 'fail' }, reply: { error: 'provider_error' } }, ...waitingSetup(gate).script],
    service: { RunRecording: { Enabled: false } },
  });
  await refusal(start(app.client, 'helper', { message: 'fail', sessionId: 's', stream: false }));
  await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  const first = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's', concurrency: 'Interrupt' });
  assert.equal(eventsOf(await collect(first.frames)).at(-1)?.['cause'], 'Interrupted');
});

forEachDurableService('OBS-7 RUN-28 a store that fails ends the recording, not the answer', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  const { runId, frames } = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  const iterator = frames[Symbol.asyncIterator]();
  const seen = await readUntil(iterator, 'tool.invoking');
  await gate.reached;
  const mend = await app.store.refuse('run events');
  gate.open();
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) seen.push(next.value);
  const events = assertWholeLog(seen);
  assert.equal(events.at(-1)?.['output'], 'It is over.');
  const failures = app.log.filter((line) => line.level === 'error' && line.fields['runId'] === runId);
  assert.equal(failures.filter((line) => line.message === 'Recording of a run failed and has ended').length, 1);
  await mend();
  const next = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.deepEqual(await readEvents(app.client, next.runId), next.frames, 'the next run is recorded again');
  const { body: session } = await app.client.sessions.get({ params: { sessionId: 's' } });
  assert.equal(session.messageCount, 6, 'both turns are part of the conversation');
});

forEachDurableService('RUN-28 a run whose record was refused is no plain Completed one', async (open) => {
  const gates = [new Gate(), new Gate(), new Gate(), new Gate()];
  let made = 0;
  const app = await open({
    tools: [
      tool(
        'send',
        async (_args, { signal }) => {
          const gate = gates[made];
          made += 1;
          await gate?.pass(signal);
          return 'sent';
        },
        { effect: 'External' },
      ),
    ],
    script: [
      { when: { tool: 'send' }, reply: { text: 'Done.' } },
      { reply: { toolCalls: [{ name: 'send', arguments: {} }] } },
    ],
    agents: [{ name: 'helper', toolNames: ['send'] }],
  });
  app.clock.stand();
  const parts = ['tool calls', 'run steps', 'model calls', 'run events'] as const;
  for (const [index, part] of parts.entries()) {
    const { runId, frames } = await stream(app.client, 'helper', { message: 'Hi', sessionId: part.replace(' ', '-') });
    await gates[index]?.reached;
    const mend = await app.store.refuse(part);
    gates[index]?.open();
    const seen = await collect(frames);
    assert.deepEqual(
      seen.slice(-2).map(({ event }) => event),
      ['warning', 'run.completed'],
      part,
    );
    // A log that takes nothing has no end either.
    if (part === 'run events') await mend();
    await app.clock.advance(1000);
    const run = await getRun(app.client, runId);
    assert.deepEqual([run.status, run.warnings], ['Completed', ['recording-incomplete']], part);
    const log = await readEvents(app.client, runId);
    assert.match(log.at(-1)?.data ?? '', /"warnings":\["recording-incomplete"\]/, part);
    assert.equal(log.length, run.eventCount, part);
    if (part !== 'run events') await mend();
  }
  // No reader takes a call whose result was not stored for a settled call, or for one that was not made.
  const states = (await app.store.stored('tool calls')).map((call) => call['state']);
  assert.deepEqual(states.sort(), ['Pending', 'Unknown', 'Unknown', 'Unknown']);
});

forEachDurableService('RUN-28 a tool with effects is not called when its entry cannot be stored', async (open) => {
  const calls: string[] = [];
  const effect = (name: string, kind: 'Read' | 'Write') =>
    tool(
      name,
      async () => {
        calls.push(name);
        return 'done';
      },
      { effect: kind },
    );
  const app = await open({
    tools: [effect('read', 'Read'), effect('write', 'Write')],
    script: callsTools('read', 'write'),
    agents: [{ name: 'helper', toolNames: ['read', 'write'] }],
  });
  await app.store.refuse('tool calls');
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.deepEqual(calls, ['read']);
  assert.match(events.find((event) => event.type === 'tool.failed')?.['error'], /could not be recorded/);
  assert.equal(events.at(-1)?.type, 'run.completed');
});

forEachDurableService('OBS-9 rows that are stored stay as they are when settings change', async (open) => {
  const setup = { tools: [echo], script: callsEcho('kept') };
  const app = await open({ ...setup, agents: [{ name: 'helper', toolNames: ['echo'] }] });
  const { runId, frames } = await runStream(app.client, 'helper', 'Hi');
  await app.close();
  const later = await open({
    ...setup,
    folder: app.folder,
    service: { RunRecording: { RecordToolPayloads: false, RecordMessageDeltas: false } },
  });
  assert.deepEqual(await readEvents(later.client, runId), frames);
});
