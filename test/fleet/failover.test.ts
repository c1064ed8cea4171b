// A process of its own: it ends whole servers, and what shares the process with it would wait, too.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { everyRun, isIdle } from '../e2e/records.ts';
import { type ServiceProcess, until } from '../e2e/support.ts';
import { type Answer, call, openStream, readLog } from '../e2e/wire.ts';
import { openFleet } from '../support/fleet.ts';
import { startFaultyPostgres } from '../support/postgres-outage.ts';
import { executeAt, whyNoStandby } from '../support/postgres-server.ts';
import { openStoreLine } from '../support/store-line.ts';

const skip = whyNoStandby() ?? false;
const settings = ['wal_level=replica', 'max_wal_senders=4', 'hot_standby=on'];
const talk = Array.from({ length: 200 }, (_, index) => `word${index} `).join('');
const script = [
  { when: { message: 'talk' }, reply: { text: talk, chunkSize: 8, delay: '20ms' } },
  { reply: { text: 'Done.' } },
];
const readiness = async ({ url }: ServiceProcess): Promise<unknown> =>
  (await call(`${url}/health/ready`)).json()['status'];
const rowsOf = async (url: string, sql: string): Promise<readonly Record<string, unknown>[]> =>
  ((await executeAt(url, sql)) as { rows: Record<string, unknown>[] }).rows;

test('the address of the database comes to lead to its standby, which is promoted: nothing acknowledged is lost, and no process is restarted', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const primary = await startFaultyPostgres(undefined, { settings });
  const standby = await startFaultyPostgres(undefined, { settings, source: primary.url });
  const line = await openStoreLine(primary.url);
  const fleet = await openFleet({
    processes: 2,
    database: line.url,
    script,
    service: { RunReconciliation: { Enabled: true, HeartbeatInterval: '2s', OrphanThreshold: '60s' } },
  });
  t.after(async () => {
    await fleet.close();
    await line.close();
    await standby.close();
    await primary.close();
  });
  const followed = `select 1 from pg_stat_replication where state = 'streaming'`;
  await until('the standby to follow', async () => (await rowsOf(primary.url, followed)).length > 0);
  // A commit is answered once the standby has it, too.
  await executeAt(primary.url, `alter system set synchronous_standby_names = '*'`);
  await executeAt(primary.url, 'select pg_reload_conf()');

  const created: string[] = [];
  const refused: string[] = [];
  const createAgent = async (url: string): Promise<Answer> => {
    const name = `agent-${created.length + refused.length}`;
    const answer = await call(`${url}/api/agents`, { body: { name, model: { provider: 'demo', model: 'm' } } });
    if (answer.status === 201) created.push(name);
    // What may have been made says so.
    else if (!/look whether it was/.test(answer.text)) refused.push(name);
    return answer;
  };
  const talker = { name: 'talker', model: { provider: 'demo', model: 'm' } };
  assert.equal((await call(`${fleet.url}/api/agents`, { body: talker })).status, 201);
  await until('the talker at both', async () =>
    (await Promise.all(fleet.members.map(({ url }) => call(`${url}/api/agents/talker`)))).every(
      ({ status }) => status === 200,
    ),
  );
  const acknowledged: string[] = [];
  const unexpected: string[] = [];
  let over = false;
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!over) {
        const answer = await call(`${fleet.url}/api/agents/talker/run`, { body: { message: 'ask', stream: false } });
        if (answer.status === 200 && answer.headers['x-acp-warning'] === undefined)
          acknowledged.push(String(answer.headers['x-run-id']));
        else if (answer.status !== 200 && answer.status !== 503) unexpected.push(answer.text);
      }
    }),
  );
  const streams = await Promise.all(
    fleet.members.map(({ url }) => openStream(`${url}/api/agents/talker/run`, { body: { message: 'talk' } })),
  );
  await Promise.all(streams.map((stream) => stream.atLeast(3)));
  await until('some answers', () => acknowledged.length > 10);

  await primary.crash();
  line.cut();
  line.lead(standby.url);
  line.mend('forgotten');
  // Until it is promoted it can be read.
  for (const member of fleet.members) {
    await until('a refusal that says why', async () => {
      const answer = await createAgent(member.url);
      assert.equal(answer.status, 503, answer.text);
      return /read-only/.test(answer.text);
    });
    // Its start would wait for the promotion, as what runs in progress write does.
    const asked = await call(`${member.url}/api/agents/talker/run`, { body: { message: 'ask', stream: false } });
    assert.deepEqual([asked.status, asked.json()['code']], [503, 'store-unavailable'], asked.text);
    assert.ok(Number(asked.headers['retry-after']) > 0);
    await until('readiness to be Degraded', async () => (await readiness(member)) === 'Degraded');
    assert.equal((await call(`${member.url}/api/runs`)).status, 200);
    assert.ok(member.log().some(({ message }) => /takes no writes: it is a standby/.test(message)));
  }
  await executeAt(standby.url, 'select pg_promote()');
  for (const member of fleet.members) {
    await until('readiness, by itself', async () => (await readiness(member)) === 'Healthy');
    assert.equal((await createAgent(member.url)).status, 201);
  }
  const before = acknowledged.length;
  await until('further answers', () => acknowledged.length > before + 10);
  over = true;
  await load;
  assert.deepEqual(unexpected, []);

  const [service = assert.fail('nobody serves')] = fleet.members;
  for (const { ended, frames, runId } of streams) {
    assert.equal(await ended, 'end');
    assert.deepEqual(await readLog(service.url, runId), frames);
  }
  await until('the end of all runs', () => isIdle(service));
  const runs = new Map((await everyRun(service)).map(({ id, status }) => [id, status]));
  assert.deepEqual(
    acknowledged.filter((id) => runs.get(id) !== 'Completed'),
    [],
  );
  const agents = (await call(`${service.url}/api/agents`)).json<{ name: string }[]>().map(({ name }) => name);
  assert.deepEqual(
    created.filter((name) => !agents.includes(name)),
    [],
  );
  assert.deepEqual(
    refused.filter((name) => agents.includes(name)),
    [],
  );
  assert.equal((await call(`${service.url}/api/audit/verify`)).json()['status'], 'Valid');
});
