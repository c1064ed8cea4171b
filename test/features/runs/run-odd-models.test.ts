import assert from 'node:assert/strict';
import { type AppSetup, forEachDoor, forEachDurableService } from '../../support/app.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { surfaceCases } from '../../support/providers/surface-cases.ts';
import { getRun, listRuns, refusal, runJson, runStream, start, tool } from './run-calls.ts';

/** The reason of each wire that says the provider gave up. */
const failures = { chat: 'error', azure: 'brand_new', responses: 'brand_new', anthropic: 'brand_new', gemini: 'OTHER' };

for (const surface of surfaceCases)
  forEachDoor(
    `MODEL-22 RUN-63 a complete External call before a bad end is not made: ${surface.provider}`,
    async (open) => {
      if (surface.wire === 'embeddings') return;
      let sent = 0;
      const app = await open({
        simulator: {},
        tools: [tool('send', async () => `sent ${++sent}`, { effect: 'External' })],
        agents: [
          { name: 'alone', model: { provider: surface.provider, model: surface.model }, toolNames: ['send'] },
          {
            name: 'helped',
            model: {
              provider: surface.provider,
              model: surface.model,
              fallbacks: [{ provider: 'local', model: 'any' }],
            },
            toolNames: ['send'],
          },
        ],
      });
      const reason = failures[surface.wire];
      const bad = { answer: { text: ['Half'], toolCalls: [{ id: 'c1', name: 'send', arguments: '{}' }], reason } };
      app.simulator.enqueue(bad, bad, { answer: { text: ['Done.'] } });

      const { runId, events } = await runStream(app.client, 'alone', 'Hi');
      assert.equal(events.at(-1)?.type, 'run.failed');
      const { error } = await getRun(app.client, runId);
      assert.deepEqual([error?.class, error?.type], ['ProviderError', 'provider_error']);
      assert.match(error?.message ?? '', new RegExp(`"${surface.provider}" ended its answer with "${reason}"`));

      const answer = await runJson(app.client, 'helped', 'Hi');
      assert.deepEqual([answer.output, answer.modelProvider], ['Done.', 'local']);
      assert.equal(sent, 0);

      app.simulator.enqueue(bad);
      const refused = await refusal(start(app.client, 'alone', { message: 'Hi', stream: false }));
      assert.deepEqual([refused.status, refused.errorType], [502, 'provider_error']);
    },
  );

type Messages = readonly Readonly<Record<string, unknown>>[];
const messagesOf = ({ body }: SimulatedRequest): Messages => body['messages'] as Messages;
const callsIn = (request: SimulatedRequest): Messages =>
  messagesOf(request).filter((message) => Array.isArray(message['tool_calls']));

const compatible = (more: object = {}, model = 'deepseek-v4', rest: AppSetup = {}): AppSetup => ({
  simulator: {},
  tools: [tool('look', async () => 'seen')],
  agents: [{ name: 'helper', model: { provider: 'local', model }, toolNames: ['look'] }],
  ...rest,
  service: { Providers: { Compatible: { local: more } }, ...rest.service },
});

const looks = (reasoning: readonly string[] | undefined, oddities = {}) => ({
  answer: {
    ...(reasoning && { reasoning }),
    text: ['Let me look.'],
    toolCalls: [{ id: 'c1', name: 'look', arguments: '{}' }],
    oddities,
  },
});
const says = (text: string, oddities = {}) => ({ answer: { reasoning: ['Clear', ' now.'], text: [text], oddities } });

forEachDurableService(
  'MODEL-6 reasoning_content goes back with the calls of tools, in later turns and runs too',
  async (open) => {
    const app = await open(compatible());
    for (const stream of [true, false]) {
      const sessionId = `s-${stream}`;
      const ask = (message: string) =>
        stream
          ? runStream(app.client, 'helper', { message, sessionId })
          : runJson(app.client, 'helper', { message, sessionId });
      // The second call has no thought before it, which the endpoint wants said all the same.
      app.simulator.enqueue(
        looks(['I should', ' look.']),
        looks(undefined),
        says('It is there.'),
        says('Still there.'),
      );
      await ask('Where is it?');
      const { runId } = await ask('And now?');
      assert.equal((await getRun(app.client, runId)).status, 'Completed');
      const last = app.simulator.lastRequest();
      assert.deepEqual(
        callsIn(last).map((message) => message['reasoning_content']),
        ['I should look.', ''],
      );
      // With an answer it would only fill the context.
      assert.equal(messagesOf(last).filter((message) => 'reasoning_content' in message).length, 2);
    }
  },
);

forEachDoor('MODEL-6 reasoning_details go back as they came, in one piece', async (open) => {
  const apps = [
    await open(compatible({}, 'anthropic/claude')),
    await open(compatible({ ReasoningReplay: 'ReasoningDetails' }, 'anthropic/claude')),
  ];
  for (const [app, stream] of apps.flatMap((one) => [true, false].map((streamed) => [one, streamed] as const))) {
    const sessionId = `s-${stream}`;
    const ask = (message: string) =>
      stream
        ? runStream(app.client, 'helper', { message, sessionId })
        : runJson(app.client, 'helper', { message, sessionId });
    const oddities = { reasoningIn: 'reasoning_details' };
    app.simulator.enqueue(looks(['I should', ' look.'], oddities), says('There.', oddities), says('Yes.'));
    await ask('Where is it?');
    await ask('And now?');
    const sent = messagesOf(app.simulator.lastRequest()).filter(({ role }) => role === 'assistant');
    const details = (text: string) => [
      { type: 'reasoning.text', text, format: 'anthropic-claude-v1', index: 0, signature: 'sig-1' },
      { type: 'reasoning.encrypted', data: 'c2VjcmV0', id: 'rs_1', format: 'openai-responses-v1', index: 1 },
    ];
    assert.deepEqual(
      sent.map((message) => message['reasoning_details']),
      [details('I should look.'), details('Clear now.')],
    );
    assert.ok(sent.every((message) => !('reasoning_content' in message)));
  }
});

forEachDoor('MODEL-6 reasoning goes to no provider that has not sent it so', async (open) => {
  const others = surfaceCases.filter(({ provider }) => provider !== 'local');
  const of = (provider: string, model: string) => ({ provider, model });
  const { client, simulator } = await open(
    compatible({}, 'deepseek-v4', {
      agents: others.flatMap(({ provider, model }) => [
        {
          name: `to-${provider}`,
          model: { ...of('local', 'deepseek-v4'), fallbacks: [of(provider, model)] },
          toolNames: ['look'],
        },
        {
          name: `from-${provider}`,
          model: { ...of(provider, model), fallbacks: [of('local', 'any')] },
          toolNames: ['look'],
        },
      ]),
      service: { CircuitBreaker: { Enabled: false } },
    }),
  );
  for (const { provider } of others)
    for (const name of [`to-${provider}`, `from-${provider}`]) {
      simulator.enqueue(looks(['I should', ' look.']), { fault: { kind: 'status', status: 503 } }, says('There.'));
      assert.equal((await runJson(client, name, 'Where is it?')).output, 'There.');
      assert.ok(!JSON.stringify(simulator.lastRequest().body).includes('I should look.'), name);
    }
});

for (const [setting, member, text] of [
  ['ReasoningContent', 'reasoning_content', 'I should look.'],
  ['Reasoning', 'reasoning', 'I should look.'],
  ['None', null, null],
  ['ReasoningDetails', null, null],
] as const)
  forEachDoor(`MODEL-6 Providers:Compatible:{name}:ReasoningReplay ${setting} decides in its place`, async (open) => {
    for (const reasoningIn of ['reasoning_content', 'reasoning'] as const) {
      const app = await open(compatible({ ReasoningReplay: setting }, 'any'));
      const oddities = reasoningIn === 'reasoning' ? { reasoningIn } : {};
      app.simulator.enqueue(looks(['I should', ' look.'], oddities), says('There.'));
      await runJson(app.client, 'helper', 'Where is it?');
      const [call] = callsIn(app.simulator.lastRequest());
      const sent = Object.entries(call ?? {}).filter(([name]) => name.startsWith('reasoning'));
      assert.deepEqual(sent, member === null ? [] : [[member, text]]);
    }
  });

forEachDoor('MODEL-6 an endpoint that wants its reasoning and does not get it refuses the run', async (open) => {
  const app = await open(compatible({ ReasoningReplay: 'None' }));
  app.simulator.enqueue(looks(['I should', ' look.']), says('There.'));
  await refusal(start(app.client, 'helper', { message: 'Where is it?', stream: false }));
  const [run] = await listRuns(app.client, { take: 1 });
  assert.deepEqual([run?.status, run?.error?.type], ['Failed', 'provider_error']);
});
