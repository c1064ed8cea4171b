import assert from 'node:assert/strict';
import { type AppSetup, forEachSharedService, type OpenApp, type TestApp } from '../../support/app.ts';
import { type TestClock, testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { mcpSetup, rawServer, save } from '../mcp-servers/mcp-world.ts';
import {
  assertWholeLog,
  collect,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  refusal,
  runJson,
  stream,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

// Runs whose callers wait for them, in line for their session or at a guard before they begin, and what another process makes of them.

interface World {
  readonly one: TestApp;
  readonly two: TestApp;
  /** Of the guard that looks at the message `look`, whatever becomes of the run. */
  readonly guard: Gate;
  readonly tool: Gate;
}

const openWorld = async (
  open: OpenApp,
  more: AppSetup = {},
  clocks: readonly [TestClock, TestClock] | null = null,
): Promise<World> => {
  const [guard, gate] = [new Gate(), new Gate()];
  const { agents, ...shared }: AppSetup = {
    ...waitingSetup(gate),
    ...more,
    module: {
      guards: [
        {
          name: 'gate',
          async inspect({ text }: { readonly text: string }) {
            if (text === 'look') await guard.pass();
            return { decision: 'Allow' } as const;
          },
        },
      ],
    },
    service: { ContentGuard: { GuardTimeout: '60s' }, ...more.service },
  };
  const [here, there] = clocks?.map((clock) => ({ clock })) ?? [{}, {}];
  const one = await open({ ...shared, ...here, agents: agents ?? [] });
  const service = { ...shared.service, Scheduling: { RunWorker: false } };
  return { one, two: await open({ ...shared, ...there, service, folder: one.folder }), guard, tool: gate };
};

const errorsIn = ({ log }: TestApp): readonly unknown[] =>
  log.filter(({ level }) => level === 'error').map(({ message }) => message);

const inLine = async ({ client }: TestApp): Promise<string> => {
  const { id } = await eventually('a run in line', async () => (await listRuns(client, { status: 'Queued' })).at(0));
  return id;
};

const looked = { message: 'look', sessionId: 's', concurrency: 'Enqueue' } as const;

for (const isTold of [true, false])
  forEachSharedService(
    `RUN-41 a run that waits at a guard is canceled by another process, ${isTold ? 'which tells its own' : 'of which its own hears nothing'}`,
    async (open) => {
      for (const how of ['JSON', 'stream'] as const) {
        const { one, two, guard, tool } = await openWorld(open);
        const first = await stream(one.client, 'helper', { message: 'wait', sessionId: 's' });
        await tool.reached;
        const answer =
          how === 'JSON'
            ? refusal(runJson(one.client, 'helper', looked))
            : stream(one.client, 'helper', looked).then(({ frames }) => collect(frames));
        const runId = await inLine(two);
        tool.open();
        await collect(first.frames);
        await guard.reached;
        const heal = isTold ? null : await two.store.refuse('cancels of runs');
        const { body: canceled } = await two.client.runs.cancel({ params: { runId } });
        assert.equal(canceled.status, 'Canceled');
        await heal?.();
        const before = await getRun(two.client, runId);
        assert.equal(before.status, 'Canceled');
        guard.open();
        const told = await answer;
        if (Array.isArray(told)) assert.deepEqual(typesOf(assertWholeLog(told)), ['run.queued', 'run.canceled']);
        else
          assert.deepEqual(
            [(told as { status: number }).status, (told as { code: string }).code],
            [409, 'run-canceled'],
          );
        assert.deepEqual(await getRun(two.client, runId), before, 'nothing of its end is written once more');
        assert.deepEqual(typesOf(await followToEnd(two.client, runId)), ['run.queued', 'run.canceled']);
        assert.deepEqual(errorsIn(one), [], 'it is no failure of the recording');
        assert.equal((await runJson(one.client, 'helper', { message: 'Hi', sessionId: 's' })).output, 'Hello there.');
        await Promise.all([one.close(), two.close()]);
      }
    },
  );

forEachSharedService(
  'JOB-23 SESS-20 a queued run that waits at a guard leaves its session to others when another process cancels it',
  async (open) => {
    const { one, two, guard } = await openWorld(open);
    const runId = await enqueue(one.client, 'helper', { message: 'look', sessionId: 's' });
    await guard.reached;
    assert.equal((await two.client.runs.cancel({ params: { runId } })).body.status, 'Canceled');
    // The guard still looks.
    for (const app of [two, one])
      assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' })).output, 'Hello there.');
    guard.open();
    await eventually('the job has ended', async () => {
      const { job } = (await two.client.jobs.get({ params: { id: runId } })).body;
      return job.completedAt === null ? null : job;
    });
    const { messages } = (await two.client.sessions.get({ params: { sessionId: 's' } })).body;
    assert.equal(messages?.length, 4, 'the turns of others, as they have left them');
    assert.deepEqual(errorsIn(one), []);
  },
);

forEachSharedService(
  'RUN-74 a run at a guard whose process stood still for too long is told as lost, and not as canceled',
  async (open) => {
    const still = testClock();
    const reconciling = { Enabled: true, HeartbeatInterval: '10s', OrphanThreshold: '30s', ScanInterval: '10s' };
    const { one, two, guard, tool } = await openWorld(open, { service: { RunReconciliation: reconciling } }, [
      still,
      testClock(),
    ]);
    const first = await stream(one.client, 'helper', { message: 'wait', sessionId: 's' });
    await tool.reached;
    const answer = refusal(runJson(one.client, 'helper', looked));
    const runId = await inLine(two);
    tool.open();
    await collect(first.frames);
    await guard.reached;
    still.stand();
    for (let beats = 0; beats < 6; beats += 1) await two.clock.advance(10_000);
    const before = await getRun(two.client, runId);
    assert.deepEqual([before.status, before.error?.type], ['Failed', 'orphaned']);
    assert.equal((await runJson(two.client, 'helper', { message: 'Hi', sessionId: 's' })).output, 'Hello there.');
    guard.open();
    assert.equal((await answer).errorType, 'orphaned');
    assert.deepEqual(await getRun(two.client, runId), before);
    // The end of a run is one line, and no fault of the service.
    assert.deepEqual(errorsIn(one), []);
  },
);

forEachSharedService(
  'RUN-41 a run that reads its resources when another process cancels it is no failed run and no lost turn',
  async (open, t) => {
    const held = Promise.withResolvers<void>();
    let reads = 0;
    const server = await rawServer(t, ({ method, params }) => {
      if (method === 'server/discover') return { supportedVersions: ['2026-07-28'], capabilities: { resources: {} } };
      if (method === 'resources/list') return { resources: [{ uri: 'a://one', name: 'one' }] };
      if (method !== 'resources/read') return null;
      reads += 1;
      if (reads === 1) return { contents: [{ uri: params['uri'], text: 'One.' }] };
      held.resolve();
      return { raw: () => undefined };
    });
    const { one, two, tool } = await openWorld(open, mcpSetup());
    await save(one.client, server.endpoint, { name: 'docs' });
    await one.createAgent({ name: 'reader', mcpResourceUris: ['docs:a://one'], toolNames: ['wait'] });
    const first = await stream(one.client, 'reader', { message: 'wait', sessionId: 's' });
    await tool.reached;
    const request = { message: 'Hi', sessionId: 's', concurrency: 'Enqueue' } as const;
    const answer = refusal(runJson(one.client, 'reader', request));
    const runId = await inLine(two);
    tool.open();
    await collect(first.frames);
    await held.promise;
    const { body } = await two.client.runs.cancel({ params: { runId } });
    assert.equal((await answer).code, 'run-canceled');
    assert.deepEqual(await getRun(two.client, runId), body);
    const { messages } = (await two.client.sessions.get({ params: { sessionId: 's' } })).body;
    assert.equal(messages?.length, 4, 'those of the first turn alone');
    assert.deepEqual(
      one.log.map(({ message }) => message).filter((message) => /failed|conflict/i.test(message)),
      [],
    );
  },
);
