import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { forEachDurableService, forEachService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { enqueue, Gate, getRun, refusal, runJson, start, waitingSetup } from '../runs/run-calls.ts';
import { daily, saveQuota, verify } from './quota-calls.ts';

const holdsOf = ({ store }: Pick<TestApp, 'store'>) => store.stored('quota holds');

const usage = { inputTokens: 20, outputTokens: 10 };
const waiting = (gate: Gate) => {
  const { script, ...setup } = waitingSetup(gate);
  return { ...setup, script: script.map((rule) => ({ ...rule, reply: { ...rule.reply, usage } })) };
};

/** A few turns of the event loop, in which a commit that was asked for is made. */
const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns += 1) await turn();
};

/** Whether it came to an end by itself within what nobody has to wait for. */
const isOpen = async (work: Promise<unknown>): Promise<boolean> => {
  await settle();
  return (await Promise.race([work.then(() => 'over'), settle().then(() => 'open')])) === 'open';
};

forEachDurableService('QUOTA-6 without a quota that applies no hold is stored, whatever goes on', async (open) => {
  for (const Strict of [false, true]) {
    const gate = new Gate();
    const app = await open({ ...waiting(gate), service: { Quotas: { Strict } } });
    await saveQuota(app.client, { agentName: 'other', period: 'Daily', maxRuns: 1, maxTokens: 100_000 });
    await runJson(app.client, 'helper', 'Hi');
    const long = runJson(app.client, 'helper', 'wait');
    await gate.reached;
    await settle();
    assert.deepEqual(await holdsOf(app), []);
    gate.open();
    await long;
    assert.deepEqual(await holdsOf(app), []);
  }
});

forEachDurableService('QUOTA-12 an admitted run is a hold until its row is there, or never will be', async (open) => {
  const asked = new Gate();
  let answer: object | null = null;
  const app = await open({
    ...waiting(new Gate()),
    module: {
      attributionResolver: {
        resolve: async () => {
          await asked.pass();
          if (answer === null) throw new Error('The directory is away.');
          return answer;
        },
      },
    },
  });
  await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
  const first = runJson(app.client, 'helper', 'Hi');
  first.catch(() => undefined);
  await asked.reached;
  await settle();
  const [hold, ...others] = await holdsOf(app);
  assert.deepEqual([hold?.['is_admission'], hold?.['held_tokens'], others], [1, null, []]);
  assert.equal((await daily(app.client))?.runs, undefined);
  // It holds the only place: whoever must have an answer at once does not get it.
  assert.match((await refusal(enqueue(app.client, 'helper', 'Hi'))).detail ?? '', /^Runs in progress may use up/);
  answer = { userId: null };
  asked.open();
  const { runId } = await first;
  assert.equal(runId, hold?.['run_id']);
  assert.deepEqual([await holdsOf(app), (await daily(app.client))?.runs], [[], 1]);
});

forEachDurableService('QUOTA-18 a run that is refused after its admission leaves no hold', async (open) => {
  const asked = new Gate();
  const app = await open({
    ...waiting(new Gate()),
    module: {
      attributionResolver: {
        resolve: async () => {
          await asked.pass();
          throw new Error('The directory is away.');
        },
      },
    },
  });
  await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
  const first = refusal(start(app.client, 'helper', 'Hi'));
  await asked.reached;
  await settle();
  assert.equal((await holdsOf(app)).length, 1);
  asked.open();
  await first;
  await settle();
  assert.deepEqual([await holdsOf(app), (await daily(app.client))?.runs], [[], undefined]);
});

forEachDurableService(
  'QUOTA-13 strict: what a call has used stands in the hold of its run until the run is closed',
  async (open) => {
    const gate = new Gate();
    const app = await open({ ...waiting(gate), service: { Quotas: { Strict: true } } });
    await saveQuota(app.client, { period: 'Daily', maxTokens: 100_000 });
    const long = runJson(app.client, 'helper', 'wait');
    await gate.reached;
    await settle();
    assert.deepEqual(
      (await holdsOf(app)).map((row) => [row['is_admission'], row['held_tokens'], row['spent_tokens']]),
      [[0, 0, 30]],
    );
    gate.open();
    const { runId } = await long;
    assert.equal((await getRun(app.client, runId)).status, 'Completed');
    assert.deepEqual(await holdsOf(app), []);
    assert.equal((await daily(app.client))?.tokens, 60);
  },
);

forEachService('QUOTA-13 on a clock that stands, those that wait are served by what frees room', async (open) => {
  const gate = new Gate();
  const clock = testClock({ stands: true });
  const { client } = await open({
    ...waiting(gate),
    clock,
    service: { Scheduling: { RunWorker: false } },
  });
  await runJson(client, 'helper', 'Hi');
  await saveQuota(client, { period: 'Daily', maxTokens: 70 });
  const queued = await enqueue(client, 'helper', 'Hi');
  const second = runJson(client, 'helper', 'Hi');
  assert.equal(await isOpen(second), true);
  // No engine executes it: it is closed in line.
  await client.runs.cancel({ params: { runId: queued } });
  await second;
  assert.equal((await daily(client))?.tokens, 60);
  await saveQuota(client, { period: 'Daily', maxTokens: 110 });
  const long = runJson(client, 'helper', 'wait');
  await gate.reached;
  const third = runJson(client, 'helper', 'Hi');
  assert.equal(await isOpen(third), true);
  await saveQuota(client, { period: 'Daily', maxTokens: 100_000 });
  await third;
  await saveQuota(client, { period: 'Daily', maxTokens: 149 });
  const fourth = refusal(start(client, 'helper', 'Hi'));
  assert.equal(await isOpen(fourth), true);
  gate.open();
  await long;
  assert.equal((await fourth).code, 'quota-exceeded');
  assert.equal((await verify(client)).matches, true);
});

forEachService('QUOTA-19 one that waits in vain is refused when its time is over, and not before', async (open) => {
  const gate = new Gate();
  const clock = testClock({ stands: true });
  const { client } = await open({ ...waiting(gate), clock });
  await runJson(client, 'helper', 'Hi');
  await saveQuota(client, { period: 'Daily', maxTokens: 70 });
  const long = runJson(client, 'helper', 'wait');
  await gate.reached;
  const second = refusal(start(client, 'helper', 'Hi'));
  assert.equal(await isOpen(second), true);
  await clock.advance(29_000);
  assert.equal(await isOpen(second), true);
  await clock.advance(1000);
  assert.match((await second).detail ?? '', /^Runs in progress may use up the rest/);
  gate.open();
  await long;
});
