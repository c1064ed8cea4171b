import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { pendingOf, queueWaiting } from '../approvals/approval-world.ts';
import { keys, marker, openWorld, refused } from './at-rest-world.ts';

const failed = '500 decryption-failed';
const onA = { ActiveKeyId: 'a', Keys: { a: keys.a } };
const onB = { ActiveKeyId: 'b', Keys: { b: keys.b } };

const warnings = (app: TestApp, words: RegExp) =>
  app.log.filter(({ level, message }) => level === 'warn' && words.test(message));

forEachDurableService(
  'SEC-53 an approval whose key is gone is listed without its arguments, and holds up no other',
  async (open) => {
    const service = { Approvals: { DefaultExpiration: '1h', ScanInterval: '50ms' } };
    const lost = await openWorld(open, onA, { service });
    const { rows: old } = await queueWaiting(lost, 'old', ['pay', { note: marker }]);
    await lost.close();
    const app = await openWorld(open, onB, { folder: lost.folder, service });
    const { rows: fresh } = await queueWaiting(app, 'fresh', ['pay', { note: marker }]);
    const [oldId, freshId] = [old[0]?.id ?? '', fresh[0]?.id ?? ''];

    const before = warnings(app, /^Listed approvals lack/).length;
    const listed = await pendingOf(app.client);
    assert.deepEqual(
      listed.map(({ id, toolName, arguments: args, presentation }) => [id, toolName, args, presentation?.message]),
      [
        [freshId, 'pay', { note: marker }, `Pay ${marker}?`],
        [oldId, 'pay', null, undefined],
      ],
    );
    const told = warnings(app, /^Listed approvals lack/).slice(before);
    assert.deepEqual(
      told.map(({ fields }) => fields['approvals']),
      [1],
      'one warning for the list',
    );
    assert.equal(await refused(app.client.approvals.get({ params: { id: oldId } })), failed);
    for (const approved of [true, false])
      assert.equal(await refused(app.client.approvals.decide({ params: { id: oldId }, body: { approved } })), failed);
    assert.equal((await app.client.approvals.get({ params: { id: freshId } })).body.status, 'Pending');

    // Ends of pauses need no key.
    app.change("update service_approvals set expires_at = 1 where status = 'Pending'");
    const waiting = () => app.rows("select 1 from service_approvals where status = 'Pending'").length;
    while (waiting() > 0) await sleep(20);
    assert.deepEqual(
      app.rows('select state from service_approval_handovers').map(({ state }) => state),
      ['Lapsed', 'Lapsed'],
    );
    assert.doesNotMatch(JSON.stringify(app.log), /acp:sealed|AQEBAQ/);
  },
);

forEachDurableService(
  'SEC-53 a pause that cannot go on without its key does not keep others from going on',
  async (open) => {
    const service = { Approvals: { ScanInterval: '50ms' }, Scheduling: { RunWorker: true } };
    const lost = await openWorld(open, onA, { service });
    await queueWaiting(lost, 'old', ['pay', { note: marker }]);
    await lost.close();
    const app = await openWorld(open, onB, { folder: lost.folder, service });
    await queueWaiting(app, 'fresh', ['pay', { note: marker }]);
    // As a decision leaves them that was stored while the queue was off.
    app.change("update service_approvals set status = 'Approved', decided_at = 1 where status = 'Pending'");
    const stateOf = (sessionId: string) =>
      app.rows<{ state: string }>('select state from service_approval_handovers where session_id = ?', sessionId)[0]
        ?.state;
    while (stateOf('fresh') === 'Waiting') await sleep(20);
    assert.equal(stateOf('fresh'), 'Queued');
    assert.equal(stateOf('old'), 'Waiting');
    assert.ok(app.log.some(({ level, message }) => level === 'error' && message === 'A decided pause cannot go on'));
  },
);

forEachDurableService(
  'SEC-53 a job whose key is gone is listed without its payload, by itself it is 500, and others can be queued',
  async (open) => {
    const idle = { Scheduling: { RunWorker: false } };
    const lost = await openWorld(open, onA, { service: idle });
    await lost.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 9 } });
    const { jobId: oldId } = (await lost.client.retention.run({ query: { target: 'Jobs' } })).body;
    await lost.close();
    const app = await openWorld(open, onB, { folder: lost.folder, service: idle });
    const { jobId: freshId } = (await app.client.retention.run({ query: { target: 'Jobs' } })).body;
    assert.notEqual(freshId, oldId);
    const before = warnings(app, /^Listed jobs lack/).length;
    const listed = (await app.client.jobs.list({ query: {} })).body;
    const manual = { trigger: 'Manual', everyTenant: false };
    assert.deepEqual(
      listed.map(({ id, handlerKey, payload }) => [id, handlerKey, payload]),
      [
        [freshId, 'acp.retention', manual],
        [oldId, 'acp.retention', null],
      ],
    );
    assert.deepEqual(
      warnings(app, /^Listed jobs lack/)
        .slice(before)
        .map(({ fields }) => fields['jobs']),
      [1],
    );
    assert.equal(await refused(app.client.jobs.get({ params: { id: oldId } })), failed);
    assert.deepEqual((await app.client.jobs.get({ params: { id: freshId } })).body.job.payload, manual);
  },
);
