import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { metricsOf, openReceiver, pathsOf, spansOf, withEnvironment } from '../../support/telemetry/otlp-receiver.ts';
import { attributes, counts, doubles, type Message, messages, number, text } from '../../support/telemetry/protobuf.ts';
import {
  collect,
  enqueue,
  followToEnd,
  readUntil,
  refusal,
  runJson,
  runStream,
  stream,
  tool,
} from '../runs/run-calls.ts';

// Numbers of OTLP.
const internal = 1;
const clientKind = 3;

const nameOf = (span: Message): string => text(span, 5);
const told = (span: Message) => attributes(span, 9);
const named = (spans: readonly Message[], name: string): Message[] => spans.filter((span) => nameOf(span) === name);

/** Name, kind and our own name of each span that has an operation of the conventions; every other keeps its own name. */
const assertNames = (spans: readonly Message[]): void => {
  const about: Readonly<Record<string, [own: string, subject: string, kind: number]>> = {
    chat: ['acp.model.call', 'gen_ai.request.model', clientKind],
    execute_tool: ['acp.tool.call', 'gen_ai.tool.name', internal],
    invoke_agent: ['acp.run', 'gen_ai.agent.name', internal],
  };
  for (const span of spans) {
    const { 'gen_ai.operation.name': operation, 'acp.span.name': own, ...rest } = told(span);
    const [ownName, subject = '', kind] = about[String(operation)] ?? [];
    assert.deepEqual([own, operation === undefined ? undefined : number(span, 6)], [ownName, kind], nameOf(span));
    if (ownName === undefined) assert.doesNotMatch(nameOf(span), /^acp\.(?:run|model\.call|tool\.call)$/);
    else if (rest['acp.tool.unknown'] === true) assert.equal(nameOf(span), operation);
    else assert.equal(nameOf(span), `${operation} ${rest[subject]}`);
  }
};

overHttp(
  'OBS-24, OBS-11 spans of runs leave with the names and kinds of the GenAI conventions, and with our own names beside them',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces` });
    const judge = {
      name: 'tone',
      judge: async (_run: unknown, _signal: AbortSignal, ask: (agent: string, message: string) => Promise<string>) => ({
        score: Number(await ask('grader', 'Grade it.')),
      }),
    };
    const app = await open({
      service: { Observability: { SuccessSampleRatio: 1 } },
      script: [
        { when: { message: 'Grade' }, reply: { text: '80' } },
        { when: { tool: 'add' }, reply: { text: 'Sum.' } },
        { when: { tool: 'call_child' }, reply: { text: 'Done.' } },
        { when: { tool: 'made_up' }, reply: { text: 'Sorry.' } },
        { when: { message: '/^ask/' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'sum' } }] } },
        { when: { message: '/^invent/' }, reply: { toolCalls: [{ name: 'made_up', arguments: {} }] } },
        { reply: { toolCalls: [{ name: 'add', arguments: {} }] } },
      ],
      tools: [tool('add', async () => 3)],
      agents: [
        { name: 'child', toolNames: ['add'] },
        { name: 'helper', toolNames: ['add'], callableAgentNames: ['child'] },
        { name: 'grader' },
      ],
      module: { judges: [judge] },
    });
    const { runId } = await runStream(app.client, 'helper', 'ask');
    await followToEnd(app.client, await enqueue(app.client, 'helper', { message: 'sum' }));
    await app.client.replays.create({ params: { runId }, body: {} });
    await app.client.judges.score({ params: { runId } });
    await runJson(app.client, 'helper', 'invent');
    const stored = (await app.client.runs.trace({ params: { runId } })).body.spans;
    await app.close();

    const spans = spansOf(received);
    assertNames(spans);
    const paths = pathsOf(received);
    const tree = 'invoke_agent helper > execute_tool call_child > invoke_agent child';
    for (const expected of [
      `POST /api/agents/{name}/run > ${tree} > chat demo-1`,
      `POST /api/agents/{name}/run > ${tree} > execute_tool add`,
      'acp.job > invoke_agent helper > chat demo-1',
      'acp.job > invoke_agent helper > execute_tool add',
      'acp.job > acp.agent.compile',
      'POST /api/runs/{runId}/replay > acp.agent.compile',
      'POST /api/runs/{runId}/replay > invoke_agent helper > chat demo-1',
      'POST /api/agents/{name}/run > invoke_agent helper > execute_tool',
    ])
      assert.ok(paths.includes(expected), `${expected} in ${[...new Set(paths)].join('\n')}`);
    assert.ok(!paths.includes('acp.agent.compile'), 'a compile belongs to what asked for it');
    const graded = named(spans, 'invoke_agent grader').map(told);
    assert.deepEqual(
      graded.map((one) => [one['acp.run.kind'], one['gen_ai.provider.name'], one['gen_ai.request.model']]),
      [['Eval', 'demo', 'demo-1']],
    );
    const [invented] = named(spans, 'execute_tool').map(told);
    assert.deepEqual([invented?.['gen_ai.tool.name'], invented?.['acp.tool.outcome']], ['made_up', 'invalid']);
    // What is stored is asked for by the names of the service.
    assert.deepEqual([...new Set(stored.map(({ name, kind }) => `${name} ${kind}`))].sort(), [
      'acp.model.call Client',
      'acp.run Internal',
      'acp.tool.call Internal',
    ]);
    assert.ok(stored.every(({ attributes }) => attributes['acp.span.name'] === undefined));
  },
);

const local = { provider: 'local', model: 'any' };

/** Points of a metric that is exported: by attributes, in the order of the pairs that are named. */
const pointsOf = (metrics: readonly Message[], name: string) => {
  const metric = metrics.find((one) => text(one, 1) === name) ?? assert.fail(name);
  const [histogram = new Map() as Message] = messages(metric, 9);
  return { unit: text(metric, 3), points: messages(histogram, 1) };
};

overHttp(
  'OBS-22 finish reasons, duration and tokens of model calls are those of the GenAI conventions',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
    const app = await open({
      simulator: {},
      tools: [tool('add', async () => 3)],
      agents: [
        { name: 'helper', model: { ...local, temperature: 0.5 }, toolNames: ['add'] },
        { name: 'cached', model: { ...local, model: 'kept', responseCache: { enabled: true } } },
        { name: 'second', model: { ...local, model: 'first', fallbacks: [{ provider: 'openai', model: 'gpt-5' }] } },
        { name: 'google', model: { provider: 'google', model: 'gemini-3' } },
      ],
    });
    const { client, simulator } = app;
    const usage = { input: 12, output: 5 };
    simulator.enqueue(
      { answer: { toolCalls: [{ id: 'c1', name: 'add', arguments: '{}' }], usage } },
      { answer: { text: ['Three.'], usage } },
    );
    await runStream(client, 'helper', { message: 'Hi', sessionId: 's-1' });
    simulator.enqueue({ answer: { text: ['Cut'], usage: null, finish: 'length' } });
    await runJson(client, 'helper', 'Hi');
    simulator.enqueue({ answer: { text: ['Cut'], usage: null, finish: 'filter' } });
    await runStream(client, 'helper', 'Hi');
    simulator.enqueue({ answer: { text: ['Yes.'], usage: { input: 4, output: 1 } } });
    await runJson(client, 'google', 'Hi');
    simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
    await refusal(runJson(client, 'helper', 'Hi'));
    // The second is answered from the cache: no call was made.
    simulator.enqueue({ answer: { text: ['Kept.'], usage } });
    await runJson(client, 'cached', 'Hi');
    await runStream(client, 'cached', 'Hi');
    simulator.enqueue({ fault: { kind: 'status', status: 500 } }, { answer: { text: ['Yes.'], usage } });
    await runStream(client, 'second', 'Hi');
    // A stream that breaks off, and one that its caller ends.
    simulator.enqueue({ answer: { text: ['One', 'Two'], usage }, fault: { kind: 'cut', after: 2 } });
    await runStream(client, 'helper', 'Hi');
    simulator.enqueue({ answer: { text: ['One', 'Two'], usage }, fault: { kind: 'stall', after: 2 } });
    const { runId, frames } = await stream(client, 'helper', 'Hi');
    const reading = frames[Symbol.asyncIterator]();
    await readUntil(reading, 'message.delta');
    await client.runs.cancel({ params: { runId } });
    await collect({ [Symbol.asyncIterator]: () => reading });
    await app.close();

    const calls = spansOf(received).filter((span) => told(span)['gen_ai.operation.name'] === 'chat');
    const none = undefined;
    assert.deepEqual(
      calls.map((span) => {
        const all = told(span);
        const reasons = all['gen_ai.response.finish_reasons'];
        const streamed = all['gen_ai.request.stream'];
        return [nameOf(span), reasons, all['acp.model.finish_reason'], streamed, all['error.type']];
      }),
      [
        ['chat any', ['tool_calls'], 'ToolCalls', true, none],
        ['chat any', ['stop'], 'Stop', true, none],
        ['chat any', ['length'], 'Length', none, none],
        ['chat any', ['content_filter'], 'ContentFilter', true, none],
        ['chat gemini-3', ['stop'], 'Stop', none, none],
        ['chat any', ['error'], none, none, 'provider_error'],
        ['chat kept', ['stop'], 'Stop', none, none],
        ['chat first', ['error'], none, true, 'provider_error'],
        ['chat gpt-5', ['stop'], 'Stop', true, none],
        ['chat any', ['error'], none, true, 'provider_unavailable'],
        ['chat any', ['error'], none, true, 'canceled'],
      ],
    );
    assert.deepEqual(
      calls.map((span) => told(span)['gen_ai.conversation.id']),
      ['s-1', 's-1', ...new Array<undefined>(9).fill(none)],
    );

    const metrics = metricsOf(received);
    const duration = pointsOf(metrics, 'gen_ai.client.operation.duration');
    assert.equal(duration.unit, 's');
    const who = (provider: string, model: string) => ({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': model,
    });
    assert.deepEqual(
      duration.points.map((point) => [attributes(point, 9), number(point, 4)]),
      [
        [who('local', 'any'), 4],
        [who('gcp.gemini', 'gemini-3'), 1],
        [{ ...who('local', 'any'), 'error.type': 'provider_error' }, 1],
        [who('local', 'kept'), 1],
        [{ ...who('local', 'first'), 'error.type': 'provider_error' }, 1],
        [who('openai', 'gpt-5'), 1],
        [{ ...who('local', 'any'), 'error.type': 'provider_unavailable' }, 1],
        [{ ...who('local', 'any'), 'error.type': 'canceled' }, 1],
      ],
    );
    assert.deepEqual(
      doubles(duration.points[0] ?? new Map(), 7),
      [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
    );
    const tokens = pointsOf(metrics, 'gen_ai.client.token.usage');
    assert.equal(tokens.unit, '{token}');
    const type = (name: string) => ({ 'gen_ai.token.type': name });
    assert.deepEqual(
      tokens.points.map((point) => [attributes(point, 9), number(point, 4)]),
      [
        // What was not reported is not there, and nothing is told twice.
        [{ ...who('local', 'any'), ...type('input') }, 2],
        [{ ...who('local', 'any'), ...type('output') }, 2],
        [{ ...who('gcp.gemini', 'gemini-3'), ...type('input') }, 1],
        [{ ...who('gcp.gemini', 'gemini-3'), ...type('output') }, 1],
        [{ ...who('local', 'kept'), ...type('input') }, 1],
        [{ ...who('local', 'kept'), ...type('output') }, 1],
        [{ ...who('openai', 'gpt-5'), ...type('input') }, 1],
        [{ ...who('openai', 'gpt-5'), ...type('output') }, 1],
      ],
    );
    const [input = new Map() as Message] = tokens.points;
    const bounds = Array.from({ length: 14 }, (_, power) => 4 ** power);
    assert.deepEqual([bounds.at(0), bounds.at(-1), doubles(input, 7)], [1, 67_108_864, bounds]);
    // Twelve tokens, twice, lie between four and sixteen.
    assert.deepEqual(counts(input, 6), [0, 0, 2, ...new Array<number>(12).fill(0)]);
  },
);

overHttp('OBS-22 the same histograms stand on the page for Prometheus, beside our own', async (open) => {
  const app = await open({
    host: { Metrics: { Path: '/metrics' } },
    script: [
      { when: { message: 'fail' }, reply: { error: 'provider_unavailable' } },
      { reply: { text: 'Yes.', usage: { inputTokens: 20, outputTokens: 10 } } },
    ],
    agents: [{ name: 'helper' }],
  });
  await runJson(app.client, 'helper', 'Hi');
  await refusal(runJson(app.client, 'helper', 'fail'));
  const page = (await (await fetch(`${app.url}/metrics`)).text()).split('\n');
  const who = 'gen_ai_operation_name="chat",gen_ai_provider_name="demo",gen_ai_request_model="demo-1"';
  const tokens = 'gen_ai_client_token_usage';
  const duration = 'gen_ai_client_operation_duration_seconds';
  for (const line of [
    `# TYPE ${tokens} histogram`,
    `${tokens}_bucket{${who},gen_ai_token_type="input",le="16"} 0`,
    `${tokens}_bucket{${who},gen_ai_token_type="input",le="64"} 1`,
    `${tokens}_sum{${who},gen_ai_token_type="input"} 20`,
    `${tokens}_sum{${who},gen_ai_token_type="output"} 10`,
    `# TYPE ${duration} histogram`,
    `${duration}_bucket{${who},le="81.92"} 1`,
    `${duration}_count{${who}} 1`,
    `${duration}_count{${who},error_type="provider_unavailable"} 1`,
    'acp_model_duration_seconds_count{gen_ai_provider_name="demo",gen_ai_request_model="demo-1"} 1',
  ])
    assert.ok(page.includes(line), `${line} in ${page.filter((one) => /^gen_ai|^acp_model/.test(one)).join('\n')}`);
});
