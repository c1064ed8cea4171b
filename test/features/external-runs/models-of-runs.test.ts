import assert from 'node:assert/strict';
import { forEachHttpService, overHttp, type TestApp } from '../../support/app.ts';
import { accept, externalRuns, newTraceId, openTraces, settled, span } from './traces-world.ts';

/* Which model a run from outside is of, and what each of its models used. */

const prices = {
  Currency: 'EUR',
  openai: {
    'gpt-x': { Input: 1000, Output: 2000 },
    'gpt-mini': { Input: 100, Output: 200 },
    'embed-x': { Input: 10 },
  },
};

interface Call {
  readonly model: string;
  readonly operation?: string;
  /** Tokens of input and output; absent: not reported. */
  readonly used?: readonly [input: number, output: number];
  readonly fails?: boolean;
}

/** Sends an agent with calls of models, one after the other. */
const sendAgent = (app: TestApp, name: string, calls: readonly Call[]): Promise<void> => {
  const begin = app.clock.now() - 60_000;
  const traceId = newTraceId();
  const agent = span({
    ...{ traceId, begin, from: 0, to: 1000, operation: 'invoke_agent' },
    attributes: { 'gen_ai.agent.name': name },
  });
  const below = calls.map(({ model, operation = 'chat', used, fails = false }, at) =>
    span({
      ...{ traceId, begin, parent: agent, operation, from: 10 * at + 1, to: 10 * at + 9, isError: fails },
      attributes: {
        ...{ 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': model },
        ...(used === undefined ? {} : { 'gen_ai.usage.input_tokens': used[0], 'gen_ai.usage.output_tokens': used[1] }),
      },
    }),
  );
  return accept(app, [agent, ...below]);
};

const embedding = { model: 'embed-x', operation: 'embeddings', used: [10, 0] } as const;
const failure = { model: 'gpt-broken', fails: true };
const large = { model: 'gpt-x', used: [1000, 1250] } as const;

/** Runs, input tokens and cost of a model in the last hours. */
const seriesOf = async ({ client }: TestApp, modelId: string): Promise<readonly [number, number, number]> => {
  const { body } = await client.statistics.timeseries({ query: { modelId, kind: 'External' } });
  const sum = (pick: (point: (typeof body)[number]) => number | null) =>
    body.reduce((total, point) => total + (pick(point) ?? 0), 0);
  return [sum(({ runs }) => runs), sum(({ inputTokens }) => inputTokens), sum(({ cost }) => cost)];
};

forEachHttpService(
  'RUN-59 MODEL-29 a run from outside is of the model that it cost most of, and each model has what its calls used',
  async (open) => {
    const app = await openTraces(open, { service: { Pricing: prices } });
    await sendAgent(app, 'many', [
      { model: 'gpt-mini', used: [100, 0] },
      large,
      { model: 'gpt-mini', used: [400, 0] },
      embedding,
      failure,
    ]);
    await sendAgent(app, 'one', [large, large, failure]);
    const [one, many] = [...(await settled(app, 2))].sort((a, b) => (a.agentName < b.agentName ? 1 : -1));
    assert.deepEqual([many?.modelProvider, many?.modelId, many?.usage?.inputTokens], ['openai', 'gpt-x', 1510]);
    assert.deepEqual(many?.cost, {
      ...{ inputCost: 1.0501, inputPricePerMillionTokens: null },
      ...{ outputCost: 2.5, outputPricePerMillionTokens: null },
      ...{ cachedInputCost: null, cachedInputPricePerMillionTokens: null },
      ...{ totalCost: 3.5501, currency: 'EUR', source: 'Configuration' },
    });
    assert.deepEqual(
      [one?.modelId, one?.cost?.inputPricePerMillionTokens, one?.cost?.outputPricePerMillionTokens],
      ['gpt-x', 1000, 2000],
    );
    const found = Object.fromEntries(
      await Promise.all(
        ['gpt-x', 'gpt-mini', 'embed-x', 'gpt-broken'].map(async (model) => [model, await seriesOf(app, model)]),
      ),
    );
    assert.deepEqual(found, {
      'gpt-x': [2, 3000, 10.5],
      'gpt-mini': [1, 500, 0.05],
      'embed-x': [1, 10, 0.0001],
      'gpt-broken': [0, 0, 0],
    });
  },
);

overHttp(
  'a run from outside is named by what succeeded and generated something, else by what there was',
  async (open) => {
    const app = await openTraces(open, { service: { Pricing: prices } });
    const cases: readonly (readonly [string, readonly Call[], string])[] = [
      ['failed-last', [large, failure], 'gpt-x'],
      ['failed-first', [{ ...failure, used: [9_000_000, 0] }, embedding], 'embed-x'],
      ['failed-alone', [failure], 'gpt-broken'],
      [
        'embedding-dear',
        [
          { model: 'gpt-mini', used: [1, 0] },
          { ...embedding, used: [9_000_000, 0] },
        ],
        'gpt-mini',
      ],
      ['embedding-alone', [embedding], 'embed-x'],
      // Without a price for each of them tokens decide, and the last of equal ones.
      ['unpriced', [{ model: 'free-a', used: [900, 0] }, large], 'gpt-x'],
      ['unpriced-more', [{ model: 'free-a', used: [9000, 0] }, large], 'free-a'],
      ['equal', [{ model: 'free-a' }, { model: 'free-b' }], 'free-b'],
    ];
    for (const [name, calls] of cases) await sendAgent(app, name, calls);
    const runs = await settled(app, cases.length);
    assert.deepEqual(
      Object.fromEntries(runs.map(({ agentName, modelId }) => [agentName, modelId])),
      Object.fromEntries(cases.map(([name, , model]) => [name, model])),
    );
  },
);

overHttp('of a run with very many models the first have shares of their own, and the sums are of all', async (open) => {
  const app = await openTraces(open, { service: { Pricing: prices } });
  await sendAgent(
    app,
    'crowd',
    Array.from({ length: 100 }, (_, at) => ({ model: `free-${at}`, used: [1, 1] as const })),
  );
  const [run] = await settled(app, 1);
  assert.equal(run?.usage?.totalTokens, 200);
  const found = await Promise.all(['free-0', 'free-30', 'free-31', 'free-99'].map((model) => seriesOf(app, model)));
  assert.deepEqual(
    found.map(([runs]) => runs),
    [1, 1, 0, 0],
  );
});

overHttp('a call that succeeded without a report of its tokens counts as a call of its model', async (open) => {
  const app = await openTraces(open, { service: { Pricing: prices } });
  await sendAgent(app, 'silent', [large, { model: 'gpt-silent' }]);
  await settled(app, 1);
  assert.deepEqual(await seriesOf(app, 'gpt-silent'), [1, 0, 0]);
});

overHttp(
  'RUN-60 a price that is found later is that of its model alone, and known costs of the others stay',
  async (open) => {
    const { 'gpt-x': _later, ...known } = prices.openai;
    const before = await openTraces(open, { service: { Pricing: { Currency: 'EUR', openai: known } } });
    await sendAgent(before, 'many', [large, { model: 'gpt-mini', used: [1000, 0] }]);
    const [unpriced] = await settled(before, 1);
    assert.deepEqual([unpriced?.modelId, unpriced?.cost?.totalCost ?? null], ['gpt-x', null]);
    assert.deepEqual(await seriesOf(before, 'gpt-mini'), [1, 1000, 0.1]);
    await before.close();
    const openai = { ...prices.openai, 'gpt-mini': { Input: 7, Output: 7 } };
    const after = await openTraces(open, {
      ...{ folder: before.folder, clock: before.clock, service: { Pricing: { ...prices, openai } } },
    });
    assert.equal((await after.client.statistics.recalculateCosts({})).body.runsUpdated, 1);
    assert.equal((await externalRuns(after))[0]?.cost?.totalCost, 3.6);
    assert.deepEqual(
      [await seriesOf(after, 'gpt-x'), await seriesOf(after, 'gpt-mini')],
      [
        [1, 1000, 3.5],
        [1, 1000, 0.1],
      ],
    );
  },
);
