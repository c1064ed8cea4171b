import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { dayMs, daysAgo, swept } from '../retention/retention-world.ts';
import {
  accept,
  attributesOf,
  bodyOf,
  externalRuns,
  newSpanId,
  newTraceId,
  openTraces,
  planner,
  post,
  postBytes,
  settled,
  span,
} from './traces-world.ts';

const protobuf = { 'content-type': 'application/x-protobuf' };

overHttp('the exporter of OpenTelemetry sends an agent of its own, packed, and gets it as a run', async (open) => {
  const app = await openTraces(open);
  const { plaintextKey } = (await app.client.keys.create({ body: { name: 'sender', scopes: ['TracesWrite'] } })).body;
  const exporter = new OTLPTraceExporter({
    url: `${app.url}/v1/traces`,
    headers: { authorization: `Bearer ${plaintextKey}` },
    compression: 'gzip' as never,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'concierge' }),
    spanProcessors: [new BatchSpanProcessor({ exporter, maxExportBatchSize: 1 })],
  });
  const tracer = provider.getTracer('test');
  const agent = tracer.startSpan('invoke_agent concierge', {
    kind: SpanKind.INTERNAL,
    attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'concierge' },
  });
  const inside = trace.setSpan(context.active(), agent);
  const chat = tracer.startSpan('chat gpt-x', { kind: SpanKind.CLIENT }, inside);
  chat.setAttributes({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-x',
    'gen_ai.usage.input_tokens': 1000,
    'gen_ai.usage.output_tokens': 500,
    'gen_ai.response.finish_reasons': ['length'],
  });
  chat.end();
  const tool = tracer.startSpan('execute_tool', {}, inside);
  tool.setAttributes({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'book', 'error.type': 'refused' });
  tool.setStatus({ code: SpanStatusCode.ERROR });
  tool.end();
  agent.end();
  await provider.forceFlush();
  await provider.shutdown();
  const [run] = await settled(app, 1);
  assert.ok(run !== undefined);
  assert.deepEqual(
    [run.agentName, run.modelId, run.cost?.totalCost, run.labels?.['service'], run.labels?.['trace']],
    ['concierge', 'gpt-x', 2, 'concierge', agent.spanContext().traceId],
  );
  const [call] = (await app.client.runs.tools({ params: { runId: run.id } })).body;
  assert.deepEqual([call?.toolName, call?.succeeded, call?.error], ['book', false, 'Tool failed: refused']);
});

/** `google.rpc.Status` in its binary form. */
const statusOf = (bytes: Uint8Array) => {
  const reader = new BinaryReader(bytes);
  const status = { code: 0, message: '' };
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1) status.code = reader.int32();
    else if (field === 2) status.message = reader.string();
    else reader.skip(type, field);
  }
  return status;
};

/** One span as an exporter encodes it, with an attribute whose value is these bytes. */
const encoded = (traceId: string, spanId: string, begin: number, value: Uint8Array): Uint8Array<ArrayBuffer> => {
  const pair = new BinaryWriter().tag(1, 2).string('gen_ai.agent.name').tag(2, 2).bytes(value).finish();
  const one = new BinaryWriter()
    .tag(1, 2)
    .bytes(Buffer.from(traceId, 'hex'))
    .tag(2, 2)
    .bytes(Buffer.from(spanId, 'hex'))
    .tag(7, 1)
    .fixed64(BigInt(begin) * 1_000_000n)
    .tag(8, 1)
    .fixed64(BigInt(begin + 5) * 1_000_000n)
    .tag(9, 2)
    .bytes(pair)
    // A field of a later version.
    .tag(99, 0)
    .int32(7)
    .finish();
  const scope = new BinaryWriter().tag(2, 2).bytes(one).finish();
  const resource = new BinaryWriter().tag(2, 2).bytes(scope).finish();
  return Uint8Array.from(new BinaryWriter().tag(1, 2).bytes(resource).finish());
};

const nested = (depth: number): Uint8Array => {
  let value: Uint8Array = new BinaryWriter().tag(1, 2).string('deep').finish();
  for (let at = 0; at < depth; at += 1) {
    const list = new BinaryWriter().tag(1, 2).bytes(value).finish();
    value = new BinaryWriter().tag(5, 2).bytes(list).finish();
  }
  return value;
};

overHttp(
  'what is no request of OTLP is refused in the encoding of the request, and nothing of it is kept',
  async (open) => {
    const app = await openTraces(open, { host: { Traces: { MaxRequestBytes: 65_536 } } });
    const begin = app.clock.now() - 2000;
    const whole = encoded(newTraceId(), newSpanId(), begin, nested(0));
    for (const [what, bytes, headers, status, code] of [
      ['half a message', whole.slice(0, whole.length - 9), protobuf, 400, 3],
      ['no message', Uint8Array.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), protobuf, 400, 3],
      ['a length without end', Uint8Array.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), protobuf, 400, 3],
      ['a field that is longer than its message', [0x0a, 3, 0x12, 5, 0x1a, 3, 97, 98, 99], protobuf, 400, 3],
      ['no gzip', whole, { ...protobuf, 'content-encoding': 'gzip' }, 400, 3],
      ['half a gzip', gzipSync(whole).subarray(0, 30), { ...protobuf, 'content-encoding': 'gzip' }, 400, 3],
      ['another packing', whole, { ...protobuf, 'content-encoding': 'br' }, 415, 3],
      ['a bomb', gzipSync(Buffer.alloc(5_000_000)), { ...protobuf, 'content-encoding': 'gzip' }, 413, 8],
      ['too large', new Uint8Array(70_000), protobuf, 413, 8],
    ] as const) {
      const answer = await postBytes(app, Uint8Array.from(bytes), { headers });
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [status, 'application/x-protobuf'], what);
      const told = statusOf(answer.bytes);
      assert.equal(told.code, code, what);
      assert.ok(told.message.length > 10, what);
    }
    const deepJson = (depth: number): string => `${'{"arrayValue":{"values":['.repeat(depth)}${']}}'.repeat(depth)}`;
    for (const [what, text, status] of [
      ['no JSON', '{"resourceSpans":[', 400],
      ['another JSON', '[]', 400],
      ['spans that are no list', '{"resourceSpans":{}}', 400],
      ['a member that reaches a prototype', '{"__proto__":{}}', 400],
      [
        'deeper than anything',
        `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":${deepJson(1000)}}]}}]}`,
        400,
      ],
    ] as const) {
      const { status: answered, body } = await postBytes(app, text);
      assert.deepEqual([answered, Object.keys(body)], [status, ['code', 'message']], what);
    }
    const plain = await postBytes(app, 'x', { headers: { 'content-type': 'text/plain' } });
    assert.deepEqual([plain.status, plain.body.code], [415, 3]);
    const wrongMethod = await fetch(`${app.url}/v1/traces`);
    assert.deepEqual([wrongMethod.status, ((await wrongMethod.json()) as { code: number }).code], [405, 12]);

    // An empty request is one, and so is what a later version adds; values without bottom are left out.
    assert.deepEqual((await postBytes(app, new Uint8Array(0), { headers: protobuf })).bytes.length, 0);
    assert.deepEqual((await postBytes(app, '{}')).body, {});
    for (const depth of [0, 14, 5000]) {
      const bytes = encoded(newTraceId(), newSpanId(), begin, nested(depth));
      const answer = await postBytes(app, gzipSync(bytes), { headers: { ...protobuf, 'content-encoding': 'gzip' } });
      assert.deepEqual([answer.status, answer.bytes.length], [200, 0], String(depth));
    }
    assert.deepEqual(await externalRuns(app), []);
  },
);

overHttp('spans that cannot be are refused by their number, and the others taken', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const traceId = newTraceId();
  const good = span({
    traceId,
    operation: 'invoke_agent',
    from: 0,
    to: 5,
    begin,
    attributes: { 'gen_ai.agent.name': 'a\u0000\ud800b' },
  });
  const bad = [
    { ...good, traceId: traceId.slice(2) },
    { ...good, traceId: '0'.repeat(32) },
    { ...good, spanId: `${newSpanId()}00` },
    { ...good, spanId: 'no-hex-at-all-16' },
    { ...good, spanId: newSpanId(), parentSpanId: 'abc' },
    { ...good, parentSpanId: good.spanId },
    { ...good, spanId: newSpanId(), endTimeUnixNano: `${begin - 1}000000` },
    { ...good, spanId: newSpanId(), startTimeUnixNano: '-5' },
    { ...good, spanId: newSpanId(), endTimeUnixNano: `${begin + 3_600_000}000000` },
    { ...good, spanId: newSpanId(), startTimeUnixNano: '9'.repeat(40) },
  ];
  const refused = {
    rejectedSpans: String(bad.length),
    errorMessage: `Not taken: ${bad.length} without valid ids or times.`,
  };
  assert.deepEqual((await post(app, [...bad, { ...good, traceId: traceId.toUpperCase() }])).body, {
    partialSuccess: refused,
  });
  const [run, ...rest] = await settled(app, 1);
  assert.deepEqual([run?.agentName, rest], ['a-b', []]);

  // The same in the other encoding: two numbers in a message of its own.
  const wrong = encoded('00'.repeat(16), newSpanId(), begin, nested(0));
  const { status, bytes } = await postBytes(app, wrong, { headers: protobuf });
  const reader = new BinaryReader(bytes);
  reader.tag();
  reader.uint32();
  reader.tag();
  const rejected = Number(reader.int64());
  reader.tag();
  assert.deepEqual([status, rejected, reader.string()], [200, 1, 'Not taken: 1 without valid ids or times.']);
});

overHttp('a hundred thousand spans are taken as far as they fit, and the rest is told', async (open) => {
  const app = await openTraces(open, { host: { Traces: { MaxRequestBytes: 67_108_864 } } });
  const begin = app.clock.now() - 2000;
  const many = (count: number, traceOf: (index: number) => string): object[] =>
    Array.from({ length: count }, (_, index) => ({
      traceId: traceOf(index),
      spanId: (index + 1).toString(16).padStart(16, '0'),
      startTimeUnixNano: `${begin}000000`,
      endTimeUnixNano: `${begin + 1}000000`,
      attributes: attributesOf({ 'gen_ai.operation.name': 'chat' }),
    }));
  const traceId = newTraceId();
  const packed = gzipSync(JSON.stringify(bodyOf(many(100_000, () => traceId))));
  const { status, body } = await postBytes(app, packed, { headers: { 'content-encoding': 'gzip' } });
  assert.deepEqual([status, body.partialSuccess.rejectedSpans], [200, '95000']);
  assert.match(body.partialSuccess.errorMessage, /90000 beyond the 10000 .*; 5000 beyond the 5000 /);
});

overHttp('content is stored where the recording keeps it, and nowhere else', async (open) => {
  const begin = Date.now() - 2000;
  const prompt = 'Zanzibar-4711';
  const spans = () => {
    const { all, first, traceId } = planner(begin);
    const more = span({
      ...{ traceId, begin, parent: first, from: 30, to: 40 },
      attributes: { 'gen_ai.prompt.0.content': prompt, 'gen_ai.system_instructions': prompt, 'app.secret': prompt },
    });
    return [...all, more];
  };
  const closed = await openTraces(open, {
    service: { RunRecording: { RecordRunInput: false, RecordToolPayloads: false } },
  });
  await accept(closed, spans());
  assert.doesNotMatch(await closed.store.text(), /Plan my trip|Rome"|hotels|Zanzibar/, 'not even while it waits');
  const [run] = await settled(closed, 1);
  assert.doesNotMatch(await closed.store.text(), /Plan my trip|Rome"|hotels|Zanzibar/);
  const [call] = (await closed.client.runs.tools({ params: { runId: run?.id ?? '' } })).body;
  assert.deepEqual([call?.arguments, call?.result], [null, null]);

  const key = Buffer.alloc(32, 1).toString('base64');
  const sealed = await openTraces(open, {
    service: { AtRest: { ActiveKeyId: 'a', Keys: { a: key } } },
  });
  await accept(sealed, spans());
  assert.equal((await sealed.store.sealed('a'))['external_spans.span'], 8);
  assert.doesNotMatch(await sealed.store.text(), /Plan my trip|hotels|Zanzibar/);
  const [shown] = await settled(sealed, 1);
  assert.doesNotMatch(await sealed.store.text(), /Plan my trip|hotels|Zanzibar/);
  assert.match(
    JSON.stringify((await sealed.client.runs.input({ params: { runId: shown?.id ?? '' } })).body),
    /Plan my trip/,
  );
});

overHttp('the credential alone says whose a run is, and who may not send is told so', async (open) => {
  const attributionResolver = { resolve: async () => ({ userId: 'zoraida', labels: { team: 'red' } }) };
  const dataSubjectResolver = {
    resolve: async ({ id }: { id: string }) => ({ userIds: [id], sessionIds: [], ownerIds: [] }),
  };
  const app = await openTraces(open, { module: { attributionResolver, dataSubjectResolver } });
  const keyFor = async (scopes: readonly ('TracesWrite' | 'RunsWrite' | 'ExternalInvoke')[]) =>
    (await app.client.keys.create({ body: { name: scopes.join(), scopes: [...scopes] } })).body.plaintextKey;
  const begin = app.clock.now() - 2000;
  for (const scope of ['RunsWrite', 'ExternalInvoke'] as const) {
    const refused = await post(app, planner(begin).all, { token: await keyFor([scope]) });
    assert.deepEqual([refused.status, refused.body.code], [403, 7]);
  }
  const unknown = await postBytes(app, new Uint8Array(0), { token: 'acp_nobody', headers: protobuf });
  assert.deepEqual([unknown.status, statusOf(unknown.bytes).code], [401, 16]);
  const token = await keyFor(['TracesWrite']);
  await accept(app, planner(begin).all, { token, headers: { 'x-tenant-id': 'acme' } });
  const [run] = await settled(app, 1);
  assert.deepEqual([run?.userId, run?.labels?.['team']], ['zoraida', 'red']);
  assert.deepEqual((await app.inTenant('acme').runs.list({ query: {} })).body, []);

  // A person is told of and erased with what still waits.
  await accept(app, planner(begin).all, { token });
  const { bytes } = await app.client.dataSubjects.export({ params: { id: 'zoraida' } });
  const document = JSON.parse(Buffer.concat(await Array.fromAsync(bytes ?? [])).toString());
  assert.deepEqual([document.runs.length, document.spans.length], [2, 14]);
  assert.match(JSON.stringify(document.spans), /Plan my trip/);
  const erased = async (dryRun: boolean) =>
    (await app.client.dataSubjects.erase({ params: { id: 'zoraida' }, query: { dryRun } })).body.rowsByTarget['spans'];
  assert.deepEqual([await erased(true), await erased(false), await erased(true)], [14, 14, 0]);
  await app.clock.advance(6 * 60_000);
  assert.deepEqual(await externalRuns(app), []);
  assert.doesNotMatch(JSON.stringify(await app.store.stored('spans of agents elsewhere')), /zoraida/);
});

overHttp('RET-9 an old run goes with all that hangs on it, also below it, and the young one stays', async (open) => {
  const app = await openTraces(open, {
    clock: testClock({ at: daysAgo(3) }),
    service: { Observability: { PersistSpans: true } },
  });
  const old = planner(app.clock.now() - 2000);
  await accept(app, old.all);
  const [run] = await settled(app, 1);
  const ids = (await app.client.runs.tree({ params: { runId: run?.id ?? '' } })).body.map(({ id }) => id);
  assert.equal(ids.length, 2);
  await app.clock.jump(3 * dayMs);
  const young = planner(app.clock.now() - 2000);
  await accept(app, young.all);
  await settled(app, 2);
  await app.client.retention.save({ params: { target: 'Runs' }, body: { maxAgeDays: 1 } });
  await swept(app, 'Runs');
  await app.clock.advance(6000);
  assert.deepEqual(
    (await externalRuns(app)).map(({ labels }) => labels?.['trace']),
    [young.traceId],
  );
  const text = await app.store.text();
  for (const gone of [...ids, old.traceId]) assert.ok(!text.includes(gone), gone);
});

overHttp('without its setting the path is not there, whatever else is below it', async (open) => {
  const without = await open({ host: { OpenAi: { Enabled: false } } });
  const { status, body } = await postBytes(without, '{}');
  assert.deepEqual([status, body.code, body.error], [404, 'not-found', undefined]);
  const openAi = await postBytes(await open({ host: { OpenAi: { Enabled: true } } }), '{}');
  assert.deepEqual([openAi.status, openAi.body.error.code], [404, 'unknown_url']);
  const both = await openTraces(open, { host: { OpenAi: { Enabled: true } } });
  assert.deepEqual((await postBytes(both, '{}')).body, {});
  const models = await fetch(`${both.url}/v1/nothing`);
  assert.deepEqual([models.status, Object.keys((await models.json()) as object)], [404, ['error']]);
});

overHttp('a store that takes no writes, and too many requests, are told with the time to wait', async (open) => {
  const app = await openTraces(open, { host: { Metrics: { Path: '/metrics' } } });
  const begin = app.clock.now() - 2000;
  // Nothing but the requests meets the lock.
  app.clock.stand();
  const held = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  const holding = app.store.open().transaction(async () => {
    isHeld.resolve();
    await held.promise;
  }, 'another program');
  await isHeld.promise;
  const failed = await post(app, planner(begin).all);
  assert.deepEqual([failed.status, failed.body.code], [503, 14]);
  assert.match(failed.body.message, /locked by another process/);
  assert.ok(Number(failed.headers.get('retry-after')) > 0);
  held.resolve();
  await holding;
  // A fault of the service is none that passes.
  const again = await app.store.refuse('spans of agents elsewhere');
  const fault = await post(app, planner(begin).all);
  assert.deepEqual([fault.status, fault.body.code, fault.headers.get('retry-after')], [500, 13, null]);
  await again();
  const trip = planner(begin);
  await accept(app, trip.all);
  await settled(app, 1);
  const late = span({ traceId: trip.traceId, parent: trip.agent, operation: 'chat', from: 500, to: 600, begin });
  await post(app, [late, { ...late, traceId: '00' }]);
  const series = (await (await fetch(`${app.url}/metrics`)).text()).split('\n');
  assert.deepEqual(series.filter((line) => line.startsWith('acp_traces_')).toSorted(), [
    'acp_traces_runs_total{acp_run_status="Completed"} 1',
    'acp_traces_runs_total{acp_run_status="Failed"} 1',
    'acp_traces_set_aside 0',
    'acp_traces_spans_total{acp_traces_outcome="failed"} 7',
    'acp_traces_spans_total{acp_traces_outcome="invalid"} 1',
    'acp_traces_spans_total{acp_traces_outcome="late"} 1',
    'acp_traces_spans_total{acp_traces_outcome="taken"} 7',
    'acp_traces_spans_total{acp_traces_outcome="unavailable"} 7',
  ]);
  const limited = await openTraces(open, {
    service: { RateLimit: { Enabled: true, PermitLimit: 1, Window: '60s' } },
  });
  await postBytes(limited, '{}');
  const { status, headers, body } = await postBytes(limited, '{}');
  assert.deepEqual([status, body.code], [429, 8]);
  assert.ok(Number(headers.get('retry-after')) > 0);
});
