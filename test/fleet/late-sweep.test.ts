import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobRecord } from '../e2e/records.ts';
import { call } from '../e2e/wire.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { deletionsTried, openTransactions, removalFrom } from '../support/postgres-store.ts';
import { skip } from './members.ts';

test('JOB-30 rows that a suspended worker was about to remove stay, when the policy was taken back before another one had the job', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { url: database, drop } = await createDatabase();
  const proxy = await startCuttingProxy(database);
  t.after(async () => {
    proxy.holds = () => false;
    proxy.letGo();
    await proxy.close();
    await drop();
  });
  const fleet = await openFleet({
    processes: 1,
    database: proxy.url,
    service: { Scheduling: { LeaseDuration: '10s', PollInterval: '1s' } },
    script: [{ reply: { text: 'Done.' } }],
  });
  t.after(async () => {
    proxy.letGo();
    await fleet.close();
  });
  const [still] = fleet.members;
  assert.ok(still !== undefined);
  const ask = async (path: string, method: string, body?: object) => {
    const answer = await call(`${fleet.url}${path}`, body === undefined ? { method } : { method, body });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    return answer;
  };
  const runs = async (): Promise<number> => (await ask('/api/runs', 'GET')).json<unknown[]>().length;

  await ask('/api/agents', 'POST', { name: 'helper', model: { provider: 'demo', model: 'm' } });
  for (let count = 0; count < 5; count += 1)
    await ask('/api/agents/helper/run', 'POST', { message: 'Hi', stream: false });
  await ask('/api/retention/Runs', 'PUT', { maxRows: 1 });
  proxy.holds = (piece) => piece.includes(removalFrom('runs'));
  await ask('/api/retention/run?target=Runs', 'POST');
  await eventually('it is about to remove them', () => proxy.isHolding, processMs);
  fleet.pause(still);
  proxy.holds = () => false;

  await fleet.join();
  await ask('/api/retention/Runs', 'PUT', { maxRows: 1, enabled: false });
  await eventually(
    'another worker has ended the job',
    async () => {
      const [job] = (await ask('/api/jobs?handlerKey=acp.retention', 'GET')).json<readonly JobRecord[]>();
      return job?.status === 'Completed' && job.attempt === 2;
    },
    processMs,
  );
  assert.equal(await runs(), 5);
  fleet.resume(still);
  proxy.letGo();
  await eventually(
    'it has tried to',
    async () => (await deletionsTried(database, 'runs')) > 0 && (await openTransactions(database)) === 0,
    processMs,
  );
  assert.equal(await runs(), 5);
  const history = (await ask('/api/retention/history?target=Runs', 'GET')).json<readonly { error: string | null }[]>();
  assert.deepEqual(
    history.map(({ error }) => error),
    [null, 'interrupted'],
    'the sweep that found the policy paused, and the one that it has ended',
  );
});
