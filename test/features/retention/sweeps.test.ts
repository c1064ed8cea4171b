import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { RetentionTarget } from '../../../src/features/retention/retention.schema.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { save as saveSkill, skill } from '../skills/skill-bodies.ts';
import { daysAgo, swept } from './retention-world.ts';

const agents = [{ name: 'helper' }];

const policy = (
  app: TestApp,
  target: RetentionTarget,
  body: Parameters<TestApp['client']['retention']['save']>[0]['body'],
) => app.client.retention.save({ params: { target }, body });

const count = (app: TestApp, table: string): number =>
  app.rows<{ count: number }>(`select count(*) as count from service_${table}`)[0]?.count ?? -1;

const ageRun = (app: TestApp, runId: string, days: number): void =>
  app.change(
    'update service_runs set created_at = ?, started_at = ?, completed_at = ? where id = ?',
    daysAgo(days),
    daysAgo(days),
    daysAgo(days),
    runId,
  );

forEachDurableService('RET-9 RET-13 RET-25 logs and inputs of old runs go, and the runs stay', async (open) => {
  const app = await open({ agents });
  const old = await runJson(app.client, 'helper', 'Old');
  const young = await runJson(app.client, 'helper', 'Young');
  ageRun(app, old.runId, 31);
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
  assert.equal(count(app, 'runs'), 2);
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

forEachDurableService('RET-9 the newest rows stay by number', async (open) => {
  const app = await open({ agents });
  const runIds: string[] = [];
  for (const message of ['one', 'two', 'three']) runIds.push((await runJson(app.client, 'helper', message)).runId);
  for (const [index, runId] of runIds.entries()) ageRun(app, runId, 3 - index);
  await policy(app, 'RunInputs', { maxRows: 2 });
  await policy(app, 'Runs', { maxRows: 1 });
  await swept(app, 'RunInputs');
  assert.deepEqual(
    app.rows<{ run_id: string }>('select run_id from service_run_inputs order by run_id').map(({ run_id }) => run_id),
    runIds.slice(1),
  );
  assert.equal(
    app.rows('select run_id from service_run_model_calls').length,
    2,
    'what was kept beside the input goes with it',
  );
  const [runs] = await swept(app, 'Runs');
  assert.equal(runs?.deletedRows, 2);
  // Whatever a later version hangs on a run has to go with it.
  const hanging = app.rows<{ name: string }>(
    `select schema.name from sqlite_schema schema join pragma_table_info(schema.name) col
     where schema.type = 'table' and col.name = 'run_id'`,
  );
  assert.ok(hanging.length >= 10);
  for (const { name } of hanging)
    for (const runId of runIds.slice(0, 2))
      assert.deepEqual(app.rows(`select run_id from ${name} where run_id = ?`, runId), [], name);
  assert.equal(count(app, 'runs'), 1);
});

forEachDurableService(
  'RET-11 SESS-1 sessions go with their messages and attachments, each tenant by its own rule',
  async (open) => {
    const app = await open({ agents });
    for (const sessionId of ['old', 'young']) {
      await runJson(app.client, 'helper', { message: 'Hi', sessionId });
      await app.client.attachments.upload({ query: { sessionId }, file: textFile(`notes of ${sessionId}`) });
    }
    app.change(`update service_sessions set updated_at = ? where id = 'old'`, daysAgo(10));
    await policy(app, 'Sessions', { maxAgeDays: 9 });
    await swept(app);
    assert.deepEqual(app.rows('select id from service_sessions'), [{ id: 'young' }]);
    assert.equal(count(app, 'session_messages'), 2);
    assert.equal(count(app, 'attachments'), 1);
    assert.equal(contents(app).length, 1);
  },
);

const textFile = (text: string) => ({
  name: 'notes.txt',
  bytes: (async function* () {
    yield Buffer.from(text);
  })(),
});

const contents = (app: TestApp): string[] =>
  readdirSync(join(app.folder, 'data/acp.db-attachments'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    /[0-9a-f]{64}$/.test(path),
  );

forEachDurableService(
  'ATT-18 GRANT-11 orphaned attachments, ended grants, jobs, scores, keys and calls go',
  async (open) => {
    const app = await open({
      agents,
      service: { Skills: { Scripts: { PlatformIsolationAcknowledged: true } } },
      host: { SkillScripts: { Register: true } },
    });
    const { client } = app;
    await saveSkill(app, skill('pdf'));
    await client.grants.create({ body: { skillName: 'pdf' } });
    await client.grants.remove({ params: { skillName: 'pdf' } });
    await client.grants.create({ body: { skillName: 'pdf' } });
    app.change('update service_skill_script_grants set revoked_at = ? where revoked_at is not null', daysAgo(31));
    const orphan = await client.attachments.upload({ file: textFile('orphan') });
    await client.attachments.upload({ file: textFile('young') });
    app.change('update service_attachments set created_at = ? where id = ?', daysAgo(8), orphan.body.id);
    const { runId } = await runJson(client, 'helper', 'Hi');
    await client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
    app.change('update service_run_scores set created_at = ?', daysAgo(181));
    app.change(
      `insert into service_jobs (id, tenant_id, handler_key, lane, target_name, status, max_attempts, scheduled_for, completed_at, created_at)
     values ('j-old', 'default', 'x', 'default', 'x', 'Completed', 1, 0, ?, 0), ('j-open', 'default', 'x', 'none', 'x', 'Failed', 1, 0, null, 0)`,
      daysAgo(31),
    );
    app.change(
      `insert into service_idempotency_keys (tenant_id, key, fingerprint, status, locked_until, created_at)
     values ('default', 'done', 'x', 200, 0, ?), ('default', 'open', 'x', null, 0, ?)`,
      daysAgo(2),
      daysAgo(2),
    );
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
    assert.equal(count(app, 'skill_script_grants'), 1);
    assert.equal(count(app, 'attachments'), 1);
    assert.equal(contents(app).length, 1);
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
  const app = await open({ agents, host: { ArchiveFolder: './archive' } });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const { frames } = await app.client.runs.events({ params: { runId } });
  const events: unknown[] = [];
  for await (const { data } of frames ?? []) events.push(JSON.parse(data));
  const orphan = await app.client.attachments.upload({ file: textFile('bytes') });
  ageRun(app, runId, 31);
  app.change('update service_attachments set created_at = ?', daysAgo(31));
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
  assert.equal(count(app, 'run_events'), 0);
});

forEachDurableService(
  'RET-15 RET-16 RET-22 a sink that is missing or fails keeps the rows, and the other targets go on',
  async (open) => {
    const without = await open({ agents });
    const { runId } = await runJson(without.client, 'helper', 'Hi');
    ageRun(without, runId, 31);
    await policy(without, 'RunEvents', { maxAgeDays: 30, archive: true });
    await policy(without, 'RunInputs', { maxAgeDays: 30 });
    const runs = await swept(without);
    assert.deepEqual(runs.map(({ target, deletedRows, error }) => [target, deletedRows, error]).sort(), [
      ['RunEvents', 0, 'archive-sink-missing'],
      ['RunInputs', 1, null],
    ]);
    assert.equal(count(without, 'run_events') > 0, true);
  },
);
