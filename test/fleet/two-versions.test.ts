// A process of its own: it builds another version of the program.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../migrations/index.ts';
import { everyRun } from '../e2e/records.ts';
import { openSite, type ServiceProcess, until } from '../e2e/support.ts';
import { call, openStream, readLog } from '../e2e/wire.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { previousBuild, whyNoPreviousBuild } from '../support/previous-build.ts';
import { skip as withoutServer } from './members.ts';

const skip = withoutServer || (whyNoPreviousBuild() ?? false);
const limit = 30;

const script = [
  {
    when: { message: 'long' },
    reply: { text: 'one two three four five six', chunkSize: 4, delay: '250ms' },
  },
  { reply: { text: 'Hello.' } },
];

test('the previous version serves on while this one migrates the store, and both serve the same sessions, queues, limits and logs', {
  skip,
  timeout: 240_000,
}, async (t) => {
  const database = await createDatabase();
  const site = openSite({
    script,
    service: {
      Quotas: { Enabled: true, Strict: true, AllowOnStoreFailure: false },
      Persistence: { Provider: 'Postgres', Postgres: { ConnectionString: database.url, MaxConnections: 6 } },
    },
  });
  t.after(async () => {
    await site.close();
    await database.drop();
  });
  const ask = (service: ServiceProcess, agent: string, body: object, headers = {}) =>
    call(`${service.url}/api/agents/${agent}/run`, { body, headers });
  const pending = async (): Promise<readonly string[]> =>
    (JSON.parse((await site.acp(['db', 'status', '--json'])).stdout) as { pending: readonly string[] }).pending;

  const old = await site.serve({ program: previousBuild() });
  for (const name of ['talker', 'limited'])
    assert.equal(
      (await call(`${old.url}/api/agents`, { body: { name, model: { provider: 'demo', model: 'm' } } })).status,
      201,
    );
  const rule = { agentName: 'limited', period: 'Daily', maxRuns: limit };
  const saved = await call(`${old.url}/api/quotas`, { method: 'PUT', body: rule });
  assert.ok(saved.status < 300, saved.text);
  const [newest] = migrations.slice(-1);
  assert.ok((await pending()).includes(newest?.name ?? '?'), 'the previous build has not migrated that far');

  // Under load, and with a run in progress, a process of this version comes, and migrates.
  const running = await openStream(`${old.url}/api/agents/talker/run`, {
    body: { message: 'long', sessionId: 'running' },
  });
  let over = false;
  const answers: string[] = [];
  const load = (async () => {
    while (!over) {
      const answer = await ask(old, 'talker', { message: 'Hi', stream: false });
      assert.equal(answer.status, 200, answer.text);
      answers.push(String(answer.headers['x-run-id']));
    }
  })();
  const current = await site.serve();
  assert.deepEqual(await pending(), []);
  assert.equal(await running.ended, 'end');
  await until('some more answers', () => answers.length > 20);
  over = true;
  await load;

  for (const service of [old, current]) {
    await until('readiness', async () => (await call(`${service.url}/health/ready`)).status === 200);
    const log = await readLog(service.url, running.runId);
    assert.deepEqual(
      log.map(({ id, data }) => [id, data]),
      running.frames.filter(({ id }) => id !== null).map(({ id, data }) => [id, data]),
    );
  }
  // One conversation, each turn at the other one; queued runs of both; a limit that both count.
  for (let turn = 0; turn < 6; turn += 1) {
    const answer = await ask(turn % 2 === 0 ? old : current, 'talker', {
      message: 'Hi',
      sessionId: 's',
      stream: false,
    });
    assert.equal(answer.status, 200, answer.text);
  }
  const session = (await call(`${current.url}/api/sessions/s`)).json();
  assert.deepEqual([session['version'], session['messageCount']], [6, 12]);
  const queued = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      ask(index % 2 === 0 ? old : current, 'talker', { message: 'Hi' }, { prefer: 'respond-async' }),
    ),
  );
  assert.deepEqual(new Set(queued.map(({ status }) => status)), new Set([202]));
  const limited = await Promise.all(
    Array.from({ length: limit + 20 }, (_, index) =>
      ask(index % 2 === 0 ? old : current, 'limited', { message: 'Hi', stream: false }),
    ),
  );
  assert.deepEqual(
    [limited.filter(({ status }) => status === 200).length, limited.filter(({ status }) => status === 429).length],
    [limit, 20],
  );
  // A run of each is stopped by its own, and is seen to be over by the other one.
  for (const [here, there] of [
    [old, current],
    [current, old],
  ] as const) {
    const stream = await openStream(`${here.url}/api/agents/talker/run`, { body: { message: 'long' } });
    await stream.atLeast(2);
    const elsewhere = await call(`${there.url}/api/runs/${stream.runId}/cancel`, { method: 'POST' });
    const own = await call(`${here.url}/api/runs/${stream.runId}/cancel`, { method: 'POST' });
    assert.deepEqual([elsewhere.status, own.status], [409, 202], elsewhere.text + own.text);
    await stream.ended;
    await until('the other one to see its end', async () => {
      const { status } = (await call(`${there.url}/api/runs/${stream.runId}`)).json();
      return status === 'Canceled';
    });
  }
  await until('the end of all queued runs', async () =>
    (await everyRun(current)).every(({ status }) => ['Completed', 'Canceled'].includes(status)),
  );
  const known = new Set((await everyRun(old)).map(({ id }) => id));
  assert.deepEqual(
    answers.filter((id) => !known.has(id)),
    [],
  );
  await site.checkStore();
});
