import assert from 'node:assert/strict';
import { forEachDurableService, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  assertWholeLog,
  collect,
  enqueue,
  eventsOf,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  post,
  readEvents,
  refusal,
  runJson,
  start,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

const patient = { Drain: { Timeout: '60s' } };

forEachDurableService(
  'JOB-43 JOB-44 while the service drains no run starts, and what runs may finish',
  async (open) => {
    const gate = new Gate();
    const { app, client } = await open({ ...waitingSetup(gate), service: patient });
    const first = await stream(client, 'helper', 'wait');
    const once = { headers: { 'idempotency-key': 'k' } };
    const answered = await start(client, 'helper', 'Hi', once);
    await gate.reached;
    const drained = app.drain();
    for (const options of [{}, { headers: { prefer: 'respond-async' } }, { headers: { 'idempotency-key': 'k2' } }]) {
      const problem = await refusal(start(client, 'helper', 'Hi', options));
      assert.deepEqual([problem.status, problem.code, problem.retryAfterMs], [503, 'draining', 5000]);
    }
    assert.equal((await refusal(start(client, 'helper', ''))).code, 'message-required', 'RUN-2 the body comes first');
    const repeated = await start(client, 'helper', 'Hi', once);
    assert.deepEqual(repeated.body, answered.body, 'RUN-2 a stored answer comes before the refusal');
    assert.equal((await listRuns(client)).length, 2);
    assert.equal((await app.health()).status, 'Draining');
    gate.open();
    assert.equal(assertWholeLog(await collect(first.frames)).at(-1)?.type, 'run.completed');
    await drained;
  },
);

overHttp('JOB-43 the refusal says when to try again', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await app.app.drain();
  const answer = await post(app, '/api/agents/helper/run', { message: 'Hi' });
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5']);
  assert.equal((await fetch(`${app.url}/health/ready`)).status, 503);
});

forEachDurableService('JOB-43 a run can be cancelled while the service drains', async (open) => {
  const gate = new Gate();
  const { app, client } = await open({ ...waitingSetup(gate), service: patient });
  const { runId, frames } = await stream(client, 'helper', 'wait');
  await gate.reached;
  const drained = app.drain();
  await client.runs.cancel({ params: { runId } });
  assert.equal(assertWholeLog(await collect(frames)).at(-1)?.type, 'run.canceled');
  await drained;
});

for (const service of [{ Drain: { Timeout: '10ms' } }, { Drain: { Enabled: false, Timeout: '1h' } }])
  forEachDurableService(
    `RUN-79 JOB-45 what has not finished in time ends as shutdown: ${JSON.stringify(service)}`,
    async (open) => {
      const gate = new Gate();
      const { app, client } = await open({ ...waitingSetup(gate), service });
      const streamed = await stream(client, 'helper', { message: 'wait', sessionId: 's' });
      const answer = start(client, 'helper', { message: 'wait', stream: false });
      const waiting = await stream(client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
      await gate.reached;
      await eventually('two runs execute', async () => (await listRuns(client, { status: 'Running' })).length === 2);
      const drained = app.drain();
      const problem = await refusal(answer);
      assert.deepEqual([problem.status, problem.code, problem.errorType], [503, 'draining', 'shutdown']);
      for (const { runId, frames } of [streamed, waiting]) {
        const collected = await collect(frames);
        const end = assertWholeLog(collected).at(-1);
        assert.deepEqual(
          [end?.type, end?.['error'].class, end?.['error'].type],
          ['run.failed', 'Infrastructure', 'shutdown'],
        );
        assert.equal(collected.at(-2)?.event, 'error');
        assert.equal((await getRun(client, runId)).status, 'Failed');
      }
      await drained;
      assert.deepEqual(await listRuns(client, { status: 'Running' }), []);
    },
  );

const jobStatus = async ({ client }: TestApp, id: string) => {
  const { status, attempt } = (await client.jobs.get({ params: { id } })).body.job;
  return { status, attempt };
};

forEachDurableService(
  'RUN-79 JOB-45 a queued run that executes ends as shutdown, one that has not begun goes on later',
  async (open) => {
    const gate = new Gate();
    const setup = waitingSetup(gate);
    const app = await open({ ...setup, service: { Scheduling: { MaxConcurrentJobs: 2 } } });
    const executing = await enqueue(app.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    const waiting = await enqueue(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
    const untouched = await enqueue(app.client, 'helper', 'three');
    await eventually('the job of the second', async () => (await jobStatus(app, waiting)).status === 'Running');
    await app.close();
    const { agents: _created, ...rest } = setup;
    const idle = await open({ ...rest, folder: app.folder, service: { Scheduling: { RunWorker: false } } });
    assert.equal((await jobStatus(idle, executing)).status, 'Failed');
    assert.deepEqual(await jobStatus(idle, waiting), { status: 'Pending', attempt: 0 });
    assert.deepEqual(await jobStatus(idle, untouched), { status: 'Pending', attempt: 0 });
    await idle.close();
    const next = await open({ ...rest, folder: app.folder });
    assert.equal((await followToEnd(next.client, executing)).at(-1)?.['error'].type, 'shutdown');
    for (const id of [waiting, untouched]) {
      const events = await followToEnd(next.client, id);
      assert.deepEqual(typesOf(events).slice(0, 2), ['run.queued', 'run.started']);
      assert.equal(events[1]?.['attempt'], 1);
      assert.equal(events.at(-1)?.type, 'run.completed');
    }
  },
);

forEachDurableService('RUN-79 a tool that ignores its signal does not hold the service', async (open) => {
  const entered = Promise.withResolvers<void>();
  const app = await open({
    tools: [
      tool('work', () => {
        entered.resolve();
        return new Promise<string>(() => undefined);
      }),
    ],
    script: [{ reply: { toolCalls: [{ name: 'work', arguments: {} }] } }],
    agents: [{ name: 'helper', toolNames: ['work'] }],
  });
  const { frames } = await stream(app.client, 'helper', 'Hi');
  await entered.promise;
  const collected = collect(frames);
  await app.app.drain();
  assert.equal(eventsOf(await collected).at(-1)?.['error'].type, 'shutdown');
});

forEachDurableService('RUN-24 a service that was stopped and started still has every log', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  const before = await readEvents(app.client, runId);
  await app.close();
  const next = await open({ folder: app.folder });
  assert.deepEqual(await readEvents(next.client, runId), before);
  await runJson(next.client, 'helper', { message: 'again', sessionId: 's' });
});

forEachDurableService('a service that is closed leaves nothing open', async (open) => {
  const held = () => process.getActiveResourcesInfo().toSorted();
  const gate = new Gate();
  // What tests of a kind of store keep open for all of them is opened by the first.
  await (await open()).close();
  // A request whose callback is running still counts, and this test may begin within the one that ended the last test;
  // connections to a database end when the other side has heard of it.
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  const before = held();
  const app = await open({ ...waitingSetup(gate), simulator: {} });
  await app.createAgent({ name: 'wired', model: { provider: 'local', model: 'any' } });
  await runJson(app.client, 'wired', { message: 'Hi', sessionId: 's' });
  await enqueue(app.client, 'helper', 'wait');
  const { frames } = await stream(app.client, 'helper', 'wait');
  const reading = collect(frames);
  await gate.reached;
  await app.app.drain();
  assert.equal(eventsOf(await reading).at(-1)?.['error'].type, 'shutdown');
  await app.close();
  // Sockets report their end one turn of the event loop after it.
  for (let turn = 0; turn < 100 && held().length > before.length; turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(held(), before);
});
