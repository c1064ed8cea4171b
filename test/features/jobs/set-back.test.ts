import assert from 'node:assert/strict';
import { forEachOwnedService, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue } from '../runs/run-calls.ts';
import { deliveriesOf, newest, receiver, save, sendTest, webhookSetup } from '../webhooks/webhook-world.ts';
import { begins, noPolls, of, workshop } from './flow-workshop.ts';
import { enqueueAll, jobOf, seen } from './flow-world.ts';

const minute = 60_000;
const hour = 60 * minute;
/** Until it is noticed. */
const noticed = 5000;

const queue = ({ client }: TestApp, message: string): Promise<string> => enqueue(client, 'helper', { message });

const ended = (app: TestApp, id: string) =>
  eventually('its job has ended', async () => (await jobOf(app, id)).completedAt !== null);

/** By how much a clock was set is measured, to some milliseconds. */
const assertHourEarlier = (before: number, after: number): void => {
  const earlier = before - after;
  assert.ok(Math.abs(earlier - hour) < 1000, String(earlier));
};

forEachOwnedService(
  'JOB-33 WEBHOOK-30 a retry does not wait for the hour by which the clock was set back',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1m'] }));
    let status = 500;
    const server = await receiver(t, (_request, response) => response.writeHead(status).end());
    await save(app.client, server.url);
    await sendTest(app.client);
    const { id, nextAttemptAt } = await newest(app.client, 'the first attempt has failed', (row) => row.attempt === 1);
    status = 204;
    app.clock.setBack(hour);
    await app.clock.advance(noticed);
    const [moved] = await deliveriesOf(app.client);
    assertHourEarlier(Date.parse(nextAttemptAt ?? ''), Date.parse(moved?.nextAttemptAt ?? ''));
    assert.equal((await jobOf(app, id)).scheduledFor, moved?.nextAttemptAt);
    await app.clock.advance(0.8 * minute);
    assert.equal(server.received.length, 1, 'never earlier');
    await app.clock.advance(0.4 * minute);
    await newest(app.client, 'it was delivered', (row) => row.status === 'Delivered' && row.attempt === 2);
    assert.ok(app.log.some(({ message }) => message.includes('was set back')));
  },
);

forEachOwnedService('JOB-27 what was due before the clock was set back is due after it', async (open, t) => {
  const app = await open(webhookSetup({ Timeout: '30s' }, { service: { Scheduling: { MaxConcurrentJobs: 2 } } }));
  const begun: (() => void)[] = [];
  const server = await receiver(t, (_request, response) => void begun.push(() => response.writeHead(204).end()));
  const events = ['run.canceled'] as const;
  await save(app.client, server.url, { name: 'crm', events: [...events] });
  await save(app.client, server.url, { name: 'other', events: [...events] });
  for (const name of ['crm', 'other']) await sendTest(app.client, name);
  await eventually('all places are taken', () => begun.length === 2);
  const waiting = await queue(app, 'Hi');
  const { scheduledFor } = await jobOf(app, waiting);
  app.clock.setBack(hour);
  await app.clock.advance(noticed);
  assertHourEarlier(Date.parse(scheduledFor), Date.parse((await jobOf(app, waiting)).scheduledFor));
  for (const answer of begun) answer();
  await ended(app, waiting);
});

forEachOwnedService('FLOW throttle: windows end as much earlier as the clock was set back', async (open) => {
  const flow = { throttle: { limit: 1, window: '1m' } };
  const app = await open({ agents: [{ name: 'helper', flow }] });
  await ended(app, await queue(app, 'first'));
  const second = await queue(app, 'second');
  const held = Date.parse((await jobOf(app, second)).scheduledFor);
  assert.ok(held > app.clock.now());
  app.clock.setBack(hour);
  await app.clock.advance(noticed);
  const moved = Date.parse((await jobOf(app, second)).scheduledFor);
  assertHourEarlier(held, moved);
  const third = await queue(app, 'third');
  assert.equal(Date.parse((await jobOf(app, third)).scheduledFor), moved + minute, 'the window after it');
  await app.clock.advance(2 * minute);
  await ended(app, second);
  await ended(app, third);
});

forEachOwnedService(
  'FLOW concurrency: who waited for a place before the clock was set back has it next, before those that came after',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const app = await open({ ...setup, service: noPolls });
    const ids = await enqueueAll(app, [of('a'), of('b'), of('c')]);
    await begins(begun, ids.slice(0, 1));
    const { scheduledFor } = await jobOf(app, ids[1] ?? '');
    app.clock.setBack(hour);
    await app.clock.advance(noticed);
    assertHourEarlier(Date.parse(scheduledFor), Date.parse((await jobOf(app, ids[1] ?? '')).scheduledFor));
    ids.push(...(await enqueueAll(app, [of('d')])));
    const held = 'Pending flow-concurrency';
    assert.deepEqual(await seen(app, ids), ['Running null', held, held, held]);
    for (let n = 1; n <= ids.length; n += 1) {
      await begins(begun, ids.slice(0, n));
      calls[n - 1]?.goOn();
    }
    await ended(app, ids[3] ?? '');
  },
);

for (const [what, change] of [
  ['little', (app: TestApp) => app.clock.setBack(900)],
  ['forward', (app: TestApp) => app.clock.setAhead(hour)],
] as const)
  forEachOwnedService(`JOB-33 a clock that is set ${what} moves nothing that waits`, async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['2h'] }));
    const server = await receiver(t, (_request, response) => response.writeHead(500).end());
    await save(app.client, server.url);
    await sendTest(app.client);
    const { nextAttemptAt } = await newest(app.client, 'the first attempt has failed', (row) => row.attempt === 1);
    change(app);
    await app.clock.advance(2 * noticed);
    assert.equal((await deliveriesOf(app.client))[0]?.nextAttemptAt, nextAttemptAt);
    assert.equal(server.received.length, 1);
  });
