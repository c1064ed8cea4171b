import assert from 'node:assert/strict';
import { type AppSetup, forEachService, type OpenApp, type TestApp } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { calls, conversation, lastOf, says } from './chat-requests.ts';
import { eventsOf, readEvents, runJson } from './run-calls.ts';

const isJudge = (request: SimulatedRequest): boolean =>
  (conversation(request)[0] ?? '').startsWith('system: You judge');
const userCount = (request: SimulatedRequest): number =>
  conversation(request).filter((line) => line.startsWith('user:')).length;

/** Says which try this is. */
const countTries = (request: SimulatedRequest): Scenario => says(`Try ${userCount(request)}.`);

const openLoop = (
  open: OpenApp,
  loop: Record<string, unknown>,
  respond: (request: SimulatedRequest) => Scenario,
  more: Partial<AppSetup> & {
    readonly harness?: Record<string, unknown>;
    readonly agent?: Record<string, unknown>;
  } = {},
): Promise<TestApp> => {
  const { harness = {}, agent = {}, ...setup } = more;
  return open({
    simulator: { respond },
    agents: [
      {
        name: 'helper',
        model: { provider: 'local', model: 'any' },
        harness: { disableModes: true, ...harness, loop },
        ...agent,
      },
    ],
    ...setup,
  });
};

const iterations = async (app: TestApp, runId: string) =>
  eventsOf(await readEvents(app.client, runId))
    .filter(({ type }) => type === 'loop.iteration-completed')
    .map(({ runId: _run, sequence: _sequence, timestamp: _time, type: _type, ...members }) => members);

const goesOn = (iteration: number, kind: string) => ({
  iteration,
  continued: true,
  continuedBy: kind,
  hasFeedback: true,
  failedCriterion: null,
  ceilingReached: false,
});
const ends = (iteration: number, more: Record<string, unknown> = {}) => ({
  iteration,
  continued: false,
  continuedBy: null,
  hasFeedback: false,
  failedCriterion: null,
  ceilingReached: false,
  ...more,
});

forEachService('AGENT-43 AGENT-44 completionMarker: the run goes on until the answer has the marker', async (open) => {
  const app = await openLoop(open, { criteria: [{ kind: 'completionMarker', marker: 'DONE' }] }, (request) =>
    says(userCount(request) < 3 ? `Try ${userCount(request)}.` : 'All DONE'),
  );
  const { runId, output } = await runJson(app.client, 'helper', 'Work');
  assert.equal(output, 'All DONE');
  assert.deepEqual(await iterations(app, runId), [
    goesOn(1, 'completionMarker'),
    goesOn(2, 'completionMarker'),
    ends(3),
  ]);
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
    'user: Work',
    'assistant: Try 1.',
    'user: Go on with the task. When it is done, end your answer with DONE.',
    'assistant: Try 2.',
    'user: Go on with the task. When it is done, end your answer with DONE.',
  ]);
});

forEachService('AGENT-45 the turn that reaches maxIterations is not evaluated', async (open) => {
  const app = await openLoop(
    open,
    { criteria: [{ kind: 'completionMarker', marker: 'DONE' }], maxIterations: 2 },
    countTries,
  );
  const { runId, output } = await runJson(app.client, 'helper', 'Work');
  assert.equal(output, 'Try 2.');
  assert.deepEqual(await iterations(app, runId), [goesOn(1, 'completionMarker'), ends(2, { ceilingReached: true })]);
});

forEachService(
  'AGENT-45 freshContextPerIteration sends instructions, the first input and the feedback',
  async (open) => {
    const app = await openLoop(
      open,
      { criteria: [{ kind: 'completionMarker', marker: 'DONE' }], maxIterations: 3, freshContextPerIteration: true },
      () => says('Not yet.'),
      { harness: { harnessInstructions: 'Be thorough.' } },
    );
    await runJson(app.client, 'helper', { message: 'Earlier', sessionId: 's' });
    app.simulator.requests.length = 0;
    await runJson(app.client, 'helper', { message: 'Work', sessionId: 's' });
    assert.equal(app.simulator.requests.length, 3);
    assert.deepEqual(conversation(app.simulator.lastRequest()), [
      'system: Be thorough.',
      'user: Work',
      'user: Go on with the task. When it is done, end your answer with DONE.',
    ]);
  },
);

forEachService('AGENT-44 todoCompletion: open entries continue the run', async (open) => {
  const write = (status: string, id: string) => calls('todo_write', { todos: [{ text: 'Paint', status }] }, id);
  const app = await openLoop(open, { criteria: [{ kind: 'todoCompletion' }] }, (request) => {
    const lines = conversation(request);
    if (lines.at(-1)?.startsWith('tool:')) return says('Waiting.');
    return userCount(request) === 1 ? write('pending', 'a') : write('completed', 'b');
  });
  const { runId } = await runJson(app.client, 'helper', 'Work');
  assert.deepEqual(await iterations(app, runId), [goesOn(1, 'todoCompletion'), ends(2)]);
  assert.match(lastOf(app.simulator.lastRequest(), 'user'), /still open:\n- Paint\n/);
});

forEachService('AGENT-44 todoCompletion counts only in its modes when they are given', async (open) => {
  const setUp = (mode: string) => (request: SimulatedRequest) => {
    const results = conversation(request).filter((line) => line.startsWith('tool:')).length;
    if (results === 0) return calls('todo_write', { todos: [{ text: 'Paint', status: 'pending' }] });
    return results === 1 ? calls('set_mode', { mode }) : says('Here is the plan.');
  };
  const loop = { criteria: [{ kind: 'todoCompletion', modes: ['act'] }], maxIterations: 2 };
  for (const [mode, expected] of [
    ['plan', [ends(1)]],
    ['act', [goesOn(1, 'todoCompletion'), ends(2, { ceilingReached: true })]],
  ] as const) {
    const app = await openLoop(open, loop, setUp(mode), { harness: { disableModes: false } });
    const { runId } = await runJson(app.client, 'helper', { message: 'Work', sessionId: 's' });
    assert.deepEqual(await iterations(app, runId), expected, mode);
  }
});

forEachService('AGENT-44 aiJudge: a model finds every criterion met, at the cost of the run', async (open) => {
  const app = await openLoop(
    open,
    { criteria: [{ kind: 'aiJudge', judgeCriteria: ['It rhymes.', 'It is short.'] }] },
    (request) => {
      if (!isJudge(request))
        return { answer: { text: [`Try ${userCount(request)}.`], usage: { input: 5, output: 1 } } };
      const good = lastOf(request, 'user').includes('Try 2.');
      const verdict = good
        ? '```json\n{"met": true, "feedback": ""}\n```'
        : 'So: {"met": false, "feedback": "It must rhyme."}';
      return { answer: { text: [verdict], usage: { input: 50, output: 10 } } };
    },
    { service: { UtilityModel: { Provider: 'local', Model: 'judge' } } },
  );
  const { runId, output, usage } = await runJson(app.client, 'helper', 'Write a verse');
  assert.equal(output, 'Try 2.');
  assert.equal(usage?.inputTokens, 110);
  assert.deepEqual(await iterations(app, runId), [goesOn(1, 'aiJudge'), ends(2)]);
  const judged = app.simulator.requests.filter(isJudge);
  assert.deepEqual(
    judged.map(({ model }) => model),
    ['judge', 'judge'],
  );
  assert.match(
    lastOf(judged[0] ?? app.simulator.lastRequest(), 'user'),
    /^Criteria:\n1\. It rhymes\.\n2\. It is short\.\n<document name="task"/,
  );
  const answer = app.simulator.requests.filter((request) => !isJudge(request)).at(-1);
  assert.equal(answer && lastOf(answer, 'user'), 'It must rhyme.');
});

forEachService('AGENT-44 a criterion that throws counts as met, and is logged', async (open) => {
  const app = await openLoop(
    open,
    { criteria: [{ kind: 'aiJudge', judgeCriteria: ['It rhymes.'] }, { kind: 'reviewed' }] },
    (request) => says(isJudge(request) ? 'I cannot say.' : 'Done.'),
    {
      module: {
        loopCriteria: {
          reviewed: async () => {
            throw new Error('out of order');
          },
        },
      },
    },
  );
  const { runId } = await runJson(app.client, 'helper', 'Work');
  assert.deepEqual(await iterations(app, runId), [ends(1, { failedCriterion: 'reviewed' })]);
  const logged = app.log.filter(({ message }) => message.includes('criterion'));
  assert.deepEqual(
    logged.map(({ fields }) => fields['criterion']),
    ['aiJudge', 'reviewed'],
  );
});

forEachService('AGENT-44 a kind that a module registers sees the turn and gives the feedback', async (open) => {
  const turns: unknown[] = [];
  const app = await openLoop(open, { criteria: [{ kind: 'reviewed' }] }, countTries, {
    module: {
      loopCriteria: {
        reviewed: async ({ signal: _signal, runId: _run, ...turn }) => {
          turns.push(turn);
          return turn.answer === 'Try 2.' ? { met: true } : { met: false };
        },
      },
    },
  });
  const { runId } = await runJson(app.client, 'helper', 'Work');
  assert.deepEqual(await iterations(app, runId), [{ ...goesOn(1, 'reviewed'), hasFeedback: false }, ends(2)]);
  assert.equal(lastOf(app.simulator.lastRequest(), 'user'), 'The task is not done yet. Go on.');
  const criterion = { kind: 'reviewed', marker: null, judgeCriteria: [], judgeInstructions: null, modes: [] };
  const about = { tenantId: 'default', agentName: 'helper', sessionId: null, criterion };
  assert.deepEqual(turns, [
    { ...about, iteration: 1, answer: 'Try 1.' },
    { ...about, iteration: 2, answer: 'Try 2.' },
  ]);
});

forEachService('AGENT-44 backgroundTaskCompletion: a called agent that still runs continues the run', async (open) => {
  const child = Promise.withResolvers<void>();
  const app = await openLoop(
    open,
    { criteria: [{ kind: 'backgroundTaskCompletion' }] },
    (request) => {
      const lines = conversation(request);
      if (request.model === 'slow') return lines.at(-1)?.startsWith('tool:') ? says('Late.') : calls('wait', {});
      if (lines.at(-1)?.startsWith('tool:')) {
        child.resolve();
        return says('I go on.');
      }
      return userCount(request) === 1 ? calls('call_slow', { message: 'Think' }) : says('Now I am done.');
    },
    {
      tools: [
        {
          name: 'wait',
          description: 'Waits',
          inputSchema: { type: 'object' },
          execute: async () => {
            await child.promise;
            return 'waited';
          },
        },
      ],
      agent: { callableAgentNames: ['slow'], subAgents: { waitTimeoutMs: 50 } },
      agents: [],
    },
  );
  await app.createAgent({ name: 'slow', model: { provider: 'local', model: 'slow' }, toolNames: ['wait'] });
  await app.createAgent({
    name: 'helper',
    model: { provider: 'local', model: 'any' },
    callableAgentNames: ['slow'],
    subAgents: { waitTimeoutMs: 50 },
    harness: { disableModes: true, loop: { criteria: [{ kind: 'backgroundTaskCompletion' }] } },
  });
  const { runId, output } = await runJson(app.client, 'helper', 'Work');
  assert.equal(output, 'Now I am done.');
  assert.deepEqual(await iterations(app, runId), [goesOn(1, 'backgroundTaskCompletion'), ends(2)]);
  assert.match(lastOf(app.simulator.lastRequest(), 'user'), /still running: "slow"/);
});

forEachService('AGENT-45 AGENT-41 tree budget and iteration cap hold across iterations', async (open) => {
  const loop = { criteria: [{ kind: 'completionMarker', marker: 'DONE' }], maxIterations: 100 };
  const capped = await openLoop(open, loop, () => says('No.'), { harness: { maximumIterationsPerRequest: 3 } });
  const answer = await runJson(capped.client, 'helper', 'Work');
  assert.equal(answer.finishReason, 'Iterations');
  assert.equal(capped.simulator.requests.length, 4);
  const budget = await openLoop(open, loop, () => ({ answer: { text: ['No.'], usage: { input: 50, output: 10 } } }), {
    service: { AgentGraph: { MaxTotalTokens: 100 } },
  });
  await assert.rejects(runJson(budget.client, 'helper', 'Work'), { code: 'run-budget-exceeded' });
  assert.equal(budget.simulator.requests.length, 2);
});
