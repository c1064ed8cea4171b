import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { ReencryptReport } from '../../../src/db/protection/reencrypt.ts';
import { createFolder, type Folder } from '../../cli/support.ts';
import { overHttp, type TestApp } from '../../support/app.ts';
import { readAll } from '../attachments/files.ts';
import { enqueue, followToEnd, runJson } from '../runs/run-calls.ts';
import { branch } from '../sessions/session-calls.ts';
import { attached, filesWithMarker, fill, inputOf, keys, marker, openWorld, refused } from './at-rest-world.ts';

type Key = keyof typeof keys;

/** `acp db reencrypt` on the store of an app. */
const reencrypt = async (folder: Folder, app: TestApp, active: Key, known: readonly Key[], ...args: string[]) => {
  const settings = [
    `Service:Persistence:Sqlite:ConnectionString=${join(app.folder, 'data/acp.db')}`,
    `Service:AtRest:ActiveKeyId=${active}`,
    ...known.map((key) => `Service:AtRest:Keys:${key}=${keys[key]}`),
  ].flatMap((text) => ['--set', text]);
  const { code, stdout, stderr } = await folder.acp(['db', 'reencrypt', '--json', ...args, ...settings]);
  assert.ok(stdout.startsWith('{'), stderr);
  const report = JSON.parse(stdout) as ReencryptReport;
  const sum = (member: 'plain' | 'former' | 'rewritten' | 'unreadable' | 'orphaned') =>
    report.tables.reduce((total, table) => total + table[member], 0);
  return { code, stdout, report, sum };
};

const everythingIsRead = async (app: TestApp, run: string, approval: string, attachment: string): Promise<void> => {
  const { client } = app;
  const session = async (sessionId: string) =>
    JSON.stringify((await client.sessions.get({ params: { sessionId } })).body);
  assert.match(await inputOf(client, run), new RegExp(marker));
  assert.match(JSON.stringify(await followToEnd(client, run)), new RegExp(marker));
  assert.match(JSON.stringify((await client.runs.trace({ params: { runId: run } })).body.spans), new RegExp(marker));
  assert.match(JSON.stringify((await client.runs.tools({ params: { runId: run } })).body), new RegExp(marker));
  for (const id of ['s', 'sum', 'branched', 's2']) assert.match(await session(id), new RegExp(marker), id);
  const asked = (await client.approvals.get({ params: { id: approval } })).body;
  assert.deepEqual(asked.arguments, { amount: 5, note: marker });
  const file = await client.attachments.download({ params: { id: attachment } });
  assert.equal((await readAll(file.bytes)).toString(), attached);
};

overHttp(
  'SEC-50 SEC-52 what was stored before the first key, or under a former one, is encrypted anew and none of it is left',
  async (open, t) => {
    const folder = createFolder(t);
    const plain = await openWorld(open, null);
    const made = await fill(plain);
    // A conversation of which only a branch is left.
    await runJson(plain.client, 'helper', { message: `Hi ${marker}`, sessionId: 'gone' });
    await branch(plain.client, 'gone', 'branched', 1);
    await plain.client.sessions.remove({ params: { sessionId: 'gone' } });
    const metadata = { note: marker };
    const { body: conversation } = await plain.client.conversations.create({ body: { metadata } });
    await plain.client.responses.create({ body: { model: 'helper', input: 'Hi', metadata } });
    await plain.close();
    const idle = await openWorld(open, null, { folder: plain.folder, service: { Scheduling: { RunWorker: false } } });
    const queued = await enqueue(idle.client, 'helper', `Later ${marker}`);
    const body = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: [`Item ${marker}`] };
    await idle.client.schedules.save({ params: { name: 'batch' }, body });
    // Of one that is gone the audit trail alone is left.
    await idle.client.schedules.save({ params: { name: 'gone' }, body });
    await idle.client.schedules.save({ params: { name: 'gone' }, body: { ...body, payload: `Replaced ${marker}` } });
    await idle.client.schedules.remove({ params: { name: 'gone' } });
    await idle.client.schedules.trigger({ params: { name: 'batch' }, body: {} });
    await idle.client.webhooks.save({
      params: { name: 'crm' },
      body: {
        url: 'https://crm.example/events',
        events: ['run.failed'],
        secretConfigurationKey: 'Service:WebhookSecrets:Crm',
        headers: { 'x-note': marker },
      },
    });
    await idle.close();
    assert.ok(filesWithMarker(plain).length > 1);

    const counted = await reencrypt(folder, plain, 'a', ['a'], '--dry-run');
    assert.equal(counted.code, 1);
    assert.deepEqual([counted.report.left, counted.sum('rewritten')], [counted.sum('plain'), 0]);
    const untouched = counted.report.tables.filter(({ plain: found }) => found === 0).map(({ table }) => table);
    // Of the steps of a turn nothing is left after it, no agent runs elsewhere, a store in a file has its keys beside it, and what servers of tools
    // have granted is stored where there is a key alone.
    assert.deepEqual(untouched, [
      'run_steps',
      'session_requests',
      'external_spans',
      'own_secrets',
      'mcp_grants',
      'mcp_consents',
    ]);
    assert.ok(filesWithMarker(plain).length > 1, 'counting changes nothing');

    const first = await reencrypt(folder, plain, 'a', ['a'], '--compact');
    assert.deepEqual([first.code, first.report.left, first.sum('rewritten')], [0, 0, counted.sum('plain')]);
    assert.deepEqual(filesWithMarker(plain), []);

    const former = await reencrypt(folder, plain, 'b', ['a', 'b'], '--dry-run');
    assert.deepEqual(former.report.formerKeys, [{ keyId: 'a', rows: former.sum('former'), configured: true }]);
    assert.deepEqual([former.sum('former'), former.sum('plain')], [first.sum('rewritten'), 0]);
    const second = await reencrypt(folder, plain, 'b', ['a', 'b']);
    assert.deepEqual([second.code, second.report.formerKeys], [0, [{ keyId: 'a', rows: 0, configured: true }]]);
    assert.deepEqual(filesWithMarker(plain), []);
    const again = await reencrypt(folder, plain, 'b', ['b']);
    assert.deepEqual([again.code, again.sum('rewritten'), again.report.formerKeys], [0, 0, []]);

    const app = await openWorld(open, { ActiveKeyId: 'b', Keys: { b: keys.b } }, { folder: plain.folder });
    assert.match(JSON.stringify(await followToEnd(app.client, queued)), new RegExp(`Later ${marker}`));
    await everythingIsRead(app, made.sessionRun, made.approvalId, made.attachmentId);
    const kept = await app.client.conversations.get({ params: { conversationId: conversation.id } });
    assert.deepEqual(kept.body.metadata, metadata);
  },
);

overHttp(
  'SEC-53 what cannot be read stays as it is, is counted and named by its key, and the rest is done',
  async (open, t) => {
    const folder = createFolder(t);
    const first = await openWorld(open, { ActiveKeyId: 'a', Keys: keys });
    const made = await fill(first);
    await first.close();
    const next = await openWorld(open, null, { folder: first.folder, service: { AtRest: { Keys: keys } } });
    const late = await runJson(next.client, 'helper', `Plain ${marker}`);
    await next.close();

    const report = await reencrypt(folder, first, 'b', ['b']);
    assert.equal(report.code, 1);
    assert.ok(report.sum('unreadable') > 10 && report.sum('plain') > 2);
    assert.equal(report.sum('rewritten'), report.sum('plain'));
    assert.deepEqual(report.report.formerKeys, [{ keyId: 'a', rows: report.sum('unreadable'), configured: false }]);
    assert.equal(report.report.left, report.sum('unreadable'));
    assert.doesNotMatch(report.stdout, /acp:sealed|AQEBAQ/);

    const lost = await openWorld(open, { ActiveKeyId: 'b', Keys: { b: keys.b } }, { folder: first.folder });
    assert.equal(await refused(inputOf(lost.client, made.sessionRun)), '500 decryption-failed');
    assert.match(await inputOf(lost.client, late.runId), /Plain/);
    await lost.close();
    // The key was found again.
    const found = await reencrypt(folder, first, 'b', ['a', 'b']);
    assert.deepEqual([found.code, found.sum('rewritten')], [0, report.sum('unreadable')]);
    const app = await openWorld(open, { ActiveKeyId: 'b', Keys: { b: keys.b } }, { folder: first.folder });
    assert.match(await inputOf(app.client, made.sessionRun), new RegExp(marker));
  },
);
