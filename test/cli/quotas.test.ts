import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { openCopy } from '../../src/db/open-for-reading.ts';
import { bookElsewhere } from '../features/quotas/quota-calls.ts';
import { storeOptions } from '../support/opened-store.ts';
import type { Outcome } from '../support/warm-program.ts';
import { createFolder } from './support.ts';

test('quotas are set, listed, used, verified and deleted, in process as over HTTP', async (t) => {
  const folder = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const set = await folder.acp(['quotas', 'set', '--agent', 'hello', '--period', 'daily', '--max-runs', '2', '--json']);
  const { id, maxRuns } = JSON.parse(set.stdout) as { id: string; maxRuns: number };
  assert.equal(maxRuns, 2);
  await folder.acp(['quotas', 'set', '--period', 'Monthly', '--max-cost', '0.5', '--disabled']);
  assert.equal((await folder.acp(['quotas', 'set', '--period', 'Weekly', '--max-runs', '1'])).code, 2);
  assert.equal((await folder.acp(['quotas', 'set', '--period', 'Daily'])).code, 2);
  await folder.acp(['run', 'hello', 'Hi']);
  await folder.acp(['run', 'hello', 'Hi']);
  const refused = await folder.acp(['run', 'hello', 'Hi']);
  assert.equal(refused.code, 6);
  assert.match(refused.stderr, /daily run quota of agent 'hello' is used up/);
  const calls = [
    ['quotas', 'list'],
    ['quotas', 'usage'],
    ['quotas', 'usage', '--agent', 'nobody'],
    ['quotas', 'verify'],
    ['quotas', 'verify', '--json'],
  ];
  const local: Outcome[] = [];
  for (const call of calls) local.push(await folder.acp(call));
  assert.match(local[0]?.stdout ?? '', /MAX RUNS/);
  assert.match(local[1]?.stdout ?? '', /\nhello +Daily +\d{4}-\d\d-\d\d +2 of 2 /);
  assert.match(local[3]?.stderr ?? '', /4 counters are the sums of 2 recorded runs/);
  await folder.serve();
  for (const [index, call] of calls.entries()) assert.deepEqual(await folder.acp(call), local[index], call.join(' '));
  const copy = openCopy(storeOptions(join(folder.path, 'data/acp.db')));
  await bookElsewhere(copy, Date.now, false, 1, 'hello', 'UTC');
  await copy.close();
  const overHttp = await folder.acp(['quotas', 'verify']);
  assert.equal(overHttp.code, 5);
  assert.match(overHttp.stdout, /\n?\(all\) +Daily +\d{4}-\d\d-\d\d +2 +27, recorded 26 +0\n/);
  const deleted = await folder.acp(['quotas', 'delete', id]);
  assert.deepEqual([deleted.code, deleted.stdout, deleted.stderr], [0, '', `Deleted quota ${id}.\n`]);
  assert.equal((await folder.acp(['quotas', 'delete', id])).code, 4);
});
