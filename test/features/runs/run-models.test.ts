import assert from 'node:assert/strict';
import { forEachDoor } from '../../support/app.ts';
import type { SimulatedUsage } from '../../support/providers/scenario.ts';
import { surfaceCases } from '../../support/providers/surface-cases.ts';
import {
  callsTools,
  getRun,
  type LoggedEvent,
  listRuns,
  refusal,
  runJson,
  runStream,
  start,
  tool,
  typesOf,
} from './run-calls.ts';

const local = { provider: 'local', model: 'any' };
const ofType = (events: readonly LoggedEvent[], type: string) => events.filter((event) => event.type === type);

for (const surface of surfaceCases)
  forEachDoor(`RUN-22 RUN-38 an agent answers with tools and usage over ${surface.provider}`, async (open) => {
    const app = await open({
      simulator: {},
      tools: [tool('look', async () => 'seen')],
      agents: [{ name: 'helper', model: { provider: surface.provider, model: surface.model }, toolNames: ['look'] }],
    });
    const enqueue = () =>
      app.simulator.enqueue(
        {
          answer: {
            text: ['Let me', ' look.'],
            toolCalls: [
              { id: 'c1', name: 'look', arguments: '{}' },
              { id: 'c2', name: 'look', arguments: '{}' },
            ],
            usage: { input: 10, output: 6, cached: 4 },
          },
        },
        { answer: { text: ['It is', ' there.'], usage: { input: 20, output: 5 } } },
      );
    enqueue();
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    assert.equal(events.at(-1)?.['output'], 'It is there.');
    assert.equal(ofType(events, 'tool.invoked').length, 2);
    const { usage } = await getRun(app.client, runId);
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens, usage?.totalTokens], [30, 11, 41]);
    assert.equal(usage?.cachedInputTokens, 4);
    assert.deepEqual(
      ofType(events, 'usage.updated').map((event) => event['usage'].totalTokens),
      [16, 41],
    );
    enqueue();
    const answer = await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual([answer.output, answer.usage?.totalTokens, answer.finishReason], ['It is there.', 41, 'Stop']);
    assert.equal(app.simulator.lastRequest().streaming, false);
  });

forEachDoor('RUN-38 what a provider does not report is null, never 0', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: local }] });
  app.simulator.enqueue({ answer: { text: ['Hi'], usage: null } });
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  const run = await getRun(app.client, runId);
  assert.deepEqual([run.usage, run.treeUsage, events.at(-1)?.['usage']], [null, null, null]);
  app.simulator.enqueue({ answer: { text: ['Hi'], usage: { input: 5, output: 9, reasoning: 7 } } });
  const answer = await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(answer.usage, {
    inputTokens: 5,
    outputTokens: 9,
    totalTokens: 14,
    cachedInputTokens: null,
    reasoningTokens: 7,
    audioInputTokens: null,
    audioOutputTokens: null,
  });
});

const fallbacks = [
  { provider: 'openai', model: 'second' },
  { provider: 'anthropic', model: 'third' },
];

forEachDoor(
  'RUN-63 AGENT-24 fallbacks are tried in order, and the run is that of the model that answered',
  async (open) => {
    const app = await open({
      simulator: {},
      service: {
        Pricing: {
          Currency: 'EUR',
          local: { any: { Input: 1, Output: 1 } },
          anthropic: { third: { Input: 3, Output: 3 } },
        },
      },
      agents: [
        {
          name: 'helper',
          model: {
            ...local,
            temperature: 0.5,
            fallbacks,
            providerSettings: { 'local.seed': 1, 'openai.seed': 2 },
          },
        },
      ],
    });
    app.simulator.enqueue(
      { fault: { kind: 'status', status: 500 } },
      { fault: { kind: 'status', status: 429, vendor: 'rate-limit' } },
      { answer: { text: ['Third.'], usage: { input: 1_000_000, output: 1_000_000 } } },
    );
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    assert.deepEqual(
      app.simulator.requests.map((request) => request.model),
      ['any', 'second', 'third'],
    );
    assert.deepEqual(
      app.simulator.requests.map((request) => request.body['seed']),
      [1, 2, undefined],
    );
    assert.deepEqual(
      app.simulator.requests.map((request) => request.body['temperature']),
      [0.5, 0.5, 0.5],
    );
    assert.deepEqual(
      ofType(events, 'model.fallback-used').map((event) => [
        event['fromProvider'],
        event['fromModel'],
        event['toProvider'],
        event['toModel'],
        event['errorClass'],
      ]),
      [
        ['local', 'any', 'openai', 'second', 'ProviderError'],
        ['openai', 'second', 'anthropic', 'third', 'RateLimited'],
      ],
    );
    const run = await getRun(app.client, runId);
    assert.deepEqual([run.modelProvider, run.modelId, run.cost?.totalCost], ['anthropic', 'third', 6]);
  },
);

forEachDoor('RUN-63 when all fail the first error stands, and its message names every provider', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: { ...local, fallbacks } }] });
  const faults = [429, 500, 503].map((status) => ({ fault: { kind: 'status', status } as const }));
  for (const stream of [true, false]) {
    app.simulator.enqueue(...faults);
    if (stream) await runStream(app.client, 'helper', 'Hi');
    else await refusal(start(app.client, 'helper', { message: 'Hi', stream }));
    const [run] = await listRuns(app.client, { take: 1 });
    assert.deepEqual([run?.error?.class, run?.error?.type], ['RateLimited', 'provider_rate_limited']);
    assert.match(run?.error?.message ?? '', /"local", "openai", "anthropic"/);
    assert.deepEqual([run?.modelProvider, run?.modelId], ['local', 'any']);
  }
});

forEachDoor('RUN-63 there is no fallback for what would fail again, nor after the first output', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: { ...local, fallbacks } }] });
  const refusals = [
    { fault: { kind: 'status', status: 400, vendor: 'bad-request' } },
    { fault: { kind: 'status', status: 401, vendor: 'bad-key' } },
    { fault: { kind: 'status', status: 403, vendor: 'bad-key' } },
    { fault: { kind: 'status', status: 400, vendor: 'filter' } },
    { answer: { text: ['Half an', ' answer'] }, fault: { kind: 'cut', after: 2 } },
  ] as const;
  for (const scenario of refusals) {
    const before = app.simulator.requests.length;
    app.simulator.enqueue(scenario);
    const { events } = await runStream(app.client, 'helper', 'Hi');
    assert.equal(events.at(-1)?.type, 'run.failed');
    assert.equal(app.simulator.requests.length, before + 1, JSON.stringify(scenario));
  }
});

forEachDoor('RUN-63 a JSON answer falls back also when the first model broke off its answer', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: { ...local, fallbacks } }] });
  app.simulator.enqueue({ answer: { text: ['Half an answer'] }, fault: { kind: 'cut', after: 1 } });
  const answer = await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual([answer.modelProvider, answer.output], ['openai', 'Hello from the simulator.']);
});

const priced = (usage: SimulatedUsage) => ({ answer: { text: ['Hi'], usage } });

forEachDoor('RUN-61 RUN-62 cost follows from the prices of the moment, rounded half to even', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      Providers: {
        Compatible: {
          local: {
            Models: [
              {
                Name: 'listed',
                InputCostPerMillionTokens: 2.5,
                OutputCostPerMillionTokens: 10,
                CachedInputCostPerMillionTokens: 0.5,
              },
              { Name: 'half', OutputCostPerMillionTokens: 10 },
              { Name: 'unpriced' },
            ],
          },
        },
      },
      Pricing: {
        Currency: 'EUR',
        local: { listed: { Input: 99, Output: 99 }, unpriced: { Input: 4, Output: 8 }, half: { Input: 99 } },
      },
    },
    agents: ['listed', 'half', 'unpriced', 'unknown'].map((model) => ({
      name: model,
      model: { provider: 'local', model },
    })),
  });
  const costOf = async (agent: string, usage: SimulatedUsage) => {
    app.simulator.enqueue(priced(usage));
    return (await runJson(app.client, agent, 'Hi')).cost;
  };
  assert.deepEqual(await costOf('listed', { input: 1000, output: 100, cached: 400 }), {
    inputCost: 0.0015,
    inputPricePerMillionTokens: 2.5,
    outputCost: 0.001,
    outputPricePerMillionTokens: 10,
    cachedInputCost: 0.0002,
    cachedInputPricePerMillionTokens: 0.5,
    totalCost: 0.0027,
    currency: 'EUR',
    source: 'Catalog',
  });
  // 1 and 3 tokens at 2.5 are 2.5 and 7.5 micro-units.
  assert.equal((await costOf('listed', { input: 1, output: 0 }))?.inputCost, 0.000002);
  assert.equal((await costOf('listed', { input: 3, output: 0 }))?.inputCost, 0.000008);
  const half = await costOf('half', { input: 10, output: 100 });
  assert.deepEqual([half?.inputCost, half?.outputCost, half?.totalCost, half?.source], [null, 0.001, null, 'Catalog']);
  const configured = await costOf('unpriced', { input: 1_000_000, output: 500_000, cached: 400_000 });
  assert.deepEqual(
    [
      configured?.inputCost,
      configured?.outputCost,
      configured?.cachedInputCost,
      configured?.totalCost,
      configured?.source,
    ],
    [4, 4, null, 8, 'Configuration'],
  );
  const unknown = await costOf('unknown', { input: 1, output: 1 });
  assert.deepEqual([unknown?.totalCost, unknown?.source, unknown?.currency], [null, 'Unknown', 'EUR']);
});

forEachDoor('RUN-61 MODEL-29 a later price changes no run that is stored', async (open) => {
  const prices = (input: number) => ({ Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: input, Output: 1 } } } });
  const script = [{ reply: { text: 'Hi', usage: { inputTokens: 1_000_000, outputTokens: 0 } } }];
  const app = await open({ script, service: prices(3), agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const before = await getRun(app.client, runId);
  assert.equal(before.cost?.totalCost, 3);
  assert.equal(before.treeCost?.totalCost, 3);
  await app.close();
  const later = await open({ script, service: prices(7), folder: app.folder });
  assert.deepEqual(await getRun(later.client, runId), before);
});

const spends = (inputTokens: number) => [
  { reply: { toolCalls: [{ name: 'look', arguments: {} }], usage: { inputTokens, outputTokens: 0 } } },
];
const look = tool('look', async () => 'seen');
const looker = { name: 'helper', toolNames: ['look'] };

forEachDoor('RUN-49 the cost of a tree is limited; what has no price counts by its tokens', async (open) => {
  const { client } = await open({
    tools: [look],
    script: spends(1_000_000),
    service: {
      AgentGraph: { MaxTotalCost: 5, MaxTotalTokens: 0 },
      Tools: { MaxIterations: 8 },
      Pricing: { Currency: 'EUR', demo: { priced: { Input: 2, Output: 2 } } },
    },
    agents: [
      { ...looker, model: { provider: 'demo', model: 'priced' } },
      { ...looker, name: 'free', model: { provider: 'demo', model: 'unpriced' } },
    ],
  });
  const { runId, events } = await runStream(client, 'helper', 'Hi');
  const run = await getRun(client, runId);
  assert.deepEqual([run.status, run.error?.class, run.error?.type], ['Failed', 'QuotaExceeded', 'budget_exceeded']);
  assert.equal(run.cost?.totalCost, 6, 'the call that passed the limit was made; the next was not');
  assert.equal(ofType(events, 'message.completed').length, 3);
  const problem = await refusal(start(client, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([problem.status, problem.code, problem.errorType], [422, 'run-budget-exceeded', 'budget_exceeded']);
  const free = await refusal(start(client, 'free', { message: 'Hi', stream: false }));
  assert.equal(free.code, 'provider-error', 'no rule of the script is left: the cost did not end it');
});

forEachDoor('RUN-49 tokens are limited, and a limit of 0 is none', async (open) => {
  const limited = await open({
    tools: [look],
    script: spends(60),
    service: { AgentGraph: { MaxTotalTokens: 100 } },
    agents: [looker],
  });
  const { events } = await runStream(limited.client, 'helper', 'Hi');
  assert.equal(ofType(events, 'message.completed').length, 2);
  assert.equal(events.at(-1)?.['error'].type, 'budget_exceeded');
  const free = await open({
    tools: [look],
    script: [{ when: { call: 9 }, reply: { text: 'Over.' } }, ...spends(1_000_000)],
    service: { AgentGraph: { MaxTotalTokens: 0 } },
    agents: [looker],
  });
  assert.equal((await runJson(free.client, 'helper', 'Hi')).output, 'Over.');
});

forEachDoor('RUN-49 the time of a tree is limited, and cuts a call that is in progress', async (open) => {
  const { client } = await open({
    script: [{ reply: { text: 'So', stall: true } }],
    service: { AgentGraph: { MaxDuration: '400ms' } },
    agents: [{ name: 'helper' }],
  });
  const { events } = await runStream(client, 'helper', 'Hi');
  const end = events.at(-1);
  assert.deepEqual(
    [end?.type, end?.['error'].class, end?.['error'].type],
    ['run.failed', 'QuotaExceeded', 'budget_exceeded'],
  );
  assert.ok(typesOf(events).includes('message.delta'));
});

forEachDoor('RUN-20 structured output is parsed where the format asks for it', async (open) => {
  const { client } = await open({
    script: [{ when: { message: 'good' }, reply: { text: '{"n":[1]}' } }, { reply: { text: 'not JSON' } }],
    agents: [
      { name: 'json', model: { provider: 'demo', model: 'x', responseFormat: { kind: 'Json' } } },
      { name: 'text' },
    ],
  });
  assert.deepEqual((await runJson(client, 'json', 'good')).structuredOutput, { n: [1] });
  assert.equal((await runJson(client, 'json', 'bad')).structuredOutput, null);
  assert.equal((await runJson(client, 'text', 'good')).structuredOutput, null);
  const { events } = await runStream(client, 'json', 'good');
  assert.deepEqual(events.at(-1)?.['structuredOutput'], { n: [1] });
});

forEachDoor('RUN-20 an answer that was cut by its length says so', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: local }] });
  app.simulator.enqueue({ answer: { text: ['Half'], finish: 'length' } }, { answer: { text: [''], finish: 'filter' } });
  assert.equal((await runJson(app.client, 'helper', 'Hi')).finishReason, 'Length');
  const filtered = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([filtered.status, filtered.code, filtered.errorType], [422, 'content-filtered', 'content_filtered']);
});

forEachDoor('RUN-38 usage of every model call is added up in the events', async (open) => {
  const { client } = await open({
    tools: [look],
    script: callsTools('look'),
    agents: [looker],
  });
  const { events, runId } = await runStream(client, 'helper', 'Hi');
  const updates = ofType(events, 'usage.updated');
  assert.equal(updates.length, 2);
  assert.deepEqual(updates.at(-1)?.['usage'], (await getRun(client, runId)).usage);
});
