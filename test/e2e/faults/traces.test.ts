import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { bodyOf, planner } from '../../features/external-runs/traces-world.ts';
import { storedRows } from '../../support/store.ts';
import { everyRun } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

// Each round ends one process at a moment that nobody chose; a long run is made by raising this by hand.
const rounds = 3;
const tripsPerRound = 60;

const send = async ({ url }: ServiceProcess, trip: ReturnType<typeof planner>): Promise<number | null> => {
  try {
    return (await call(`${url}/v1/traces`, { body: bodyOf(trip.all) })).status;
  } catch {
    return null;
  }
};

test('spans that were taken before kill -9 become runs after it, each once', async (t) => {
  const site = openSite({
    service: { Pricing: { Currency: 'EUR', demo: { 'gpt-x': { Input: 1000, Output: 2000 } } } },
    host: { Traces: { Enabled: true, SettleAfter: '400ms' } },
  });
  t.after(() => site.close());
  let service = await site.serve();
  const taken: ReturnType<typeof planner>[] = [];
  const unanswered: ReturnType<typeof planner>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Some wait, some are on their way, and some are being stored.
    const trips = Array.from({ length: tripsPerRound }, () => planner(Date.now() - 2000));
    const sending = Promise.all(
      trips.map(async (trip, index) => {
        await pause(index * 12);
        (((await send(service, trip)) === 200 ? taken : unanswered) as unknown[]).push(trip);
      }),
    );
    await pause(randomInt(300, 900));
    await service.kill();
    await sending;
    service = await site.serve();
  }
  assert.ok(taken.length > 0);
  const waiting = async (): Promise<number> => {
    const rows = await site.aside((storage) => storedRows(storage, 'spans of agents elsewhere'));
    return rows.filter(({ run_id: runId }) => runId === null).length;
  };
  const traces = async (): Promise<string[]> =>
    (await everyRun(service, { kind: 'External', includeChildren: 'false' })).map(
      (run) => (run as unknown as { labels: { trace: string } }).labels.trace,
    );
  await until('the runs', async () => (await waiting()) === 0);
  const before = await traces();
  assert.equal(new Set(before).size, before.length, 'each once');
  for (const { traceId } of taken) assert.ok(before.includes(traceId), 'what was answered with 200 is there');

  // Exporters send again what they have no answer for, and some send everything twice.
  const all = [...taken, ...unanswered];
  for (const trip of all) assert.equal(await send(service, trip), 200);
  await until('the rest', async () => (await waiting()) === 0 && (await traces()).length >= all.length);
  assert.deepEqual((await traces()).toSorted(), all.map(({ traceId }) => traceId).toSorted());
  const usage = await call(`${service.url}/api/quotas/usage?period=Daily`);
  const [used] = usage.json<{ usage: { runs: number; tokens: number }[] }>().usage;
  assert.deepEqual([used?.runs, used?.tokens], [all.length, all.length * 4500]);
  await site.checkStore();
});
