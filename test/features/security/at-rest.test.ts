import assert from 'node:assert/strict';
import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { backupStore, checkStore } from '../../../src/db/maintenance.ts';
import { forEachDurableService, forEachServiceInFile, overHttp, type TestApp } from '../../support/app.ts';
import { calls } from '../approvals/approval-world.ts';
import { fileOf, readAll } from '../attachments/files.ts';
import { bundleTextOf } from '../replays/bundle-calls.ts';
import { enqueue, followToEnd, runJson, start } from '../runs/run-calls.ts';
import {
  attached,
  dataFiles,
  filesWithMarker,
  fill,
  inputOf,
  keys,
  marker,
  openWorld,
  protectedColumns,
  refused,
} from './at-rest-world.ts';
import { tampering } from './tampering.ts';

const onA = { ActiveKeyId: 'a', Keys: { a: keys.a } };

/** Values of a column that are sealed under a key. */
const sealedUnder = async (app: TestApp, keyId: string, column: string): Promise<number> =>
  (await app.store.sealed(keyId))[column] ?? 0;

const download = async (app: TestApp, id: string): Promise<string> =>
  (await readAll((await app.client.attachments.download({ params: { id } })).bytes)).toString();

const sessionTexts = async (app: TestApp, sessionId: string): Promise<string> =>
  JSON.stringify((await app.client.sessions.get({ params: { sessionId } })).body);

const openFile = (app: TestApp) =>
  runJson(app.client, 'helper', { message: calls(['file_read', { path: 'a.txt' }]), sessionId: 's' });

forEachDurableService('SEC-50 SEC-51 with an active key no content stands in any file of the store', async (open) => {
  let app: TestApp | null = null;
  const whileRunning: string[] = [];
  const opened = await openWorld(open, onA, {}, async () => {
    if (app === null) return;
    whileRunning.push(...filesWithMarker(app));
    whileRunning.push(`steps ${(await sealedUnder(app, 'a', 'run_steps.content')) > 0}`);
  });
  app = opened;
  const made = await fill(app);
  assert.deepEqual(whileRunning, ['steps true'], 'the steps of a turn are sealed while it runs');
  for (const column of protectedColumns)
    assert.ok((await sealedUnder(app, 'a', column)) > 0, `${column} holds a sealed value`);
  assert.ok((await app.store.contents()).length > 0);
  assert.deepEqual(filesWithMarker(app), []);
  assert.ok(!(await app.store.text()).includes(marker));

  // Everything is read as before.
  const { client } = app;
  assert.match(await inputOf(client, made.sessionRun), new RegExp(marker));
  assert.match(JSON.stringify(await followToEnd(client, made.sessionRun)), new RegExp(marker));
  assert.match(await sessionTexts(app, 's'), new RegExp(marker));
  assert.match(await bundleTextOf(client, made.sessionRun), new RegExp(marker));
  assert.match((await openFile(app)).output ?? '', new RegExp(`kept ${marker}`));
  const approval = (await client.approvals.get({ params: { id: made.approvalId } })).body;
  assert.deepEqual(approval.arguments, { amount: 5, note: marker });
  assert.equal(await download(app, made.attachmentId), attached);
  const again = await runJson(client, 'cached', `Hi ${marker}`, { headers: { 'idempotency-key': 'k' } });
  assert.deepEqual([again.headers['idempotency-replayed'], again.output], ['true', `You said Hi ${marker}.`]);
  const trace = (await client.runs.trace({ params: { runId: made.sessionRun } })).body;
  assert.match(JSON.stringify(trace.spans), new RegExp(marker));
  const decided = await client.approvals.decide({ params: { id: made.approvalId }, body: { approved: true } });
  const continued = await followToEnd(client, decided.body.continuationRunId ?? '');
  assert.match(JSON.stringify(continued.at(-1)), new RegExp(`paid ${marker}`));
  assert.deepEqual(filesWithMarker(app), []);
  await app.close();
  assert.deepEqual(filesWithMarker(app), [], 'nor after the log was written back');

  // The payload of a job stands until its run has ended.
  const idle = await openWorld(open, onA, { folder: app.folder, service: { Scheduling: { RunWorker: false } } });
  const queued = await enqueue(idle.client, 'helper', `Later ${marker}`);
  assert.ok((await sealedUnder(idle, 'a', 'jobs.payload')) > 0);
  assert.deepEqual(filesWithMarker(idle), []);
  await idle.close();
  const working = await openWorld(open, onA, { folder: app.folder });
  assert.match(JSON.stringify(await followToEnd(working.client, queued)), new RegExp(`Later ${marker}`));
});

forEachDurableService(
  'SEC-50 SEC-52 without a key content is plain, and turned on over it everything stays readable',
  async (open) => {
    const plain = await openWorld(open, null);
    const made = await fill(plain);
    assert.ok((await plain.store.text()).includes(marker), 'the marker would be found');
    await plain.close();

    const app = await openWorld(open, onA, { folder: plain.folder });
    assert.match(await inputOf(app.client, made.sessionRun), new RegExp(marker));
    assert.match(await sessionTexts(app, 's'), new RegExp(marker));
    assert.equal(await download(app, made.attachmentId), attached);
    const before = await app.store.count('session messages');
    const message = calls(['file_read', { path: 'a.txt' }], ['file_write', { path: 'a.txt', content: 'new' }]);
    assert.equal((await runJson(app.client, 'helper', { message, sessionId: 's' })).status, 'Completed');
    const after = await app.store.count('session messages');
    assert.ok(after > before);
    assert.equal(
      await sealedUnder(app, 'a', 'session_messages.message'),
      after - before,
      'what was written since is sealed',
    );
    assert.equal(await sealedUnder(app, 'a', 'agent_files.content'), 1, 'and what was written anew');
    await runJson(app.client, 'summing', { message: 'four', sessionId: 'sum' });
    assert.equal(await sealedUnder(app, 'a', 'sessions.summary'), 1);
    await app.client.attachments.upload({ query: {}, file: fileOf(attached) });
    assert.equal(await download(app, made.attachmentId), attached, 'equal bytes that came again are one sealed file');
    assert.deepEqual(
      filesWithMarker(app).filter((path) => path.includes('attachments')),
      [],
    );
  },
);

forEachDurableService(
  'SEC-52 an attachment that begins like an encrypted file is what was uploaded, off and on',
  async (open) => {
    const text = `acp-sealed-file\x01 is how an encrypted file begins; this one is not. ${'More. '.repeat(100)}`;
    const plain = await openWorld(open, null);
    const { body: file } = await plain.client.attachments.upload({ query: {}, file: fileOf(text) });
    assert.equal(await download(plain, file.id), text);
    await plain.close();
    const app = await openWorld(open, onA, { folder: plain.folder });
    assert.equal(await download(app, file.id), text);
    const { body: again } = await app.client.attachments.upload({ query: {}, file: fileOf(text) });
    assert.ok(dataFiles(app).every((path) => !readFileSync(path).includes('this one is not')));
    for (const { id } of [file, again]) assert.equal(await download(app, id), text);
  },
);

forEachDurableService(
  'SEC-52 SEC-53 a former key reads; without it its rows are 500 decryption-failed and others are not',
  async (open) => {
    const first = await openWorld(open, onA);
    const made = await fill(first);
    await first.close();

    const both = await openWorld(open, { ActiveKeyId: 'b', Keys: keys }, { folder: first.folder });
    assert.match(await sessionTexts(both, 's'), new RegExp(marker));
    const second = await runJson(both.client, 'helper', { message: `New ${marker}`, sessionId: 'fresh' });
    await runJson(both.client, 'helper', { message: `New ${marker}`, sessionId: 's' });
    assert.ok((await sealedUnder(both, 'a', 'session_messages.message')) > 0);
    assert.ok((await sealedUnder(both, 'b', 'session_messages.message')) > 0);
    const { body: file } = await both.client.attachments.upload({ query: {}, file: fileOf(`${marker} too`) });
    await both.close();

    const late = await openWorld(
      open,
      { ActiveKeyId: 'b', Keys: { b: keys.b } },
      { folder: first.folder, service: { Scheduling: { RunWorker: true } } },
    );
    const { client } = late;
    const failed = '500 decryption-failed';
    assert.equal(await refused(inputOf(client, made.sessionRun)), failed);
    assert.equal(await refused(sessionTexts(late, 's')), failed);
    assert.equal(await refused(client.runs.events({ params: { runId: made.sessionRun } })), failed);
    assert.equal(await refused(download(late, made.attachmentId)), failed);
    assert.equal(await refused(client.approvals.get({ params: { id: made.approvalId } })), failed);
    const idempotent = { headers: { 'idempotency-key': 'k' } };
    assert.equal(
      await refused(start(client, 'cached', { message: `Hi ${marker}`, stream: false }, idempotent)),
      failed,
    );
    // Twice: a turn that cannot begin leaves the session to the next one.
    for (let tries = 0; tries < 2; tries += 1)
      assert.equal(await refused(runJson(client, 'helper', { message: 'Hi', sessionId: 's' })), failed);

    assert.match(await inputOf(client, second.runId), new RegExp(marker));
    assert.match(await sessionTexts(late, 'fresh'), new RegExp(marker));
    assert.equal(await download(late, file.id), `${marker} too`);
    assert.equal((await client.runs.get({ params: { runId: made.sessionRun } })).body.status, 'Completed');
    assert.equal((await runJson(client, 'helper', { message: 'Hi', sessionId: 'fresh' })).status, 'Completed');
    assert.doesNotMatch(JSON.stringify(late.log), /acp:sealed|AQEBAQ/);
  },
);

forEachDurableService(
  'SEC-53 a job under an absent key fails alone, and the next start is not held up',
  async (open) => {
    const idle = await openWorld(open, onA, { service: { Scheduling: { RunWorker: false } } });
    const lost = await enqueue(idle.client, 'helper', `Later ${marker}`);
    await idle.close();
    const late = await openWorld(open, { ActiveKeyId: 'b', Keys: { b: keys.b } }, { folder: idle.folder });
    const other = await enqueue(late.client, 'helper', `Now ${marker}`);
    assert.equal((await followToEnd(late.client, other)).at(-1)?.type, 'run.completed');
    assert.ok(late.log.some(({ fields }) => JSON.stringify(fields).includes(lost)));
  },
);

forEachServiceInFile(
  'SEC-50 SEC-53 a value that was moved or changed is refused, in the store and in its file',
  async (open) => {
    const app = await openWorld(open, onA);
    const { client } = app;
    const failed = '500 decryption-failed';
    const [one, two] = [await runJson(client, 'helper', `One ${marker}`), await runJson(client, 'helper', 'Two')];
    const hand = tampering(app);
    await hand.moveInput(one.runId, two.runId);
    assert.equal(await refused(inputOf(client, two.runId)), failed, 'to another row');
    assert.match(await inputOf(client, one.runId), new RegExp(marker));
    const message = calls(['search', { q: marker }]);
    const { runId } = await runJson(client, 'helper', message);
    const invocations = () => client.runs.tools({ params: { runId } });
    assert.equal((await invocations()).body.length, 1);
    await hand.argumentsAsResult(runId);
    assert.equal(await refused(invocations()), failed, 'to another column');
    const { body: file } = await client.attachments.upload({ query: {}, file: fileOf(attached) });
    const path = dataFiles(app).find((name) => name.includes(file.sha256)) ?? '';
    truncateSync(path, 65_536 + 16 + 256);
    assert.equal(await refused(download(app, file.id)), failed, 'a file that was cut between two chunks');
  },
);

overHttp(
  'SEC-51 SEC-53 a backup stays sealed, with its keys it is checked, and without them it is still made',
  async (open) => {
    const app = await openWorld(open, onA);
    await app.client.attachments.upload({ query: {}, file: fileOf(attached) });
    const options = {
      provider: 'Sqlite',
      location: join(app.folder, 'data/acp.db'),
      tablePrefix: 'service_',
      synchronous: 'Normal',
      autoApplyMigrations: true,
      commandTimeoutMs: 5000,
    } as const;
    const withKey = { ...options, cipher: createContentCipher('a', { a: keys.a }) };
    assert.deepEqual((await checkStore(withKey)).findings, []);
    const [finding = '', ...others] = (await checkStore(options)).findings;
    assert.match(finding, /cannot be decrypted/);
    assert.deepEqual(others, []);
    const copy = join(app.folder, 'data/copy.db');
    const made = await backupStore(withKey, copy);
    assert.deepEqual([made.findings, made.attachments.files], [[], 1]);
    assert.deepEqual(filesWithMarker(app), []);
    assert.deepEqual((await checkStore({ ...withKey, location: copy })).findings, []);
    const again = await backupStore(withKey, copy, { force: true });
    assert.deepEqual([again.findings, again.attachments], [[], made.attachments]);
    const blind = await backupStore(options, join(app.folder, 'data/blind.db'));
    assert.match(blind.findings.join(), /cannot be decrypted/);
    assert.deepEqual((await checkStore({ ...withKey, location: blind.path })).findings, []);
  },
);
