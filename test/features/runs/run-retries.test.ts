import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { newId } from '../../../src/core/ids.ts';
import { turnStore } from '../../../src/features/runs/run-turns.store.ts';
import { forEachService, openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { opensRun } from './other-process.ts';
import { callsTools, enqueue, followToEnd, Gate, getRun, tool } from './run-calls.ts';

const jobOf = async ({ client }: TestApp, id: string) => (await client.jobs.get({ params: { id } })).body.job;

const retries = { AsyncRun: { MaxAttempts: 3 }, Scheduling: { PollInterval: '1s' } };

test('RUN-17 RUN-77 JOB-33 JOB-34 JOB-35 a failed attempt goes back in line and the next goes on in the same log', async (t) => {
  let calls = 0;
  const app = await openApp(t, 'in process', {
    service: { ...retries, Tools: { MaxConsecutiveErrors: 0 } },
    tools: [
      tool('shaky', async () => {
        calls += 1;
        throw new Error('no');
      }),
    ],
    script: callsTools('shaky'),
    agents: [{ name: 'helper', toolNames: ['shaky'] }],
  });
  const before = app.clock.now();
  const runId = await enqueue(app.client, 'helper', 'Hi');
  const waiting = await eventually('the job is back in line', async () => {
    const job = await jobOf(app, runId);
    return job.status === 'Pending' && job.attempt === 1 ? Date.parse(job.scheduledFor) : null;
  });
  assert.ok(waiting >= before + 8000 && waiting <= app.clock.now() + 12_000);
  const row = await getRun(app.client, runId);
  assert.deepEqual([row.status, row.startedAt, row.error], ['Queued', null, null]);
  await app.clock.jump(12_000);
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(
    events.filter((event) => event.type === 'run.started').map((event) => event['attempt']),
    [1, 2],
  );
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal(calls, 1, 'the settled call is not made again');
  assert.equal(await app.store.open().stores(turnStore).turn('default', runId), null, 'its steps are gone');
});

test('JOB-45 RUN-78 an orderly stop releases a run with attempts left, and its call is made again with its key', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  const gate = new Gate();
  const keys: string[] = [];
  const setup = {
    folder,
    service: retries,
    tools: [
      tool(
        'save',
        async (_args, { signal, idempotencyKey }) => {
          keys.push(idempotencyKey);
          if (keys.length === 1) await gate.pass(signal);
          return 'saved';
        },
        { effect: 'Write' },
      ),
    ],
    script: callsTools('save'),
  };
  const first = await openApp(t, 'in process', { ...setup, agents: [{ name: 'helper', toolNames: ['save'] }] });
  const runId = await enqueue(first.client, 'helper', 'Hi');
  await gate.reached;
  await first.close();
  const idle = await openApp(t, 'in process', { ...setup, service: { Scheduling: { RunWorker: false } } });
  assert.equal((await getRun(idle.client, runId)).status, 'Queued');
  assert.equal((await jobOf(idle, runId)).status, 'Pending');
  await idle.close();
  const second = await openApp(t, 'in process', setup);
  const events = await followToEnd(second.client, runId);
  assert.equal(events.at(-1)?.['output'], 'Done: saved');
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
  assert.deepEqual(
    (await second.store.open().stores(turnStore).ledger(runId)).map(({ state }) => state),
    ['Unknown', 'Settled'],
  );
});

forEachService('RUN-17 a further attempt has the agent as it is by then, and no other of its name', async (open) => {
  let calls = 0;
  const app = await open({
    service: { ...retries, Tools: { MaxConsecutiveErrors: 0 } },
    tools: [
      tool('shaky', async () => {
        calls += 1;
        throw new Error('no');
      }),
    ],
    script: callsTools('shaky'),
    agents: [
      { name: 'below' },
      { name: 'edited', toolNames: ['shaky'] },
      { name: 'repaired', toolNames: ['shaky'], callableAgentNames: ['below'] },
      { name: 'replaced', toolNames: ['shaky'] },
      { name: 'mended', toolNames: ['shaky'] },
    ],
  });
  const { client } = app;
  const definition = (name: string, more: object = {}) => ({
    ...{ name, model: { provider: 'demo', model: 'demo-1' }, toolNames: ['shaky'], ...more },
  });
  const save = (name: string) =>
    client.agents.save({
      params: { name },
      body: { ...definition(name), instructions: 'Be kind.', expectedVersion: 1 },
    });
  const failOnce = async (name: string): Promise<string> => {
    const runId = await enqueue(client, name, 'Hi');
    await eventually('the job is back in line', async () => {
      const job = await jobOf(app, runId);
      return job.status === 'Pending' && job.attempt === 1;
    });
    return runId;
  };
  const [edited, repaired] = [await failOnce('edited'), await failOnce('repaired')];
  const [replaced, mended] = [await failOnce('replaced'), await failOnce('mended')];
  for (const name of ['replaced', 'mended']) await client.agents.remove({ params: { name } });
  await client.agents.create({ body: definition('replaced') });
  await client.agents.create({ body: definition('mended', { callableAgentNames: ['below'] }) });
  // The first version of each of the two that name it does not compile any more.
  await client.agents.remove({ params: { name: 'below' } });
  for (const name of ['edited', 'repaired', 'mended']) await save(name);
  await app.clock.jump(12_000);
  for (const runId of [edited, repaired]) {
    assert.equal((await followToEnd(client, runId)).at(-1)?.type, 'run.completed');
    assert.equal((await getRun(client, runId)).agentVersion, 2);
  }
  for (const runId of [replaced, mended]) {
    const end = (await followToEnd(client, runId)).at(-1);
    assert.deepEqual([end?.type, end?.['error'].type], ['run.failed', 'agent_not_found']);
    assert.match(end?.['error'].message, /another one by now/);
  }
  assert.equal(calls, 4, 'the other agents have called nothing');
});

test('RUN-74 a run without a sign of life is closed as orphaned', async (t) => {
  const app = await openApp(t, 'in process', {
    service: {
      RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '1m', ScanInterval: '1s' },
    },
    agents: [{ name: 'helper' }],
  });
  const id = newId();
  const started = app.clock.now() - 120_000;
  await opensRun(app.store.open(), id, { createdAt: started, startedAt: started });
  const events = await followToEnd(app.client, id);
  assert.deepEqual([events.at(-1)?.type, events.at(-1)?.['error'].type], ['run.failed', 'orphaned']);
});
