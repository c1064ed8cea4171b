import assert from 'node:assert/strict';
import { basename } from 'node:path';
import type { Frame } from '../../../src/contract/operation.ts';
import { type AppSetup, forEachSharedService, type OpenApp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { administer, databaseUrl, disconnectAll, findPostgres } from '../../support/postgres-server.ts';
import {
  assertWholeLog,
  collect,
  eventsOf,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  readEvents,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

/** Two services on one store; the second has the agents of the first. */
const openTwo = async (open: OpenApp, setup: AppSetup, second: AppSetup = {}): Promise<[TestApp, TestApp]> => {
  const one = await open(setup);
  const { agents: _, ...rest } = setup;
  return [one, await open({ ...rest, ...second, folder: one.folder })];
};

const eventsAfter = async (app: TestApp, runId: string, last: number) => {
  const { frames } = await app.client.runs.events({
    params: { runId },
    headers: last < 0 ? {} : { 'last-event-id': String(last) },
  });
  return frames[Symbol.asyncIterator]();
};

const rest = async (frames: AsyncIterator<Frame>): Promise<Frame[]> => {
  const seen: Frame[] = [];
  for (let next = await frames.next(); next.done !== true; next = await frames.next()) seen.push(next.value);
  return seen;
};

forEachSharedService(
  'RUN-24 RUN-25 the log of a run of another process is followed from any number on, to its end and no further',
  async (open) => {
    const gate = new Gate();
    const [one, two] = await openTwo(open, waitingSetup(gate));
    const { runId, frames } = await stream(one.client, 'helper', 'wait');
    const here = collect(frames);
    await gate.reached;
    const [whole, later] = await Promise.all([eventsAfter(two, runId, -1), eventsAfter(two, runId, 1)]);
    const begun = await Promise.all([readUntil(whole, 'tool.invoking'), readUntil(later, 'tool.invoking')]);
    gate.open();
    const [all, some] = await Promise.all([rest(whole), rest(later)]);
    assert.deepEqual([...begun[0], ...all], await here);
    assertWholeLog([...begun[0], ...all]);
    assert.deepEqual(
      [...begun[1], ...some].map(({ id }) => id),
      (await here).slice(2).map(({ id }) => id),
    );
  },
);

forEachSharedService('RUN-41 a run of another process is not canceled unless that is switched on', async (open) => {
  const gate = new Gate();
  const [one, two] = await openTwo(open, waitingSetup(gate));
  const { runId, frames } = await stream(one.client, 'helper', 'wait');
  await gate.reached;
  const refused = await refusal(two.client.runs.cancel({ params: { runId } }));
  assert.deepEqual([refused.status, refused.code], [409, 'run-not-on-this-instance']);
  gate.open();
  assert.equal(assertWholeLog(await collect(frames)).at(-1)?.type, 'run.completed');
});

const forwarding = { service: { RunCancellation: { Forward: true } } };

forEachSharedService(
  'RUN-41 a cancel is passed on to the process of the run, which stops its tree and names who asked',
  async (open) => {
    const gate = new Gate();
    const [one, two] = await openTwo(open, {
      ...waitingSetup(gate),
      ...forwarding,
      script: [
        { when: { message: '/^wait/' }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
        { when: { call: 1 }, reply: { toolCalls: [{ name: 'call_helper', arguments: { message: 'wait' } }] } },
        { reply: { text: 'Done.' } },
      ],
      agents: [
        { name: 'helper', toolNames: ['wait'] },
        { name: 'lead', callableAgentNames: ['helper'] },
      ],
      host: { AuthToken: 'secret-token-of-the-host-0123456789' },
      token: 'secret-token-of-the-host-0123456789',
    });
    const { runId, frames } = await stream(one.client, 'lead', 'Hi');
    await gate.reached;
    const tail = await eventsAfter(two, runId, -1);
    const accepted = await two.client.runs.cancel({ params: { runId } });
    assert.deepEqual([accepted.status, accepted.body.id], [202, runId]);
    const end = assertWholeLog(await collect(frames)).at(-1);
    assert.deepEqual([end?.type, end?.['cause']], ['run.canceled', 'Requested']);
    assert.deepEqual(eventsOf(await rest(tail)).at(-1), end);
    const [child] = await listRuns(two.client, { rootRunId: runId, includeChildren: true }).then((runs) =>
      runs.filter(({ depth }) => depth === 1),
    );
    assert.deepEqual([child?.status, child?.error?.class], ['Canceled', 'Canceled']);
    const again = await refusal(two.client.runs.cancel({ params: { runId } }));
    assert.equal(again.code, 'run-finished');
    await eventually('the request is forgotten', async () => (await one.store.count('cancels of runs')) === 0 || null);
  },
);

forEachSharedService('RUN-41 a child alone is canceled from elsewhere, and its root goes on', async (open) => {
  const gate = new Gate();
  const [one, two] = await openTwo(open, {
    ...waitingSetup(gate),
    ...forwarding,
    script: [
      { when: { message: '/^wait/' }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
      { when: { call: 1 }, reply: { toolCalls: [{ name: 'call_helper', arguments: { message: 'wait' } }] } },
      { reply: { text: 'Done.' } },
    ],
    agents: [
      { name: 'helper', toolNames: ['wait'] },
      { name: 'lead', callableAgentNames: ['helper'] },
    ],
  });
  const { runId, frames } = await stream(one.client, 'lead', 'Hi');
  await gate.reached;
  const runs = await listRuns(two.client, { rootRunId: runId, includeChildren: true });
  const child = runs.find(({ depth }) => depth === 1);
  assert.equal((await two.client.runs.cancel({ params: { runId: child?.id ?? '' } })).status, 202);
  assert.equal(assertWholeLog(await collect(frames)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(two.client, child?.id ?? '')).status, 'Canceled');
});

forEachSharedService(
  'RUN-41 a run in line for its session is canceled on any instance, and its own one tells its caller',
  async (open) => {
    const gate = new Gate();
    const [one, two] = await openTwo(open, waitingSetup(gate));
    const first = await stream(one.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    const waiting = refusal(runJson(one.client, 'helper', { message: 'Hi', sessionId: 's', concurrency: 'Enqueue' }));
    const queued = await eventually('a run in line', async () =>
      (await listRuns(two.client, { status: 'Queued' })).at(0),
    );
    const { body } = await two.client.runs.cancel({ params: { runId: queued.id } });
    assert.equal(body.status, 'Canceled');
    assert.equal((await waiting).code, 'run-canceled');
    assert.deepEqual(typesOf(await followToEnd(one.client, queued.id)), ['run.queued', 'run.canceled']);
    gate.open();
    assert.equal(assertWholeLog(await collect(first.frames)).at(-1)?.type, 'run.completed');
  },
);

/** A tool that waits at the gate, and one with an effect that counts its calls. */
const twoSteps = (gate: Gate, landed: string[]): AppSetup => ({
  tools: [
    tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    }),
    tool(
      'send',
      async () => {
        landed.push('sent');
        return 'sent';
      },
      { effect: 'External' },
    ),
  ],
  script: [
    { when: { call: 1 }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
    { when: { call: 2 }, reply: { toolCalls: [{ name: 'send', arguments: {} }] } },
    { reply: { text: 'Done.' } },
  ],
  agents: [{ name: 'helper', toolNames: ['wait', 'send'] }],
});

const reconciling = {
  RunReconciliation: { Enabled: true, HeartbeatInterval: '10s', OrphanThreshold: '30s', ScanInterval: '10s' },
};

forEachSharedService(
  'RUN-74 a process whose run was closed elsewhere while it stood still writes nothing more of it, calls nothing, and says so',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    // Times of leases and of signs of life are those of the store, which both have from their clock here.
    const still = testClock();
    const [one, two] = await openTwo(
      open,
      { ...twoSteps(gate, landed), service: { ...reconciling, Quotas: { Enabled: true } }, clock: still },
      { clock: testClock() },
    );
    still.stand();
    const { runId, frames } = await stream(one.client, 'helper', { message: 'Hi', sessionId: 's' });
    await gate.reached;
    const tail = await eventsAfter(two, runId, -1);
    await readUntil(tail, 'tool.invoking');
    for (let beats = 0; beats < 6; beats += 1) await two.clock.advance(10_000);
    const lost = eventsOf(await rest(tail)).at(-1);
    assert.deepEqual([lost?.type, lost?.['error'].type], ['run.failed', 'orphaned']);
    const stored = async () => ({
      runs: await one.store.stored('runs'),
      events: await one.store.stored('run events'),
      calls: await one.store.stored('tool calls'),
      sessions: await one.store.stored('sessions'),
      messages: await one.store.stored('session messages'),
      use: await one.store.stored('quota use'),
      holds: await one.store.stored('quota holds'),
    });
    const before = await stored();
    gate.open();
    const seen = await collect(frames);
    assertWholeLog(seen);
    const [error, end] = seen.slice(-2);
    assert.deepEqual([error?.event, error?.id, end?.event], ['error', undefined, 'run.failed']);
    assert.equal(JSON.parse(error?.data ?? '{}').errorType, 'orphaned');
    await one.close();
    assert.deepEqual(landed, [], 'no further tool is called');
    assert.deepEqual(await stored(), before);
    const told = one.log.filter(({ message }) => message.startsWith('A run was closed or taken over'));
    assert.deepEqual(
      told.map(({ fields }) => fields['runId']),
      [runId],
    );
  },
);

/** Three processes on one store, of which the first one stands still while its run waits in a call. */
const openStanding = async (open: OpenApp) => {
  const gate = new Gate();
  const calls: string[] = [];
  const setup: AppSetup = {
    tools: [
      tool('wait', async (_args, { signal }) => {
        calls.push('wait');
        if (calls.length === 1) await gate.pass(signal);
        return 'waited';
      }),
    ],
    script: [
      { when: { tool: 'wait' }, reply: { text: 'It is over.' } },
      { reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
    ],
    agents: [{ name: 'helper', toolNames: ['wait'] }],
    service: { ...reconciling, RunContinuation: { Enabled: true }, Scheduling: { PollInterval: '1s' } },
  };
  const still = testClock();
  const [one, two] = await openTwo(open, { ...setup, clock: still }, { clock: testClock() });
  const three = await open({ ...setup, agents: [], folder: one.folder, clock: testClock() });
  still.stand();
  const { runId, frames } = await stream(one.client, 'helper', { message: 'Hi', sessionId: 's' });
  await gate.reached;
  return {
    ...{ one, two, three, runId, frames, calls, gate },
    /** No further than to its end: a run that starts while time leaps finds that what it has read is old. */
    closed: () =>
      eventually('the run is closed', async () => {
        await Promise.all([two.clock.advance(1000), three.clock.advance(1000)]);
        return (await getRun(two.client, runId)).status !== 'Running';
      }),
  };
};

forEachSharedService('RUN-76 RUN-78 a lost run is closed once in a fleet, and gone on with once', async (open) => {
  const { two, three, runId, frames, calls, gate, closed } = await openStanding(open);
  await closed();
  assertWholeLog(await readEvents(two.client, runId));
  const next = await eventually('the run that goes on', async () =>
    (await listRuns(two.client, { sessionId: 's' })).find(({ continuedFromRunId }) => continuedFromRunId === runId),
  );
  assert.deepEqual(typesOf(await followToEnd(three.client, next.id)).at(-1), 'run.completed');
  assert.equal((await listRuns(two.client, { sessionId: 's' })).length, 2);
  gate.open();
  const seen = await collect(frames);
  assert.equal(seen.at(-1)?.event, 'run.failed');
  assert.deepEqual(calls, ['wait', 'wait'], 'a reading call is made again, once');
  const { body } = await two.client.sessions.get({ params: { sessionId: 's' } });
  assert.deepEqual(
    body.messages?.map(({ role }) => role),
    ['User', 'Assistant', 'Tool', 'Assistant'],
  );
});

forEachSharedService('RUN-78 a lost run is not gone on with in another agent of its name', async (open) => {
  const { two, three, runId, frames, calls, gate, closed } = await openStanding(open);
  const model = { provider: 'demo', model: 'demo-1' };
  await two.client.agents.remove({ params: { name: 'helper' } });
  await two.client.agents.create({ body: { name: 'helper', model, toolNames: ['wait'] } });
  await closed();
  const job = await eventually('what would go on has failed', async () => {
    await Promise.all([two.clock.advance(1000), three.clock.advance(1000)]);
    const { body } = await two.client.jobs.list({ query: { status: 'Failed' } });
    return body[0];
  });
  assert.deepEqual([job.targetName, job.errorCode], ['helper', 'continuation-blocked']);
  assert.match(job.errorMessage ?? '', /another one by now/);
  gate.open();
  await collect(frames);
  assert.deepEqual(calls, ['wait'], 'the other agent has called nothing');
  assert.deepEqual(
    (await listRuns(two.client, { sessionId: 's' })).map(({ id }) => id),
    [runId],
  );
});

forEachSharedService('RUN-17 the answer of a lost run as JSON is what became of it', async (open) => {
  const gate = new Gate();
  const still = testClock();
  const [one, two] = await openTwo(
    open,
    { ...waitingSetup(gate), service: reconciling, clock: still },
    { clock: testClock() },
  );
  still.stand();
  const answer = refusal(start(one.client, 'helper', { message: 'wait', stream: false }));
  await gate.reached;
  for (let beats = 0; beats < 6; beats += 1) await two.clock.advance(10_000);
  gate.open();
  const problem = await answer;
  assert.deepEqual([problem.status, problem.errorType], [500, 'orphaned']);
});

/** The database of a service is away, as one that is moved to another server; the returned function brings it back. */
const takeDatabaseAway = async ({ folder }: TestApp): Promise<() => Promise<void>> => {
  const name = basename(folder);
  const server = findPostgres() ?? assert.fail('services share a store on a server');
  await administer(`alter database "${name}" with allow_connections false`);
  const renamed = async (): Promise<boolean> => {
    await disconnectAll(databaseUrl(server.url, name));
    return administer(`alter database "${name}" rename to "${name}_away"`).then(
      () => true,
      () => false,
    );
  };
  await eventually('nobody is connected', renamed);
  return async () => {
    await administer(`alter database "${name}_away" rename to "${name}"`);
    await administer(`alter database "${name}" with allow_connections true`);
  };
};

forEachSharedService(
  'RUN-17 RUN-28 a run that ends while the database is away is answered, and its end and its turn are stored when it is back',
  async (open) => {
    const gate = new Gate();
    const [one, two] = await openTwo(open, waitingSetup(gate));
    const { runId, frames } = await stream(one.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    const bringBack = await takeDatabaseAway(one);
    gate.open();
    const seen = await collect(frames);
    assert.deepEqual(
      seen.slice(-2).map(({ event }) => event),
      ['warning', 'run.completed'],
    );
    await bringBack();
    const run = await eventually('the end is stored', async () => {
      // The first calls meet connections that are gone.
      const row = await getRun(two.client, runId).catch(() => null);
      return row?.status === 'Completed' ? row : null;
    });
    const log = await followToEnd(two.client, runId);
    assert.deepEqual([run.eventCount, log.at(-1)?.type], [log.length, 'run.completed']);
    const { body } = await two.client.sessions.get({ params: { sessionId: 's' } });
    assert.deepEqual(
      body.messages?.map(({ role }) => role),
      ['User', 'Assistant', 'Tool', 'Assistant'],
    );
  },
);
