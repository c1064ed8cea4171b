import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { forEachHttpService, overHttp, type TestApp } from '../../support/app.ts';
import {
  externalRuns,
  newTraceId,
  openTraces,
  post,
  postBytes,
  type SpanSetup,
  settled,
  span,
} from './traces-world.ts';

/* Bodies and traces that are made to cost the service more than their bytes say. */

const protobuf = { 'content-type': 'application/x-protobuf' };

/** A field with a length; `number` is below 16. */
const field = (number: number, inner: Uint8Array): Uint8Array =>
  new BinaryWriter().tag(number, 2).bytes(inner).finish();
const empties = (number: number, count: number): Uint8Array =>
  Buffer.alloc(2 * count, Buffer.from([8 * number + 2, 0]));
const joined = (...parts: readonly Uint8Array[]): Uint8Array => Buffer.concat(parts);
const inSpan = (content: Uint8Array): Uint8Array => field(1, field(2, field(2, content)));

const list = (name: string, count: number, element = '{}'): string =>
  `"${name}":[${Array(count).fill(element).join()}]`;
const jsonSpan = (content: string): string => `{"resourceSpans":[{"scopeSpans":[{"spans":[{${content}}]}]}]}`;

/** What was refused, of an answer in either encoding. */
const answerOf = async (app: TestApp, body: string | Uint8Array) => {
  const isJson = typeof body === 'string';
  const headers = { ...(isJson ? {} : protobuf), 'content-encoding': 'gzip' };
  const { status, bytes, body: told } = await postBytes(app, Uint8Array.from(gzipSync(body)), { headers });
  if (isJson) return { status, message: told.message, rejected: told.partialSuccess?.rejectedSpans };
  const reader = new BinaryReader(bytes);
  if (status === 200 && bytes.length === 0) return { status, rejected: '0' };
  if (status === 200) {
    reader.tag();
    reader.uint32();
    reader.tag();
    return { status, rejected: String(reader.int64()) };
  }
  reader.tag();
  reader.int32();
  reader.tag();
  return { status, message: reader.string() };
};

overHttp('spans beyond the limit of a request are counted and not read, in either encoding', async (open) => {
  const app = await openTraces(open);
  // The last ones would be refused with the whole body if they were read.
  const broken = field(2, Buffer.from([0x0a, 0x7f]));
  const spans = joined(empties(2, 10_000), broken, empties(2, 200_000));
  for (const body of [
    field(1, field(2, spans)),
    `{"resourceSpans":[{"scopeSpans":[{"spans":[${Array(10_000).fill('{}').join()},{"attributes":7}${',{}'.repeat(200_000)}]}]}]}`,
  ])
    assert.deepEqual(await answerOf(app, body), {
      ...(typeof body === 'string' ? { message: undefined } : {}),
      ...{ status: 200, rejected: '210001' },
    });
  assert.deepEqual(await answerOf(app, field(1, field(2, broken))), {
    ...{ status: 400, message: 'The body is no ExportTraceServiceRequest of OTLP 1.x.' },
  });
});

overHttp(
  'a body with more of anything than a request may have is refused with the limit, in either encoding',
  async (open) => {
    const app = await openTraces(open);
    const groups = /more than 20000 resources and scopes/;
    const attributes = /a span with more than 10000 attributes/;
    const values = /a part with more than 100000 attributes, values, events and links/;
    const allValues = /more than 524288 attributes, values, events and links/;
    const valued = (content: Uint8Array) => inSpan(field(9, field(2, content)));
    const many = 600_000;
    for (const [what, message, ...bodies] of [
      ['resources', groups, empties(1, 20_001), `{${list('resourceSpans', 20_001)}}`],
      ['scopes', groups, field(1, empties(2, 20_000)), `{"resourceSpans":[{${list('scopeSpans', 20_000)}}]}`],
      ['attributes', attributes, inSpan(empties(9, 10_001)), jsonSpan(list('attributes', 10_001))],
      ['events', values, inSpan(empties(11, many)), jsonSpan(list('events', many))],
      ['links', values, inSpan(empties(13, many)), jsonSpan(list('links', many))],
      [
        'attributes of a resource',
        values,
        field(1, field(1, empties(1, many))),
        `{"resourceSpans":[{"resource":{${list('attributes', many)}}}]}`,
      ],
      [
        'values of a list',
        values,
        valued(field(5, empties(1, many))),
        jsonSpan(`"attributes":[{"key":"a","value":{"arrayValue":{${list('values', many)}}}}]`),
      ],
      [
        'pairs of a value',
        values,
        valued(field(6, empties(1, many))),
        jsonSpan(`"attributes":[{"key":"a","value":{"kvlistValue":{${list('values', many)}}}}]`),
      ],
      ['unknown fields', values, empties(7, many), `{${list('later', many)}}`],
      [
        'unknown fields, a thousand values in each',
        allValues,
        `{${Array.from({ length: 600 }, (_, n) => list(`k${n}`, 500)).join()}}`,
      ],
      ['one field again and again', values, inSpan(empties(5, many)), jsonSpan(`"name":"a"${',"x":0'.repeat(many)}`)],
    ] as const)
      for (const body of bodies) {
        const answer = await answerOf(app, body);
        assert.equal(answer.status, 400, what);
        assert.match(answer.message ?? '', message, what);
      }
    const full = `{${list('events', 45_000)}}`;
    const several = `{"resourceSpans":[{"scopeSpans":[{"spans":[${Array(12).fill(full).join()}]}]}]}`;
    assert.match((await answerOf(app, several)).message ?? '', allValues);
    const span = field(2, empties(11, 95_000));
    assert.match(
      (await answerOf(app, field(1, field(2, Buffer.concat(Array(6).fill(span)))))).message ?? '',
      allValues,
    );
    const properties = Array.from({ length: 1001 }, (_, n) => `"k${n}":0`).join();
    assert.match((await answerOf(app, `{${properties}}`)).message ?? '', /an object with more than 1000 properties/);
    const tags = `{"resourceSpans":[{"resource":{${list('attributes', 10_001)}}}]}`;
    assert.match((await answerOf(app, tags)).message ?? '', /a resource with more than 10000 attributes/);
    // Up to the limits they are read.
    for (const body of [field(1, empties(2, 19_999)), inSpan(empties(9, 10_000)), inSpan(empties(11, 95_000))])
      assert.equal((await answerOf(app, body)).status, 200);
  },
);

overHttp('a resource and a library may stand behind their spans, and the last of two members counts', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const one = span({ traceId: newTraceId(), begin, from: 0, to: 5, operation: 'chat' });
  const other = { ...one, spanId: 'f'.repeat(16) };
  const text = JSON.stringify({
    later: { nested: [1, { a: '"]}' }] },
    resourceSpans: [
      {
        scopeSpans: [{ 'sp\\u0061ns': [one], scope: null }, { spans: null }, null],
        schemaUrl: '',
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'behind' } }] },
      },
      null,
    ],
  }).replaceAll('\\\\', '\\');
  const twice = text.replace('"scope":null', `"spans":[${JSON.stringify(other)}]`);
  for (const body of [`\ufeff ${text}\n`, twice]) assert.deepEqual((await postBytes(app, body)).body, {});
  const runs = await settled(app, 1);
  assert.deepEqual(
    runs.map(({ agentName, labels }) => [agentName, labels?.['service']]),
    [
      ['behind', 'behind'],
      ['behind', 'behind'],
    ],
  );
  for (const [broken, code] of [
    [`${text} {}`, 3],
    ['{"resourceSpans":[{}{}]}', 3],
    ['{"resourceSpans":[{},]}', 3],
    ['{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a" "b"}]}]}]}', 3],
    ['{"resourceSpans":[', 3],
    ['{"resourceSpans":[]', 3],
    ['{"resourceSpans":[]]', 3],
    ['{"later":nonsense}', 3],
    ['{"later":"', 3],
    ['{"later":{"a":1]}', 3],
    ['null', 3],
    ['', 3],
  ] as const) {
    const { status, body } = await postBytes(app, broken);
    assert.deepEqual([status, body.code], [400, code], broken);
  }
});

const agent = (begin: number, traceId: string, more: Partial<SpanSetup>, name = 'one') =>
  span({
    ...{ traceId, begin, from: 0, to: 10, operation: 'invoke_agent', attributes: { 'gen_ai.agent.name': name } },
    ...more,
  });

forEachHttpService('a chain of 5000 spans, each the parent of the next, is the run that it tells of', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const traceId = newTraceId();
  const chain = [agent(begin, traceId, {})];
  for (let at = 1; at < 4999; at += 1)
    chain.push(span({ traceId, begin, from: 0, to: 5, parent: chain.at(-1) ?? assert.fail() }));
  chain.push(
    span({
      ...{ traceId, begin, from: 0, to: 5, operation: 'chat', parent: chain.at(-1) ?? assert.fail() },
      attributes: { 'gen_ai.usage.input_tokens': 7 },
    }),
  );
  assert.deepEqual((await post(app, chain)).body, {});
  const [run, ...rest] = await settled(app, 1);
  assert.deepEqual([run?.agentName, run?.usage?.inputTokens, rest], ['one', 7, []]);
});

forEachHttpService(
  'each of hundreds of roots of one trace is a run of its own, and spans in a ring are none',
  async (open) => {
    const app = await openTraces(open, { service: { Observability: { PersistSpans: true } } });
    const begin = app.clock.now() - 2000;
    const traceId = newTraceId();
    const roots = Array.from({ length: 300 }, (_, at) => agent(begin, traceId, {}, `agent-${at % 3}`));
    const below = roots.map((parent) =>
      span({
        ...{ traceId, begin, from: 0, to: 5, operation: 'chat', parent },
        attributes: { 'gen_ai.usage.input_tokens': 2 },
      }),
    );
    const one = span({ traceId, begin, from: 0, to: 5 });
    const ring = { ...span({ traceId, begin, from: 0, to: 5, parent: one }) };
    assert.deepEqual((await post(app, [...below, ...roots, { ...one, parentSpanId: ring.spanId }, ring])).body, {});
    await settled(app, 200);
    const found = new Set<string>();
    for (const skip of [0, 200, 400]) {
      const { body } = await app.client.runs.list({ query: { kind: 'External', take: 200, skip } });
      for (const { id, usage } of body) {
        assert.equal(usage?.inputTokens, 2);
        found.add(id);
      }
    }
    assert.equal(found.size, 300);
    const [run] = await externalRuns(app);
    const { spans } = (await app.client.runs.trace({ params: { runId: run?.id ?? '' } })).body;
    assert.equal(spans.length, 2);
  },
);
