import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import type { OpenApp, TestApp } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { fileOf, png } from '../attachments/files.ts';
import { calls, conversation, lastOf, says } from '../runs/chat-requests.ts';
import { opensRun } from '../runs/other-process.ts';
import { callsTools, getRun, listRuns, refusal, runJson, runStream, tool } from '../runs/run-calls.ts';
import { bundleOf, runsOf } from './bundle-calls.ts';
import { replayTest } from './replayed-file.ts';

const local = { provider: 'local', model: 'any' };

replayTest(
  'a run that fell back to other models repeats its fallbacks, also when all had failed',
  async (open, replays) => {
    const fallbacks = [
      { provider: 'openai', model: 'second' },
      { provider: 'anthropic', model: 'third' },
    ];
    const app = await open({
      simulator: {},
      tools: [tool('look', async () => 'seen')],
      agents: [{ name: 'helper', model: { ...local, fallbacks }, toolNames: ['look'] }],
    });
    const fault = (status: number) => ({ fault: { kind: 'status', status } as const });
    app.simulator.enqueue(fault(500), fault(429), calls('look', {}), fault(503), says('Second.'));
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    assert.equal(events.filter(({ type }) => type === 'model.fallback-used').length, 3);
    app.simulator.enqueue(calls('look', {}), fault(500), fault(500), fault(500));
    await refusal(runJson(app.client, 'helper', 'Hi again'));
    const [failed] = await listRuns(app.client);
    assert.equal(failed?.status, 'Failed');
    await replays.identical(app, runId, failed?.id ?? '');
  },
);

replayTest('AGENT-14 a run at its cap of rounds is asked for its last answer again', async (open, replays) => {
  const app = await open({
    service: { Tools: { MaxIterations: 2 } },
    tools: [tool('look', async () => 'seen')],
    script: [
      { when: { call: 3 }, reply: { text: 'Enough.' } },
      { reply: { toolCalls: [{ name: 'look', arguments: {} }] } },
    ],
    agents: [{ name: 'helper', toolNames: ['look'] }],
  });
  const { runId, finishReason } = await runJson(app.client, 'helper', 'Hi');
  assert.equal(finishReason, 'Iterations');
  await replays.identical(app, runId);
});

const isJudge = (request: SimulatedRequest): boolean =>
  (conversation(request)[0] ?? '').startsWith('system: You judge');
const tries = (request: SimulatedRequest): number =>
  conversation(request).filter((line) => line.startsWith('user:')).length;

const openLoop = (
  open: OpenApp,
  loop: Record<string, unknown>,
  respond: (request: SimulatedRequest) => Scenario,
  module = {},
): Promise<TestApp> =>
  open({
    simulator: { respond },
    module,
    agents: [{ name: 'helper', model: local, harness: { disableModes: true, loop } }],
  });

replayTest('AGENT-44 a loop goes on as it was recorded, whoever judged it', async (open, replays) => {
  const marked = await openLoop(
    open,
    { criteria: [{ kind: 'completionMarker', marker: 'DONE' }], maxIterations: 4, freshContextPerIteration: true },
    (request) => says(tries(request) === 1 ? 'Not yet.' : 'DONE'),
  );
  await replays.identical(marked, (await runJson(marked.client, 'helper', 'Work')).runId);
  await runJson(marked.client, 'helper', { message: 'Before', sessionId: 's' });
  await replays.identical(marked, (await runJson(marked.client, 'helper', { message: 'Work', sessionId: 's' })).runId);

  let verdicts = 0;
  const judged = await openLoop(
    open,
    { criteria: [{ kind: 'aiJudge', judgeCriteria: ['It rhymes.'] }, { kind: 'reviewed' }] },
    (request) => {
      if (!isJudge(request)) return says(`Try ${tries(request)}.`);
      verdicts += 1;
      // The first judge is out of order, which counts as met.
      if (verdicts === 1) return { fault: { kind: 'status', status: 400, vendor: 'bad-request' } };
      return says(`{"met": ${verdicts === 3}, "feedback": "It must rhyme."}`);
    },
    {
      loopCriteria: {
        reviewed: async ({ iteration }: { iteration: number }) => ({ met: iteration > 1, feedback: 'Review says no.' }),
      },
    },
  );
  const { runId, output } = await runJson(judged.client, 'helper', 'Write a verse');
  assert.deepEqual([output, verdicts], ['Try 3.', 3]);
  await replays.identical(judged, runId);

  const write = (status: string, id: string) => calls('todo_write', { todos: [{ text: 'Paint', status }] }, id);
  const listed = await openLoop(open, { criteria: [{ kind: 'todoCompletion' }] }, (request) => {
    if (conversation(request).at(-1)?.startsWith('tool:') === true) return says('Waiting.');
    return tries(request) === 1 ? write('pending', 'a') : write('completed', 'b');
  });
  await replays.identical(listed, (await runJson(listed.client, 'helper', 'Work')).runId);
});

replayTest('a changed loop is applied to the recorded answers where that takes no model', async (open, replays) => {
  const loop = { criteria: [{ kind: 'completionMarker', marker: 'DONE' }], maxIterations: 3 };
  const app = await openLoop(open, loop, (request) => says(tries(request) === 1 ? 'Almost.' : 'All DONE'));
  const { runId } = await runJson(app.client, 'helper', 'Work');
  const definition = (changed: object) => ({
    name: 'helper',
    model: local,
    harness: { disableModes: true, loop: { ...loop, ...changed } },
  });
  assert.equal((await replays.against(app, runId, definition({}))).result, 'identical');
  const marker = (text: string) => ({ criteria: [{ kind: 'completionMarker', marker: text }] });
  const sooner = await replays.against(app, runId, definition(marker('Almost')));
  assert.deepEqual(
    sooner.runs[0]?.steps.map(({ result }) => result),
    ['identical', 'missing'],
  );
  const later = await replays.against(app, runId, definition(marker('OVER')));
  assert.deepEqual(
    later.runs[0]?.steps.map(({ result }) => result),
    ['identical', 'drifted', 'drifted'],
    'other words, then a call too many',
  );
  const ceiling = await replays.against(app, runId, definition({ maxIterations: 1 }));
  assert.equal(ceiling.result, 'drifted', 'another output');
  const judge = await replays.against(
    app,
    runId,
    definition({ criteria: [{ kind: 'aiJudge', judgeCriteria: ['Good.'] }] }),
  );
  assert.deepEqual([judge.result, judge.runs[0]?.steps[1]?.result], ['missing', 'missing']);
  assert.match(judge.divergences[0]?.detail ?? '', /"aiJudge" of the changed loop cannot be judged/);
  const redacted = await replays.against(app, runId, definition(marker('Almost')), true);
  assert.match(redacted.divergences[0]?.detail ?? '', /"completionMarker" of the changed loop cannot be judged/);
});

const schema = {
  type: 'object',
  properties: { total: { type: 'number' } },
  required: ['total'],
  additionalProperties: false,
};
const responseFormat = { kind: 'JsonSchema', schema, schemaName: 'invoice' };
const isRepair = (request: SimulatedRequest): boolean => lastOf(request, 'user').startsWith('Your answer was not');

/** Answers with the words between "then", one after another. */
const repairing = (request: SimulatedRequest): Scenario => {
  const users = conversation(request).filter((line) => line.startsWith('user: '));
  const [first = '', ...fixes] = (users[0]?.slice(6) ?? '').split(' then ');
  return says(isRepair(request) ? (fixes[users.length - 2] ?? first) : first);
};

replayTest('RUN-69 answers are rejected and repaired as they were recorded', async (open, replays) => {
  const app = await open({
    simulator: { respond: repairing },
    service: { StructuredResponse: { Enabled: true, MaxRepairAttempts: 2 } },
    module: {
      structuredResponseValidators: {
        helper: async (answer) => {
          if ((answer as { total: number }).total > 5) throw new Error('That is too much.');
        },
      },
    },
    agents: [{ name: 'helper', model: { ...local, responseFormat } }],
  });
  const { runId } = await runJson(app.client, 'helper', 'words then {"total":9} then {"total":3}');
  await replays.identical(app, runId);
  await refusal(runJson(app.client, 'helper', 'a then b then c'));
  const [failed] = await listRuns(app.client);
  assert.equal(failed?.error?.type, 'structured_response_invalid');
  await runStream(app.client, 'helper', 'streamed words').catch(() => undefined);
  const [streamed] = await listRuns(app.client);
  await replays.identical(app, failed?.id ?? '', streamed?.id ?? '');
  const other = { ...responseFormat, schema: { ...schema, properties: { total: { type: 'string' } } } };
  const changed = await replays.against(app, runId, { name: 'helper', model: { ...local, responseFormat: other } });
  assert.ok(changed.runs[0]?.steps[0]?.differences.includes('settings'));
});

const bulky = 'x '.repeat(400);
const isSummary = (request: SimulatedRequest): boolean =>
  (conversation(request)[0] ?? '').startsWith('system: You shorten');

const compactions: Readonly<Record<string, object>> = {
  SlidingWindow: { triggerTurns: 3, minimumPreservedTurns: 2 },
  Truncation: { triggerMessages: 6, minimumPreservedGroups: 2 },
  ToolResult: { triggerTokens: 900, minimumPreservedGroups: 1 },
  Summarization: { triggerTurns: 3, minimumPreservedGroups: 2 },
  ContextWindow: { maxContextWindowTokens: 800, maxOutputTokens: 200, minimumPreservedGroups: 1 },
  Pipeline: { triggerMessages: 6, minimumPreservedTurns: 2, minimumPreservedGroups: 2 },
};

for (const [strategy, members] of Object.entries(compactions))
  replayTest(`AGENT-37 a history that ${strategy} compacted is compacted again`, async (open, replays) => {
    let summaries = 0;
    const app = await open({
      simulator: {
        respond(request) {
          if (isSummary(request)) {
            summaries += 1;
            // The first one fails, and the history is sent as it is.
            if (summaries === 1) return { fault: { kind: 'status', status: 400, vendor: 'bad-request' } };
            return says(` They talked ${summaries} times.\n`);
          }
          const said = lastOf(request, 'user');
          const isAsked = conversation(request).at(-1)?.startsWith('user') === true;
          return isAsked && said.startsWith('look') ? calls('look', {}, `c-${said}`) : says(`Said ${said}.`);
        },
      },
      tools: [tool('look', async () => bulky)],
      agents: [{ name: 'helper', model: local, toolNames: ['look'], compaction: { strategy, ...members } }],
    });
    let last = '';
    let compacted = 0;
    for (const message of ['look one', 'look two', 'look three', 'look four']) {
      const { runId, events } = await runStream(app.client, 'helper', { message, sessionId: 's' });
      compacted += events.filter(({ type }) => type === 'history.compacted').length;
      last = runId;
      const report = await replays.against(app, runId, {
        name: 'helper',
        model: local,
        toolNames: ['look'],
        compaction: { strategy, ...members },
      });
      assert.deepEqual(report.divergences, [], message);
    }
    assert.ok(compacted > 0);
    assert.equal((await replays.replay(app, last)).result, 'identical');
    const redacted = await replays.against(app, last, { name: 'nobody', model: local }, true);
    // Marks have other lengths: what cannot be said is said to be so, and never called a drift.
    assert.notEqual(redacted.result, 'drifted');
    for (const { detail } of redacted.divergences) assert.match(detail, /redacted texts|recorded/);
  });

replayTest('AGENT-40 a harness compacts at the window that the recording service knew', async (open, replays) => {
  const app = await open({
    simulator: {},
    service: {
      Providers: {
        Compatible: { local: { Models: [{ Name: 'any', ContextWindowTokens: 700, MaxOutputTokens: 100 }] } },
      },
    },
    tools: [tool('look', async () => bulky)],
    agents: [
      {
        name: 'helper',
        model: { ...local, maxOutputTokens: 100 },
        toolNames: ['look'],
        harness: { disableModes: true },
      },
    ],
  });
  app.simulator.enqueue(...['a', 'b', 'c', 'd', 'e', 'f'].map((id) => calls('look', {}, id)), says('Seen.'));
  const { runId, events } = await runStream(app.client, 'helper', { message: 'Look', sessionId: 's' });
  assert.ok(events.some(({ type }) => type === 'history.compacted'));
  assert.equal((await replays.replay(app, runId)).result, 'identical');
});

replayTest('prompts with attachments are compared by the hashes of what was sent', async (open, replays) => {
  const app = await open({
    simulator: {},
    agents: [{ name: 'helper', model: local }],
  });
  const upload = async (content: string | Uint8Array, name: string) =>
    (await app.client.attachments.upload({ query: {}, file: fileOf(content, name) })).body.id;
  const image = await upload(png, 'a.png');
  const text = await upload('The attached words.', 'b.txt');
  const say = async (message: string, attachmentIds: string[]) =>
    (await runJson(app.client, 'helper', { message, sessionId: 's', attachmentIds })).runId;
  const first = await say('Look', [image, text]);
  const second = await say('Again', []);
  await app.client.attachments.remove({ params: { id: image } });
  const third = await say('Gone', []);
  const fourth = (
    await runJson(app.client, 'helper', { message: 'Alone', attachmentIds: [await upload('More.', 'c.txt')] })
  ).runId;
  await replays.identical(app, first, second, third, fourth);
  const bundle = await bundleOf(app.client, first);
  assert.ok(!JSON.stringify(await runsOf(bundle)).includes('attached words'));
  const changed = await replays.against(app, first, { name: 'helper', model: local, instructions: 'Be kind.' });
  assert.deepEqual(changed.runs[0]?.steps[0]?.differences, ['instructions']);
});

replayTest(
  'an attachment without a recorded hash leaves the messages uncompared, and nothing else',
  async (open, replays) => {
    const app = await open({ simulator: {}, agents: [{ name: 'helper', model: local }] });
    const { id } = (await app.client.attachments.upload({ query: {}, file: fileOf('Words.', 'b.txt') })).body;
    const { runId: hashed } = await runJson(app.client, 'helper', { message: 'Look', attachmentIds: [id] });
    // The same run as a version of the service recorded it that kept no hashes.
    const other = app.store.open();
    const runs = other.stores(runStore);
    const journal = other.stores(createRunJournal(null, null));
    const runId = newId();
    const stored = (await runs.get('default', hashed)) ?? assert.fail('the run is stored');
    const input = await runs.recordedInput('default', hashed);
    const recorded = (await runs.modelCalls('default', hashed)) ?? assert.fail('its calls are stored');
    assert.ok('attachments' in recorded);
    await opensRun(other, runId, {
      agentVersion: stored.agent_version,
      modelProvider: stored.model_provider,
      modelId: stored.model_id,
      isStreaming: false,
      createdAt: stored.created_at,
      startedAt: stored.started_at,
      input: input?.messages ?? null,
      ...(input === null ? {} : { inputContext: input.context }),
    });
    const packs = await runs.packs('default', hashed, 0, 100);
    await other.write([
      ...packs.map((pack) => journal.packed('default', runId, pack.firstSequence, pack.lastSequence, pack.events)),
      journal.modelCalls('default', runId, JSON.stringify({ ...recorded, attachments: undefined })),
    ]);
    await runs.closeFrom({ tenant_id: 'default', id: runId }, 'Running', {
      status: 'Completed',
      completed_at: stored.completed_at,
      event_count: stored.event_count,
    });
    const report = await replays.replay(app, runId);
    assert.equal(report.result, 'missing');
    assert.match(report.divergences[0]?.detail ?? '', /attachments of which no hash was recorded/);
    const changed = await replays.against(app, runId, { name: 'helper', model: local, instructions: 'Be kind.' });
    assert.deepEqual(changed.runs[0]?.steps[0]?.differences, ['instructions']);
  },
);

replayTest('RUN-53 replays have bundles of their own, with and without tools', async (open, replays) => {
  const app = await open({
    tools: [tool('count', async () => 'one')],
    script: [{ when: { model: 'mute' }, reply: { text: 'Nothing.' } }, ...callsTools('count')],
    agents: [{ name: 'helper', toolNames: ['count'] }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Go');
  const replay = async (body: object) => (await app.client.replays.create({ params: { runId }, body })).body.runId;
  const repeated = await replay({});
  const mute = await replay({ toolMode: 'NoTools', modelId: 'mute' });
  assert.equal((await getRun(app.client, mute)).replayOfRunId, runId);
  await replays.identical(app, repeated, mute);
});

replayTest('a tree of more than 200 runs is exported and replayed whole', async (open, replays) => {
  const count = 230;
  const message = (index: number) => ({ name: 'call_child', arguments: { message: `Number ${index}?` } });
  const app = await open({
    service: { AgentGraph: { MaxTotalRuns: 0, MaxTotalTokens: 0 } },
    script: [
      { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'Asked.' } },
      { when: { model: 'boss' }, reply: { toolCalls: Array.from({ length: count }, (_, index) => message(index)) } },
      { reply: { text: 'Yes.' } },
    ],
    agents: [
      { name: 'child' },
      { name: 'boss', model: { provider: 'demo', model: 'boss' }, callableAgentNames: ['child'] },
    ],
  });
  const { runId } = await runJson(app.client, 'boss', 'Go');
  assert.equal((await app.client.runs.tree({ params: { runId } })).body.length, 200, 'RUN-37');
  const report = await replays.replay(app, runId);
  assert.deepEqual([report.result, report.runs.length], ['identical', count + 1]);
});
