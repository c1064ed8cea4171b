import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSite, until } from '../support.ts';

interface Lease {
  readonly name: string;
  readonly owner: string;
}

test('JOB-41 leases of a killed process do not hold up the next owner of the store, and a stop releases them', async (t) => {
  const site = openSite({
    service: {
      SingletonExecution: { Enabled: true, LeaseDuration: '10m' },
      RunReconciliation: { Enabled: true },
      Health: { BackgroundInterval: '1m' },
    },
  });
  t.after(() => site.close());
  const leases = () => site.rows<Lease>('select name, owner from service_service_leases order by name');
  const names = ['approval-expiration', 'model-health', 'retention', 'run-reconciliation'];
  const allHeld = (pid: number) =>
    until(() => {
      const held = leases();
      return held.length === names.length && held.every(({ owner }) => owner.includes(`:${pid}:`)) && held;
    });

  const first = await site.serve();
  assert.deepEqual(
    (await allHeld(first.pid)).map(({ name }) => name),
    names,
  );
  await first.kill();
  assert.equal(leases().length, names.length, 'nothing was released');

  const second = await site.serve();
  await allHeld(second.pid);
  assert.equal((await second.stop()).code, 0);
  assert.deepEqual(leases(), []);
  await site.checkStore();
});

test('JOB-42 a process has the name that it was given', async (t) => {
  const site = openSite({ service: { SingletonExecution: { Enabled: true, OwnerId: 'node-7' } } });
  t.after(() => site.close());
  const service = await site.serve();
  const owners = await until(() => {
    const rows = site.rows<Lease>('select distinct owner from service_service_leases');
    return rows.length > 0 && rows;
  });
  assert.deepEqual(owners, [{ owner: 'node-7' }]);
  assert.equal((await service.stop()).code, 0);
});
