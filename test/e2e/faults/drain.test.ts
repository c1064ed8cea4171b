import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { everyJob, everyRun } from '../records.ts';
import { openSite, type ServiceProcess, type Site, type SiteSetup, until } from '../support.ts';
import { type Answer, call, type EventStream, openStream, readLog } from '../wire.ts';

const model = { provider: 'demo', model: 'm' };
const script = [
  { when: { message: 'talk' }, reply: { text: 'word '.repeat(60), chunkSize: 10, delay: '21ms' } },
  { when: { message: 'hang' }, reply: { text: 'So far.', stall: true } },
  { when: { message: 'delegate' }, reply: { toolCalls: [{ name: 'call_helper', arguments: { message: 'hang' } }] } },
  { reply: { text: 'Done.' } },
];

const open = async (t: TestContext, service: SiteSetup['service']): Promise<{ site: Site; server: ServiceProcess }> => {
  const site = openSite({ script, service: { Scheduling: { MaxConcurrentJobs: 1 }, ...service } });
  t.after(() => site.close());
  const server = await site.serve();
  for (const agent of [{ name: 'helper' }, { name: 'boss', callableAgentNames: ['helper'] }])
    assert.equal((await call(`${server.url}/api/agents`, { body: { model, ...agent } })).status, 201);
  return { site, server };
};

const runUrl = ({ url }: ServiceProcess, agent = 'helper'): string => `${url}/api/agents/${agent}/run`;
const stream = async (server: ServiceProcess, message: string, agent?: string): Promise<EventStream> => {
  const opened = await openStream(runUrl(server, agent), { body: { message } });
  await opened.first('run.started');
  return opened;
};
const queue = async (server: ServiceProcess, message: string): Promise<string> => {
  const answer = await call(runUrl(server), { body: { message }, headers: { prefer: 'respond-async' } });
  assert.equal(answer.status, 202, answer.text);
  return answer.json<{ runId: string }>().runId;
};
const started = async (server: ServiceProcess, runId: string): Promise<void> => {
  const log = await openStream(`${server.url}/api/runs/${runId}/events`);
  await log.first('message.delta');
  log.leave();
};
const draining = (server: ServiceProcess): Promise<Answer> =>
  until('a service that drains', async () => {
    const answer = await call(`${server.url}/health/ready`);
    return answer.status === 503 && answer;
  });
const errorOf = (opened: EventStream): string =>
  (JSON.parse(opened.frames.at(-1)?.data ?? '') as { error: { type: string } }).error.type;
/** What a start found of the runs of the process before. */
const recovered = (server: ServiceProcess) =>
  server
    .log()
    .filter(({ message }) => message.includes('last owner'))
    .map(({ orphanedRuns, requeuedRuns }) => ({ orphanedRuns, requeuedRuns }));

test('JOB-43 JOB-44 SIGTERM: what runs may finish, nothing new starts, everything else is answered', async (t) => {
  const { site, server } = await open(t, {});
  const [talk, hang] = [await stream(server, 'talk'), await stream(server, 'hang')];
  const executing = await queue(server, 'hang');
  await started(server, executing);
  const waiting = await queue(server, 'quick');
  server.signal('SIGTERM');
  const ready = await draining(server);
  assert.deepEqual([ready.json(), ready.headers['retry-after']], [{ status: 'Draining' }, '1']);
  assert.equal((await call(`${server.url}/health/live`)).status, 200);

  const attempts = [
    { body: { message: 'late' } },
    { body: { message: 'late', stream: false } },
    { body: { message: 'late' }, headers: { prefer: 'respond-async' } },
    { body: { message: 'late' }, headers: { 'idempotency-key': 'late' } },
  ];
  for (const attempt of attempts) {
    const refused = await call(runUrl(server), attempt);
    assert.deepEqual([refused.status, refused.json()['code']], [503, 'draining']);
    assert.match(refused.headers['retry-after'] ?? '', /^\d+$/);
    assert.equal(refused.headers['x-run-id'], undefined);
  }
  assert.equal((await call(`${server.url}/api/agents`, { body: { name: 'late', model } })).status, 201);
  assert.equal((await call(`${server.url}/api/runs/${hang.runId}`)).status, 200);

  assert.equal(await talk.ended, 'end');
  assert.equal(talk.frames.at(-1)?.event, 'run.completed');
  for (const runId of [hang.runId, executing])
    assert.equal((await call(`${server.url}/api/runs/${runId}/cancel`, { method: 'POST' })).status, 202);
  assert.equal(await hang.ended, 'end');
  const ended = await server.ended;
  assert.deepEqual([ended.code, ended.signal], [0, null], ended.stderr);
  await site.checkStore();

  const next = await site.serve();
  assert.deepEqual(recovered(next), [], 'what waits in line was not left behind');
  const log = (await readLog(next.url, waiting)).map(({ event }) => event);
  assert.deepEqual(log.slice(0, 2), ['run.queued', 'run.started'], 'it was in line');
  assert.equal(log.at(-1), 'run.completed');
  const ends = new Map((await everyRun(next)).map(({ id, status }) => [id, status]));
  assert.deepEqual(
    [talk.runId, hang.runId, executing, waiting].map((runId) => ends.get(runId)),
    ['Completed', 'Canceled', 'Canceled', 'Completed'],
  );
  assert.equal(ends.size, 4);
  assert.equal((await next.stop()).code, 0);
});

test('JOB-45 RUN-79 after the timeout the rest ends as shutdown, and its readers are told', async (t) => {
  const { site, server } = await open(t, { Drain: { Timeout: '100ms' } });
  const session = { sessionId: 'interrupted' };
  const [hang, boss] = [await stream(server, 'hang'), await stream(server, 'delegate', 'boss')];
  const child = JSON.parse((await boss.first('child.started')).data) as { childRunId: string };
  await started(server, child.childRunId);
  const json = call(runUrl(server), { body: { message: 'hang', stream: false, ...session } });
  const queued = await queue(server, 'hang');
  await started(server, queued);
  await until('the record of every run', async () => (await everyRun(server)).length === 5);
  server.signal('SIGINT');
  const ended = await server.ended;
  assert.deepEqual([ended.code, ended.signal], [0, null], ended.stderr);
  for (const opened of [hang, boss]) {
    assert.equal(await opened.ended, 'end');
    assert.deepEqual(
      opened.frames.slice(-2).map(({ event, id }) => [event, id === null]),
      [
        ['error', true],
        ['run.failed', false],
      ],
    );
    assert.equal(errorOf(opened), 'shutdown');
  }
  const answer = await json;
  assert.deepEqual([answer.status, answer.json()['code'], answer.json()['errorType']], [503, 'draining', 'shutdown']);
  assert.match(answer.headers['retry-after'] ?? '', /^\d+$/);
  await site.checkStore();

  const next = await site.serve();
  const ends = (await everyRun(next)).map(({ status, error }) => [status, error?.type]);
  assert.deepEqual(ends, Array(5).fill(['Failed', 'shutdown']));
  const jobs = (await everyJob(next)).map(({ status, errorCode }) => [status, errorCode]);
  assert.deepEqual(jobs, [['Failed', 'shutdown']]);
  const again = await call(runUrl(next), { body: { message: 'hello', stream: false, ...session } });
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(recovered(next), []);
  assert.equal((await next.stop()).code, 0);
});

test('JOB-46 a second signal ends the process at once, and the next start explains the rest', async (t) => {
  const { site, server } = await open(t, { Drain: { Timeout: '10m' } });
  let current = server;
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    const hang = await stream(current, 'hang');
    current.signal(signal);
    await draining(current);
    current.signal(signal);
    assert.equal((await current.ended).code, code);
    assert.equal(await hang.ended, 'cut');
    await site.checkStore();
    current = await site.serve();
    const log = await readLog(current.url, hang.runId);
    assert.match(log.at(-1)?.data ?? '', /"type":"orphaned"/);
  }
  assert.equal((await current.stop()).code, 0);
});

test('JOB-46 without a drain a signal ends the runs at once, in order', async (t) => {
  const { site, server } = await open(t, { Drain: { Enabled: false } });
  const hang = await stream(server, 'hang');
  assert.equal((await server.stop()).code, 0);
  assert.equal(await hang.ended, 'end');
  assert.equal(errorOf(hang), 'shutdown');
  await site.checkStore();
});
