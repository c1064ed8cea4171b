import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { storedRows } from '../../support/store.ts';
import { everyRun } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call } from '../wire.ts';
import { put, usedBy, verified } from './quota-storm.ts';

const maxRuns = 4;
const usage = { inputTokens: 20, outputTokens: 10 };

// The host is asked whom a run is for when it has its place, and before anything is recorded of it.
const directory = `
import { existsSync } from 'node:fs';
export default {
  attributionResolver: { resolve: () => (existsSync('away') ? new Promise(() => {}) : Promise.resolve(null)) },
};
`;

const run = ({ url }: ServiceProcess, headers: Readonly<Record<string, string>> = {}) =>
  call(`${url}/api/agents/helper/run`, {
    body: { message: 'Hi', ...(headers['prefer'] === undefined ? { stream: false } : {}) },
    headers,
  });

const holds = (site: Site) => site.aside((storage) => storedRows(storage, 'quota holds'));

for (const Strict of [false, true])
  test(`QUOTA-12 QUOTA-18 kill -9 between the hold of a run and its record, strict ${Strict}: the next start frees it`, async (t) => {
    const site = openSite({
      script: [{ reply: { text: 'Yes.', usage } }],
      service: { Quotas: { Strict } },
      host: { Modules: ['./directory.mjs'] },
    });
    t.after(() => site.close());
    const away = join(site.folder, 'away');
    writeFileSync(join(site.folder, 'directory.mjs'), directory);
    const first = await site.serve();
    await put(first, '/api/agents', 'POST', { name: 'helper', model: { provider: 'demo', model: 'm' } });
    await put(first, '/api/quotas', 'PUT', { agentName: 'helper', period: 'Daily', maxRuns });
    assert.equal((await run(first)).status, 200);
    writeFileSync(away, '');
    // One at once and one for the queue; the host's time limit refuses them, and they come again.
    const asking = [{}, { prefer: 'respond-async' }].map(async (headers) => {
      while ((await run(first, headers).catch(() => null)) !== null);
    });
    await until('two holds of runs that are not recorded', async () => (await holds(site)).length === 2);
    await first.kill();
    await Promise.all(asking);
    const left = await holds(site);
    assert.deepEqual(
      left.map((row) => row['is_admission']),
      [1, 1],
      'the kill came while they were held',
    );
    rmSync(away);
    const next = await site.serve();
    assert.deepEqual(await holds(site), []);
    const recorded = (await everyRun(next)).map(({ id }) => id);
    assert.equal(recorded.length, 1);
    assert.ok(left.every((row) => !recorded.includes(String(row['run_id']))));
    assert.equal((await usedBy(next, 'helper', 'Daily')).runs, 1);
    for (let made = 1; made < maxRuns; made += 1) assert.equal((await run(next)).status, 200);
    const refused = await run(next);
    assert.deepEqual([refused.status, refused.json()['code']], [429, 'quota-exceeded']);
    assert.equal((await usedBy(next, 'helper', 'Daily')).runs, maxRuns);
    assert.equal(await verified(next), true);
    assert.deepEqual(await holds(site), []);
    await next.stop();
  });
