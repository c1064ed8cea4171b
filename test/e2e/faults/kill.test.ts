import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { stringify } from 'yaml';
import { everyJob, type RunRecord, unfinishedRuns } from '../records.ts';
import { openSite, type ServiceProcess, type Site } from '../support.ts';
import { type Answer, call, openStream, readLog, type SseFrame } from '../wire.ts';

const longText = Array.from({ length: 300 }, (_, index) => `word${index} `).join('');

const script = [
  { when: { message: 'talk' }, reply: { text: longText, chunkSize: 8, delay: '5ms' } },
  { when: { message: 'hang' }, reply: { text: 'So far.', stall: true } },
  { when: { message: 'delegate' }, reply: { toolCalls: [{ name: 'call_worker', arguments: { message: 'hang' } }] } },
  { reply: { text: 'Done.' } },
];

const model = { provider: 'demo', model: 'm' };

const startRun = (service: ServiceProcess, agent: string, message: string, body: object = {}) =>
  openStream(`${service.url}/api/agents/${agent}/run`, { body: { message, ...body } });

const queueRun = async (service: ServiceProcess, message: string): Promise<string> => {
  const headers = { prefer: 'respond-async' };
  const answer = await call(`${service.url}/api/agents/talker/run`, { body: { message }, headers });
  assert.equal(answer.status, 202, answer.text);
  return answer.json<{ runId: string }>().runId;
};

const getRun = async (service: ServiceProcess, runId: string): Promise<RunRecord> =>
  (await call(`${service.url}/api/runs/${runId}`)).json<RunRecord>();

const createAgent = async (service: ServiceProcess, name: string, more: object = {}): Promise<Answer> => {
  const answer = await call(`${service.url}/api/agents`, { body: { name, model, ...more } });
  assert.equal(answer.status, 201, answer.text);
  return answer;
};

const types = (frames: readonly SseFrame[]): string[] => frames.map(({ event }) => event);
const assertGapless = (frames: readonly SseFrame[]): void =>
  assert.deepEqual(
    frames.map(({ id }) => id),
    frames.map((_, index) => index),
  );

/** The log after a kill: what the client had, byte for byte, perhaps more, then the one terminal event that explains. */
const assertOrphaned = (received: readonly SseFrame[], log: readonly SseFrame[]): void => {
  assertGapless(log);
  assert.deepEqual(log.slice(0, received.length), received);
  assert.equal(log.at(-1)?.event, 'run.failed');
  assert.equal(types(log).filter((type) => /^run\.(?!queued|started)/.test(type)).length, 1);
  const { error } = JSON.parse(log.at(-1)?.data ?? '') as { error: { class: string; type: string } };
  assert.deepEqual([error.class, error.type], ['Infrastructure', 'orphaned']);
};

const assertOrphanedRow = (run: RunRecord, eventCount: number): void => {
  assert.deepEqual([run.status, run.error?.class, run.error?.type], ['Failed', 'Infrastructure', 'orphaned']);
  assert.notEqual(run.completedAt, null);
  assert.equal(run.eventCount, eventCount);
};

describe('kill -9 while everything is going on', () => {
  let site: Site;
  let service: ServiceProcess;
  let talking: { runId: string; frames: readonly SseFrame[] };
  let inLine: { runId: string; frames: readonly SseFrame[] };
  let delegating: { runId: string; frames: readonly SseFrame[] };
  let executing: string[];
  let waiting: string[];
  const inSession = { sessionId: 'killed-session' };
  const once = { headers: { 'idempotency-key': 'once' }, body: { message: 'hang' } };

  before(async () => {
    site = openSite({ script, service: { Scheduling: { MaxConcurrentJobs: 2 } } });
    service = await site.serve();
    await createAgent(service, 'talker');
    await createAgent(service, 'worker');
    await createAgent(service, 'boss', { callableAgentNames: ['worker'] });
    const first = await startRun(service, 'talker', 'first turn', inSession);
    assert.equal(await first.ended, 'end');

    executing = [await queueRun(service, 'hang'), await queueRun(service, 'hang')];
    for (const runId of executing) {
      const stream = await openStream(`${service.url}/api/runs/${runId}/events`);
      await stream.first('message.delta');
      stream.leave();
    }
    waiting = [await queueRun(service, 'quick'), await queueRun(service, 'quick')];
    const boss = await startRun(service, 'boss', 'delegate');
    await boss.first('child.started');
    const pending = call(`${service.url}/api/agents/talker/run`, once);
    pending.catch(() => undefined);
    const talker = await startRun(service, 'talker', 'talk', inSession);
    const enqueued = await startRun(service, 'talker', 'later', { ...inSession, concurrency: 'Enqueue' });
    await enqueued.first('run.queued');
    await talker.atLeast(12);
    // The last word of the service: what was acknowledged a moment before the end.
    await createAgent(service, 'just-saved', { instructions: 'Kept.' });
    waiting.push(await queueRun(service, 'quick'));
    const ended = await service.kill();
    assert.equal(ended.signal, 'SIGKILL');
    assert.equal(await talker.ended, 'cut');
    await assert.rejects(pending);
    talking = talker;
    inLine = enqueued;
    delegating = boss;
    await site.checkStore();
    writeFileSync(join(site.folder, 'script.yaml'), stringify({ rules: [{ reply: { text: 'Done.' } }] }));
    service = await site.serve();
  });

  after(() => site.close());

  test('RUN-22 RUN-75 a stream goes on after the restart with the frames it had, then says that the run was lost', async () => {
    const log = await readLog(service.url, talking.runId);
    assertOrphaned(talking.frames, log);
    assertOrphanedRow(await getRun(service, talking.runId), log.length);
    const last = talking.frames.length - 1;
    assert.deepEqual(await readLog(service.url, talking.runId, last), log.slice(last + 1));
  });

  test('a lost run takes its children with it', async () => {
    const tree = (await call(`${service.url}/api/runs/${delegating.runId}/tree`)).json<RunRecord[]>();
    assert.equal(tree.length, 2);
    for (const run of tree) {
      const log = await readLog(service.url, run.id);
      assertOrphaned(run.id === delegating.runId ? delegating.frames : [], log);
      assertOrphanedRow(run, log.length);
    }
  });

  test('RUN-8 a run that waited for the session in the process is lost with it', async () => {
    const log = await readLog(service.url, inLine.runId);
    assertOrphaned(inLine.frames, log);
    assert.deepEqual(types(log), ['run.queued', 'run.failed']);
    assertOrphanedRow(await getRun(service, inLine.runId), 2);
  });

  test('RUN-42 a lost run is closed: it cannot be cancelled any more', async () => {
    const answer = await call(`${service.url}/api/runs/${talking.runId}/cancel`, { method: 'POST' });
    assert.deepEqual([answer.status, answer.json()['code']], [409, 'run-finished']);
  });

  test('RUN-9 SESS-3 the session is free, and has what was accepted and said of the turn that was lost', async () => {
    const answer = await call(`${service.url}/api/agents/talker/run`, {
      body: { message: 'next turn', stream: false, ...inSession },
    });
    assert.equal(answer.status, 200, answer.text);
    const session = await call(`${service.url}/api/sessions/${inSession.sessionId}`);
    const { messages } = session.json<{ messages: { interrupted: boolean; contents: { text: string }[] }[] }>();
    const texts = messages.map(({ contents }) => contents[0]?.text ?? '');
    const [partial = ''] = texts.splice(3, 1);
    assert.deepEqual(texts, ['first turn', 'Done.', 'talk', 'next turn', 'Done.']);
    const seen = talking.frames.flatMap(({ event, data }) =>
      event === 'message.delta' ? [(JSON.parse(data) as { text: string }).text] : [],
    );
    assert.ok(partial.startsWith(seen.join('')) && longText.startsWith(partial), partial);
    assert.deepEqual(
      messages.map(({ interrupted }) => interrupted),
      [false, false, false, true, false, false],
    );
  });

  test('RUN-17 queued runs: one that executed is lost, those that waited are done', async () => {
    for (const runId of executing) {
      const log = await readLog(service.url, runId);
      assert.deepEqual(types(log).slice(0, 2), ['run.queued', 'run.started']);
      assertOrphaned([], log);
      assertOrphanedRow(await getRun(service, runId), log.length);
    }
    for (const runId of waiting) {
      const log = await readLog(service.url, runId);
      assertGapless(log);
      assert.equal(log.at(-1)?.event, 'run.completed');
      assert.equal((await getRun(service, runId)).status, 'Completed');
    }
    const jobs = (await everyJob(service)).map(({ status }) => status).sort();
    assert.deepEqual(jobs, ['Completed', 'Completed', 'Completed', 'Failed', 'Failed']);
  });

  test('RUN-19 the idempotency key of the request in progress is free', async () => {
    const answer = await call(`${service.url}/api/agents/talker/run`, once);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['idempotency-replayed'], undefined);
    const again = await call(`${service.url}/api/agents/talker/run`, once);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.equal(again.text, answer.text);
  });

  test('what was answered with 201 is there, and can be changed', async () => {
    const url = `${service.url}/api/agents/just-saved`;
    const saved = (await call(url)).json<{ definition: { version: number; instructions: string } }>();
    assert.deepEqual([saved.definition.version, saved.definition.instructions], [1, 'Kept.']);
    const body = { name: 'just-saved', model, expectedVersion: 1 };
    const changed = await call(url, { method: 'PUT', body });
    assert.equal(changed.status, 200, changed.text);
  });

  const recovered = () => service.log().filter(({ message }) => message.includes('last owner'));

  test('the log of the service says what it found', () => {
    assert.deepEqual(
      recovered().map(({ orphanedRuns, requeuedRuns }) => ({ orphanedRuns, requeuedRuns })),
      // The stream and the one in line for its session, boss and worker, two queued runs, the idempotent one.
      [{ orphanedRuns: 7, requeuedRuns: 0 }],
    );
  });

  test('the store is sound, and an orderly stop leaves nothing to recover', async () => {
    await site.checkStore();
    assert.equal((await service.stop()).code, 0);
    service = await site.serve();
    assert.deepEqual(recovered(), []);
    assert.deepEqual(await unfinishedRuns(service), []);
    assert.equal((await service.stop()).code, 0);
  });
});

test('kill -9 at any frame: each start closes what the one before left, and nothing that was read is lost', async (t) => {
  const site = openSite({ script });
  t.after(() => site.close());
  let service = await site.serve();
  await createAgent(service, 'talker');
  const killed: { runId: string; frames: readonly SseFrame[] }[] = [];
  // Before anything was read, at random places, and several runs at once.
  for (const frames of [0, randomInt(1, 20), randomInt(20, 60)]) {
    const streams = await Promise.all(Array.from({ length: 3 }, () => startRun(service, 'talker', 'talk')));
    await streams[0]?.atLeast(frames);
    await service.kill();
    await Promise.all(streams.map(({ ended }) => ended));
    killed.push(...streams);
    await site.checkStore();
    service = await site.serve();
    for (const run of killed) assertOrphaned(run.frames, await readLog(service.url, run.runId));
  }
  assert.equal((await service.stop()).code, 0);
  await site.checkStore();
});

test('kill -9 right after the answer: completed runs, stored answers and accepted runs are kept', async (t) => {
  const site = openSite({ script });
  t.after(() => site.close());
  let service = await site.serve();
  await createAgent(service, 'talker');
  const keyed = { headers: { 'idempotency-key': 'kept' }, body: { message: 'hello' } };
  const stream = await startRun(service, 'talker', 'hello');
  const [answer, accepted] = await Promise.all([
    call(`${service.url}/api/agents/talker/run`, keyed),
    call(`${service.url}/api/agents/talker/run`, {
      headers: { 'idempotency-key': 'kept-too', prefer: 'respond-async' },
      body: { message: 'hang' },
    }),
    stream.first('run.completed'),
  ]);
  await service.kill();
  await stream.ended;
  await site.checkStore();

  service = await site.serve();
  assert.deepEqual(await readLog(service.url, stream.runId), stream.frames);
  assert.equal((await getRun(service, stream.runId)).status, 'Completed');
  const again = await call(`${service.url}/api/agents/talker/run`, keyed);
  assert.deepEqual([again.status, again.text], [200, answer.text]);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal(accepted.status, 202);
  const run = await getRun(service, accepted.json<{ runId: string }>().runId);
  assert.ok(['Queued', 'Running', 'Failed'].includes(run.status), run.status);
  assert.equal((await service.kill()).signal, 'SIGKILL');
  await site.checkStore();
});

test('RUN-17 RUN-41 a queued run whose cancel was accepted gets no further attempt after a kill', async (t) => {
  const site = openSite({ script, service: { AsyncRun: { MaxAttempts: 3 } } });
  t.after(() => site.close());
  const lost = await site.serve();
  await createAgent(lost, 'talker');
  const runId = await queueRun(lost, 'hang');
  const stream = await openStream(`${lost.url}/api/runs/${runId}/events`);
  await stream.first('message.delta');
  assert.equal((await call(`${lost.url}/api/runs/${runId}/cancel`, { method: 'POST' })).status, 202);
  await lost.kill();
  const service = await site.serve();
  const log = await readLog(service.url, runId);
  assert.equal(log.at(-1)?.event, 'run.canceled');
  assert.equal((await getRun(service, runId)).status, 'Canceled');
});
