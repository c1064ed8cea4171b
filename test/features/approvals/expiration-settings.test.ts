import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { runJson } from '../runs/run-calls.ts';
import { auditOf, calls, decide, openApprovals, pendingOf } from './approval-world.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

forEachService('APPR-37 without ExpirationEnabled an approval never expires', async (open) => {
  const app = await openApprovals(open, {
    clock: testClock({ at: Date.now() - 40 * dayMs }),
    service: { Approvals: { ExpirationEnabled: false, DefaultExpiration: '1h' } },
  });
  app.clock.stand();
  await runJson(app.client, 'helper', { message: calls(['pay']), sessionId: 's-1' });
  await app.clock.jump(30 * dayMs);
  const [row, ...others] = await pendingOf(app.client);
  assert.deepEqual([row?.status, row?.expiresAt, others], ['Pending', null, []]);
  assert.equal((await decide(app.client, row?.id ?? '', false)).status, 'Rejected');
});

forEachService('APPR-38 a scan stores at most MaxPerScan expired approvals, the oldest first', async (open) => {
  const app = await openApprovals(open, {
    clock: testClock({ at: Date.now() - dayMs }),
    service: { Approvals: { DefaultExpiration: '1h', ScanInterval: '2h', MaxPerScan: 2 } },
  });
  app.clock.stand();
  const runs: string[] = [];
  for (const sessionId of ['s-1', 's-2', 's-3']) {
    await app.clock.advance(1000);
    runs.push((await runJson(app.client, 'helper', { message: calls(['pay']), sessionId })).runId);
  }
  const ids = new Map((await pendingOf(app.client)).map(({ id, runId }) => [`approval:${id}`, runId]));
  const expired = async () => (await auditOf(app, 'approval.expire')).map(({ entity }) => ids.get(entity ?? '')).sort();
  await app.clock.jump(2 * hourMs);
  assert.deepEqual(await expired(), runs.slice(0, 2).sort());
  await app.clock.jump(2 * hourMs);
  assert.deepEqual(await expired(), [...runs].sort());
});
