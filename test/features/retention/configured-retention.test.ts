import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { retentionTargets } from '../../../src/features/retention/retention.schema.ts';
import { overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { runJson } from '../runs/run-calls.ts';
import { dayMs, daysAgo, swept } from './retention-world.ts';

overHttp('RET-2 RET-12 RET-25 each target goes by what is configured for it', async (open) => {
  const targets = retentionTargets.filter((target) => target !== 'IdempotencyKeys');
  const configured = targets.map(
    (target, index) => [target, { MaxAgeDays: 400 + index, MaxRows: 700 + index }] as const,
  );
  const app = await open({ service: { Retention: { Enabled: true, ...Object.fromEntries(configured) } } });
  const archiving = await open({
    service: {
      Retention: {
        Enabled: true,
        ...Object.fromEntries(configured.map(([target, section]) => [target, { ...section, Archive: true }])),
      },
    },
  });
  for (const target of targets) {
    const params = { query: { target } };
    const [plain] = (await app.client.retention.preview(params)).body;
    const [archived] = (await archiving.client.retention.preview(params)).body;
    const expected = Object.fromEntries(configured)[target];
    assert.deepEqual(
      [plain?.source, plain?.maxAgeDays, plain?.maxRows, plain?.archive, archived?.archive],
      ['Configuration', expected?.MaxAgeDays, expected?.MaxRows, false, true],
      target,
    );
  }
});

/** No other part of the service waits for so long. */
const delayMs = 157;

overHttp('RET-21 a sweep waits between two batches for as long as is configured', async (open, t) => {
  let waits = 0;
  const { setTimeout: wait } = timers;
  t.mock.method(timers, 'setTimeout', async (...[ms, ...rest]: Parameters<typeof wait>) => {
    if (ms === delayMs) waits += 1;
    else await wait(ms, ...rest);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const app = await open({
    agents: [{ name: 'helper' }],
    clock: testClock({ at: daysAgo(9) }),
    service: { Retention: { BatchSize: 1, BatchDelay: `${delayMs}ms` } },
  });
  for (const message of ['one', 'two', 'three']) await runJson(app.client, 'helper', message);
  await app.clock.jump(9 * dayMs);
  await app.client.retention.save({ params: { target: 'RunInputs' }, body: { maxAgeDays: 1 } });
  const [run] = await swept(app, 'RunInputs');
  assert.deepEqual([run?.deletedRows, waits], [3, 3]);
});
