import assert from 'node:assert/strict';
import { replayBundle } from '../../../src/features/replays/index.ts';
import { type AgentSetup, forEachDoor, type OpenApp, type TestApp } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { bundleOf } from '../replays/bundle-calls.ts';
import { calls, conversation, lastOf, says } from './chat-requests.ts';
import { eventsOf, type LoggedEvent, readEvents, refusal, runJson, tool } from './run-calls.ts';

const isSummary = (request: SimulatedRequest): boolean =>
  (conversation(request)[0] ?? '').startsWith('system: You shorten');

/** Says what it was told; "look" calls the tool `look` first; asked for a summary it gives one. */
const respond = (request: SimulatedRequest): Scenario => {
  if (isSummary(request)) return { answer: { text: ['They talked.'], usage: { input: 100, output: 10 } } };
  const said = lastOf(request, 'user');
  const lastRole = conversation(request).at(-1)?.split(':')[0];
  if (said.startsWith('look') && lastRole === 'user') return calls('look', { what: said }, `c-${said}`);
  return { answer: { text: [`Said ${said}.`], usage: { input: 10, output: 1 } } };
};

const bulky = 'x '.repeat(400);

const openCompacting = (
  open: OpenApp,
  compaction: Record<string, unknown>,
  more: Partial<AgentSetup> & { readonly respond?: (request: SimulatedRequest) => Scenario } = {},
): Promise<TestApp> => {
  const { respond: own, ...members } = more;
  return open({
    simulator: { respond: own ?? respond },
    tools: [tool('look', async () => bulky, { inputSchema: { type: 'object' } })],
    agents: [
      { name: 'helper', model: { provider: 'local', model: 'any' }, toolNames: ['look'], compaction, ...members },
    ],
  });
};

const say = (app: TestApp, message: string) => runJson(app.client, 'helper', { message, sessionId: 's' });

const compactions = async (app: TestApp, runId: string): Promise<LoggedEvent[]> =>
  eventsOf(await readEvents(app.client, runId)).filter(({ type }) => type === 'history.compacted');

const storedTexts = async (app: TestApp): Promise<string[]> => {
  const { messages } = (await app.client.sessions.get({ params: { sessionId: 's' } })).body;
  return (messages ?? []).map(({ contents: [part] }) => (part?.type === 'Text' ? part.text : (part?.type ?? '')));
};

forEachDoor('AGENT-36 AGENT-37 SlidingWindow sends the last turns; what is stored stays whole', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'SlidingWindow',
    triggerTurns: 3,
    minimumPreservedTurns: 2,
  });
  for (const message of ['one', 'two']) assert.deepEqual(await compactions(app, (await say(app, message)).runId), []);
  const { runId } = await say(app, 'three');
  assert.deepEqual(conversation(app.simulator.lastRequest()), ['user: two', 'assistant: Said two.', 'user: three']);
  const [event] = await compactions(app, runId);
  assert.equal(event?.['strategy'], 'SlidingWindow');
  assert.equal(event?.['messagesBefore'], 5);
  assert.equal(event?.['messagesAfter'], 3);
  assert.ok(event?.['tokensBefore'] > event?.['tokensAfter'] && event?.['tokensAfter'] > 0);
  assert.deepEqual(await storedTexts(app), ['one', 'Said one.', 'two', 'Said two.', 'three', 'Said three.']);
});

forEachDoor('AGENT-37 Truncation drops the oldest groups until below the trigger', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'Truncation',
    triggerMessages: 6,
    minimumPreservedGroups: 2,
  });
  for (const message of ['one', 'look two', 'three']) await say(app, message);
  // one, its answer, look two, call and result, its answer and three are seven messages. The oldest goes, and with
  // it the answer that has no question any more.
  assert.deepEqual(conversation(app.simulator.lastRequest()), [
    'user: look two',
    'assistant: look()',
    `tool: ${bulky}`,
    'assistant: Said look two.',
    'user: three',
  ]);
});

forEachDoor('AGENT-37 a call and its result go or stay together, and the last groups stay', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'Truncation',
    triggerMessages: 2,
    minimumPreservedGroups: 3,
  });
  for (const message of ['look one', 'two', 'look three', 'four']) {
    await say(app, message);
    const lines = conversation(app.simulator.lastRequest());
    const asked = lines.filter((line) => line.endsWith('look()')).length;
    assert.equal(lines.filter((line) => line.startsWith('tool:')).length, asked);
    assert.ok(lines.includes(`user: ${message}`));
  }
  // The question of the oldest group that stays is with it: no conversation begins with an answer.
  assert.deepEqual(conversation(app.simulator.lastRequest()), [
    'user: look three',
    'assistant: look()',
    `tool: ${bulky}`,
    'assistant: Said look three.',
    'user: four',
  ]);
});

forEachDoor('AGENT-36 compaction is evaluated before every model call of a run', async (open) => {
  const app = await openCompacting(
    open,
    { strategy: 'ToolResult', triggerTokens: 900, minimumPreservedGroups: 1 },
    {
      respond: (request) => {
        const results = conversation(request).filter((line) => line.startsWith('tool:')).length;
        return results < 4 ? calls('look', { n: results }, `c-${results}`) : says('Done.');
      },
    },
  );
  const { runId, output } = await say(app, 'start');
  assert.equal(output, 'Done.');
  const stubs = conversation(app.simulator.lastRequest()).filter((line) => line.startsWith('tool:'));
  const stub = `tool: [The result of look was left out to save space: ${bulky.length} characters.]`;
  assert.deepEqual(stubs, [stub, stub, stub, `tool: ${bulky}`]);
  const events = await compactions(app, runId);
  assert.ok(events.length >= 2);
  for (const event of events) assert.equal(event['messagesBefore'], event['messagesAfter']);
});

forEachDoor('AGENT-37 AGENT-39 Summarization replaces the oldest groups; the run pays for it', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'Summarization',
    triggerTurns: 3,
    minimumPreservedGroups: 2,
  });
  for (const message of ['one', 'look two']) await say(app, message);
  const { runId, usage } = await say(app, 'three');
  const [summary, answer] = app.simulator.requests.slice(-2);
  assert.ok(summary !== undefined && isSummary(summary));
  assert.match(
    lastOf(summary, 'user'),
    /^User: one\n\nAssistant: Said one\.\n\nUser: look two\n\nAssistant called look: \{/,
  );
  assert.ok(answer !== undefined);
  assert.deepEqual(conversation(answer), [
    'user: Summary of the conversation so far:\nThey talked.',
    'assistant: Said look two.',
    'user: three',
  ]);
  assert.equal(usage?.inputTokens, 110);
  assert.equal(usage?.outputTokens, 11);
  const events = eventsOf(await readEvents(app.client, runId)).map(({ type }) => type);
  assert.deepEqual(events.slice(1, 3), ['usage.updated', 'history.compacted']);
  assert.ok(!JSON.stringify(await storedTexts(app)).includes('They talked.'));
});

forEachDoor('AGENT-39 a failed summary leaves the history as it is, and is logged', async (open) => {
  const app = await openCompacting(
    open,
    { strategy: 'Summarization', triggerTurns: 2, minimumPreservedGroups: 1 },
    {
      respond: (request) =>
        isSummary(request) ? { fault: { kind: 'status', status: 400, vendor: 'bad-request' } } : respond(request),
    },
  );
  await say(app, 'one');
  const { runId } = await say(app, 'two');
  assert.deepEqual(conversation(app.simulator.lastRequest()), ['user: one', 'assistant: Said one.', 'user: two']);
  assert.deepEqual(await compactions(app, runId), []);
  assert.ok(app.log.some(({ message }) => message.includes('could not be summarized')));
});

forEachDoor(
  'AGENT-39 summaries use summarizationModel, else UtilityModel, else the model of the agent',
  async (open) => {
    const models = async (service: Record<string, unknown>, summarizationModel: unknown): Promise<string[]> => {
      const app = await open({
        simulator: { respond },
        service,
        agents: [
          {
            name: 'helper',
            model: { provider: 'local', model: 'own' },
            compaction: {
              strategy: 'Summarization',
              triggerTurns: 2,
              minimumPreservedGroups: 1,
              summarizationModel,
              summarizationPrompt: 'You shorten it.',
            },
          },
        ],
      });
      await say(app, 'one');
      await say(app, 'two');
      return app.simulator.requests.filter(isSummary).map(({ model }) => model);
    };
    const utility = { UtilityModel: { Provider: 'local', Model: 'utility' } };
    assert.deepEqual(await models(utility, { provider: 'local', model: 'summaries' }), ['summaries']);
    assert.deepEqual(await models(utility, null), ['utility']);
    assert.deepEqual(await models({}, null), ['own']);
  },
);

forEachDoor('AGENT-37 ContextWindow fits the prompt into the window less the answer', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'ContextWindow',
    maxContextWindowTokens: 800,
    maxOutputTokens: 200,
    minimumPreservedGroups: 1,
  });
  for (const message of ['look one', 'look two', 'three']) {
    const { runId } = await say(app, message);
    for (const event of await compactions(app, runId)) assert.ok(event['tokensAfter'] <= 600);
  }
  const lines = conversation(app.simulator.lastRequest());
  assert.ok(lines.some((line) => line.includes('was left out')));
  assert.equal(lines.at(-1), 'user: three');
});

forEachDoor('AGENT-37 Pipeline does ToolResult, SlidingWindow and Summarization as far as is needed', async (open) => {
  const app = await openCompacting(open, {
    strategy: 'Pipeline',
    triggerMessages: 6,
    minimumPreservedTurns: 2,
    minimumPreservedGroups: 2,
  });
  for (const message of ['look one', 'look two', 'look three']) await say(app, message);
  const [summary] = app.simulator.requests.filter(isSummary).slice(-1);
  assert.ok(summary !== undefined);
  // The first turn was summed up by the run before, and old results were stubs.
  assert.match(lastOf(summary, 'user'), /^User: Summary of the conversation so far:\nThey talked\.\n\nUser: look two/);
  assert.match(lastOf(summary, 'user'), /was left out/);
  const sent = conversation(app.simulator.lastRequest());
  assert.equal(sent[0], 'user: Summary of the conversation so far:\nThey talked.');
  assert.ok(sent.includes('user: look three'));
});

forEachDoor('AGENT-39 without compaction an overflow fails the run', async (open) => {
  const app = await open({
    simulator: { respond: () => ({ fault: { kind: 'status', status: 400, vendor: 'context' } }) },
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' }, compaction: { strategy: 'None' } }],
  });
  assert.equal((await refusal(say(app, 'one'))).code, 'context-window-exceeded');
});

forEachDoor('AGENT-51 an estimate counts the history after compaction', async (open) => {
  const app = await openCompacting(open, { strategy: 'SlidingWindow', triggerTurns: 2, minimumPreservedTurns: 1 });
  const estimate = async () =>
    (await app.client.agents.estimate({ params: { name: 'helper' }, body: { message: 'two', sessionId: 's' } })).body
      .promptTokens;
  const empty = await estimate();
  await say(app, `look ${bulky}`);
  assert.equal(await estimate(), empty);
});

const summing = { strategy: 'Summarization', triggerMessages: 6, minimumPreservedGroups: 2 };

const summariesOf = (app: TestApp): number => app.simulator.requests.filter(isSummary).length;

forEachDoor('AGENT-39 a session keeps its summary: later runs begin with it and make none again', async (open) => {
  const app = await openCompacting(open, summing);
  for (const message of ['one', 'two', 'three']) await say(app, message);
  await say(app, 'four');
  assert.equal(summariesOf(app), 1);
  const summary = 'user: Summary of the conversation so far:\nThey talked.';
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(0, 2), [summary, 'assistant: Said three.']);

  const { runId } = await say(app, 'five');
  assert.equal(summariesOf(app), 1, 'what was summed up once is paid for once');
  assert.deepEqual(conversation(app.simulator.lastRequest()), [
    summary,
    'assistant: Said three.',
    'user: four',
    'assistant: Said four.',
    'user: five',
  ]);
  const [event] = await compactions(app, runId);
  assert.deepEqual([event?.['messagesBefore'], event?.['messagesAfter']], [9, 5]);
  assert.equal((await storedTexts(app)).length, 10, 'AGENT-36 the history is whole');

  const report = await replayBundle(await bundleOf(app.client, runId), new Map());
  assert.deepEqual(report.divergences, [], 'a bundle of the run has what it began with');

  await say(app, 'six');
  assert.equal(summariesOf(app), 2, 'a summary that is too long by now goes into the next one');
  assert.match(
    conversation(app.simulator.requests.findLast(isSummary) as SimulatedRequest).join('\n'),
    /They talked\./,
  );
  assert.equal(conversation(app.simulator.lastRequest())[0], summary);
});

forEachDoor('AGENT-39 a summary is not used where it does not belong', async (open) => {
  const fails = (request: SimulatedRequest): Scenario =>
    !isSummary(request) && lastOf(request, 'user') === 'break'
      ? { fault: { kind: 'status', status: 400, vendor: 'bad-request' } }
      : respond(request);
  const app = await openCompacting(open, summing, { respond: fails });
  for (const message of ['one', 'two', 'three']) await say(app, message);
  await app.client.runs
    .start({ params: { name: 'helper' }, body: { message: 'break', sessionId: 's', stream: false } })
    .catch(() => undefined);
  assert.equal(summariesOf(app), 1);
  await say(app, 'four');
  assert.equal(summariesOf(app), 2, 'a turn that is not kept leaves no summary');

  const branchOf = async (upToSequence: number, newSessionId: string) => {
    await app.client.sessions.branch({ params: { sessionId: 's' }, body: { upToSequence, newSessionId } });
    await runJson(app.client, 'helper', { message: 'again', sessionId: newSessionId });
    return conversation(app.simulator.lastRequest())[0];
  };
  assert.match((await branchOf(7, 'long')) ?? '', /Summary/);
  assert.equal(summariesOf(app), 2, 'a branch shares it');
  assert.equal(await branchOf(1, 'short'), 'user: one', 'but not what it does not have');

  const { body: agent } = await app.client.agents.get({ params: { name: 'helper' } });
  const changed = { ...agent.definition, compaction: { ...summing, summarizationPrompt: 'Sum up.' } };
  await app.client.agents.save({ params: { name: 'helper' }, body: changed as never });
  await say(app, 'five');
  assert.match(conversation(app.simulator.requests.at(-2) as SimulatedRequest)[0] ?? '', /^system: Sum up\./);
});

for (const model of [
  { provider: 'anthropic', model: 'claude-sonnet-4-5' },
  { provider: 'google', model: 'gemini-2.5-flash' },
  { provider: 'openai', model: 'gpt-4.1' },
  { provider: 'openai-responses', model: 'gpt-5-mini' },
])
  forEachDoor(`AGENT-37 a session goes on after its first turn was cut: ${model.provider}`, async (open) => {
    const answers: Scenario[] = [];
    const truncation = { strategy: 'Truncation', triggerTokens: 500, minimumPreservedGroups: 2 };
    const window = { strategy: 'ContextWindow', maxContextWindowTokens: 900, maxOutputTokens: 200 };
    const look = { model, toolNames: ['look'] };
    const app = await open({
      simulator: { respond: () => answers.shift() ?? says('Done.') },
      tools: [tool('look', async () => bulky, { inputSchema: { type: 'object' } })],
      agents: [
        { name: 'truncating', ...look, compaction: truncation },
        { name: 'fitting', ...look, compaction: { ...window, minimumPreservedGroups: 1 } },
        { name: 'harness', ...look, harness: { maxContextWindowTokens: 5000, maxOutputTokens: 500 } },
      ],
    });
    for (const name of ['truncating', 'fitting', 'harness']) {
      for (const round of [1, 2, 3]) answers.push(calls('look', { round }, `call_${round}`));
      for (const message of ['one', 'two', 'three']) {
        const { output } = await runJson(app.client, name, { message, sessionId: name });
        assert.equal(output, 'Done.', `${name}: ${message}`);
      }
    }
    assert.deepEqual(app.simulator.objections, []);
  });
