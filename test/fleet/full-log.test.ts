// A process of its own: it fills a disk, and ends a whole server with it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { mountDisk } from '../e2e/faults/refusing-disk.ts';
import { everyRun, isIdle } from '../e2e/records.ts';
import type { ServiceProcess } from '../e2e/support.ts';
import { call, openStream, readLog } from '../e2e/wire.ts';
import { eventually, inTime, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { startFaultyPostgres } from '../support/postgres-outage.ts';
import { whyNoServer } from '../support/postgres-server.ts';

const readiness = async ({ url }: ServiceProcess): Promise<unknown> =>
  (await call(`${url}/health/ready`)).json()['status'];

test('a server whose write-ahead log has no room left ends itself: nothing acknowledged is lost, and processes go on once it is back', {
  skip: whyNoServer() ?? false,
  timeout: 360_000,
}, async (context) => {
  const disk = mountDisk(24);
  if (disk === null) return context.skip('this user may not mount a disk of its own');
  const postgres = await startFaultyPostgres(undefined, {
    logFolder: disk.folder,
    // Files of the log that are no longer needed are removed, so that the next one needs room.
    settings: ['min_wal_size=2MB', 'max_wal_size=4MB', 'wal_recycle=off'],
  });
  const fleet = await openFleet({
    processes: 2,
    database: postgres.url,
    script: [
      { when: { message: 'talk' }, reply: { text: 'word '.repeat(200), chunkSize: 8, delay: '20ms' } },
      { reply: { text: 'Done.' } },
    ],
  });
  context.after(async () => {
    disk.free();
    await fleet.close();
    await postgres.close();
    disk.remove();
  });
  const [service = assert.fail('nobody serves')] = fleet.members;
  const acknowledged = { agents: new Set<string>(), runs: new Set<string>() };
  let made = 0;
  /** False: it was refused. */
  const createAgent = async (): Promise<boolean> => {
    made += 1;
    const name = `agent-${made}`;
    // As many bytes as they are in the log, too.
    const instructions = randomBytes(10_000).toString('hex');
    const answer = await call(`${fleet.url}/api/agents`, {
      body: { name, instructions, model: { provider: 'demo', model: 'm' } },
    });
    if (answer.status === 201) acknowledged.agents.add(name);
    else assert.deepEqual([answer.status, answer.json()['code']], [503, 'store-unavailable'], answer.text);
    return answer.status === 201;
  };
  const ask = async (): Promise<void> => {
    const answer = await call(`${fleet.url}/api/agents/agent-1/run`, { body: { message: 'Hi', stream: false } });
    if (answer.status === 200 && answer.headers['x-acp-warning'] === undefined)
      acknowledged.runs.add(String(answer.headers['x-run-id']));
  };

  assert.ok(await createAgent());
  await ask();
  const stream = await openStream(`${service.url}/api/agents/agent-1/run`, { body: { message: 'talk' } });
  await stream.atLeast(3);
  disk.fill();
  let ended = false;
  // One that still finds room for its recovery comes back, and ends at the next change; who waits for it takes half a minute each time.
  const end = inTime('the server ends itself', postgres.gone(), 3 * processMs).finally(() => {
    ended = true;
  });
  // It is awaited below.
  end.catch(() => undefined);
  // Each change takes 20 KB of the log.
  for (let count = 0; !ended && count < 1000; count += 1) await Promise.all([createAgent(), ask()]);
  await end;
  for (const member of fleet.members) {
    await eventually('readiness says so', async () => (await readiness(member)) === 'Unhealthy', processMs);
    assert.ok(member.log().some(({ level, message }) => level === 'error' && /PostgreSQL/.test(message)));
  }
  assert.equal(await createAgent(), false);

  disk.free();
  await postgres.start();
  for (const member of fleet.members)
    await eventually('it is ready again, by itself', async () => (await readiness(member)) === 'Healthy', processMs);
  assert.ok(await createAgent());
  await stream.ended;
  await eventually('the end of all runs', () => isIdle(service), processMs);
  for (const name of acknowledged.agents)
    assert.equal((await call(`${service.url}/api/agents/${name}`)).status, 200, `${name} was acknowledged`);
  const runs = new Map((await everyRun(service)).map((run) => [run.id, run.status]));
  assert.deepEqual(
    [...acknowledged.runs].filter((id) => runs.get(id) !== 'Completed'),
    [],
  );
  assert.equal((await call(`${service.url}/api/audit/verify`)).json()['status'], 'Valid');
  // What was shown and is missing was said to be missing.
  const log = await readLog(service.url, stream.runId);
  if (!stream.frames.some(({ event }) => event === 'warning'))
    assert.deepEqual(
      log,
      stream.frames.filter(({ id }) => id !== null),
    );
});
