import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSite, type ServiceProcess, type Site, until } from '../e2e/support.ts';
import { call, readLog } from '../e2e/wire.ts';
import { type FaultyPostgres, startFaultyPostgres } from '../support/postgres-outage.ts';
import { executeAt, servedConnections, whyNoStandby } from '../support/postgres-server.ts';

const skip = whyNoStandby() ?? false;
const settings = ['wal_level=replica', 'max_wal_senders=4', 'hot_standby=on'];
const maxConnections = 8;

describe('a store whose history is read from a standby', { skip, timeout: 300_000 }, () => {
  let primary: FaultyPostgres;
  let standby: FaultyPostgres;
  let site: Site;
  let service: ServiceProcess;

  const replica = async () => {
    const answer = await call(`${service.url}/api/diagnostics`);
    return answer.json<{
      storeSharing: { readReplica: { used: boolean; lagMs: number | null; reason: string | null } };
    }>().storeSharing.readReplica;
  };
  const untilUsed = (): Promise<boolean> => until('the replica to be used', async () => (await replica()).used);
  const status = async (): Promise<unknown> => (await call(`${service.url}/health/ready`)).json()['status'];
  const run = async (): Promise<string> => {
    const body = { message: 'ask', stream: false };
    const answer = await call(`${service.url}/api/agents/talker/run`, { body });
    assert.equal(answer.status, 200, answer.text);
    return String(answer.headers['x-run-id']);
  };
  const counted = async (): Promise<number> =>
    (await call(`${service.url}/api/stats`)).json<{ totalRuns: number }>().totalRuns;
  /** What is told of a run, by whatever is read right after its end. */
  const assertThere = async (runId: string): Promise<void> => {
    const record = await call(`${service.url}/api/runs/${runId}`);
    assert.equal(record.json<{ status: string }>().status, 'Completed');
    assert.equal((await readLog(service.url, runId)).at(-1)?.event, 'run.completed');
    assert.ok((await call(`${service.url}/api/runs`)).text.includes(runId));
  };
  const told = (pattern: RegExp): number => service.log().filter(({ message }) => pattern.test(message)).length;
  const away = /^History is read from the server itself/;
  const again = /^History is read from the replica again/;

  before(async () => {
    primary = await startFaultyPostgres(undefined, { settings });
    standby = await startFaultyPostgres(undefined, { settings, source: primary.url });
    site = openSite({
      host: { EnableDiagnosticsEndpoint: true },
      service: {
        Persistence: {
          Provider: 'Postgres',
          Postgres: { ConnectionString: primary.url, ReadReplica: standby.url, MaxConnections: maxConnections },
        },
      },
    });
    service = await site.serve();
    const body = { name: 'talker', model: { provider: 'demo', model: 'm' } };
    assert.equal((await call(`${service.url}/api/agents`, { body })).status, 201);
    await untilUsed();
  });
  after(async () => {
    await site?.close();
    await standby?.close();
    await primary?.close();
  });

  test('what sums up history is read there, and what a caller has just done is not looked for there', async () => {
    await assertThere(await run());
    const before = (await until('the first run to be counted', async () => (await counted()) || null)) as number;
    await executeAt(standby.url, 'select pg_wal_replay_pause()');
    const runId = await run();
    await assertThere(runId);
    // Sums may be behind, as long as that is no more than a bound; the trail never is.
    assert.equal(await counted(), before);
    assert.equal((await replica()).used, true);
    const verified = await call(`${service.url}/api/audit/verify`);
    assert.equal(verified.json<{ status: string }>().status, 'Valid', verified.text);
  });

  test('one that is too far behind is passed over, which is told once, and used again when it has caught up', async () => {
    await run();
    await until('the replica to be passed over', async () => !(await replica()).used);
    const { reason } = await replica();
    assert.match(String(reason), /5000 ms behind/);
    await until('readiness to say so', async () => (await status()) === 'Degraded');
    assert.equal(told(away), 1);
    const now = await counted();
    await run();
    assert.equal(await counted(), now + 1, 'the server itself has it at once');
    await executeAt(standby.url, 'select pg_wal_replay_resume()');
    await untilUsed();
    await until('readiness to say so', async () => (await status()) === 'Healthy');
    assert.equal(told(away), 1);
    assert.equal(told(again), 1);
  });

  test('one that is away is passed over, and no read fails for it', async () => {
    await standby.crash();
    const runId = await run();
    await assertThere(runId);
    assert.ok((await counted()) > 0);
    await until('the replica to be passed over', async () => !(await replica()).used);
    assert.equal(told(away), 2);
    await standby.start();
    await untilUsed();
  });

  test('its connections are among those that the process may have', async () => {
    await Promise.all(Array.from({ length: 30 }, () => Promise.all([run(), counted()])));
    const [there, here] = [await servedConnections(standby.url), await servedConnections(primary.url)];
    assert.ok(there > 0 && there + here <= maxConnections, `${there} at the standby, ${here} at the server`);
  });
});
