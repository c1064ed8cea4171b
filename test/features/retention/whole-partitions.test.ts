import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { partitionAt, partitionedTables } from '../../../src/db/postgres/partition-ranges.ts';
import type { ArchiveBatch } from '../../../src/features/retention/index.ts';
import type { RetentionTarget } from '../../../src/features/retention/retention.schema.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { type AppSetup, forEachSharedService, type OpenApp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { assertWholeLog, callsTools, followToEnd, getRun, readEvents, runJson, tool } from '../runs/run-calls.ts';
import { dayMs, swept } from './retention-world.ts';

// The stores of several processes lay their tables apart by time; all that has been before the boundary is one partition.

const agents = [{ name: 'caller', toolNames: ['note'] }];
const setup: AppSetup = {
  service: { Observability: { SuccessSampleRatio: 1 } },
  agents,
  script: callsTools('note'),
  tools: [tool('note', async () => 'noted')],
};
const laterDays = 60;

// Ids of a process never go back, so that each scenario has a time of its own, in which its partitions lie.
let scenarios = 0;
const betweenDays = 200;

const opened = async (open: OpenApp, given: AppSetup = setup) => {
  scenarios += 1;
  const at = Date.now() + scenarios * betweenDays * dayMs;
  const app = await open({ ...given, clock: testClock({ at }) });
  const names = new Map(partitionedTables.map((entry) => [partitionAt(entry, at).name, entry.table]));
  return { app, later: testClock({ at: at + laterDays * dayMs }), tables: tablesIn(names) };
};

/** The tables of the partitions that a line of the log names, of those of the scenario. */
const tablesIn =
  (names: ReadonlyMap<string, string>) =>
  (app: TestApp, message: string): string[] =>
    app.log
      .filter((line) => line.message === message)
      .flatMap(({ fields }) => fields['partitions'] as string[])
      .flatMap((name) => names.get(name) ?? [])
      .sort();

const emptied = 'Partitions were emptied as a whole';
const dropped = 'Empty partitions of a time that is over were removed';

const policy = (client: Client, target: RetentionTarget, body: Parameters<Client['retention']['save']>[0]['body']) =>
  client.retention.save({ params: { target }, body });

/** Of every target, what its sweeps have counted. */
const sums = async (client: Client): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await client.retention.history({ query: { take: 200 } })).body
      .map(({ target, deletedRows, error, completedAt }) => {
        assert.deepEqual([error, completedAt === null], [null, false]);
        return [target, deletedRows] as const;
      })
      .sort(),
  );

const previews = async (client: Client): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await client.retention.preview({})).body
      .filter(({ matchingRows }) => matchingRows > 0)
      .map(({ target, matchingRows }) => [target, matchingRows] as const)
      .sort(),
  );

/** The end of the one sweep of all tenants. */
const hourly = (app: TestApp) =>
  eventually('the end of the hourly sweep', async () => {
    const { body } = await app.client.jobs.list({ query: {} });
    return body.some(({ handlerKey, completedAt }) => handlerKey === 'acp.retention' && completedAt !== null);
  });

const inAcme = async (app: TestApp): Promise<Client> => {
  const acme = app.inTenant('acme');
  for (const { name, ...rest } of agents)
    await acme.agents.create({ body: { name, model: { provider: 'demo', model: 'demo-1' }, ...rest } });
  return acme;
};

const oldTables = ['run_events', 'run_inputs', 'run_model_calls', 'run_traces', 'tool_invocations'];
const retention = { Retention: { Enabled: true } };

forEachSharedService(
  'RET-11 RET-24 RET-26 partitions go at one stroke when the policies of all tenants let all in them go, counted for each',
  async (open) => {
    const { app: first, later: clock, tables } = await opened(open);
    const acme = await inAcme(first);
    for (const client of [first.client, first.client, acme]) await runJson(client, 'caller', 'Hi');
    for (const client of [first.client, acme]) await policy(client, 'ToolInvocations', { maxAgeDays: 30 });
    await first.close();

    // What is to go, before the sweep, which is in line meanwhile.
    const shared = { ...setup, agents: [], clock, folder: first.folder };
    const waiting = await open({ ...shared, service: { ...retention, Scheduling: { RunWorker: false } } });
    const expected = await Promise.all([waiting.client, waiting.inTenant('acme')].map(previews));
    assert.deepEqual(Object.keys(expected[0] ?? {}), ['RunEvents', 'RunInputs', 'Spans', 'ToolInvocations']);
    await waiting.close();

    const app = await open({ ...shared, service: retention });
    await hourly(app);
    assert.deepEqual(tables(app, emptied), oldTables);
    assert.deepEqual(tables(app, dropped), oldTables);
    assert.deepEqual(await Promise.all([app.client, app.inTenant('acme')].map(sums)), expected);
    for (const what of ['run events', 'run inputs', 'model calls', 'tool calls'] as const)
      assert.equal(await app.store.count(what), 0, what);
    assert.equal(await app.store.count('runs'), 3);
    // The service goes on without them, and what is missing is no damage.
    const { runId } = await runJson(app.client, 'caller', 'Hi');
    assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
  },
);

forEachSharedService('RET-11 what the policy of one tenant keeps stays, and the partition with it', async (open) => {
  const { app: first, later: clock, tables } = await opened(open);
  const acme = await inAcme(first);
  const { runId: kept } = await runJson(acme, 'caller', 'Hi');
  await runJson(first.client, 'caller', 'Hi');
  await policy(acme, 'RunEvents', { maxAgeDays: 90 });
  await policy(acme, 'RunInputs', { maxAgeDays: 30, enabled: false });
  await policy(acme, 'Spans', { maxRows: 9 });
  await first.close();
  const app = await open({ ...setup, agents: [], clock, folder: first.folder, service: retention });
  await hourly(app);
  assert.deepEqual(tables(app, emptied), []);
  const { client } = app;
  assert.deepEqual(Object.keys(await sums(client)), ['RunEvents', 'RunInputs', 'Spans']);
  assert.deepEqual(await sums(app.inTenant('acme')), {});
  const there = app.inTenant('acme');
  assert.equal((await followToEnd(there, kept)).at(-1)?.type, 'run.completed');
  assert.equal((await there.runs.input({ params: { runId: kept } })).status, 200);
  assert.deepEqual(tables(app, dropped), []);
});

forEachSharedService('RET-11 a sweep of one tenant takes no partition that another one has rows in', async (open) => {
  const { app: first, later: clock, tables } = await opened(open);
  const acme = await inAcme(first);
  for (const client of [first.client, acme]) {
    await runJson(client, 'caller', 'Hi');
    await policy(client, 'RunInputs', { maxAgeDays: 30 });
  }
  await first.close();
  const app = await open({ ...setup, agents: [], clock, folder: first.folder });
  const deleted = async (client: Client) => (await swept({ client })).map(({ deletedRows }) => deletedRows);
  assert.deepEqual(await deleted(app.client), [1]);
  assert.deepEqual(tables(app, emptied), []);
  assert.equal(await app.store.count('run inputs'), 1);
  // Nobody else is left in it.
  assert.deepEqual(await deleted(app.inTenant('acme')), [1]);
  assert.deepEqual(tables(app, emptied), ['run_inputs', 'run_model_calls']);
});

forEachSharedService(
  'RET-9 a run in progress keeps what is in an old partition, and one that ended late keeps it as long as others',
  async (open) => {
    const held = Promise.withResolvers<void>();
    const { app, tables } = await opened(open, {
      agents: [...agents, { name: 'slow', toolNames: ['hold'] }],
      script: [
        { when: { message: 'Wait', call: 1 }, reply: { toolCalls: [{ name: 'hold', arguments: {} }] } },
        ...callsTools('note'),
      ],
      tools: [tool('hold', () => held.promise.then(() => 'held')), tool('note', async () => 'noted')],
    });
    const { client } = app;
    await runJson(client, 'caller', 'Hi');
    const ending = runJson(client, 'slow', 'Wait');
    const runId = await eventually('the call of the tool', async () => {
      const [run] = (await client.runs.list({ query: { agentName: 'slow' } })).body;
      return (await app.store.count('tool calls')) === 2 && run?.id;
    });
    await app.clock.jump(laterDays * dayMs);
    for (const target of ['RunEvents', 'RunInputs', 'ToolInvocations'] as const)
      await policy(client, target, { maxAgeDays: 30 });
    await swept(app);
    assert.deepEqual(tables(app, emptied), []);
    assert.equal(await app.store.count('tool calls'), 1);
    assert.equal((await client.runs.input({ params: { runId } })).status, 200);
    held.resolve();
    await ending;
    assertWholeLog(await readEvents(client, runId));
    // Its call is old; its log is as young as its end.
    await swept(app);
    assert.deepEqual(tables(app, emptied), ['tool_invocations']);
    assert.equal(await app.store.count('run inputs'), 0);
    assert.equal(await app.store.count('model calls'), 0, 'its partition was empty, and went before it had any');
    assertWholeLog(await readEvents(client, runId));
    assert.equal((await getRun(client, runId)).status, 'Completed');
    await app.clock.jump(31 * dayMs);
    await swept(app, 'RunEvents');
    assert.ok(tables(app, emptied).includes('run_events'));
    assert.equal(await app.store.count('run events'), 0);
  },
);

forEachSharedService(
  'RET-15 what is archived goes row by row, whole, and its empty partition after it',
  async (open) => {
    const batches: ArchiveBatch[] = [];
    const module = { archiveSink: { archive: async (batch: ArchiveBatch) => void batches.push(batch) } };
    const { app, tables } = await opened(open, { ...setup, module });
    const runs = [await runJson(app.client, 'caller', 'One'), await runJson(app.client, 'caller', 'Two')];
    await app.clock.jump(laterDays * dayMs);
    await policy(app.client, 'ToolInvocations', { maxAgeDays: 30, archive: true });
    const [sweep] = await swept(app, 'ToolInvocations');
    assert.deepEqual([sweep?.deletedRows, sweep?.archivedRows], [2, 2]);
    assert.deepEqual(
      batches.flatMap(({ rows }) => rows.map((row) => row['runId'])).sort(),
      runs.map(({ runId }) => runId).sort(),
    );
    assert.deepEqual(tables(app, emptied), []);
    assert.deepEqual(tables(app, dropped), ['tool_invocations']);
  },
);

forEachSharedService('RET-9 the newest rows stay by number, beside those that would go', async (open) => {
  const { app, tables } = await opened(open);
  const runIds: string[] = [];
  for (const message of ['one', 'two', 'three']) runIds.push((await runJson(app.client, 'caller', message)).runId);
  await app.clock.jump(laterDays * dayMs);
  await policy(app.client, 'RunInputs', { maxRows: 1 });
  assert.deepEqual(
    (await swept(app)).map(({ deletedRows }) => deletedRows),
    [2],
  );
  assert.deepEqual(tables(app, emptied), []);
  assert.equal((await app.client.runs.input({ params: { runId: runIds[2] ?? '' } })).status, 200);
  // All in the old partition are behind the newest ones now.
  await runJson(app.client, 'caller', 'four');
  const { runId } = await runJson(app.client, 'caller', 'five');
  await swept(app);
  assert.deepEqual(tables(app, emptied), ['run_inputs', 'run_model_calls']);
  assert.equal((await app.client.runs.input({ params: { runId } })).status, 200);
});

forEachSharedService(
  'RET-24 a partition that somebody reads is left for the next sweep, and its rows go',
  async (open) => {
    const { app, tables } = await opened(open);
    const { runId } = await runJson(app.client, 'caller', 'Hi');
    await app.clock.jump(laterDays * dayMs);
    await policy(app.client, 'RunInputs', { maxAgeDays: 30 });
    const aside = app.store.open();
    await aside.transaction(async (stores) => {
      assert.notEqual(await stores(runStore).recordedInput('default', runId), null);
      const [sweep] = await swept(app);
      assert.deepEqual([sweep?.deletedRows, sweep?.error], [1, null]);
      assert.deepEqual([tables(app, emptied), tables(app, dropped)], [[], ['run_model_calls']]);
    });
    await aside.close();
    await swept(app);
    assert.deepEqual(tables(app, dropped), ['run_inputs', 'run_model_calls']);
  },
);
