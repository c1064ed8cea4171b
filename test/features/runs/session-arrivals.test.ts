import assert from 'node:assert/strict';
import { basename } from 'node:path';
import type { Frame } from '../../../src/contract/operation.ts';
import { type AppSetup, forEachSharedService, type OpenApp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { databaseUrl, findPostgres } from '../../support/postgres-server.ts';
import { holdPlace } from '../../support/postgres-store.ts';
import { calls, decide, openApprovals, pendingOf } from '../approvals/approval-world.ts';
import {
  callsTools,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  tool,
  waitingSetup,
} from './run-calls.ts';

// Of two runs of one session the one that was acknowledged before the other was sent starts first, whichever processes
// have them, whatever happens to those, and however late a worker or the store is with the first one.

const sessionId = 's';
/** A process that works on this lane alone. */
const serving = (lane: string, more: Readonly<Record<string, unknown>> = {}) => ({
  Scheduling: { PollInterval: '1s', Lanes: [lane], ...more },
});

const shared = (one: TestApp, setup: AppSetup): AppSetup => ({ ...setup, agents: [], folder: one.folder });

const queue = ({ client }: TestApp, message: string, lane?: string): Promise<string> =>
  enqueue(client, 'helper', { message, sessionId, concurrency: 'Enqueue', ...(lane === undefined ? {} : { lane }) });

/** Second by second, so that each process writes its heartbeats between those of the others. */
const pass = async (seconds: number, ...apps: readonly TestApp[]): Promise<void> => {
  for (let second = 0; second < seconds; second += 1) for (const { clock } of apps) await clock.advance(1000);
};

const jobOf = async ({ client }: TestApp, id: string) => (await client.jobs.get({ params: { id } })).body.job;

/** Resolves when a worker has looked at a run and left it for later. */
const isLeft = (app: TestApp, id: string): Promise<unknown> =>
  eventually('the job was taken and given back', async () => {
    const { status, scheduledFor, createdAt } = await jobOf(app, id);
    return status === 'Pending' && scheduledFor > createdAt;
  });

const completed = async (app: TestApp, runIds: readonly string[]): Promise<void> => {
  const ends = await Promise.all(runIds.map((runId) => followToEnd(app.client, runId)));
  for (const events of ends) assert.equal(events.at(-1)?.type, 'run.completed');
};

/** What the users said, as the session has it. */
const said = async ({ client }: TestApp): Promise<string[]> => {
  const { body } = await client.sessions.get({ params: { sessionId } });
  return (body.messages ?? []).flatMap(({ role, contents: [part] }) =>
    role === 'User' && part?.type === 'Text' ? [part.text] : [],
  );
};

forEachSharedService(
  'RUN-8 RUN-17 a run that no worker has taken yet is in line, also for the first turn of its session',
  async (open) => {
    const one = await open({ agents: [{ name: 'helper' }], service: serving('prompt') });
    const two = await open(shared(one, { service: serving('prompt') }));
    const first = await queue(one, 'first', 'late');
    const second = await queue(two, 'second', 'prompt');
    await isLeft(two, second);
    assert.equal((await refusal(start(one.client, 'helper', { message: 'now', sessionId }))).code, 'session-busy');
    const third = await stream(two.client, 'helper', { message: 'third', sessionId, concurrency: 'Enqueue' });
    const reader = third.frames[Symbol.asyncIterator]();
    const queued: Frame | undefined = (await readUntil(reader, 'run.queued')).at(-1);
    assert.equal(JSON.parse(queued?.data ?? '').position, 3);
    for (const runId of [first, second, third.runId]) assert.equal((await getRun(one.client, runId)).status, 'Queued');
    const three = await open(shared(one, { service: serving('late') }));
    await completed(three, [first, second, third.runId]);
    assert.deepEqual(await said(two), ['first', 'second', 'third']);
    assert.equal((await runJson(one.client, 'helper', { message: 'last', sessionId })).status, 'Completed');
  },
);

forEachSharedService(
  'RUN-8 a run that stops others comes before those that have not begun, and they follow it',
  async (open) => {
    const one = await open({ agents: [{ name: 'helper' }], service: serving('prompt') });
    const two = await open(shared(one, { service: serving('prompt') }));
    const first = await queue(one, 'first', 'late');
    for (const concurrency of ['Interrupt', 'Rollback'] as const)
      await runJson(two.client, 'helper', { message: concurrency, sessionId, concurrency });
    assert.equal((await getRun(two.client, first)).status, 'Queued');
    await completed(await open(shared(one, { service: serving('late') })), [first]);
    assert.deepEqual(await said(one), ['Interrupt', 'Rollback', 'first']);
  },
);

forEachSharedService('RUN-41 a run that is cancelled before a worker has taken it leaves the line', async (open) => {
  const one = await open({ agents: [{ name: 'helper' }], service: serving('prompt') });
  const two = await open(shared(one, { service: serving('prompt') }));
  const first = await queue(one, 'first', 'late');
  const second = await queue(two, 'second', 'prompt');
  await isLeft(two, second);
  await one.client.runs.cancel({ params: { runId: first } });
  await completed(one, [second]);
  assert.deepEqual(await said(two), ['second']);
});

forEachSharedService(
  'RUN-17 the next attempt of a run comes before a run that was sent after the first, and gets the only worker',
  async (open) => {
    let isBroken = true;
    const shaky = tool('shaky', async () => {
      if (!isBroken) return 'fine';
      isBroken = false;
      throw new Error('no');
    });
    const setup: AppSetup = {
      service: {
        AsyncRun: { MaxAttempts: 2 },
        Tools: { MaxConsecutiveErrors: 0 },
        Scheduling: { PollInterval: '1s', MaxConcurrentJobs: 1 },
      },
      tools: [shaky],
      script: [{ when: { message: '/^second/' }, reply: { text: 'Hello.' } }, ...callsTools('shaky')],
    };
    const one = await open({ ...setup, agents: [{ name: 'helper', toolNames: ['shaky'] }] });
    const client = await open({
      ...shared(one, setup),
      service: { ...setup.service, Scheduling: { RunWorker: false } },
    });
    const first = await queue(one, 'first');
    await isLeft(one, first);
    assert.equal((await getRun(one.client, first)).status, 'Queued');
    const second = await queue(client, 'second');
    await isLeft(one, second);
    await Promise.all([one.clock.jump(13_000), client.clock.jump(13_000)]);
    await completed(one, [first, second]);
    assert.deepEqual(await said(one), ['first', 'second']);
    assert.equal((await jobOf(one, first)).attempt, 2);
  },
);

forEachSharedService(
  'RUN-9 RUN-17 JOB-31 the session of a run whose process is gone is the next attempt’s, which begins within 15 s',
  async (open) => {
    const gate = new Gate();
    const reached: string[] = [];
    const hold = tool('wait', async (_args, { signal }) => {
      reached.push('wait');
      if (reached.length === 1) await gate.pass(signal);
      return 'waited';
    });
    const setup: AppSetup = {
      ...waitingSetup(gate),
      tools: [hold],
      service: {
        AsyncRun: { MaxAttempts: 2 },
        // No poll and no renewal comes in time: the heartbeat of the process tells that it is gone.
        Scheduling: { PollInterval: '10m', MaxConcurrentJobs: 1 },
      },
    };
    const still = testClock();
    const one = await open({ ...setup, clock: still });
    const first = await queue(one, 'wait first');
    await gate.reached;
    const two = await open({ ...shared(one, setup), clock: testClock() });
    await pass(9, one, two);
    // It gives no sign of life from here on, and gets none of what it writes later into the store.
    still.stand();
    const second = await queue(two, 'second');
    await eventually('a worker has the second', async () => (await jobOf(two, second)).status === 'Running');
    await pass(5, two);
    assert.deepEqual(
      [(await getRun(two.client, first)).status, (await getRun(two.client, second)).status],
      ['Running', 'Queued'],
    );
    await pass(10, two);
    await completed(two, [first, second]);
    assert.equal((await jobOf(two, first)).attempt, 2);
    assert.deepEqual(await said(two), ['wait first', 'second']);
    gate.open();
    await one.close();
    assert.deepEqual(await said(two), ['wait first', 'second']);
  },
);

/** Two services of a session whose queued run pauses once the gate is open, and an agent that asks no one for `stay`. */
const openPausing = async (open: OpenApp, first: AppSetup['service'] = {}, second: AppSetup['service'] = {}) => {
  const gate = new Gate();
  const stays = new Gate();
  const more = [
    tool('hold', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'held';
    }),
    tool('stay', async (_args, { signal }) => {
      await stays.pass(signal);
      return 'stayed';
    }),
  ];
  const setups: AppSetup[] = [];
  // The setup alone: its tools are those of all processes.
  await openApprovals(
    async (setup = {}) => {
      setups.push(setup);
      return {} as TestApp;
    },
    { more },
  );
  const [setup = assert.fail('openApprovals opens a service')] = setups;
  const one = await open({ ...setup, service: first });
  const two = await open({ ...shared(one, setup), service: second });
  return { one, two, setup, gate, stays };
};

forEachSharedService(
  'APPR-34 RUN-17 behind a pause, too, a run that a busy worker is late with comes before one sent after it',
  async (open) => {
    const { one, two, setup, gate } = await openPausing(open, serving('prompt'), serving('prompt'));
    const paused = await queue(one, calls(['hold'], ['pay', { amount: 5 }]), 'prompt');
    await gate.reached;
    const later = [await queue(two, 'one', 'late'), await queue(one, 'two', 'prompt')];
    const third = await stream(two.client, 'helper', { message: 'three', sessionId, concurrency: 'Enqueue' });
    gate.open();
    assert.equal((await followToEnd(one.client, paused)).at(-1)?.type, 'run.awaiting-approval');
    await isLeft(two, later[1] ?? '');
    const { continuationRunId } = await decide(two.client, (await pendingOf(two.client))[0]?.id ?? '', true);
    await completed(one, [continuationRunId ?? '']);
    const three = await open({ ...shared(one, setup), service: serving('late') });
    await completed(three, [...later, third.runId]);
    assert.deepEqual((await said(two)).slice(-3), ['one', 'two', 'three']);
  },
);

forEachSharedService(
  'APPR-34 RUN-17 who came first starts first after a pause while the store keeps its place from being written',
  async (open) => {
    const { one, two, gate, stays } = await openPausing(open, { Scheduling: { PollInterval: '1s' } });
    const paused = await queue(one, calls(['hold'], ['pay', { amount: 5 }]));
    await gate.reached;
    const later = [await queue(two, calls(['stay'])), await queue(one, 'two')];
    gate.open();
    assert.equal((await followToEnd(one.client, paused)).at(-1)?.type, 'run.awaiting-approval');
    for (const runId of later) await isLeft(one, runId);
    const url = databaseUrl(findPostgres()?.url ?? '', basename(one.folder));
    const release = await holdPlace(url, sessionId, later[0] ?? '');
    const { continuationRunId } = await decide(two.client, (await pendingOf(two.client))[0]?.id ?? '', true);
    await completed(one, [continuationRunId ?? '']);
    await eventually('one of them has begun', async () => {
      const runs = await Promise.all(later.map((runId) => getRun(one.client, runId)));
      return runs.some(({ startedAt }) => startedAt !== null);
    });
    await release();
    stays.open();
    await completed(two, later);
    assert.deepEqual((await said(one)).slice(-2), [calls(['stay']), 'two']);
  },
);

forEachSharedService(
  'RUN-9 SESS-3 a run that takes the session of a dead process finds its message and its finished tool results there',
  async (open) => {
    const gate = new Gate();
    const setup: AppSetup = {
      ...waitingSetup(gate),
      tools: [
        tool('send', async () => 'sent', { effect: 'External' }),
        tool('wait', async (_args, { signal }) => {
          await gate.pass(signal);
          return 'waited';
        }),
      ],
      script: [
        { when: { message: 'lost', call: 1 }, reply: { toolCalls: [{ name: 'send' }] } },
        { when: { message: 'lost', call: 2 }, reply: { toolCalls: [{ name: 'wait' }] } },
        { reply: { text: 'It is over.' } },
      ],
    };
    const still = testClock();
    const one = await open({ ...setup, clock: still, agents: [{ name: 'helper', toolNames: ['send', 'wait'] }] });
    await stream(one.client, 'helper', { message: 'lost', sessionId });
    await gate.reached;
    still.stand();
    const two = await open({ ...shared(one, setup), clock: testClock() });
    const busy = await refusal(start(two.client, 'helper', { message: 'next', sessionId, stream: false }));
    assert.equal(busy.code, 'session-busy');
    await two.clock.advance(15_000);
    await runJson(two.client, 'helper', { message: 'next', sessionId });
    const { body } = await two.client.sessions.get({ params: { sessionId } });
    const kinds = (body.messages ?? []).map(({ role, interrupted, contents: [part] }) => [
      role,
      part?.type === 'Text' ? part.text : part?.type === 'ToolResult' ? part.result : part?.type,
      interrupted,
    ]);
    assert.deepEqual(kinds, [
      ['User', 'lost', false],
      ['Assistant', 'ToolCall', false],
      ['Tool', 'sent', false],
      ['Assistant', 'ToolCall', true],
      ['User', 'next', false],
      ['Assistant', 'It is over.', false],
    ]);
    gate.open();
    await one.close();
    const after = await two.client.sessions.get({ params: { sessionId } });
    assert.equal(after.body.messages?.length, 6, 'the process that stood still adds nothing');
  },
);

forEachSharedService(
  'RUN-9 JOB-31 a queued run whose process is gone leaves its session, and is closed with its job, within 15 s',
  async (open) => {
    const gate = new Gate();
    const hold = tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    });
    // Neither the poll nor the lease ends in time.
    const setup: AppSetup = {
      ...waitingSetup(gate),
      tools: [hold],
      service: { Scheduling: { PollInterval: '10m', LeaseDuration: '1h' } },
    };
    const still = testClock();
    const one = await open({ ...setup, clock: still });
    const lost = await queue(one, 'wait lost');
    await gate.reached;
    const two = await open({ ...shared(one, setup), clock: testClock() });
    await pass(9, one, two);
    still.stand();
    const next = { message: 'next', sessionId, stream: false };
    assert.equal((await refusal(start(two.client, 'helper', next))).code, 'session-busy');
    await pass(15, two);
    // It may come while the lost run is being closed.
    await runJson(two.client, 'helper', { message: 'next', sessionId, concurrency: 'Enqueue' });
    assert.deepEqual(await said(two), ['wait lost', 'next']);
    const { status, error } = await eventually('the run is closed', async () => {
      const run = await getRun(two.client, lost);
      return run.status === 'Running' ? null : run;
    });
    assert.deepEqual([status, error?.type], ['Failed', 'orphaned']);
    const { status: end, errorCode } = await jobOf(two, lost);
    assert.deepEqual([end, errorCode], ['Failed', 'lease-expired']);
    gate.open();
    await one.close();
    assert.deepEqual(await said(two), ['wait lost', 'next']);
  },
);

forEachSharedService(
  'RUN-9 JOB-28 the session of a lost queued run is free within 15 s, also where no worker serves the lane of its job',
  async (open) => {
    const gate = new Gate();
    const hold = tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    });
    const setup: AppSetup = { ...waitingSetup(gate), tools: [hold] };
    const still = testClock();
    const one = await open({ ...setup, clock: still });
    const lost = await queue(one, 'wait lost');
    await gate.reached;
    const service = { Scheduling: { RunWorker: false } };
    const two = await open({ ...shared(one, setup), service, clock: testClock() });
    await pass(9, one, two);
    still.stand();
    await pass(15, two);
    await runJson(two.client, 'helper', { message: 'next', sessionId });
    assert.deepEqual(await said(two), ['wait lost', 'next']);
    assert.equal((await jobOf(two, lost)).attempt, 1);
    gate.open();
    await one.close();
  },
);
