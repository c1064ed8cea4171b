import assert from 'node:assert/strict';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { overHttp, type TestApp } from '../../support/app.ts';
import {
  accept,
  bodyOf,
  externalRuns,
  newSpanId,
  newTraceId,
  openTraces,
  planner,
  post,
  postBytes,
  type SpanSetup,
  settled,
  span,
} from './traces-world.ts';

/* How much of what is sent is read and kept, up to each limit and beyond it. */

const agent = (begin: number, attributes: SpanSetup['attributes'] = {}, more: Partial<SpanSetup> = {}) =>
  span({
    ...{ traceId: newTraceId(), begin, from: 0, to: 10, operation: 'invoke_agent', ...more },
    attributes: { 'gen_ai.agent.name': 'one', ...attributes },
  });

const traceOf = async ({ client }: TestApp, runId: string | undefined) =>
  (await client.runs.trace({ params: { runId: runId ?? '' } })).body.spans;

overHttp('a span may end ten minutes from now, and not a millisecond later', async (open) => {
  const app = await openTraces(open);
  app.clock.stand();
  const now = app.clock.now();
  const ahead = 10 * 60_000;
  await accept(app, [agent(now, {}, { to: ahead })]);
  const { body } = await post(app, [agent(now, {}, { to: ahead + 1 })]);
  assert.equal(body.partialSuccess.rejectedSpans, '1');
});

overHttp('values are read to a depth of 16, in either encoding', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const nano = (at: number) => BigInt(at) * 1_000_000n;
  const json = (depth: number): object =>
    depth === 0 ? { stringValue: 'deep' } : { arrayValue: { values: [json(depth - 1)] } };
  const binary = (depth: number): Uint8Array =>
    depth === 0
      ? new BinaryWriter().tag(1, 2).string('deep').finish()
      : new BinaryWriter()
          .tag(5, 2)
          .bytes(
            new BinaryWriter()
              .tag(1, 2)
              .bytes(binary(depth - 1))
              .finish(),
          )
          .finish();
  const pair = (key: string, value: Uint8Array) =>
    new BinaryWriter().tag(1, 2).string(key).tag(2, 2).bytes(value).finish();
  const text = (value: string) => new BinaryWriter().tag(1, 2).string(value).finish();
  const binarySpan = (traceId: string, parent: string, depth: number) =>
    new BinaryWriter()
      .tag(1, 2)
      .bytes(Buffer.from(traceId, 'hex'))
      .tag(2, 2)
      .bytes(Buffer.from(newSpanId(), 'hex'))
      .tag(4, 2)
      .bytes(Buffer.from(parent, 'hex'))
      .tag(7, 1)
      .fixed64(nano(begin))
      .tag(8, 1)
      .fixed64(nano(begin + 5))
      .tag(9, 2)
      .bytes(pair('gen_ai.operation.name', text('execute_tool')))
      .tag(9, 2)
      .bytes(pair('gen_ai.tool.call.arguments', binary(depth)))
      .finish();
  for (const depth of [16, 17])
    for (const encoding of ['json', 'protobuf']) {
      const top = agent(begin);
      await accept(app, [top]);
      if (encoding === 'json') {
        const tool = span({ traceId: top.traceId, parent: top, begin, from: 0, to: 5, operation: 'execute_tool' });
        const attributes = [
          ...(tool['attributes'] as object[]),
          { key: 'gen_ai.tool.call.arguments', value: json(depth) },
        ];
        await accept(app, [{ ...tool, attributes }]);
      } else {
        const scope = new BinaryWriter()
          .tag(2, 2)
          .bytes(binarySpan(top.traceId, top.spanId, depth))
          .finish();
        const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish();
        const bytes = Uint8Array.from(new BinaryWriter().tag(1, 2).bytes(resource).finish());
        const answer = await postBytes(app, bytes, { headers: { 'content-type': 'application/x-protobuf' } });
        assert.deepEqual([answer.status, answer.bytes.length], [200, 0]);
      }
      const before = (await externalRuns(app)).length;
      await settled(app, before + 1);
      const run = (await externalRuns(app)).find(({ labels }) => labels?.['trace'] === top.traceId);
      const [call] = (await app.client.runs.tools({ params: { runId: run?.id ?? '' } })).body;
      const inner = depth === 16 ? '"deep"' : 'null';
      assert.equal(call?.arguments, `${'['.repeat(depth)}${inner}${']'.repeat(depth)}`, `${depth} ${encoding}`);
    }
});

overHttp('which spans became runs is known for a day: what comes below them until then is refused', async (open) => {
  const app = await openTraces(open);
  const trip = planner(app.clock.now() - 2000);
  await accept(app, trip.all);
  await settled(app, 1);
  await app.clock.jump(23 * 3_600_000);
  await app.clock.advance(3000);
  const begin = app.clock.now() - 2000;
  const late = span({ traceId: trip.traceId, parent: trip.agent, operation: 'chat', from: 0, to: 1, begin });
  assert.equal((await post(app, [late])).body.partialSuccess?.rejectedSpans, '1');
});

overHttp('a trace has 5000 spans, in however many requests they come', async (open) => {
  const app = await openTraces(open, { host: { Traces: { MaxRequestBytes: 67_108_864 } } });
  const begin = app.clock.now() - 2000;
  const top = agent(begin);
  const below = () => span({ traceId: top.traceId, parent: top, begin, from: 0, to: 5 });
  await accept(app, [top, ...Array.from({ length: 4997 }, below)]);
  const { body } = await post(app, Array.from({ length: 5 }, below));
  assert.deepEqual(body.partialSuccess, {
    rejectedSpans: '3',
    errorMessage: 'Not taken: 3 beyond the 5000 that one trace may have.',
  });
});

overHttp('a price is that of the provider that is named, else of the first by name that has one', async (open) => {
  const Pricing = {
    Currency: 'EUR',
    openai: { 'gpt-x': { Input: 1000, Output: 0 }, 'gpt-y': { Input: 3000, Output: 0 } },
    anthropic: { 'gpt-y': { Input: 2000, Output: 0 } },
  };
  const app = await openTraces(open, { simulator: {}, service: { Pricing } });
  const begin = app.clock.now() - 2000;
  const spent = (provider: string, model: string) =>
    agent(begin, {
      ...{
        'gen_ai.agent.name': `${provider}-${model}`,
        'gen_ai.provider.name': provider,
        'gen_ai.request.model': model,
      },
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 0,
    });
  await accept(app, [
    spent('openai', 'gpt-y'),
    spent('azure.ai.openai', 'gpt-y'),
    spent('azure.ai.openai', 'gpt-x'),
    spent('azure.ai.openai', 'gpt-z'),
  ]);
  const runs = await settled(app, 4);
  assert.deepEqual(runs.map(({ agentName, cost }) => `${agentName} ${cost?.totalCost ?? null}`).sort(), [
    'azure.ai.openai-gpt-x 1',
    'azure.ai.openai-gpt-y 2',
    'azure.ai.openai-gpt-z null',
    'openai-gpt-y 3',
  ]);
});

overHttp(
  'counts up to a thousand million are known, and tokens that the whole cannot hold are beside it or not told',
  async (open) => {
    const app = await openTraces(open);
    const begin = app.clock.now() - 2000;
    const most = 1_000_000_000;
    const counted = (name: string, input: number, cached: number, output: number, reasoning: number) =>
      agent(begin, {
        'gen_ai.agent.name': name,
        'gen_ai.usage.input_tokens': input,
        'gen_ai.usage.cache_read.input_tokens': cached,
        'gen_ai.usage.output_tokens': output,
        'gen_ai.usage.reasoning.output_tokens': reasoning,
      });
    await accept(app, [counted('a', most, 7, 5, 3), counted('b', most + 1, 7, 5, 3), counted('c', 5, 7, 2, 3)]);
    const runs = await settled(app, 3);
    const usage = Object.fromEntries(
      runs.map(({ agentName, usage: of }) => [
        agentName,
        [of?.inputTokens, of?.cachedInputTokens, of?.outputTokens, of?.reasoningTokens],
      ]),
    );
    // More was read from the cache than the input has: the sender counts them apart.
    assert.deepEqual(usage, { a: [most, 7, 5, 3], b: [null, null, 5, 3], c: [12, 7, 2, 2] });
  },
);

overHttp('of an error a word is kept and no text, wherever it stood; names are cut', async (open) => {
  const app = await openTraces(open, { service: { Observability: { PersistSpans: true } } });
  const begin = app.clock.now() - 2000;
  const words = 'denied for key Zanzibar-4711';
  const long = 'm'.repeat(300);
  const top = agent(begin, {
    ...{ 'error.type': words, 'gen_ai.response.model': long, 'gen_ai.response.id': long },
    ...{ 'gen_ai.usage.input_tokens': 1, 'gen_ai.conversation.id': long },
  });
  const on = { traceId: top.traceId, parent: top, begin, from: 0, to: 5 };
  const tool = span({ ...on, operation: 'execute_tool', isError: true, attributes: { 'error.type': words } });
  const other = { ...span(on), name: long, status: { code: 2, message: words } };
  const sent = await postBytes(app, JSON.stringify(bodyOf([top, tool, other], long)));
  assert.deepEqual(sent.body, {});
  assert.doesNotMatch(await app.store.text(), /Zanzibar/, 'not even while it waits');
  const [run] = await settled(app, 1);
  assert.doesNotMatch(await app.store.text(), /Zanzibar/);
  const [call] = (await app.client.runs.tools({ params: { runId: run?.id ?? '' } })).body;
  assert.deepEqual([run?.error?.type, call?.error], ['external_error', 'Tool failed: external_error']);
  const lengths = [run?.modelId, run?.labels?.['conversation'], run?.labels?.['service']].map((text) => text?.length);
  assert.deepEqual(lengths, [128, 256, 256]);
  const spans = await traceOf(app, run?.id);
  const [shown] = spans.filter(({ spanId }) => spanId === top.spanId);
  assert.deepEqual(
    [shown?.attributes['error.type'], String(shown?.attributes['gen_ai.response.id']).length],
    ['external_error', 256],
  );
  assert.equal(spans.find(({ spanId }) => spanId === other.spanId)?.name.length, 256);
});

overHttp('a trace has what was said, and as many spans, as the settings for traces say', async (open) => {
  for (const [Observability, hasContent, count] of [
    [{ PersistSpans: true }, false, 7],
    [{ PersistSpans: true, RecordSensitiveData: true }, true, 7],
    // Two runs are one trace.
    [{ PersistSpans: true, MaxSpansPerRun: 2 }, false, 4],
  ] as const) {
    const app = await openTraces(open, { service: { Observability } });
    await accept(app, planner(app.clock.now() - 2000).all);
    const [run] = await settled(app, 1);
    const spans = await traceOf(app, run?.id);
    assert.equal(spans.length, count);
    assert.equal(/Plan my trip|hotels/.test(JSON.stringify(spans)), hasContent);
  }
});

overHttp('agents inside of each other are runs to a depth of 64, and what is below is of the last', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const chain = [agent(begin, { 'gen_ai.agent.name': 'a0' })];
  for (let depth = 1; depth < 70; depth += 1)
    chain.push(
      agent(
        begin,
        { 'gen_ai.agent.name': `a${depth}` },
        { traceId: chain[0]?.traceId ?? '', parent: chain[depth - 1] ?? assert.fail() },
      ),
    );
  await accept(app, chain);
  const [run] = await settled(app, 1);
  const { body: tree } = await app.client.runs.tree({ params: { runId: run?.id ?? '' } });
  assert.deepEqual([tree.length, Math.max(...tree.map(({ depth }) => depth))], [65, 64]);
});

overHttp(
  'a span below another process begins a part of its own, of which the host is asked as of any',
  async (open) => {
    const denied = new Set<string | null>();
    const runAuthorization = {
      authorize: async ({ action, agentName }: RunAuthorizationRequest) => ({
        allowed: action !== 'Start' || !denied.has(agentName),
      }),
    };
    const app = await openTraces(open, { module: { runAuthorization } });
    const begin = app.clock.now() - 2000;
    const remote = { flags: 0x300 };
    const elsewhere = span({ traceId: newTraceId(), begin, from: 0, to: 10 });
    const on = { traceId: elsewhere.traceId, parent: elsewhere, begin, from: 0, to: 5 };
    const chat = () => span({ ...on, operation: 'chat', attributes: { 'gen_ai.usage.input_tokens': 4 } });

    // Neither names an agent: the run is of the service.
    denied.add('planner-service');
    for (const spans of [[elsewhere], [{ ...chat(), ...remote }]]) {
      const refused = await post(app, spans);
      assert.deepEqual([refused.status, refused.body.code], [403, 7]);
    }
    denied.clear();
    denied.add('booker');
    assert.equal((await post(app, planner(begin).all)).status, 403, 'nor may an agent below be one that is denied');
    assert.equal(await app.store.count('spans of agents elsewhere'), 0);
    denied.clear();

    // With its parent in another process it waits for nobody; in the same process it waits for its root.
    await accept(app, [
      { ...chat(), ...remote },
      { ...chat(), flags: 0x100 },
    ]);
    const [run, ...rest] = await settled(app, 1);
    assert.deepEqual([run?.agentName, run?.usage?.inputTokens, rest], ['planner-service', 4, []]);
    assert.equal((await settled(app, 2, '6m')).length, 2);
  },
);
