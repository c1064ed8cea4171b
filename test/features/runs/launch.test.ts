import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { CallContext, Principal } from '../../../src/core/context.ts';
import type { ActiveRun, RunPlan } from '../../../src/engine/active-run.ts';
import type { CompiledAgent } from '../../../src/engine/compiled-agent.ts';
import { ToolError } from '../../../src/engine/tools/index.ts';
import {
  createChildPlans,
  createLaunch,
  type ItemOfJob,
  type LaunchDeps,
  type LaunchRequest,
} from '../../../src/features/runs/launch/index.ts';
import type { QueuedJob } from '../../../src/scheduler/job-queue.ts';

const principal: Principal = {
  kind: 'Host',
  role: 'Admin',
  scopes: null,
  actor: 'somebody',
  userId: 'u',
  apiKey: null,
  permissions: null,
};

const agent = {
  name: 'a',
  version: 3,
  model: {},
  resources: [],
  tools: new Map(),
  resolveParameters: () => ({}),
} as unknown as CompiledAgent;

const context = {
  requestId: 'r',
  tenantId: 't',
  principal,
  signal: new AbortController().signal,
  rawBody: null,
  method: 'POST',
  path: '/',
} as CallContext;

/**
 * The launch with ports that note each step that is taken, and one that refuses. Steps are noted when they begin, each
 * once, but the stops each time.
 */
const world = (refusing: string | null = null) => {
  const steps: string[] = [];
  const plans: RunPlan[] = [];
  let ids = 0;
  const step = (name: string): void => {
    steps.push(name);
    if (name === refusing) throw new AcpError('validation-failed', `${name} refuses`);
  };
  const session = {
    sessionId: 's',
    history: [],
    summary: null,
    save: () => [],
    release: () => [],
    ended: () => undefined,
  };
  const row = { id: 'paused', status: 'Queued', session_id: 's', user_id: 'source', owner_id: 'theirs', labels: null };
  const launch = createLaunch({
    authorization: {
      async require(_context: CallContext, _action: string, target: { readonly runId?: string | null }) {
        step(target.runId ? `authorise for ${target.runId}` : 'authorise');
      },
    },
    lifecycle: {
      get draining() {
        return refusing === 'drain';
      },
    },
    stops: {
      current: () => null,
      reason() {
        if (steps.at(-1) !== 'stops') steps.push('stops');
        return refusing === 'stops' ? 'stopped' : null;
      },
    },
    storeIsAway: () => false,
    quotas: {
      admission: {
        async admit({ mayWait }: { readonly mayWait: boolean }) {
          step(mayWait ? 'quota, waiting' : 'quota, at once');
          return { isChecked: true, settled: () => steps.push('settle') };
        },
      },
    },
    preflight: async () => step('preflight'),
    attribution: { of: () => ({ userId: 'u', labels: null }) },
    agents: { compile: async () => agent, compileVersion: async () => agent },
    attachments: { named: async () => [], stillThere: async () => [] },
    sessions: {
      agentOf: async () => null,
      async ownerOf() {
        step('owner');
        return 'mine';
      },
      open: async () => [{ kind: 'Approval', id: 'q', toolName: 'pay', runId: 'paused' }],
      check: async () => step('session, checked'),
      async place() {
        step('session, taken');
        const leave = async () => void steps.push('session, free');
        return { session, waiting: null, resume: null, continuedFromRunId: null, leave };
      },
      async line() {
        step('session, in line');
        if (refusing === 'close') return 'Closed';
        if (refusing === 'others') return 'NotNext';
        return { position: 0, ready: async () => undefined, stepAside: () => steps.push('line, left') };
      },
      async begin(_run: unknown, from: { readonly resume: unknown; readonly resumes: string | null }) {
        const isPaused = from.resume === null && from.resumes !== null;
        step(isPaused ? `session, taken over from ${from.resumes}` : 'session, taken');
        if (refusing === 'pause') return null;
        return { session, resume: null };
      },
      stepBack: async () => void steps.push('session, free'),
      keepOrStepBack: (_session: unknown, work: () => Promise<unknown>) => work(),
    },
    store: { get: async () => row, withLog: async () => ({ row, lastSequence: 0 }) },
    jobs: Object.fromEntries(
      ['held', 'heldOrEnded', 'begun'].map((name) => [name, () => ({ sql: '', parameters: [] })]),
    ),
    turns: {
      turn: async () => ({
        storedSteps: 1,
        turn: {
          origin: { requestId: 'r', culture: null, parameters: {}, principal: { ...principal } },
          messages: [],
          calls: [],
          usage: null,
          cost: null,
        },
      }),
      ledger: async () => [],
      hasLaterRun: async () => false,
    },
    queued: {
      async accept() {
        step('row and job');
        return 'accepted';
      },
    },
    detached: { recordFailed: async () => undefined },
    engine: {
      stopped: refusing === 'shutdown',
      active: () => undefined,
      cancel: () => undefined,
      start(plan: RunPlan) {
        step('start');
        plans.push(plan);
        return { id: plan.id, plan, log: { opened: Promise.resolve() } } as unknown as ActiveRun;
      },
    },
    recordingEnabled: true,
    maxContinuations: 3,
    now: () => 1,
    newId: () => `id-${++ids}`,
  } as unknown as LaunchDeps);
  return { launch, steps, plans, step };
};

const inSession: LaunchRequest = {
  kind: 'request',
  context,
  agentName: 'a',
  body: { message: 'Hi.', sessionId: 's' },
  isStreaming: true,
  target: { sessionId: 's' },
  work: null,
};

const limits = {
  maxDepth: 1,
  maxTotalTokens: 1,
  maxTotalRuns: 1,
  maxTotalCostMicros: null,
  maxDurationMs: null,
};

const asked = {
  'request, as stream or JSON': inSession,
  'request with answers': {
    ...inSession,
    kind: 'answers',
    body: { sessionId: 's', approvals: [{ requestId: 'q', approved: true }] },
  },
  'queued request': { ...inSession, kind: 'queued', isStreaming: false },
  'call of a trigger': {
    ...inSession,
    kind: 'queued',
    isStreaming: false,
    arriving: { attribution: { userId: null, labels: { source: 'trigger' } }, stored: () => [], flow: null },
  },
  'call over a protocol': { ...inSession, isStreaming: false, exposed: { limits, labels: {} } },
  judge: {
    ...inSession,
    kind: 'judge',
    body: {},
    target: { userId: 'u' },
    work: async () => ({ kind: 'Eval', agent, parameters: {} }),
  },
  'request of the OpenAI API': {
    ...inSession,
    body: { sessionId: 's' },
    outside: {
      adjusted: (agent) => agent,
      parts: async () => ({ body: { message: 'Hi.', sessionId: 's' }, given: null, opening: [] }),
    },
  },
  replay: { ...inSession, kind: 'replay', body: {}, target: {}, work: async () => ({ agent, parameters: {} }) },
  'item of a batch': { ...inSession, isStreaming: false },
} as const satisfies Record<string, LaunchRequest>;

const job = (handlerKey: string, payload: unknown): QueuedJob => ({
  id: 'job',
  tenantId: 't',
  handlerKey,
  lane: 'default',
  targetName: 'a',
  payload,
  leaseOwner: 'w',
  attempt: 1,
  maxAttempts: 3,
  cancel: null,
  waitedMs: null,
});

const accepted = { request: { sessionId: 's' }, requestId: 'r', createdAt: 1, ownerId: 'theirs', principal };

const taken = {
  'job of an accepted run': job('acp.agent-run', accepted),
  'job after decisions in the mailbox': job('acp.approval-resume', {
    ...accepted,
    resumes: { runId: 'paused', agentVersion: 3 },
  }),
  'job after a lost process': job('acp.run-continuation', { from: 'lost' }),
} as const;

type World = ReturnType<typeof world>;

const launched = async ({ launch, step }: World, row: string): Promise<unknown> => {
  if (row in taken) return launch.take(taken[row as keyof typeof taken], new AbortController().signal, null);
  const item: ItemOfJob = {
    jobOf: (runId) => ({
      id: 'job',
      lane: 'default',
      leaseOwner: 'w',
      attempt: 1,
      maxAttempts: 1,
      held: { sql: runId, parameters: [] },
      heldLate: { sql: runId, parameters: [] },
      begun: null,
      completed: null,
    }),
    reserve: async () => step('item told'),
  };
  const request = asked[row as keyof typeof asked];
  const entrance = await launch.enter(row === 'item of a batch' ? { ...request, item } : request);
  return entrance.request.kind === 'queued' ? launch.queue(entrance) : launch.start(entrance);
};

/** The steps of each row, in their order; what stands nowhere in a row is not taken for it. */
const rows: Readonly<Record<string, readonly string[]>> = {
  'request, as stream or JSON': [
    'authorise',
    'owner',
    'stops',
    'quota, waiting',
    'stops',
    'session, checked',
    'preflight',
    'session, taken',
    'start',
    'settle',
  ],
  'request with answers': [
    'authorise for paused',
    'owner',
    'stops',
    'session, checked',
    'preflight',
    'session, taken',
    'start',
  ],
  'queued request': [
    'authorise',
    'owner',
    'stops',
    'quota, at once',
    'stops',
    'session, checked',
    'preflight',
    'row and job',
    'settle',
  ],
  'call of a trigger': [
    'authorise',
    'owner',
    'stops',
    'quota, at once',
    'stops',
    'session, checked',
    'preflight',
    'row and job',
    'settle',
  ],
  'call over a protocol': [
    'authorise',
    'owner',
    'stops',
    'quota, waiting',
    'stops',
    'session, checked',
    'preflight',
    'session, taken',
    'start',
    'settle',
  ],
  judge: ['authorise', 'owner', 'stops', 'quota, waiting', 'stops', 'start', 'settle'],
  'request of the OpenAI API': [
    'authorise',
    'owner',
    'stops',
    'quota, waiting',
    'stops',
    'session, checked',
    'preflight',
    'session, taken',
    'start',
    'settle',
  ],
  replay: ['authorise', 'owner', 'stops', 'quota, waiting', 'stops', 'start', 'settle'],
  'item of a batch': [
    'authorise',
    'owner',
    'stops',
    'quota, waiting',
    'stops',
    'session, checked',
    'preflight',
    'session, taken',
    'item told',
    'start',
    'settle',
  ],
  'job of an accepted run': ['stops', 'session, in line', 'preflight', 'stops', 'session, taken', 'stops', 'start'],
  'job after decisions in the mailbox': [
    'stops',
    'session, in line',
    'preflight',
    'stops',
    'session, taken over from paused',
    'stops',
    'start',
  ],
  'job after a lost process': ['stops', 'session, in line', 'stops', 'session, taken', 'stops', 'start'],
};

/** What a step that was taken gives back when a later one refuses. */
const givesBack: Readonly<Record<string, string>> = {
  'quota, waiting': 'settle',
  'quota, at once': 'settle',
  'session, taken': 'session, free',
  'session, in line': 'line, left',
};

describe('the steps of a launch', () => {
  for (const [row, expected] of Object.entries(rows)) {
    test(`${row}: its steps in their order, and no other`, async () => {
      const there = world();
      await launched(there, row);
      await Promise.resolve();
      assert.deepEqual(there.steps, expected);
    });

    const refusals = expected.filter((name) => !['stops', 'settle', ...(row in taken ? ['start'] : [])].includes(name));
    for (const refusing of refusals)
      test(`${row}: ${refusing} can refuse, and nothing comes after it`, async () => {
        const there = world(refusing);
        await assert.rejects(async () => launched(there, row));
        const before = expected.slice(0, expected.indexOf(refusing) + 1);
        assert.deepEqual(there.steps.slice(0, before.length), before);
        const back = there.steps.slice(before.length);
        assert.deepEqual(there.plans, []);
        // A job that was put in order behind others leaves its place only while it does not hold the session yet.
        const owed = before.slice(0, -1).flatMap((name) => givesBack[name] ?? []);
        for (const name of owed.filter((name) => name !== 'line, left' || refusing === 'preflight'))
          assert.ok(back.includes(name), `${name} after ${refusing}: ${there.steps.join(', ')}`);
        assert.deepEqual(
          back.filter((name) => !Object.values(givesBack).includes(name)),
          [],
        );
      });

    test(`${row}: a stop holds it`, async () => {
      const there = world('stops');
      if (row in taken) assert.equal(await launched(there, row), 'Held');
      else await assert.rejects(async () => launched(there, row), { code: 'emergency-stopped' });
      assert.deepEqual(there.steps, expected.slice(0, expected.indexOf('stops') + 1));
    });
  }

  for (const row of Object.keys(taken))
    test(`${row}: a close, the end of the process, a run before it and an open pause leave it unstarted`, async () => {
      for (const [refusing, word] of [
        ['close', 'Canceled'],
        ['shutdown', 'Released'],
        ['others', 'NotNext'],
        ['pause', 'Blocked'],
      ] as const) {
        const there = world(refusing);
        assert.equal(await launched(there, row), word);
        assert.deepEqual(there.plans, []);
      }
    });

  for (const row of Object.keys(asked))
    test(`${row}: a drain refuses it`, async () => {
      const there = world('drain');
      await assert.rejects(async () => launched(there, row), { code: 'draining' });
      assert.ok(!there.steps.some((name) => name.startsWith('quota') || name === 'start' || name === 'row and job'));
    });

  test('whose a run is comes from its caller, and of a job from what it was accepted with', async () => {
    const owners = async (row: string) => {
      const there = world();
      await launched(there, row);
      return there.plans.map(({ ownerId, userId }) => [ownerId, userId]);
    };
    assert.deepEqual(await owners('request, as stream or JSON'), [['mine', 'u']]);
    assert.deepEqual(await owners('judge'), [['mine', 'u']]);
    assert.deepEqual(await owners('job of an accepted run'), [['theirs', 'u']]);
    assert.deepEqual(await owners('job after a lost process'), [['theirs', 'source']]);
  });

  test('child run: admitted by its tree alone, for whom its parent is', async () => {
    const parent = (refusal: string | null) =>
      ({
        depth: 1,
        trace: null,
        budget: { admitChild: (depth: number) => (depth === 2 ? refusal : 'another depth') },
        plan: { tenantId: 't', requestId: 'r', kind: 'Eval', principal, userId: 'u', ownerId: 'mine', labels: null },
      }) as unknown as ActiveRun;
    const children = createChildPlans({ agents: { compile: async () => agent }, now: () => 1, newId: () => 'child' });
    const plan = await children.plan(parent(null), 'a', 'Hi.', 'call');
    assert.deepEqual(
      [plan.id, plan.kind, plan.ownerId, plan.userId, plan.parentCallId, plan.sessionId, plan.job],
      ['child', 'Eval', 'mine', 'u', 'call', null, null],
    );
    await assert.rejects(children.plan(parent('too deep'), 'a', 'Hi.', 'call'), new ToolError('too deep'));
  });

  test('docs/architecture.md has a row for each of them', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../docs/architecture.md'), 'utf8');
    const table = text.slice(text.indexOf('| caller | authorise |'));
    const named = table
      .slice(0, table.indexOf('\n\n'))
      .split('\n')
      .slice(2)
      .map((line) => line.split('|')[1]?.trim());
    assert.deepEqual(named, [...Object.keys(rows), 'child run', 'offline replay of a bundle']);
  });
});
