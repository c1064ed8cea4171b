import assert from 'node:assert/strict';
import { SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { overHttp } from '../../support/app.ts';
import { assertWholeLog, collect } from '../runs/run-calls.ts';
import { accept, externalRuns, newTraceId, openTraces, settled, span } from './traces-world.ts';

const call = (begin: number, attributes: Readonly<Record<string, string | number | readonly string[]>>) =>
  span({ traceId: newTraceId(), begin, from: 0, to: 100, attributes });

overHttp('of two conventions in a span that of OpenTelemetry counts', async (open) => {
  const app = await openTraces(open);
  const both = call(app.clock.now() - 2000, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-x',
    'gen_ai.usage.input_tokens': 1000,
    'gen_ai.usage.output_tokens': 500,
    'gen_ai.conversation.id': 'ours',
    'openinference.span.kind': 'AGENT',
    'llm.model_name': 'another',
    'llm.system': 'another',
    'llm.token_count.prompt': 7,
    'llm.token_count.completion': 7,
    'session.id': 'theirs',
  });
  await accept(app, [both]);
  const [run] = await settled(app, 1);
  assert.deepEqual(
    [run?.agentName, run?.modelProvider, run?.modelId, run?.usage?.totalTokens, run?.labels?.['conversation']],
    ['planner-service', 'openai', 'gpt-x', 1500, 'ours'],
  );
});

overHttp('what the settings do not record is not stored under other names either', async (open) => {
  const app = await openTraces(open, {
    service: {
      RunRecording: { RecordRunInput: false, RecordToolPayloads: false },
      Observability: { PersistSpans: true, RecordSensitiveData: false },
    },
  });
  const begin = app.clock.now() - 2000;
  const agent = call(begin, { 'ai.operationId': 'ai.generateText', 'ai.prompt': '{"prompt":"Zanzibar one"}' });
  const on = { traceId: agent.traceId, parent: agent, begin, from: 10, to: 20 };
  const model = span({
    ...on,
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.model_name': 'gpt-x',
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.content': 'Zanzibar two',
      'input.value': 'Zanzibar three',
      metadata: '{"note":"Zanzibar four"}',
      'user.id': 'Zanzibar five',
    },
  });
  const tool = span({
    ...on,
    attributes: {
      ...{ 'langfuse.observation.type': 'tool', 'langfuse.observation.input': '{"city":"Zanzibar six"}' },
      'langfuse.observation.output': 'Zanzibar seven',
    },
  });
  await accept(app, [agent, model, tool]);
  assert.doesNotMatch(await app.store.text(), /Zanzibar/);
  const [run] = await settled(app, 1);
  assert.equal(run?.modelId, 'gpt-x');
  assert.doesNotMatch(await app.store.text(), /Zanzibar/);
});

overHttp('embeddings cost what their input does, and write nothing', async (open) => {
  const app = await openTraces(open, {
    service: { Pricing: { Currency: 'EUR', openai: { 'embed-1': { Input: 500 } } } },
  });
  const embedding = call(app.clock.now() - 2000, {
    'ai.operationId': 'ai.embed.doEmbed',
    'ai.model.provider': 'openai.embedding',
    'ai.model.id': 'embed-1',
    'ai.usage.tokens': 2000,
  });
  await accept(app, [embedding]);
  const [run] = await settled(app, 1);
  assert.deepEqual(
    [run?.modelProvider, run?.usage?.inputTokens, run?.usage?.outputTokens, run?.cost?.totalCost],
    ['openai', 2000, 0, 1],
  );
});

overHttp(
  'an answer that names the version of a model costs what the model does that was asked for, also when that is found out later',
  async (open) => {
    const begin = (app: { clock: { now(): number } }) => app.clock.now() - 2000;
    const told = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'gcp.gemini',
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 500,
    };
    const Pricing = { Currency: 'EUR', 'gcp.gemini': { 'gpt-x': { Input: 1000, Output: 2000 } } };
    const dated = { ...told, 'gen_ai.request.model': 'gpt-x', 'gen_ai.response.model': 'gpt-x-2026-01-31' };
    const latest = { ...told, 'gen_ai.request.model': 'gpt-x', 'gen_ai.response.model': 'gpt-x-release-7' };
    const unnamed = { ...told, 'gen_ai.provider.name': '', 'gen_ai.request.model': 'gpt-x' };
    const app = await openTraces(open, { service: { Pricing } });
    await accept(
      app,
      [dated, latest, unnamed].map((one) => call(begin(app), one)),
    );
    assert.deepEqual(
      (await settled(app, 3)).map(({ cost }) => cost?.totalCost),
      [2, 2, 2],
    );

    const before = await openTraces(open, { service: { Pricing: { Currency: 'EUR' } } });
    await accept(before, [call(begin(before), dated)]);
    assert.equal((await settled(before, 1))[0]?.cost?.totalCost ?? null, null);
    await before.close();
    const after = await openTraces(open, { folder: before.folder, clock: before.clock, service: { Pricing } });
    const { body } = await after.client.statistics.recalculateCosts({});
    assert.equal(body.runsUpdated, 1);
    assert.equal((await externalRuns(after))[0]?.cost?.totalCost, 2);
  },
);

overHttp('of several that have a price for a model the provider counts that a span names', async (open) => {
  const app = await openTraces(open, {
    service: {
      Providers: { Google: { ApiKey: 'key-of-a-test' }, Compatible: { early: { Endpoint: 'http://127.0.0.1:1/' } } },
      Pricing: {
        Currency: 'EUR',
        early: { 'gpt-x': { Input: 7000, Output: 0 } },
        google: { 'gpt-x': { Input: 1000, Output: 0 } },
        zeta: { 'gpt-x': { Input: 2000, Output: 0 } },
      },
    },
  });
  const begin = app.clock.now() - 2000;
  const of = (provider: string) =>
    call(begin, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': 'gpt-x',
      'gen_ai.usage.input_tokens': 1000,
      'gen_ai.usage.output_tokens': 1,
    });
  // By the name that the conventions have for it, by one of the price table alone, and by none that is known.
  await accept(app, ['gcp.gemini', 'zeta', 'nobody'].map(of));
  const costs = (await settled(app, 3)).map((run) => [run.modelProvider, run.cost?.totalCost]);
  assert.deepEqual(costs.sort(), [
    ['gcp.gemini', 1],
    ['nobody', 7],
    ['zeta', 2],
  ]);
});

overHttp(
  'an answer that looks like a message is the answer, and JSON that was cut off is nobody’s words',
  async (open) => {
    const app = await openTraces(open);
    const begin = app.clock.now() - 2000;
    const answer = '{"role":"user","content":"Be quiet."}';
    await accept(app, [
      call(begin, {
        'ai.operationId': 'ai.generateText.doGenerate',
        'ai.model.id': 'gpt-x',
        'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"Zanzib',
        'ai.response.text': answer,
      }),
    ]);
    const [run] = await settled(app, 1);
    const params = { runId: run?.id ?? '' };
    const events = assertWholeLog(await collect((await app.client.runs.events({ params })).frames ?? []));
    assert.equal(events.at(-1)?.['output'], answer);
    assert.ok(!(await app.store.text()).includes('Zanzib'));
  },
);

overHttp('messages that have their text as content are read, too', async (open) => {
  const app = await openTraces(open);
  await accept(app, [
    call(app.clock.now() - 2000, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gpt-x',
      'gen_ai.input.messages': '[{"role":"user","content":"Where?"}]',
      'gen_ai.output.messages': '[{"role":"assistant","content":"Here."}]',
    }),
  ]);
  const [run] = await settled(app, 1);
  const params = { runId: run?.id ?? '' };
  assert.match(JSON.stringify((await app.client.runs.input({ params })).body), /"text":"Where\?"/);
  const events = assertWholeLog(await collect((await app.client.runs.events({ params })).frames ?? []));
  assert.equal(events.at(-1)?.['output'], 'Here.');
});

overHttp('spans that only announce others become nothing', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const model = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'gpt-x' };
  const tool = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'search' };
  const pending = { 'logfire.span_type': 'pending_span' };
  const top = call(begin, model);
  const on = { traceId: top.traceId, begin, from: 10, to: 20 };
  const used = span({ ...on, parent: top, attributes: tool });
  await accept(app, [
    span({ ...on, parent: top, attributes: { ...model, ...pending } }),
    span({ ...on, parent: used, attributes: { ...tool, ...pending } }),
  ]);
  await accept(app, [top, used]);
  const [run, ...rest] = await settled(app, 1);
  assert.ok(run !== undefined);
  assert.deepEqual(
    [(await app.client.runs.tools({ params: { runId: run.id } })).body.map(({ toolName }) => toolName), rest],
    [['search'], []],
  );
});

overHttp('text in an attribute is no message where it is not one, however deep it is', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const deep = (open_: string, close: string) => `${open_.repeat(100_000)}${close.repeat(100_000)}`;
  const model = { 'openinference.span.kind': 'LLM', 'llm.model_name': 'gpt-x' };
  await accept(app, [
    call(begin, { ...model, 'input.value': deep('[', ']'), 'output.value': deep('{"content":', '}') }),
    call(begin, { ...model, metadata: deep('{"a":', '}'), 'input.value': '{"messages":[{"role":"user","con' }),
    call(begin, {
      ...model,
      'llm.input_messages.999999.message.content': 'Hi',
      'langfuse.observation.usage_details': '[',
    }),
    call(begin, { ...model, 'input.value': `{"role":"user","content":${deep('[', ']')}}` }),
    call(begin, { 'openinference.span.kind': 'AGENT', 'input.value': `{"own":${deep('[', ']')}}` }),
    call(begin, {
      'traceloop.span.kind': 'tool',
      'traceloop.entity.input': `{"args":[],"kwargs":${deep('{"a":', '}').replace(':}', ':1}')}}`,
    }),
  ]);
  assert.equal((await settled(app, 5)).length, 5);
});

overHttp('the binary encoding tells of exceptions and of the library as well', async (open) => {
  const app = await openTraces(open);
  const exporter = new OTLPTraceExporter({ url: `${app.url}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'claude' }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const one = provider.getTracer('@traceloop/instrumentation-anthropic').startSpan('chat');
  one.setAttributes({
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'claude' },
    ...{ 'gen_ai.usage.input_tokens': 600, 'gen_ai.usage.output_tokens': 50 },
    ...{ 'gen_ai.usage.cache_read.input_tokens': 300, 'gen_ai.usage.cache_creation.input_tokens': 100 },
  });
  one.recordException(new TypeError('Zanzibar'));
  one.addEvent('later');
  one.setStatus({ code: SpanStatusCode.ERROR });
  one.end();
  await provider.forceFlush();
  await provider.shutdown();
  const [run] = await settled(app, 1);
  assert.deepEqual(
    [run?.error?.type, run?.usage?.inputTokens, run?.usage?.cachedInputTokens],
    ['TypeError', 1000, 300],
  );
  assert.doesNotMatch(await app.store.text(), /Zanzibar/);
});

overHttp('a total says whether parts of the tokens are in the counts or beside them', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const told = (name: string, input: number, output: number, total: number) =>
    call(begin, {
      ...{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': name, 'gen_ai.usage.total_tokens': total },
      ...{ 'gen_ai.usage.input_tokens': input, 'gen_ai.usage.output_tokens': output },
      ...{ 'gen_ai.usage.cache_read.input_tokens': 400, 'gen_ai.usage.reasoning.output_tokens': 20 },
    });
  const listed = (name: string, details: object) =>
    call(begin, {
      ...{ 'langfuse.observation.type': 'agent', 'agent.name': name },
      'langfuse.observation.usage_details': JSON.stringify(details),
    });
  const parts = { input_cached_tokens: 400, output_reasoning_tokens: 20 };
  await accept(app, [
    told('inside', 1000, 50, 1050),
    told('cacheBeside', 600, 50, 1050),
    told('thoughtBeside', 1000, 30, 1050),
    told('bothBeside', 600, 30, 1050),
    told('neither', 1000, 50, 7777),
    listed('listed', { input: 600, output: 30, ...parts }),
    listed('listedInside', { input: 1000, output: 50, total: 1050, ...parts }),
    listed('impossible', { input: -1, output: 50, ...parts }),
  ]);
  const tokens = Object.fromEntries(
    (await settled(app, 8)).map(({ agentName, usage }) => [agentName, [usage?.inputTokens, usage?.outputTokens]]),
  );
  const whole = [1000, 50];
  assert.deepEqual(tokens, {
    ...{ inside: whole, cacheBeside: whole, thoughtBeside: whole, bothBeside: whole, neither: whole },
    ...{ listed: whole, listedInside: whole, impossible: [null, 70] },
  });
});

overHttp('a workflow is a run where it has a name, and an agent or a call of a model in it', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const workflow = { 'traceloop.span.kind': 'workflow', 'gen_ai.operation.name': 'workflow' };
  const named = { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': 'trip' };
  const model = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'gpt-x' };
  const below = (top: ReturnType<typeof call>, attributes: Readonly<Record<string, string>>) =>
    span({ traceId: top.traceId, parent: top, begin, from: 10, to: 20, attributes });
  const trip = call(begin, named);
  const part = call(begin, { ...workflow, 'traceloop.workflow.name': 'RunnableSequence' });
  const inner = below(part, { ...workflow, 'traceloop.workflow.name': 'RunnableLambda' });
  await accept(app, [
    ...[trip, below(trip, model)],
    ...[part, inner, below(inner, { ...model, 'gen_ai.request.model': 'gpt-y' })],
    ...[call(begin, named), call(begin, { ...workflow, 'traceloop.workflow.name': 'RunnableLambda' })],
  ]);
  const runs = await settled(app, 2);
  assert.deepEqual(runs.map(({ agentName, modelId }) => `${agentName} ${modelId}`).sort(), [
    'planner-service gpt-y',
    'trip gpt-x',
  ]);
});
