import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { ProblemError } from '../../../src/client/problem.ts';
import { replayBundle } from '../../../src/features/replays/index.ts';
import { forEachDurableService, forEachService, type OpenApp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { bundleTextOf, openText } from '../replays/bundle-calls.ts';
import { makeKey, token } from '../sessions/session-calls.ts';
import {
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  refusal,
  runJson,
  runStream,
  stream,
  tool,
} from './run-calls.ts';

// The rows of the table "caller" in docs/architecture.md, as far as they can be seen from outside.

const sessionId = 's';
const scopes = ['RunsRead', 'RunsWrite', 'AgentsRead'] as const;
const asks = (name: string) => ({ toolCalls: [{ name, arguments: name === 'call_helper' ? { message: 'Hi' } : {} }] });

const setupOf = (gate: Gate, folder?: string, service = {}, clock = testClock()) => ({
  clock,
  host: { AuthToken: token },
  token,
  service: {
    SessionOwnership: { Enabled: true, RequireAuthenticatedOwner: false, RefuseUnownedSessions: true },
    RunReconciliation: { Enabled: true },
    RunContinuation: { Enabled: true },
    Drain: { Timeout: '20s' },
    ...service,
  },
  tools: [
    tool('pay', async () => 'paid', { requiresApproval: true }),
    tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    }),
  ],
  script: [
    { when: { tool: 'wait', message: 'wait and call' }, reply: asks('call_helper') },
    { when: { tool: 'call_helper' }, reply: { text: '{{last}}' } },
    { when: { tool: 'wait' }, reply: { text: 'Over.' } },
    { when: { tool: 'pay' }, reply: { text: 'Paid.' } },
    { when: { message: '/^pay/' }, reply: asks('pay') },
    { when: { message: '/^wait/' }, reply: asks('wait') },
    { when: { message: '/^call/' }, reply: asks('call_helper') },
    { when: { message: '/^Grade/' }, reply: { text: '88' } },
    { reply: { text: 'Hello.' } },
  ],
  module: {
    judges: [
      {
        name: 'grade',
        judge: async (
          _run: unknown,
          _signal: AbortSignal,
          ask: (agent: string, message: string) => Promise<string>,
        ) => ({
          score: Number(await ask('helper', 'Grade it')),
        }),
      },
    ],
  },
  ...(folder === undefined
    ? {
        agents: [
          { name: 'helper', toolNames: ['pay', 'wait'] },
          { name: 'caller', toolNames: ['wait'], callableAgentNames: ['helper'] },
        ],
      }
    : { folder }),
});

const stopped = { scope: 'Agent', agentName: 'helper' } as const;
const stop = (app: TestApp) => app.client.emergency.stop({ body: stopped });
const resume = (app: TestApp) => app.client.emergency.resume({ body: stopped });

/** From now on every place of the agent is taken: it has run before. */
const takeUpQuota = async (app: TestApp): Promise<string> =>
  (await app.client.quotas.save({ body: { agentName: 'helper', period: 'Daily', maxRuns: 1 } })).body.id;

/** Whoever owns it sees the run, and the other one does not. */
const assertWhose = async (runId: string, owner: Client, other: Client): Promise<void> => {
  assert.equal((await getRun(owner, runId)).id, runId);
  assert.equal((await refusal(other.runs.get({ params: { runId } }))).status, 404);
};

/** The run, or the code that it was refused with. */
type Launched = { readonly runId: string } | { readonly code: string | undefined };

const launched = async <T extends { readonly runId: string }>(
  call: Promise<T>,
): Promise<T | { readonly code: string | undefined }> => {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ProblemError) return { code: error.problem.code };
    throw error;
  }
};

/** A run that somebody asks for. */
interface AskedRow {
  /** What there has to be before, of Ann. */
  prepare(ann: Client): Promise<string>;
  readonly launches: readonly ((by: Client, from: string) => Promise<Launched>)[];
  /** Who asks: Ben as a manager, where others than the owner of its source may. */
  readonly by: 'Ann' | 'Ben';
  /** The code that it is refused with; null: its turn was counted when it began. */
  readonly quotaUsedUp: 'quota-exceeded' | null;
}

const earlierRun = async (ann: Client): Promise<string> => (await runJson(ann, 'helper', 'Hi')).runId;

const asked: Readonly<Record<string, AskedRow>> = {
  'request, as stream or JSON': {
    prepare: earlierRun,
    launches: [(by) => launched(runJson(by, 'helper', 'Hi')), (by) => launched(runStream(by, 'helper', 'Hi'))],
    by: 'Ann',
    quotaUsedUp: 'quota-exceeded',
  },
  'request with answers': {
    async prepare(ann) {
      const { approvals } = await runJson(ann, 'helper', { message: 'pay', sessionId });
      return approvals[0]?.requestId ?? assert.fail('nobody is asked');
    },
    launches: [
      (by, requestId) => launched(runJson(by, 'helper', { sessionId, approvals: [{ requestId, approved: true }] })),
    ],
    by: 'Ann',
    quotaUsedUp: null,
  },
  'queued request': {
    prepare: earlierRun,
    launches: [
      async (by) => {
        const answer = await launched(enqueue(by, 'helper', 'Hi').then((runId) => ({ runId })));
        if ('runId' in answer) await followToEnd(by, answer.runId);
        return answer;
      },
    ],
    by: 'Ann',
    quotaUsedUp: 'quota-exceeded',
  },
  judge: {
    async prepare(ann) {
      await earlierRun(ann);
      return (await runJson(ann, 'caller', 'Hi')).runId;
    },
    launches: [
      async (by, runId) => {
        const answer = await launched(
          by.judges.score({ params: { runId } }).then(({ body: { failures } }) => ({ runId, failures })),
        );
        if (!('failures' in answer)) return answer;
        const [failure] = answer.failures;
        const [asking] = await listRuns(by, { kind: 'Eval' });
        return failure === undefined ? { runId: asking?.id ?? '' } : { code: failure.errorType };
      },
    ],
    by: 'Ben',
    quotaUsedUp: 'quota-exceeded',
  },
  replay: {
    prepare: earlierRun,
    launches: [(by, runId) => launched(by.replays.create({ params: { runId }, body: {} }).then(({ body }) => body))],
    by: 'Ben',
    quotaUsedUp: 'quota-exceeded',
  },
};

for (const [caller, row] of Object.entries(asked))
  forEachService(`launch of a ${caller}: who owns it, and what refuses it`, async (open) => {
    const gate = new Gate();
    const app = await open(setupOf(gate));
    const { client: ann } = await makeKey(app, 'ann', 'Operator', [...scopes]);
    const { client: ben } = await makeKey(app, 'ben', 'Admin', [...scopes]);
    const { client: eve } = await makeKey(app, 'eve', 'Operator', [...scopes]);
    const everyRun = async (): Promise<string[]> => {
      const kinds = [{ includeChildren: true }, { kind: 'Eval' as const }];
      const runs = await Promise.all(kinds.map((query) => listRuns(app.client, query)));
      return [...new Set(runs.flat().map(({ id }) => id))];
    };
    const assertRefused = async (launch: AskedRow['launches'][number], from: string, code: string): Promise<void> => {
      const before = await everyRun();
      assert.deepEqual(await launch(ann, from), { code });
      assert.deepEqual(await everyRun(), before, `${code}: no run is left of it`);
    };
    for (const launch of row.launches) {
      const own = await launch(row.by === 'Ann' ? ann : ben, await row.prepare(ann));
      assert.ok('runId' in own, JSON.stringify(own));
      assert.equal((await getRun(app.client, own.runId)).status, 'Completed');
      if (row.by === 'Ann') await assertWhose(own.runId, ann, eve);
      else await assertWhose(own.runId, ben, ann);

      const from = await row.prepare(ann);
      await stop(app);
      await assertRefused(launch, from, 'emergency-stopped');
      await resume(app);
      const used = await takeUpQuota(app);
      if (row.quotaUsedUp === null) assert.ok('runId' in (await launch(ann, from)));
      else await assertRefused(launch, from, row.quotaUsedUp);
      await app.client.quotas.remove({ params: { id: used } });
    }
    const from = await row.prepare(ann);
    const executing = runJson(ann, 'caller', 'wait');
    await gate.reached;
    const drained = app.app.drain();
    for (const launch of row.launches) await assertRefused(launch, from, 'draining');
    gate.open();
    assert.equal((await executing).output, 'Over.', 'what executes may end its work');
    await drained;
  });

/** A run that a worker takes from the job queue. Each makes the job while no worker is there. */
interface TakenRow {
  /** What there has to be before, of Ann, with a worker; the service ends after it. */
  prepare(app: TestApp, ann: Client, gate: Gate): Promise<string>;
  /** The id of the job, which is that of the run. */
  accept(app: TestApp, ann: Client, from: string): Promise<string>;
}

const taken: Readonly<Record<string, TakenRow>> = {
  'job of an accepted run': {
    prepare: async () => '',
    accept: (_app, ann) => enqueue(ann, 'helper', 'Hi'),
  },
  'job after decisions in the mailbox': {
    async prepare(app, ann) {
      const runId = await enqueue(ann, 'helper', { message: 'pay', sessionId });
      await followToEnd(ann, runId);
      return (await app.client.approvals.list({ query: {} })).body[0]?.id ?? assert.fail('nobody is asked');
    },
    async accept(app, _ann, id) {
      const { body } = await app.client.approvals.decide({ params: { id }, body: { approved: true } });
      return body.continuationRunId ?? assert.fail('nothing goes on');
    },
  },
  'job after a lost process': {
    async prepare(_app, ann, gate) {
      const { runId } = await stream(ann, 'helper', { message: 'wait', sessionId });
      await gate.reached;
      return runId;
    },
    async accept(app) {
      const { body } = await app.client.jobs.list({ query: { handlerKey: 'acp.run-continuation' } });
      return body[0]?.id ?? assert.fail('nothing goes on');
    },
  },
};

for (const [caller, row] of Object.entries(taken))
  forEachDurableService(
    `JOB-34 launch of a ${caller}: who owns it, what holds it back, and how often it is tried`,
    async (open) => {
      const gate = new Gate();
      const clock = testClock();
      const attempts = { AsyncRun: { MaxAttempts: 5 } };
      const first = await open(setupOf(gate, undefined, { Drain: { Timeout: '0s' }, ...attempts }, clock));
      const keys = await Promise.all(
        ['ann', 'eve'].map((name) =>
          first.client.keys
            .create({ body: { name, role: 'Operator', scopes: [...scopes] } })
            .then(({ body }) => body.plaintextKey),
        ),
      );
      const [ann = '', eve = ''] = keys;
      const from = await row.prepare(first, await first.clientFor(ann), gate);
      await first.close();
      gate.open();

      const job = async (id: string, { client }: TestApp) => (await client.jobs.get({ params: { id } })).body.job;
      const idle = await open(setupOf(gate, first.folder, { Scheduling: { RunWorker: false }, ...attempts }, clock));
      const id = await row.accept(idle, await idle.clientFor(ann), from);
      assert.equal((await job(id, idle)).maxAttempts, 5);
      await stop(idle);
      await idle.close();

      const app = await open(setupOf(gate, first.folder, {}, clock));
      // Put off, and not at the cost of an attempt: the worker has looked at it.
      await eventually('the stop holds it', async () => {
        const { status, attempt, scheduledFor, createdAt } = await job(id, app);
        return status === 'Pending' && attempt === 0 && scheduledFor > createdAt;
      });
      await takeUpQuota(app);
      await app.app.drain();
      await resume(app);
      await clock.advance(60_000);
      assert.deepEqual((await job(id, app)).status, 'Pending', 'it stays in line while the service ends');
      await app.close();

      const last = await open(setupOf(gate, first.folder, {}, clock));
      await eventually('the job is over', async () => (await job(id, last)).status === 'Completed');
      assert.equal((await getRun(last.client, id)).status, 'Completed', 'it has its place in the quota');
      await assertWhose(id, await last.clientFor(ann), await last.clientFor(eve));
    },
  );

/** A run of the agent that Ann's run calls. */
const childOf = async (app: TestApp, runId: string) =>
  (await listRuns(app.client, { includeChildren: true })).find((run) => run.parentRunId === runId) ??
  assert.fail('there is a child');

const openFamily = async (open: OpenApp, gate: Gate) => {
  const app = await open(setupOf(gate));
  const { client: ann } = await makeKey(app, 'ann', 'Operator', [...scopes]);
  const { client: eve } = await makeKey(app, 'eve', 'Operator', [...scopes]);
  return { app, ann, eve };
};

forEachService('launch of a child run: who owns it, and that a stop ends it as it begins', async (open) => {
  const gate = new Gate();
  const { app, ann, eve } = await openFamily(open, gate);
  const answer = await runJson(ann, 'caller', 'call');
  assert.equal(answer.output, 'Hello.');
  await assertWhose((await childOf(app, answer.runId)).id, ann, eve);

  await stop(app);
  const { runId } = await runJson(ann, 'caller', 'call');
  const ended = await childOf(app, runId);
  assert.deepEqual([ended.status, ended.error?.type], ['Failed', 'emergency_stop']);
  await resume(app);

  await earlierRun(ann);
  await takeUpQuota(app);
  assert.deepEqual(await launched(runJson(ann, 'helper', 'Hi')), { code: 'quota-exceeded' });
  const beyond = await runJson(ann, 'caller', 'call');
  assert.equal((await childOf(app, beyond.runId)).status, 'Completed', 'its parent has the place');

  const late = runJson(ann, 'caller', 'wait and call');
  await gate.reached;
  const drained = app.app.drain();
  gate.open();
  assert.equal((await childOf(app, (await late).runId)).status, 'Completed', 'what runs may end its work');
  await drained;
});

forEachService('launch of an offline replay: nothing of the service holds it', async (open) => {
  const { app, ann } = await openFamily(open, new Gate());
  const runId = await earlierRun(ann);
  const bundle = await bundleTextOf(app.client, runId);
  await stop(app);
  await takeUpQuota(app);
  await app.app.drain();
  const { body: before } = await app.client.runs.list({ query: {} });
  assert.equal((await replayBundle(await openText(bundle), new Map())).result, 'identical');
  assert.deepEqual((await app.client.runs.list({ query: {} })).body, before, 'and it leaves nothing there');
});
