import assert from 'node:assert/strict';
import { approvalStore } from '../../../src/features/approvals/approvals.store.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { decide, pendingOf, queueWaiting } from '../approvals/approval-world.ts';
import { keys, marker, openWorld, refused } from './at-rest-world.ts';

const hourMs = 3_600_000;

const failed = '500 decryption-failed';
const onA = { ActiveKeyId: 'a', Keys: { a: keys.a } };
const onB = { ActiveKeyId: 'b', Keys: { b: keys.b } };

const warnings = (app: TestApp, words: RegExp) =>
  app.log.filter(({ level, message }) => level === 'warn' && words.test(message));

forEachDurableService(
  'SEC-53 an approval whose key is gone is listed without its arguments, and holds up no other',
  async (open) => {
    const service = { Approvals: { DefaultExpiration: '1h', ScanInterval: '50ms' } };
    const at = Date.now() - 2 * hourMs;
    const lost = await openWorld(open, onA, { service, clock: testClock({ at }) });
    const { runId: oldRun, rows: old } = await queueWaiting(lost, 'old', ['pay', { note: marker }]);
    await lost.close();
    const app = await openWorld(open, onB, { folder: lost.folder, service, clock: testClock({ at }) });
    const { runId: freshRun, rows: fresh } = await queueWaiting(app, 'fresh', ['pay', { note: marker }]);
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
    const approvals = app.store.open().stores(approvalStore);
    await app.clock.jump(2 * hourMs);
    for (const runId of [oldRun, freshRun])
      await eventually('the end of the pause', async () => (await approvals.handover(runId))?.state === 'Lapsed');
    assert.doesNotMatch(JSON.stringify(app.log), /acp:sealed|AQEBAQ/);
  },
);

forEachDurableService(
  'SEC-53 a pause that cannot go on without its key does not keep others from going on',
  async (open) => {
    const service = { Approvals: { DefaultExpiration: '1h', ScanInterval: '50ms' } };
    const at = Date.now() - 2 * hourMs;
    /** A pause of two calls, one of which is decided. */
    const halfDecided = async (made: TestApp, sessionId: string): Promise<string> => {
      const { runId, rows } = await queueWaiting(made, sessionId, ['pay', { note: marker }], ['pay', { note: 'more' }]);
      await decide(made.client, rows[0]?.id ?? '', true);
      await made.close();
      return runId;
    };
    const lost = await openWorld(open, onA, { service, clock: testClock({ at }) });
    const { folder } = lost;
    const old = await halfDecided(lost, 'old');
    const fresh = await halfDecided(await openWorld(open, onB, { folder, service, clock: testClock({ at }) }), 'fresh');
    // The other call lapses while the queue is off.
    const off = await openWorld(open, onB, { folder, service: { ...service, Scheduling: { Enabled: false } } });
    const settled = off.store.open().stores(approvalStore);
    for (const runId of [old, fresh])
      await eventually('the scan', async () =>
        (await settled.ofRun(runId)).every(({ status }) => status !== 'Pending'),
      );
    await off.close();
    const app = await openWorld(open, onB, { folder, service });
    const approvals = app.store.open().stores(approvalStore);
    await eventually('the pause that goes on', async () => (await approvals.handover(fresh))?.state === 'Queued');
    assert.equal((await approvals.handover(old))?.state, 'Waiting');
    const told = ({ level, message }: TestApp['log'][number]) =>
      level === 'error' && message === 'A decided pause cannot go on';
    await eventually('the line of the log', () => app.log.some(told));
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
