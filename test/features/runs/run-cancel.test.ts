import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from '../../../src/core/ids.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { forEachDurableService, openApp } from '../../support/app.ts';
import { opensRun } from './other-process.ts';
import {
  assertWholeLog,
  collect,
  eventsOf,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  post,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

forEachDurableService('RUN-41 a run that executes here is stopped and keeps what it wrote', async (open) => {
  const { client, simulator } = await open({
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  simulator.enqueue({ answer: { text: ['Once', ' upon'] }, fault: { kind: 'stall', after: 2 } });
  const { runId, frames } = await stream(client, 'helper', 'Hi');
  const iterator = frames[Symbol.asyncIterator]();
  await readUntil(iterator, 'message.delta');
  const first = await client.runs.cancel({ params: { runId } });
  assert.deepEqual([first.status, first.body.id], [202, runId]);
  const seen = await readUntil(iterator, 'run.canceled');
  await simulator.lastRequest().aborted;
  const end = eventsOf(seen).at(-1);
  assert.deepEqual([end?.type, end?.['cause'], end?.['canceledBy']], ['run.canceled', 'Requested', null]);
  const log = await followToEnd(client, runId);
  assert.ok(typesOf(log).includes('message.delta'));
  const run = await getRun(client, runId);
  assert.deepEqual([run.status, run.error?.class, run.error?.type], ['Canceled', 'Canceled', 'canceled']);
  const again = await refusal(client.runs.cancel({ params: { runId } }));
  assert.deepEqual([again.status, again.code], [409, 'run-finished']);
});

forEachDurableService(
  'RUN-41 TOOL-22 a running tool is told by its signal, and its result is dropped',
  async (open) => {
    const reached = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const app = await open({
      tools: [
        tool('work', async (_args, { signal }) => {
          reached.resolve();
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          aborted.resolve();
          return 'too late';
        }),
      ],
      script: [{ reply: { toolCalls: [{ name: 'work', arguments: {} }] } }],
      agents: [{ name: 'helper', toolNames: ['work'] }],
    });
    const { runId, frames } = await stream(app.client, 'helper', 'Hi');
    await reached.promise;
    await app.client.runs.cancel({ params: { runId } });
    await aborted.promise;
    const events = assertWholeLog(await collect(frames));
    assert.deepEqual(typesOf(events).slice(-2), ['tool.failed', 'run.canceled']);
    const { body } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual([body.length, body[0]?.succeeded, body[0]?.result], [1, false, null]);
  },
);

// In process both calls are made before the run can end; over a wire nothing would hold it.
test('RUN-41 a second cancel meanwhile is accepted as well', async (t) => {
  const gate = new Gate();
  const { client } = await openApp(t, 'in process', waitingSetup(gate));
  const { runId, frames } = await stream(client, 'helper', 'wait');
  await gate.reached;
  const cancel = () => client.runs.cancel({ params: { runId } });
  const [first, second] = await Promise.all([cancel(), cancel()]);
  assert.deepEqual([first.status, second.status], [202, 202]);
  assert.equal(eventsOf(await collect(frames)).at(-1)?.type, 'run.canceled');
});

forEachDurableService('RUN-20 a JSON answer of a cancelled run is a conflict', async (open) => {
  const gate = new Gate();
  const { client } = await open(waitingSetup(gate));
  const refused = refusal(start(client, 'helper', { message: 'wait', stream: false }));
  await gate.reached;
  const [run] = await listRuns(client);
  await client.runs.cancel({ params: { runId: run?.id ?? '' } });
  const problem = await refused;
  assert.deepEqual([problem.status, problem.code, problem.errorType], [409, 'run-canceled', 'canceled']);
});

forEachDurableService(
  'RUN-42 a run whose process is gone cannot be cancelled, nor one that is not known',
  async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const other = app.store.open();
    const runId = newId();
    await opensRun(other, runId);
    const elsewhere = await refusal(app.client.runs.cancel({ params: { runId } }));
    assert.deepEqual([elsewhere.status, elsewhere.code], [409, 'run-not-on-this-instance']);
    const runs = other.stores(runStore);
    const row = (await runs.get('default', runId)) ?? assert.fail('the run is stored');
    await runs.closeFrom(row, 'Running', { status: 'AwaitingApproval' });
    assert.equal((await refusal(app.client.runs.cancel({ params: { runId } }))).code, 'run-finished');
    const unknown = await refusal(
      app.client.runs.cancel({ params: { runId: '0190b6a2-0000-7000-8000-000000000000' } }),
    );
    assert.deepEqual([unknown.status, unknown.code], [404, 'run-not-found']);
    const malformed = await refusal(app.client.runs.cancel({ params: { runId: 'x' } }));
    assert.equal(malformed.status, 400);
  },
);

forEachDurableService('RUN-10 a client that goes away does not stop its run', async (open) => {
  const gate = new Gate();
  const { client } = await open(waitingSetup(gate));
  const gone = new AbortController();
  const { runId, frames } = await stream(client, 'helper', 'wait', { signal: gone.signal });
  const reading = collect(frames);
  await gate.reached;
  gone.abort();
  await assert.rejects(reading);
  gate.open();
  assert.equal((await followToEnd(client, runId)).at(-1)?.type, 'run.completed');
});

for (const mode of [{}, { stream: false }])
  forEachDurableService(`RUN-10 with onDisconnect=cancel it does: ${JSON.stringify(mode)}`, async (open) => {
    const gate = new Gate();
    const { client } = await open(waitingSetup(gate));
    const gone = new AbortController();
    const call = start(
      client,
      'helper',
      { message: 'wait', ...mode },
      { query: { onDisconnect: 'cancel' }, signal: gone.signal },
    );
    const reading = call.then((reply) => (reply.frames === undefined ? [] : collect(reply.frames)));
    await gate.reached;
    gone.abort();
    await assert.rejects(reading);
    const [run] = await listRuns(client);
    const end = (await followToEnd(client, run?.id ?? '')).at(-1);
    assert.deepEqual([end?.type, end?.['cause']], ['run.canceled', 'Disconnected']);
  });

test('RUN-10 a socket that is cut counts as a client that went away', async (t) => {
  const gate = new Gate();
  const app = await openApp(t, 'http', waitingSetup(gate));
  const gone = new AbortController();
  const answer = await fetch(`${app.url}/api/agents/helper/run?onDisconnect=cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'wait' }),
    signal: gone.signal,
  });
  const runId = answer.headers.get('x-run-id') ?? '';
  await gate.reached;
  gone.abort();
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.['cause'], 'Disconnected');
});

test('RUN-10 queued runs ignore onDisconnect', async (t) => {
  const app = await openApp(t, 'http', { agents: [{ name: 'helper' }] });
  const answer = await post(
    app,
    '/api/agents/helper/run?onDisconnect=cancel',
    { message: 'Hi' },
    { prefer: 'respond-async' },
  );
  assert.equal(answer.status, 202);
  const { runId } = (await answer.json()) as { runId: string };
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
});

forEachDurableService('RUN-41 a run that waits for its session is cancelled where it stands', async (open) => {
  const gate = new Gate();
  const { client } = await open(waitingSetup(gate));
  const first = await stream(client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  const second = await stream(client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
  await client.runs.cancel({ params: { runId: second.runId } });
  assert.deepEqual(typesOf(assertWholeLog(await collect(second.frames))), ['run.queued', 'run.canceled']);
  const run = await getRun(client, second.runId);
  assert.deepEqual([run.status, run.startedAt], ['Canceled', null]);
  gate.open();
  assert.equal(eventsOf(await collect(first.frames)).at(-1)?.type, 'run.completed');
  await runJson(client, 'helper', { message: 'three', sessionId: 's' });
});

forEachDurableService('RUN-41 the end names who cancelled', async (open) => {
  const gate = new Gate();
  const { client, clientFor } = await open(waitingSetup(gate));
  const { body } = await client.keys.create({ body: { name: 'k', role: 'Operator', scopes: ['RunsWrite'] } });
  const { runId, frames } = await stream(client, 'helper', 'wait');
  await gate.reached;
  await (await clientFor(body.plaintextKey)).runs.cancel({ params: { runId } });
  assert.equal(eventsOf(await collect(frames)).at(-1)?.['canceledBy'], `apikey:${body.record.id}`);
});
