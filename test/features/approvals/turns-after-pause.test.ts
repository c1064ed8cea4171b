import assert from 'node:assert/strict';
import type { Frame } from '../../../src/contract/operation.ts';
import { forEachDurableService, type OpenApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  assertWholeLog,
  collect,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  readUntil,
  refusal,
  start,
  stream,
  tool,
  typesOf,
} from '../runs/run-calls.ts';
import { calls, decide, messagesOf, openApprovals, pendingOf, toolTexts } from './approval-world.ts';

const sessionId = 's-1';
// What goes on here goes on because it is told: nobody looks before the test is long over.
const patient = { Scheduling: { PollInterval: '1h' } };

interface Paused {
  readonly app: TestApp & { readonly done: { readonly name: string }[] };
  readonly first: string;
}

/** A queued run that pauses once the gate is open, and meanwhile holds the session. */
const openHeld = async (
  open: OpenApp,
  service: Record<string, unknown> = patient,
): Promise<Paused & { gate: Gate }> => {
  const gate = new Gate();
  const hold = tool('hold', async (_args, { signal }) => {
    await gate.pass(signal);
    return 'held';
  });
  const stay = tool('stay', (_args, { signal }) => new Gate().pass(signal).then(() => 'stayed'));
  const app = await openApprovals(open, { more: [hold, stay], service });
  const first = await enqueue(app.client, 'helper', { message: calls(['hold'], ['pay', { amount: 5 }]), sessionId });
  await gate.reached;
  return { app, first, gate };
};

const pause = async ({ app, first, gate }: Paused & { gate: Gate }): Promise<string> => {
  gate.open();
  assert.equal((await followToEnd(app.client, first)).at(-1)?.type, 'run.awaiting-approval');
  return (await pendingOf(app.client))[0]?.id ?? assert.fail('nothing is pending');
};

const userTexts = (app: TestApp): string[] =>
  messagesOf(app.simulator.lastRequest()).flatMap(({ role, content }) => (role === 'user' ? [String(content)] : []));

/** Resolves when the worker has given a run back because it is not its turn. */
const givenBack = async (app: TestApp, id: string): Promise<void> => {
  await eventually('the job back in line for later', async () => {
    const { job } = (await app.client.jobs.get({ params: { id } })).body;
    return job.status === 'Pending' && job.scheduledFor > job.createdAt;
  });
};

const endOf = async (frames: AsyncIterable<Frame>) => assertWholeLog(await collect(frames)).at(-1);

forEachDurableService('APPR-34 RUN-17 a queued run starts as soon as the session has gone on', async (open) => {
  const held = await openHeld(open);
  const { app } = held;
  const later: string[] = [];
  for (const message of ['one', 'two'])
    later.push(await enqueue(app.client, 'helper', { message, sessionId, concurrency: 'Enqueue' }));
  const id = await pause(held);
  for (const runId of later) await givenBack(app, runId);
  const { continuationRunId } = await decide(app.client, id, true);
  const ends = await Promise.all([continuationRunId ?? '', ...later].map((runId) => followToEnd(app.client, runId)));
  for (const events of ends) assert.equal(events.at(-1)?.type, 'run.completed');
  assert.deepEqual(userTexts(app).slice(-2), ['one', 'two'], 'in the order of their arrival');
  assert.equal(app.done.length, 1);
});

forEachDurableService('APPR-31 RUN-17 a rejection, too, lets the queued run start', async (open) => {
  const held = await openHeld(open);
  const later = await enqueue(held.app.client, 'helper', { message: 'Later', sessionId, concurrency: 'Enqueue' });
  const id = await pause(held);
  await givenBack(held.app, later);
  await decide(held.app.client, id, false);
  assert.equal((await followToEnd(held.app.client, later)).at(-1)?.type, 'run.completed');
  assert.deepEqual(held.app.done, []);
});

forEachDurableService('APPR-38 APPR-39 a queued run starts when the time for the decision is over', async (open) => {
  const held = await openHeld(open, { ...patient, Approvals: { DefaultExpiration: '1s', ScanInterval: '1h' } });
  const { app, first } = held;
  const later = await enqueue(app.client, 'helper', { message: 'Later', sessionId, concurrency: 'Enqueue' });
  held.gate.open();
  assert.equal((await followToEnd(app.client, first)).at(-1)?.type, 'run.awaiting-approval');
  assert.equal((await followToEnd(app.client, later)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(app.client, first)).status, 'AwaitingApproval');
  assert.equal((await listRuns(app.client)).length, 2, 'nothing was queued');
  assert.deepEqual(app.done, []);
});

forEachDurableService('RUN-8 APPR-30 a run with a reader waits behind one that waits for a decision', async (open) => {
  const held = await openHeld(open);
  const { app } = held;
  const bodies = ['one', 'two'].map((message) => ({ message, sessionId, concurrency: 'Enqueue' as const }));
  const waiting: { runId: string; reader: AsyncIterator<Frame> }[] = [];
  for (const body of bodies) {
    const { runId, frames } = await stream(app.client, 'helper', body);
    const reader = frames[Symbol.asyncIterator]();
    assert.deepEqual((await readUntil(reader, 'run.queued')).length, 1);
    waiting.push({ runId, reader });
  }
  const id = await pause(held);
  for (const { runId } of waiting) assert.equal((await getRun(app.client, runId)).status, 'Queued');
  assert.equal((await refusal(start(app.client, 'helper', { message: 'new', sessionId }))).code, 'approval-pending');
  const { continuationRunId } = await decide(app.client, id, true);
  await followToEnd(app.client, continuationRunId ?? '');
  for (const { runId, reader } of waiting) {
    await readUntil(reader, 'run.completed');
    const events = await followToEnd(app.client, runId);
    assert.deepEqual(typesOf(events).slice(0, 2), ['run.queued', 'run.started']);
  }
  assert.deepEqual(userTexts(app).slice(-2), ['one', 'two'], 'in the order of their arrival');
  assert.equal(app.done.length, 1);
});

forEachDurableService(
  'RUN-8 who comes while the decided run goes on lines up behind those that waited',
  async (open) => {
    const second = new Gate();
    const gate = new Gate();
    const slow = tool(
      'slow',
      async (_args, { signal }) => {
        await second.pass(signal);
        return 'slow';
      },
      { requiresApproval: true },
    );
    const hold = tool('hold', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'held';
    });
    const app = await openApprovals(open, { more: [hold, slow], service: patient });
    const first = await enqueue(app.client, 'helper', { message: calls(['hold'], ['slow']), sessionId });
    await gate.reached;
    const one = await stream(app.client, 'helper', { message: 'one', sessionId, concurrency: 'Enqueue' });
    const ends = [endOf(one.frames)];
    const id = await pause({ app, first, gate });
    await decide(app.client, id, true);
    await second.reached;
    const two = await stream(app.client, 'helper', { message: 'two', sessionId, concurrency: 'Enqueue' });
    ends.push(endOf(two.frames));
    second.open();
    for (const end of await Promise.all(ends)) assert.equal(end?.type, 'run.completed');
    assert.deepEqual(userTexts(app).slice(-2), ['one', 'two']);
  },
);

forEachDurableService(
  'RUN-41 RUN-79 a run that waits behind a pause can be cancelled, and ends with the service',
  async (open) => {
    const held = await openHeld(open);
    const { app } = held;
    const body = { message: 'one', sessionId, concurrency: 'Enqueue' as const };
    const [one, two] = [await stream(app.client, 'helper', body), await stream(app.client, 'helper', body)];
    const ends = [one, two].map(({ frames }) => endOf(frames));
    await pause(held);
    await app.client.runs.cancel({ params: { runId: one.runId } });
    assert.equal((await ends[0])?.type, 'run.canceled');
    assert.equal((await getRun(app.client, two.runId)).status, 'Queued');
    await app.app.drain();
    assert.equal((await ends[1])?.['error'].type, 'shutdown');
  },
);

forEachDurableService(
  'APPR-36 a continuation without its agent fails, and the next run is not held up',
  async (open) => {
    const held = await openHeld(open);
    const { app } = held;
    const later = await stream(app.client, 'helper', { message: 'Later', sessionId, concurrency: 'Enqueue' });
    const id = await pause(held);
    await app.client.agents.remove({ params: { name: 'helper' } });
    const decided = await decide(app.client, id, true);
    assert.equal(decided.status, 'Approved');
    const events = await followToEnd(app.client, decided.continuationRunId ?? '');
    assert.deepEqual([events.at(-1)?.type, events.at(-1)?.['error'].type], ['run.failed', 'agent_not_found']);
    assert.equal((await endOf(later.frames))?.['error'].type, 'agent_not_found');
    assert.deepEqual(app.done, []);
  },
);

forEachDurableService(
  'RUN-41 APPR-16 a continuation that is cancelled in line lets the next run start',
  async (open) => {
    const held = await openHeld(open, { Scheduling: { PollInterval: '1h', MaxConcurrentJobs: 1 } });
    const { app } = held;
    const later = await stream(app.client, 'helper', { message: 'Later', sessionId, concurrency: 'Enqueue' });
    const id = await pause(held);
    // The only place of the worker is taken by a run that waits, so that the continuation stays in line.
    const other = await stream(app.client, 'helper', { message: calls(['stay']), sessionId: 'other' });
    await readUntil(other.frames[Symbol.asyncIterator](), 'tool.invoking');
    await enqueue(app.client, 'helper', { message: 'Behind', sessionId: 'other', concurrency: 'Enqueue' });
    const running = async () => (await app.client.jobs.list({ query: { status: 'Running' } })).body.length > 0;
    await eventually('the job at work', running);
    const { continuationRunId } = await decide(app.client, id, true);
    await app.client.runs.cancel({ params: { runId: continuationRunId ?? '' } });
    assert.equal((await endOf(later.frames))?.type, 'run.completed');
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['held', 'The call was not approved.']);
    assert.deepEqual(app.done, []);
  },
);
