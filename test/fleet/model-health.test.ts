import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { refusal, runJson, start } from '../features/runs/run-calls.ts';
import type { AppSetup, TestApp } from '../support/app.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { takeTableAway } from '../support/postgres-server.ts';
import { forEachHearing, openFleetHere, openMembers, skip } from './members.ts';

/** One whose provider `openai` answers with this status, and which tells how often it was asked. */
const member = (status: () => number, setup: AppSetup = {}): AppSetup => ({
  ...setup,
  simulator: {
    models: (path) =>
      path === '/v1/models' ? { status: status(), body: { data: [{ id: 'gpt-5' }] } } : { status: 503, body: '' },
  },
});
const works = (): number => 200;

const healthOf = async ({ client }: TestApp, refresh = false) =>
  (await client.models.providerHealth({ params: { provider: 'openai' }, query: { refresh } })).body;
const inCatalog = async ({ client }: TestApp) =>
  (await client.models.list({})).body.find(({ name }) => name === 'openai')?.status;
const asked = ({ simulator }: TestApp): number => simulator.listed.length;
const readiness = async ({ app }: TestApp) => (await app.health()).status;

const openTwo = async (
  t: TestContext,
  setups: readonly [AppSetup, AppSetup],
  ...rest: ['announcements' | 'polling alone'] | []
) => {
  const { members, url } = await openFleetHere(t, setups, ...rest);
  const [here, there] = members;
  assert.ok(here !== undefined && there !== undefined);
  return { here, there, url };
};

forEachHearing('MODEL-32 MODEL-4 what one process was told of a provider is known to all', async (t, hearing) => {
  let status = 200;
  const { here, there } = await openTwo(t, [member(() => status), member(() => status)], hearing);
  assert.deepEqual([await inCatalog(here), await inCatalog(there)], ['Unknown', 'Unknown']);
  const [first] = await Promise.all([healthOf(here), healthOf(here)]);
  assert.equal(first.status, 'Healthy');
  assert.deepEqual(await healthOf(there), first, 'at once, by whichever process it is asked for');
  assert.deepEqual([asked(here), asked(there)], [1, 0]);
  await eventually('the catalog tells it', async () => (await inCatalog(there)) === 'Healthy');
  status = 401;
  assert.deepEqual(await healthOf(here), first, 'it is kept');
  const renewed = await healthOf(there, true);
  assert.deepEqual([renewed.status, renewed.detail, renewed.models], ['Unhealthy', 'HTTP 401 ProviderError', []]);
  assert.deepEqual(await healthOf(here), renewed);
  assert.deepEqual([asked(here), asked(there)], [1, 1]);
  await eventually('the catalog tells it', async () => (await inCatalog(here)) === 'Unhealthy');
  await eventually('and readiness, of which none is healthy', async () => (await readiness(here)) === 'Degraded');
});

test('MODEL-32 a result of another process is renewed when it is stale, and not told for ever', { skip }, async (t) => {
  const clock = testClock();
  const aged = (setup: AppSetup = {}) => member(works, { storeTime: 'Clock', clock, ...setup });
  const { here, there } = await openTwo(t, [aged(), aged()]);
  const first = await healthOf(here);
  clock.setAhead(59_000);
  assert.deepEqual(await healthOf(there), first);
  assert.equal(asked(there), 0);
  clock.setAhead(1000);
  const second = await healthOf(there);
  assert.ok((second.checkedAt ?? '') > (first.checkedAt ?? ''));
  assert.deepEqual([asked(here), asked(there)], [1, 1]);
  await here.close();
  clock.setAhead(3_500_000);
  assert.equal(await inCatalog(there), 'Healthy', 'the last known one, of whoever it is');
  clock.setAhead(100_000);
  assert.equal(await inCatalog(there), 'Unknown', 'an hour later nobody knows');
});

test('MODEL-16 MODEL-33 the circuit that wins over the check is that of the process', { skip }, async (t) => {
  const service = { CircuitBreaker: { FailureThreshold: 1, BreakDuration: '1h' } };
  const agents = [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }];
  const { here, there } = await openTwo(t, [member(works, { service, agents }), member(works, { service })]);
  here.simulator.enqueue({ fault: { kind: 'status', status: 500 } });
  await refusal(start(here.client, 'helper', { message: 'Hi', stream: false }));
  const checked = await healthOf(here, true);
  assert.deepEqual([checked.status, checked.circuitOpen, checked.detail], ['Unhealthy', true, 'circuit open']);
  const elsewhere = await healthOf(there);
  assert.deepEqual([elsewhere.status, elsewhere.circuitOpen, elsewhere.detail], ['Healthy', false, null]);
  assert.equal(elsewhere.checkedAt, checked.checkedAt);
  assert.equal(asked(there), 0);
});

test('MODEL-32 what cannot be read is Unknown and told, never Healthy, and stops nothing else', { skip }, async (t) => {
  const clock = testClock();
  const agents = [{ name: 'helper' }];
  const { here, there, url } = await openTwo(t, [
    member(works, { agents }),
    member(works, { clock, storeTime: 'Clock' }),
  ]);
  assert.equal((await healthOf(here)).status, 'Healthy');
  assert.equal((await healthOf(there)).status, 'Healthy');
  assert.equal(await readiness(there), 'Healthy');
  const giveBack = await takeTableAway(url, 'model_health');
  await assert.rejects(healthOf(there), 'whoever asks for it is refused');
  // What it has read is too old by now.
  clock.setAhead(5000);
  assert.equal(await inCatalog(there), 'Unknown');
  assert.equal(await readiness(there), 'Degraded');
  await runJson(there.client, 'helper', 'Hi');
  await eventually('the log says so', () =>
    there.log.some(({ level, fields }) => level === 'error' && fields['state'] === 'modelHealth'),
  );
  await giveBack();
  await eventually('it is told again', async () => (await inCatalog(there)) === 'Healthy');
  assert.equal(await readiness(there), 'Healthy');
  assert.equal(asked(there), 0);
});

test('MODEL-32 of two results the one that was asked for later stays', { skip }, async (t) => {
  const clock = testClock();
  // For it, the other one asks an hour later than now.
  clock.setBack(3_600_000);
  const { here, there } = await openTwo(t, [member(works), member(() => 503, { clock, storeTime: 'Clock' })]);
  const later = await healthOf(here);
  assert.deepEqual(await healthOf(there, true), later, 'its own one is not told there either');
  assert.equal(asked(there), 1);
  assert.deepEqual(await healthOf(here), later);
});

test('MODEL-36 one process asks in the background, all tell it, and another one goes on when that is gone', {
  skip,
}, async (t) => {
  const service = {
    SingletonExecution: { Enabled: true, LeaseDuration: '3s' },
    Health: { BackgroundInterval: '5s' },
  };
  const members = await openMembers(t, [member(works, { service }), member(works, { service })]);
  await eventually('all tell it', async () =>
    (await Promise.all(members.map(inCatalog))).every((status) => status === 'Healthy'),
  );
  const [poller] = members.filter((one) => asked(one) > 0);
  const other = members.find((one) => one !== poller);
  assert.ok(poller !== undefined && other !== undefined);
  assert.equal(asked(other), 0);
  await poller.close();
  assert.equal(await inCatalog(other), 'Healthy', 'what a process has met outlives it');
  await eventually('another one asks', () => asked(other) > 0, 60_000);
});
