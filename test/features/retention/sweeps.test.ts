import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { RetentionRun, RetentionTarget } from '../../../src/features/retention/retention.schema.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, openApprovals } from '../approvals/approval-world.ts';
import { enqueue, followToEnd, listRuns, refusal, runJson, tool } from '../runs/run-calls.ts';
import { save as saveSkill, skill } from '../skills/skill-bodies.ts';
import { dayMs, daysAgo, swept } from './retention-world.ts';

const agents = [{ name: 'helper' }];

const policy = (
  app: TestApp,
  target: RetentionTarget,
  body: Parameters<TestApp['client']['retention']['save']>[0]['body'],
) => app.client.retention.save({ params: { target }, body });

forEachDurableService('RET-9 RET-13 RET-25 logs and inputs of old runs go, and the runs stay', async (open) => {
  const app = await open({ agents, clock: testClock({ at: daysAgo(31) }) });
  const old = await runJson(app.client, 'helper', 'Old');
  await app.clock.jump(31 * dayMs);
  const young = await runJson(app.client, 'helper', 'Young');
  await policy(app, 'RunEvents', { maxAgeDays: 30 });
  await policy(app, 'RunInputs', { maxAgeDays: 30 });
  const previews = (await app.client.retention.preview({})).body;
  const events = (await app.client.runs.get({ params: { runId: old.runId } })).body.eventCount;
  assert.deepEqual(
    previews.map(({ target, matchingRows }) => [target, matchingRows]),
    [
      ['RunEvents', events],
      ['RunInputs', 1],
    ],
  );
  const runs = await swept(app);
  assert.deepEqual(
    runs.map(({ target, deletedRows, error, trigger }) => [target, deletedRows, error, trigger]).sort(),
    [
      ['RunEvents', events, null, 'Manual'],
      ['RunInputs', 1, null, 'Manual'],
    ],
  );
  assert.equal((await listRuns(app.client)).length, 2);
  // RUN-24: a log that is gone is an empty one.
  const { frames } = await app.client.runs.events({ params: { runId: old.runId } });
  for await (const frame of frames ?? []) assert.fail(`${frame.event} is still there`);
  assert.equal((await refusal(app.client.runs.input({ params: { runId: old.runId } }))).code, 'run-input-not-recorded');
  assert.equal((await app.client.runs.input({ params: { runId: young.runId } })).status, 200);
  assert.deepEqual(
    (await trail(app)).filter(({ action }) => action === 'retention.run').map(({ entity }) => entity),
    ['retention:*'],
  );
  const again = await swept(app, 'RunEvents');
  assert.deepEqual(
    again.map(({ deletedRows }) => deletedRows),
    [0],
  );
});

forEachDurableService('RET-25 what a sweep cannot delete whole stays whole, and is not counted', async (open) => {
  // The job is over with its first failure.
  const service = { Scheduling: { MaxAttempts: 1 } };
  const app = await open({ agents, service, clock: testClock({ at: daysAgo(3) }) });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  await app.clock.jump(3 * dayMs);
  await policy(app, 'Runs', { maxAgeDays: 1 });
  const accept = await app.store.refuse('runs');
  const sums = (runs: readonly RetentionRun[]) => runs.map(({ deletedRows, error }) => [deletedRows, error]);
  assert.deepEqual(sums(await swept(app, 'Runs')), [[0, 'store-failed']]);
  await accept();
  assert.equal((await app.client.runs.input({ params: { runId } })).status, 200);
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
  assert.deepEqual(sums(await swept(app, 'Runs')), [[1, null]]);
  assert.doesNotMatch(await app.store.text(), new RegExp(runId));
});

forEachDurableService('RET-20 a sweep that cannot be queued is not in the trail', async (open) => {
  const app = await open({ service: { Scheduling: { RunWorker: false } } });
  await policy(app, 'Runs', { maxAgeDays: 1 });
  const accept = await app.store.refuse('jobs');
  await assert.rejects(app.client.retention.run({ query: { target: 'Runs' } }));
  await accept();
  const ran = async () => (await trail(app)).filter(({ action }) => action === 'retention.run').length;
  assert.equal(await ran(), 0);
  await app.client.retention.run({ query: { target: 'Runs' } });
  assert.equal(await ran(), 1);
});

forEachDurableService('RET-9 the newest rows stay by number', async (open) => {
  const app = await open({ agents, clock: testClock({ at: daysAgo(3) }) });
  const runIds: string[] = [];
  for (const message of ['one', 'two', 'three']) {
    runIds.push((await runJson(app.client, 'helper', message)).runId);
    await app.clock.jump(dayMs);
  }
  await policy(app, 'RunInputs', { maxRows: 2 });
  await policy(app, 'Runs', { maxRows: 1 });
  await swept(app, 'RunInputs');
  const input = (runId: string) => app.client.runs.input({ params: { runId } });
  assert.equal((await refusal(input(runIds[0] ?? ''))).code, 'run-input-not-recorded');
  for (const runId of runIds.slice(1)) assert.equal((await input(runId)).status, 200);
  assert.equal(await app.store.count('model calls'), 2, 'what was kept beside the input goes with it');
  const [runs] = await swept(app, 'Runs');
  assert.equal(runs?.deletedRows, 2);
  // Whatever a later version hangs on a run has to go with it.
  const text = await app.store.text();
  assert.deepEqual(
    runIds.map((runId) => text.includes(runId)),
    [false, false, true],
  );
  assert.equal((await listRuns(app.client)).length, 1);
});

forEachDurableService(
  'RET-11 SESS-1 sessions go with their messages and attachments, each tenant by its own rule',
  async (open) => {
    const app = await open({ agents, clock: testClock({ at: daysAgo(10) }) });
    for (const sessionId of ['old', 'young']) {
      if (sessionId === 'young') await app.clock.jump(10 * dayMs);
      await runJson(app.client, 'helper', { message: 'Hi', sessionId });
      await app.client.attachments.upload({ query: { sessionId }, file: textFile(`notes of ${sessionId}`) });
    }
    await policy(app, 'Sessions', { maxAgeDays: 9 });
    await swept(app);
    assert.deepEqual(
      (await app.client.sessions.list({})).body.map(({ id }) => id),
      ['young'],
    );
    assert.equal(await app.store.count('session messages'), 2);
    assert.equal((await app.client.attachments.list({ query: {} })).body.length, 1);
    assert.equal((await app.store.contents()).length, 1);
  },
);

forEachDurableService(
  'RET-11 APPR-37 a session stays while a call of it may be decided, and no longer',
  async (open) => {
    const app = await openApprovals(open, {
      clock: testClock({ at: daysAgo(10) }),
      service: { Approvals: { DefaultExpiration: '5d', ScanInterval: '10d' } },
    });
    await runJson(app.client, 'helper', { message: calls(['pay']), sessionId: 'asks' });
    await policy(app, 'Sessions', { maxAgeDays: 1 });
    const left = async (): Promise<string[]> => {
      await swept(app);
      return (await app.client.sessions.list({})).body.map(({ id }) => id);
    };
    await app.clock.jump(2 * dayMs);
    assert.deepEqual(await left(), ['asks']);
    await app.clock.jump(4 * dayMs);
    assert.deepEqual((await app.client.approvals.list({ query: {} })).body, []);
    assert.deepEqual(await left(), []);
  },
);

const textFile = (text: string) => ({
  name: 'notes.txt',
  bytes: (async function* () {
    yield Buffer.from(text);
  })(),
});

forEachDurableService(
  'ATT-18 GRANT-11 orphaned attachments, ended grants, jobs, scores, keys and calls go',
  async (open) => {
    const held = Promise.withResolvers<void>();
    const app = await open({
      agents: [...agents, { name: 'slow', toolNames: ['hold'] }],
      script: [
        { when: { message: 'Wait' }, reply: { toolCalls: [{ name: 'hold', arguments: {} }] } },
        { reply: { text: 'Hello.' } },
      ],
      tools: [tool('hold', () => held.promise.then(() => 'held'))],
      clock: testClock({ at: daysAgo(181) }),
      service: {
        Skills: { Scripts: { PlatformIsolationAcknowledged: true } },
        Scheduling: { Lanes: ['default'] },
      },
      host: { SkillScripts: { Register: true } },
    });
    const { client } = app;
    await saveSkill(app, skill('pdf'));
    await client.grants.create({ body: { skillName: 'pdf' } });
    await client.grants.remove({ params: { skillName: 'pdf' } });
    await client.attachments.upload({ file: textFile('orphan') });
    const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });
    const { runId } = await runJson(client, 'helper', 'Hi', keyed('done'));
    await client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
    const ended = await enqueue(client, 'helper', 'Hi');
    await followToEnd(client, ended);
    // Nobody works in its lane.
    const waiting = await enqueue(client, 'helper', { message: 'Hi', lane: 'none' });
    const inProgress = runJson(client, 'slow', 'Wait', keyed('open'));
    await eventually('the run in progress', async () => (await listRuns(client, { agentName: 'slow' })).length === 1);
    await app.clock.jump(181 * dayMs);
    await client.grants.create({ body: { skillName: 'pdf' } });
    await client.attachments.upload({ file: textFile('young') });
    const days = { SkillScriptGrants: 30, Attachments: 7, RunScores: 180, Jobs: 30, IdempotencyKeys: 1 } as const;
    for (const [target, maxAgeDays] of Object.entries(days))
      await policy(app, target as RetentionTarget, { maxAgeDays });
    const runs = await swept(app);
    assert.deepEqual(
      runs.map(({ target, deletedRows, error }) => [target, deletedRows, error]).sort(),
      Object.keys(days)
        .map((target) => [target, 1, null])
        .sort(),
    );
    assert.equal((await client.grants.list({})).body.length, 1);
    assert.equal((await client.attachments.list({ query: {} })).body.length, 1);
    assert.equal((await app.store.contents()).length, 1);
    assert.equal((await client.jobs.get({ params: { id: waiting } })).body.job.status, 'Pending');
    assert.equal((await refusal(client.jobs.get({ params: { id: ended } }))).status, 404);
    held.resolve();
    const { output } = await inProgress;
    assert.equal((await runJson(client, 'slow', 'Wait', keyed('open'))).output, output, 'its key was kept');
  },
);

const archived = (folder: string): Record<string, unknown>[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.jsonl.gz'))
    .sort()
    .flatMap((path) =>
      gunzipSync(readFileSync(join(folder, path)))
        .toString()
        .trimEnd()
        .split('\n'),
    )
    .map((line) => JSON.parse(line) as Record<string, unknown>);

forEachDurableService('RET-15 RET-17 what is archived is in files before it is gone', async (open) => {
  const clock = testClock({ at: daysAgo(31) });
  const app = await open({ agents, host: { ArchiveFolder: './archive' }, clock });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const { frames } = await app.client.runs.events({ params: { runId } });
  const events: unknown[] = [];
  for await (const { data } of frames ?? []) events.push(JSON.parse(data));
  const orphan = await app.client.attachments.upload({ file: textFile('bytes') });
  await clock.jump(31 * dayMs);
  await policy(app, 'RunEvents', { maxAgeDays: 30, archive: true });
  await policy(app, 'Attachments', { maxAgeDays: 30, archive: true });
  const runs = await swept(app);
  assert.deepEqual(
    runs.map(({ deletedRows, archivedRows }) => deletedRows === archivedRows),
    [true, true],
  );
  const folder = join(app.folder, 'archive/tenant-default');
  assert.deepEqual(archived(join(folder, 'RunEvents')), events);
  for (const path of [folder, ...readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))])
    assert.equal(statSync(path).mode & 0o777, path.endsWith('.gz') ? 0o600 : 0o700, path);
  const [file] = archived(join(folder, 'Attachments'));
  assert.equal(file?.['id'], orphan.body.id);
  assert.equal(Buffer.from(String(file?.['bytes']), 'base64').toString(), 'bytes');
  assert.equal(await app.store.count('run events'), 0);
});

forEachDurableService(
  'RET-15 RET-16 RET-22 a sink that is missing or fails keeps the rows, and the other targets go on',
  async (open) => {
    const without = await open({ agents, clock: testClock({ at: daysAgo(31) }) });
    await runJson(without.client, 'helper', 'Hi');
    await without.clock.jump(31 * dayMs);
    await policy(without, 'RunEvents', { maxAgeDays: 30, archive: true });
    await policy(without, 'RunInputs', { maxAgeDays: 30 });
    const runs = await swept(without);
    assert.deepEqual(runs.map(({ target, deletedRows, error }) => [target, deletedRows, error]).sort(), [
      ['RunEvents', 0, 'archive-sink-missing'],
      ['RunInputs', 1, null],
    ]);
    assert.ok((await without.store.count('run events')) > 0);
  },
);
