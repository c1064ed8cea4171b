// A process of its own: it stops whole servers for a while, and what shares the process with it would wait, too.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { mountDisk } from '../e2e/faults/refusing-disk.ts';
import { everyRun, isIdle } from '../e2e/records.ts';
import type { ServiceProcess } from '../e2e/support.ts';
import { until } from '../e2e/support.ts';
import { type Answer, call, openStream, readLog } from '../e2e/wire.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { type FaultyPostgres, startFaultyPostgres } from '../support/postgres-outage.ts';
import { openConnection, whyNoServer } from '../support/postgres-server.ts';
import { outageSeconds } from './outage-length.ts';

const skip = whyNoServer() ?? false;
const talk = Array.from({ length: 80 }, (_, index) => `word${index} `).join('');
const script = [
  { when: { message: 'talk' }, reply: { text: talk, chunkSize: 8, delay: '20ms' } },
  { reply: { text: 'Done.' } },
];
let made = 0;
/** Agents for which there was no room. */
const unstored = new Set<string>();
/** What has to be stored. */
const createAgent = async (url: string): Promise<Answer> => {
  made += 1;
  const body = { name: `agent-${made}`, instructions: 'x'.repeat(20_000), model: { provider: 'demo', model: 'm' } };
  const answer = await call(`${url}/api/agents`, { body });
  if (/full/.test(answer.text) && answer.status === 503) unstored.add(body.name);
  return answer;
};
/** A request that nobody can serve now is told so in a way that a client knows to come back. */
const assertRefused = (answer: Answer): void => {
  assert.equal(answer.status, 503, answer.text);
  assert.equal(answer.json<{ code: string }>().code, 'store-unavailable');
  assert.ok(Number(answer.headers['retry-after']) > 0);
};
const readiness = async ({ url }: ServiceProcess): Promise<unknown> =>
  (await call(`${url}/health/ready`)).json()['status'];
/** Every process refuses what has to be stored, and says how it does. */
const untilRefused = async ({ members }: Fleet, status: string, detail = /./): Promise<void> => {
  for (const member of members) {
    // The first one may still be about the connection that was cut.
    await until('a refusal that says why', async () => {
      const answer = await createAgent(member.url);
      if (answer.status !== 201) assertRefused(answer);
      return answer.status !== 201 && detail.test(answer.text);
    });
    await until(`readiness to be ${status}`, async () => (await readiness(member)) === status);
  }
};
/** Takes every connection that there is, as programs do that have nothing to do with the service. */
const takeConnections = async (url: string): Promise<{ leave(): Promise<void> }> => {
  const open: { leave(): Promise<void> }[] = [];
  try {
    for (;;) open.push(await openConnection(url));
  } catch (error) {
    assert.equal((error as { code?: string }).code, '53300');
    assert.ok(open.length > 5, 'it had connections');
  }
  return { leave: async () => void (await Promise.all(open.map((one) => one.leave()))) };
};
const terminal = /^run\.(completed|failed|canceled)$/;

describe('a fleet whose database is in trouble', { skip, timeout: 600_000 }, () => {
  let postgres: FaultyPostgres;
  let fleet: Fleet;
  /** Runs whose answer came whole, over all tests. */
  const acknowledged = new Set<string>();

  const ask = async (url = fleet.url): Promise<Answer> => {
    const answer = await call(`${url}/api/agents/talker/run`, { body: { message: 'ask', stream: false } });
    // With a warning it says itself that its record comes later, if at all.
    if (answer.status === 200 && answer.headers['x-acp-warning'] === undefined)
      acknowledged.add(String(answer.headers['x-run-id']));
    return answer;
  };
  const allReady = (): Promise<boolean> =>
    until('every process to be ready again, by itself', async () =>
      (await Promise.all(fleet.members.map(readiness))).every((status) => status === 'Healthy'),
    );

  before(async () => {
    postgres = await startFaultyPostgres();
    fleet = await openFleet({
      processes: 2,
      database: postgres.url,
      script,
      service: { RunReconciliation: { Enabled: true, HeartbeatInterval: '2s', OrphanThreshold: '10s' } },
    });
    const body = { name: 'talker', model: { provider: 'demo', model: 'm' } };
    assert.equal((await call(`${fleet.url}/api/agents`, { body })).status, 201);
    for (const _ of fleet.members) assert.equal((await ask()).status, 200);
  });
  after(async () => {
    await fleet?.close();
    await postgres?.close();
  });
  // Whatever happened, nothing that was acknowledged is lost, and no run is left open.
  afterEach(async () => {
    await allReady();
    assert.equal((await ask()).status, 200);
    const [service] = fleet.members;
    assert.ok(service !== undefined);
    await until('the end of all runs', () => isIdle(service));
    const runs = new Map((await everyRun(service)).map((run) => [run.id, run]));
    const missing = [...acknowledged].filter((id) => runs.get(id)?.status !== 'Completed');
    assert.deepEqual(missing, [], 'answered while nothing could be recorded: the record comes later');
    for (const { id } of [...runs.values()].slice(0, 40)) {
      const log = await readLog(service.url, id);
      assert.deepEqual(
        log.map((frame) => frame.id),
        log.map((_, index) => index),
      );
      assert.equal(log.filter(({ event }) => terminal.test(event)).length, 1);
    }
  });

  test('a database that is killed with -9 is refused by name, and found again when it is back', async () => {
    const stream = await openStream(`${fleet.url}/api/agents/talker/run`, { body: { message: 'talk' } });
    await stream.atLeast(5);
    const shown = [...stream.frames];
    await postgres.crash();
    await untilRefused(fleet, 'Unhealthy');
    for (const member of fleet.members)
      assert.ok(member.log().some(({ level, message }) => level === 'error' && /PostgreSQL/.test(message)));
    await postgres.start();
    await allReady();
    assert.equal(await stream.ended, 'end');
    const log = await readLog(fleet.url, stream.runId);
    // What was shown before had been committed, and is still there; what came later waited for the server.
    assert.deepEqual(log.slice(0, shown.length), shown);
    assert.deepEqual(log, stream.frames);
  });

  test('a restart in an orderly way is passed over, too', async () => {
    await postgres.shutDown();
    await untilRefused(fleet, 'Unhealthy');
    await postgres.start();
  });

  test('every connection is cut at once while runs go on', async () => {
    const streams = await Promise.all(
      Array.from({ length: 6 }, () => openStream(`${fleet.url}/api/agents/talker/run`, { body: { message: 'talk' } })),
    );
    await Promise.all(streams.map((stream) => stream.atLeast(3)));
    for (let round = 0; round < 3; round += 1) await postgres.disconnectAll();
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { runId, frames } of streams) assert.deepEqual(await readLog(fleet.url, runId), frames);
    for (const member of fleet.members)
      assert.ok(!member.log().some(({ message }) => /^Recording of a run failed/.test(message)));
  });

  test('a server that answers nobody for a while is waited for, others are refused meanwhile, and nothing is written twice', async () => {
    const streams = await Promise.all(
      Array.from({ length: 4 }, () => openStream(`${fleet.url}/api/agents/talker/run`, { body: { message: 'talk' } })),
    );
    await Promise.all(streams.map((stream) => stream.atLeast(3)));
    postgres.suspend();
    const suspendedAt = performance.now();
    const caught = Promise.all(Array.from({ length: 4 }, () => ask()));
    let isCaughtOver = false;
    void caught.then(() => {
      isCaughtOver = true;
    });
    // Sent before anybody could know: each waits for as long as a statement may take.
    const early: Promise<Answer>[] = [];
    // Both at once: what runs write is waited for no longer than half a minute.
    const eachRefuses = async (member: ServiceProcess): Promise<void> => {
      await until('readiness to be Unhealthy', async () => (await readiness(member)) === 'Unhealthy');
      await until('the first refusal', async () => {
        const answer = createAgent(member.url);
        early.push(answer);
        const first = await Promise.race([answer, pause(500)]);
        if (first !== undefined) assertRefused(first);
        return first !== undefined;
      });
      // While nobody answers still: a process that has found that out makes nobody wait for as long as a statement may take.
      assertRefused(await createAgent(member.url));
      assertRefused(await call(`${member.url}/api/runs`));
      assertRefused(await ask(member.url));
      // From then on at once: so many, one after another, are told before a statement that was under way is given up. Each
      // would take longer if it had to find out by itself.
      for (let count = 0; count < 12; count += 1) {
        assertRefused(await createAgent(member.url));
        assertRefused(await ask(member.url));
      }
      assert.equal(isCaughtOver, false, 'they were refused at once');
      const unreachable = ({ level, message }: { level: string; message: string }): boolean =>
        level === 'error' && /cannot be reached/.test(message);
      await until('the log to say so', () => member.log().some(unreachable));
    };
    await Promise.all(fleet.members.map(eachRefuses));
    await pause(Math.max(0, outageSeconds(8) * 1000 - (performance.now() - suspendedAt)));
    postgres.wake();
    for (const answer of await caught) if (answer.status !== 200) assertRefused(answer);
    for (const answer of await Promise.all(early)) if (answer.status !== 201) assertRefused(answer);
    for (const { runId, frames, ended } of streams) {
      assert.equal(await ended, 'end');
      assert.deepEqual(await readLog(fleet.url, runId), frames);
    }
  });

  test('a database that has become read-only refuses what writes, and says why', async () => {
    await postgres.setReadonly(true);
    // As after a failover: who is connected is thrown out, and meets a server that takes no writes.
    await postgres.disconnectAll();
    await untilRefused(fleet, 'Degraded', /read-only/);
    const runs = await call(`${fleet.url}/api/runs`);
    assert.equal(runs.status, 200, 'what is stored can still be read');
    await postgres.setReadonly(false);
    await postgres.disconnectAll();
  });

  test('a server with hardly a connection left is waited for or refuses, and ends no process', async () => {
    await postgres.shutDown();
    await postgres.start(['max_connections=5', 'superuser_reserved_connections=0']);
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask()));
    for (const answer of answers) if (answer.status !== 200) assertRefused(answer);
    await postgres.shutDown();
    await postgres.start();
  });

  test('strangers with all connections: who serves refuses and comes back, who starts says why and may start later', async () => {
    for (const member of fleet.members) member.signal('SIGSTOP');
    await postgres.shutDown();
    await postgres.start(['max_connections=40', 'superuser_reserved_connections=0']);
    const strangers = await takeConnections(postgres.url);
    for (const member of fleet.members) member.signal('SIGCONT');
    await untilRefused(fleet, 'Unhealthy');
    for (const member of fleet.members) {
      assertRefused(await call(`${member.url}/api/runs`));
      assertRefused(await ask(member.url));
      assert.ok(member.log().some(({ level, message }) => level === 'error' && /takes no connections/.test(message)));
    }
    await assert.rejects(fleet.join(), /ended with [1-9].*the server has no connection left/s);
    await strangers.leave();
    await allReady();
    const member = await fleet.join();
    await until('its readiness', async () => (await readiness(member)) === 'Healthy');
    await fleet.end(member, 'kill');
  });
});

describe('a fleet whose database has no room left', { skip, timeout: 600_000 }, () => {
  test('what writes is refused by name until there is room, and what is stored can be read', async (context) => {
    const disk = mountDisk(64);
    if (disk === null) return context.skip('this user may not mount a disk of its own');
    // The log of the server lies elsewhere: without room for that it ends itself.
    const postgres = await startFaultyPostgres();
    const url = await postgres.databaseOn(disk.folder);
    const fleet = await openFleet({ processes: 2, database: url, script });
    context.after(async () => {
      await fleet.close();
      await postgres.close();
      disk.remove();
    });
    const body = { name: 'talker', model: { provider: 'demo', model: 'm' } };
    assert.equal((await call(`${fleet.url}/api/agents`, { body })).status, 201);
    await until('the talker at both', async () =>
      (await Promise.all(fleet.members.map(({ url }) => call(`${url}/api/agents/talker`)))).every(
        ({ status }) => status === 200,
      ),
    );
    const [service = assert.fail('nobody serves')] = fleet.members;
    const stream = await openStream(`${service.url}/api/agents/talker/run`, { body: { message: 'talk' } });
    await stream.atLeast(3);
    disk.fill();
    await untilRefused(fleet, 'Degraded', /full/);
    for (const member of fleet.members) {
      assert.equal((await call(`${member.url}/api/runs`)).status, 200);
      assert.ok(member.log().some(({ level, message }) => level === 'error' && /disk .* is full/.test(message)));
    }
    await stream.ended;
    disk.free();
    for (const member of fleet.members)
      await until('readiness to say so', async () => (await readiness(member)) === 'Healthy');
    assert.equal((await createAgent(fleet.url)).status, 201);
    const stored = (await call(`${service.url}/api/agents`)).json<{ name: string }[]>().map(({ name }) => name);
    assert.deepEqual(
      stored.filter((name) => unstored.has(name)),
      [],
      'refused, and stored all the same',
    );
    assert.equal((await call(`${service.url}/api/audit/verify`)).json()['status'], 'Valid');
    await until('the end of all runs', () => isIdle(service));
    // What was shown and is missing was said to be missing.
    const log = await readLog(service.url, stream.runId);
    const shown = stream.frames.filter(({ id }) => id !== null);
    if (stream.frames.some(({ event }) => event === 'warning'))
      assert.equal(log.filter(({ event }) => terminal.test(event)).length, 1);
    else assert.deepEqual(log, shown);
  });
});
