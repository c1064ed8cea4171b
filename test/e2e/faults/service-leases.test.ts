import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceLeaseStore } from '../../../src/features/jobs/index.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';

const names = [
  'approval-expiration',
  'loose-contents',
  'mcp-discovery',
  'model-health',
  'retention',
  'run-reconciliation',
  'schedule-dispatch',
] as const;

const leaseMs = 600_000;

/** The work of which this process says that it does it, and under which name. */
const workOf = (service: ServiceProcess): { service: unknown; owner: unknown }[] =>
  service
    .log()
    .filter(({ message }) => message === 'This process does the work of a service')
    .map(({ service: name, owner }) => ({ service: name, owner }));

const doesAll = (service: ServiceProcess) =>
  until('a process that does the work of every service', () => {
    const work = workOf(service);
    return work.length === names.length && work;
  });

/** Which of the leases an owner has or gets, as any process asks for them. */
const taken = (site: Site, owner: string): Promise<string[]> =>
  site.aside(async (storage) => {
    const leases = storage.stores(serviceLeaseStore);
    const now = Date.now();
    const answers = names.map(async (name) => ((await leases.take(name, owner, now, now + leaseMs)) ? [name] : []));
    return (await Promise.all(answers)).flat();
  });

test('JOB-41 leases of a killed process do not hold up the next owner of the store, and a stop releases them', async (t) => {
  const site = openSite({
    service: {
      SingletonExecution: { Enabled: true, LeaseDuration: '10m' },
      RunReconciliation: { Enabled: true },
      Health: { BackgroundInterval: '1m' },
    },
  });
  t.after(() => site.close());
  const first = await site.serve();
  const work = await doesAll(first);
  assert.deepEqual(work.map(({ service }) => service).sort(), names);
  assert.ok(work.every(({ owner }) => String(owner).includes(`:${first.pid}:`)));
  await first.kill();
  assert.deepEqual(await taken(site, 'elsewhere'), [], 'nothing was released');

  const second = await site.serve();
  await doesAll(second);
  assert.deepEqual(await taken(site, 'elsewhere'), []);
  assert.equal((await second.stop()).code, 0);
  assert.deepEqual(await taken(site, 'elsewhere'), names);
  await site.checkStore();
});

test('JOB-42 a process has the name that it was given', async (t) => {
  const site = openSite({ service: { SingletonExecution: { Enabled: true, OwnerId: 'node-7' } } });
  t.after(() => site.close());
  const service = await site.serve();
  const [work] = await until('a process that does the work of a service', () => {
    const all = workOf(service);
    return all.length > 0 && all;
  });
  assert.equal(work?.owner, 'node-7');
  assert.ok(!(await taken(site, 'elsewhere')).includes(String(work?.service)));
  assert.ok((await taken(site, 'node-7')).includes(String(work?.service)));
  assert.equal((await service.stop()).code, 0);
});
