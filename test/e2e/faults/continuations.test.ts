import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { everyJob, everyRun, type JobRecord, ledger, type RunRecord, unfinishedTurns } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call, openStream, readLog, type SseFrame } from '../wire.ts';

interface Approval {
  readonly id: string;
  readonly runId: string;
  readonly status: string;
  readonly continuationRunId: string | null;
}

/** What the outside world sees of the tools: every call that reached it, and those that it has not answered. */
interface World {
  readonly hits: { readonly path: string; readonly key: string }[];
  readonly held: ServerResponse[];
  /** While true no call is answered. */
  holds: boolean;
  readonly url: string;
}

const openWorld = async (t: TestContext): Promise<World> => {
  const hits: World['hits'] = [];
  const held: ServerResponse[] = [];
  const world = { hits, held, holds: false, url: '' };
  const server = createServer((request, response) => {
    hits.push({ path: request.url ?? '', key: String(request.headers['idempotency-key']) });
    if (world.holds) held.push(response);
    else response.setHeader('content-type', 'text/plain').end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  world.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return world;
};

const sessionId = 'order-7';
const asks = { when: { message: '/^pay/' }, reply: { toolCalls: [{ name: 'pay', arguments: {} }] } };
const saves = { when: { message: '/^save/' }, reply: { toolCalls: [{ name: 'save', arguments: {} }] } };
const hangs = { when: { message: 'hang' }, reply: { text: 'So far.', stall: true } };
const afterTool = (reply: object) => ['pay', 'save'].map((tool) => ({ when: { tool }, reply }));
const rest = [hangs, asks, saves, { reply: { text: 'Hello.' } }];
const script = [...afterTool({ text: 'Done: {{last}}' }), ...rest];
// After its tool the model says a word and then nothing more.
const stalled = [...afterTool({ text: 'Let me see.', stall: true }), ...rest];

const openShop = async (
  t: TestContext,
  world: World,
  rules: readonly object[],
  service: object = {},
): Promise<Site> => {
  const site = openSite({
    script: rules as never,
    host: { Tools: ['tools.yaml'] },
    service: { Egress: { AllowPrivateNetworkTargets: true }, Scheduling: { MaxConcurrentJobs: 2 }, ...service },
  });
  t.after(() => site.close());
  const tool = (name: string, more: object) => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties: {} },
    request: { method: 'POST', url: `${world.url}/${name}` },
    ...more,
  });
  const tools = [
    tool('pay', { effect: 'Destructive', requiresApproval: true }),
    tool('save', { effect: 'Destructive' }),
  ];
  writeFileSync(join(site.folder, 'tools.yaml'), tools.map((one) => stringify(one)).join('---\n'));
  return site;
};

const useScript = (site: Site, rules: readonly object[]): void =>
  writeFileSync(join(site.folder, 'script.yaml'), stringify({ rules }));

const createAgent = async ({ url }: ServiceProcess): Promise<void> => {
  const body = { name: 'clerk', model: { provider: 'demo', model: 'm' }, toolNames: ['pay', 'save'] };
  const answer = await call(`${url}/api/agents`, { body });
  assert.equal(answer.status, 201, answer.text);
};

const queue = async ({ url }: ServiceProcess, body: object): Promise<string> => {
  const answer = await call(`${url}/api/agents/clerk/run`, { body, headers: { prefer: 'respond-async' } });
  assert.equal(answer.status, 202, answer.text);
  return answer.json<{ runId: string }>().runId;
};

const runOf = async ({ url }: ServiceProcess, id: string): Promise<RunRecord> =>
  (await call(`${url}/api/runs/${id}`)).json<RunRecord>();

const runsOfSession = async ({ url }: ServiceProcess): Promise<RunRecord[]> =>
  (await call(`${url}/api/runs?sessionId=${sessionId}`)).json<RunRecord[]>();

const decide = async ({ url }: ServiceProcess, id: string): Promise<Approval> => {
  const answer = await call(`${url}/api/approvals/${id}/decide`, { body: { approved: true } });
  assert.equal(answer.status, 200, answer.text);
  return answer.json<Approval>();
};

/** A connection that broke is no answer; a wrong answer is a failure. */
const cutOff = (error: unknown): null => {
  if (error instanceof assert.AssertionError) throw error;
  return null;
};

/** A queued run that has asked in the mailbox. */
const askInMailbox = async (service: ServiceProcess): Promise<{ source: string; approval: string }> => {
  const source = await queue(service, { message: 'pay', sessionId });
  assert.equal((await readLog(service.url, source)).at(-1)?.event, 'run.awaiting-approval');
  const [row] = (await call(`${service.url}/api/approvals/pending`)).json<Approval[]>();
  return { source, approval: row?.id ?? assert.fail('nothing is pending') };
};

const attempts = (log: readonly SseFrame[]): number[] =>
  log.flatMap(({ event, data }) =>
    event === 'run.started' ? [(JSON.parse(data) as { attempt: number }).attempt] : [],
  );

/** Resolves once the run has told the model's first word after its tool. */
const reachesModel = async (service: ServiceProcess, runId: string, after?: number): Promise<number> => {
  const stream = await openStream(`${service.url}/api/runs/${runId}/events`, {
    headers: after === undefined ? {} : { 'last-event-id': String(after) },
  });
  const { id } = await stream.first('message.delta');
  stream.leave();
  return id ?? 0;
};

test('APPR-28 APPR-31 APPR-32 kill -9 between the decision and its run: the next start continues, once', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, script);
  let service = await site.serve();
  await createAgent(service);
  const { source, approval } = await askInMailbox(service);
  // Both places of the worker are taken, so that what the decision queues cannot begin.
  for (const runId of [await queue(service, { message: 'hang' }), await queue(service, { message: 'hang' })])
    await reachesModel(service, runId);
  const { continuationRunId } = await decide(service, approval);
  const next = continuationRunId ?? assert.fail('no continuation');
  assert.equal((await runOf(service, next)).status, 'Queued');
  await service.kill();
  await site.checkStore();
  assert.deepEqual(world.hits, []);

  service = await site.serve();
  const log = await readLog(service.url, next);
  assert.equal(log.at(-1)?.event, 'run.completed');
  assert.deepEqual(attempts(log), [1]);
  assert.equal(world.hits.length, 1);
  assert.equal((await decide(service, approval)).continuationRunId, next, 'APPR-26 the same answer');
  const runs = await runsOfSession(service);
  assert.deepEqual(
    runs.map(({ id, status, continuedFromRunId }) => [id, status, continuedFromRunId]),
    [
      [next, 'Completed', source],
      [source, 'AwaitingApproval', null],
    ],
  );
  assert.equal((await service.stop()).code, 0);
  service = await site.serve();
  assert.equal((await runsOfSession(service)).length, 2);
  assert.equal(world.hits.length, 1, 'another start repeats nothing');
});

test('APPR-28 APPR-29 RUN-78 kill -9 while decisions are made: one continuation each, and no call twice', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, script, { Scheduling: { MaxConcurrentJobs: 4 } });
  let service = await site.serve();
  await createAgent(service);
  const sources: string[] = [];
  const asked = new Map<string, string>();
  for (let round = 0; round < 3; round += 1) {
    for (const name of ['a', 'b', 'c'])
      sources.push(await queue(service, { message: 'pay', sessionId: `${name}-${round}` }));
    for (const source of sources) await readLog(service.url, source);
    const rows = (await call(`${service.url}/api/approvals/pending`)).json<Approval[]>();
    for (const { id, runId } of rows) asked.set(id, runId);
    // Two clients for each, of which the kill may leave one, both or none with an answer.
    const answers = rows.flatMap(({ id }) =>
      [decide(service, id), decide(service, id)].map((one) => one.catch(cutOff)),
    );
    await pause(randomInt(40));
    await service.kill();
    const told = (await Promise.all(answers)).filter((answer) => answer !== null);
    service = await site.serve();
    for (const { id, continuationRunId } of told) {
      const now = (await call(`${service.url}/api/approvals/${id}`)).json<Approval>();
      assert.deepEqual([now.status, now.continuationRunId], ['Approved', continuationRunId], 'what was told is kept');
    }
  }
  // What no answer came for is decided now; the same decision again completes what had stopped half-way.
  for (const [id, source] of asked) {
    const next = (await decide(service, id)).continuationRunId ?? assert.fail('no continuation');
    const end = (await readLog(service.url, next)).at(-1);
    assert.match(end?.event ?? '', /^run\.(completed|failed)$/);
    const from = (await everyRun(service)).filter(({ continuedFromRunId }) => continuedFromRunId === source);
    assert.deepEqual(
      from.map(({ id: run }) => run),
      [next],
    );
  }
  assert.deepEqual([...asked.values()].sort(), sources.toSorted());
  const keys = world.hits.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, 'no approved call was made twice');
  const settled = (await ledger(site, await everyRun(service))).filter(({ state }) => state === 'Settled');
  assert.ok(settled.length <= keys.length);
  await site.checkStore();
});

test('RUN-78 APPR-33 kill -9 while the approved call is out: it is not made again, and the record says so', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, script, { AsyncRun: { MaxAttempts: 3 } });
  let service = await site.serve();
  await createAgent(service);
  const { approval } = await askInMailbox(service);
  world.holds = true;
  const next = (await decide(service, approval)).continuationRunId ?? '';
  await until('the call', () => world.hits.length === 1);
  await service.kill();
  world.holds = false;

  service = await site.serve();
  const log = await readLog(service.url, next);
  assert.equal(log.at(-1)?.event, 'run.failed');
  const { error } = await runOf(service, next);
  assert.equal(error?.type, 'orphaned');
  assert.match(error?.message ?? '', /"pay" \(Destructive\)/);
  assert.equal(world.hits.length, 1);
  assert.deepEqual(
    (await ledger(site, [{ id: next }])).map(({ tool_name, state }) => [tool_name, state]),
    [['pay', 'Unknown']],
  );
  assert.deepEqual((await call(`${service.url}/api/approvals/pending`)).json(), []);
  // The session takes its next message, and the model hears what is known of the call.
  const body = { message: 'and now?', sessionId, stream: false };
  const answer = await call(`${service.url}/api/agents/clerk/run`, { body });
  assert.equal(answer.status, 200, answer.text);
  const detail = (await call(`${service.url}/api/sessions/${sessionId}`)).text;
  assert.match(detail, /The outcome of the call is unknown/);
  assert.equal(world.hits.length, 1);
});

test('RUN-17 RUN-77 JOB-34 a continuation that is lost goes on in its log while attempts are left, then fails', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, stalled, { AsyncRun: { MaxAttempts: 2 } });
  let service = await site.serve();
  await createAgent(service);
  const { source, approval } = await askInMailbox(service);
  const next = (await decide(service, approval)).continuationRunId ?? '';
  const first = await reachesModel(service, next);
  await service.kill();
  service = await site.serve();
  const second = await reachesModel(service, next, first);
  assert.ok(second > first);
  assert.equal((await runOf(service, next)).status, 'Running');
  await service.kill();
  service = await site.serve();
  const log = await readLog(service.url, next);
  assert.deepEqual(attempts(log), [1, 2]);
  assert.deepEqual(
    log.map(({ id }) => id),
    log.map((_, index) => index),
  );
  const { status, error, continuedFromRunId } = await runOf(service, next);
  assert.deepEqual([status, error?.type, continuedFromRunId], ['Failed', 'orphaned', source]);
  const { job } = (await call(`${service.url}/api/jobs/${next}`)).json<{ job: JobRecord }>();
  assert.deepEqual([job.status, job.attempt, job.errorCode], ['Failed', 2, 'lease-expired']);
  assert.deepEqual(
    world.hits.map(({ path }) => path),
    ['/pay'],
  );
  assert.deepEqual(await unfinishedTurns(site), []);
});

test('RUN-17 RUN-77 a lost continuation completes in its second attempt without the call that was settled', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, stalled, { AsyncRun: { MaxAttempts: 2 } });
  let service = await site.serve();
  await createAgent(service);
  const { approval } = await askInMailbox(service);
  const next = (await decide(service, approval)).continuationRunId ?? '';
  await reachesModel(service, next);
  await service.kill();
  useScript(site, script);
  service = await site.serve();
  const log = await readLog(service.url, next);
  assert.deepEqual([attempts(log), log.at(-1)?.event], [[1, 2], 'run.completed']);
  assert.match(log.at(-1)?.data ?? '', /Done: ok/);
  assert.equal(world.hits.length, 1);
});

test('RUN-76 RUN-77 a lost run of a session goes on in a new run, which makes no settled call again', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, stalled, {
    RunReconciliation: { Enabled: true },
    RunContinuation: { Enabled: true, MaxAttempts: 1 },
  });
  let service = await site.serve();
  await createAgent(service);
  const source = await openStream(`${service.url}/api/agents/clerk/run`, { body: { message: 'save', sessionId } });
  await source.first('message.delta');
  await service.kill();
  assert.equal(await source.ended, 'cut');
  useScript(site, script);
  service = await site.serve();
  const sourceLog = await readLog(service.url, source.runId);
  assert.deepEqual(sourceLog.slice(0, source.frames.length), source.frames);
  assert.equal(sourceLog.at(-1)?.event, 'run.failed');
  const next = await until('the run that goes on', async () =>
    (await runsOfSession(service)).find(({ id }) => id !== source.runId),
  );
  const log = await readLog(service.url, next.id);
  assert.equal(log[0]?.id, 0, 'a log of its own');
  assert.deepEqual([log[0]?.event, log.at(-1)?.event], ['run.started', 'run.completed']);
  const record = await runOf(service, next.id);
  assert.deepEqual([record.status, record.continuedFromRunId], ['Completed', source.runId]);
  assert.equal(world.hits.length, 1);
  const kinds = (await call(`${service.url}/api/sessions/${sessionId}`)).json<{
    messages: { role: string; contents: { type: string }[] }[];
  }>();
  assert.deepEqual(
    kinds.messages.map(({ role }) => role),
    ['User', 'Assistant', 'Tool', 'Assistant'],
    'the session holds the whole turn once',
  );
  assert.deepEqual(await unfinishedTurns(site), []);
});

test('RUN-76 a run is continued no more often than the setting says', async (t) => {
  const world = await openWorld(t);
  const site = await openShop(t, world, stalled, {
    RunReconciliation: { Enabled: true },
    RunContinuation: { Enabled: true, MaxAttempts: 1 },
  });
  let service = await site.serve();
  await createAgent(service);
  const source = await openStream(`${service.url}/api/agents/clerk/run`, { body: { message: 'save', sessionId } });
  await source.first('message.delta');
  await service.kill();
  service = await site.serve();
  const next = await until('the run that goes on', async () =>
    (await runsOfSession(service)).find(({ id }) => id !== source.runId),
  );
  await reachesModel(service, next.id);
  await service.kill();
  service = await site.serve();
  const [job] = await until('the end of both continuations', async () => {
    const jobs = await everyJob(service, { handlerKey: 'acp.run-continuation' });
    return jobs.length === 2 && jobs.every(({ status }) => status === 'Failed') && jobs;
  });
  assert.equal(job?.errorCode, 'continuation-blocked');
  assert.equal((await runOf(service, next.id)).error?.type, 'orphaned');
  assert.equal((await runsOfSession(service)).length, 2);
  assert.equal(world.hits.length, 1);
  assert.deepEqual(await unfinishedTurns(site), []);
});
