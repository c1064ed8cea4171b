import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import Type from 'typebox';
import { errorTable } from '../../src/contract/errors.ts';
import { openAiStatus } from '../../src/contract/openai-error.ts';
import { defineOperations, type Operation } from '../../src/contract/operation.ts';
import { nullable } from '../../src/contract/schema.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { buildOpenApi } from '../../src/http/openapi.ts';
import { operations } from '../../src/operations.ts';
import { table } from './support.ts';

const options = { version: '0.0.0', prefix: '' };
const goldenFile = new URL('../../docs/reference/openapi.json', import.meta.url);

type Node = { readonly [key: string]: Node } & readonly Node[] & string;
/** The document as a client sees it, to be read by any path. */
const documentOf = (operation: Operation): Node =>
  JSON.parse(JSON.stringify(buildOpenApi(operationEntries({ demo: { act: operation } }), options)));

const plain = {
  method: 'GET',
  path: '/api/demo',
  tag: 'Demo',
  summary: 'Act',
  role: 'Reader',
  scope: 'RunsRead',
  responses: { 200: Type.Unknown() },
  errors: [],
} as const satisfies Operation;

/** Findings of the linter's recommended rules. */
const lint = async (document: object, more: Readonly<Record<string, 'error' | 'off'>> = {}): Promise<string[]> => {
  // `/approvals/{id}/decide` and `/approvals/rules/{ruleId}` are ambiguous; their ids, which are UUIDs, decide (below).
  const rules = { 'no-ambiguous-paths': 'off', ...more } as const;
  const config = await createConfig({ extends: ['recommended'], rules });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`);
};

test('the description of the product is valid OpenAPI 3.1 by a public linter', async () => {
  const entries = operationEntries(operations);
  assert.deepEqual(
    await lint(buildOpenApi(entries, options), { 'operation-description': 'error', 'tag-description': 'error' }),
    [],
  );
  const undescribed = { 'tag-description': 'off' } as const;
  assert.deepEqual(await lint(buildOpenApi(operationEntries(table), { ...options, prefix: '/acp' }), undescribed), []);
  const broken = { ...buildOpenApi(entries, options), components: {} };
  assert.ok((await lint(broken)).some((finding) => finding.startsWith('no-unresolved-refs')));
});

test('a path that two templates fit exists for none of them: their parameters allow no such segment', () => {
  const entries = operationEntries(operations);
  for (const { operation: one } of entries)
    for (const { operation: other } of entries) {
      const [left, right] = [one.path.split('/'), other.path.split('/')];
      const crossing = left.map((segment, index) => [segment, right[index] ?? ''] as const);
      const isFree = (segment: string) => segment.startsWith('{');
      const fits = crossing.every(([a, b]) => a === b || isFree(a) || isFree(b));
      const crosses = (from: number, to: number) =>
        crossing.some((pair) => isFree(pair[from] ?? '') && !isFree(pair[to] ?? ''));
      if (one.path === other.path || left.length !== right.length || !fits || !crosses(0, 1) || !crosses(1, 0))
        continue;
      const excludes = ({ params }: Operation, from: readonly string[], to: readonly string[]) =>
        from.some((segment, index) => {
          const format = params?.properties[segment.slice(1, -1)] as { readonly format?: string } | undefined;
          return isFree(segment) && !isFree(to[index] ?? '{') && format?.format === 'uuid';
        });
      assert.ok(excludes(one, left, right) && excludes(other, right, left), `${one.path} ${other.path}`);
    }
});

test('every operation says that it may be limited, and errors have the media type of their protocol', () => {
  const document = JSON.parse(JSON.stringify(buildOpenApi(operationEntries(operations), options))) as Node;
  const responseOf = (path: string, method: string, status: number): Node | undefined => {
    const response: Node | undefined = document['paths']?.[path]?.[method]?.['responses']?.[status];
    const name: string = response?.['$ref']?.split('/').at(-1) ?? '';
    return name === '' ? response : document['components']?.['responses']?.[name];
  };
  const typesOf = (...response: Parameters<typeof responseOf>): readonly string[] =>
    Object.keys(responseOf(...response)?.['content'] ?? {}).sort();
  for (const { id, operation } of operationEntries(operations)) {
    const { path, method, envelope } = operation;
    assert.ok(typesOf(path, method.toLowerCase(), 429).length > 0, id);
    const expected = { OpenAi: 'application/json', Otlp: 'application/json,application/x-protobuf' };
    const [own] = [envelope === undefined ? 'application/problem+json' : expected[envelope]];
    assert.equal(typesOf(path, method.toLowerCase(), 429).join(), own, id);
    const limited = responseOf(path, method.toLowerCase(), 429);
    assert.ok(limited?.['headers']?.['Retry-After'] !== undefined, `${id} says when to come again`);
    const codes = String(limited?.['description']);
    assert.equal(codes.includes('too-many-streams'), operation.stream !== undefined, id);
    if (operation.errors.includes('provider-rate-limited'))
      assert.equal(codes.includes('provider-rate-limited'), envelope === 'OpenAi', id);
  }
  // A protocol of its own answers some errors itself, and leaves others to HTTP.
  const both = ['application/json', 'application/problem+json'];
  assert.deepEqual(typesOf('/a2a/{agent}', 'post', 400), both);
  assert.deepEqual(typesOf('/mcp', 'post', 400), both);
  assert.deepEqual(typesOf('/a2a/{agent}', 'post', 404), ['application/problem+json']);
});

test('every operation is described in sentences that say more than its summary', () => {
  for (const { id, operation } of operationEntries(operations)) {
    const { description = '', summary } = operation;
    assert.match(description, /^[A-Z`].*[.]$/, id);
    assert.ok(description.split(/(?<=[.]) (?=[A-Z`])/).length <= 2, `${id} takes more than two sentences`);
    assert.ok(!description.toLowerCase().includes(summary.toLowerCase()), `${id} repeats its summary`);
    assert.ok(description.length > summary.length / 2, `${id} says too little`);
  }
});

test('docs/reference/openapi.json is the description of the product (ACP_UPDATE_GOLDEN=1 rewrites it)', () => {
  const text = `${JSON.stringify(buildOpenApi(operationEntries(operations), options), null, 2)}\n`;
  if (process.env['ACP_UPDATE_GOLDEN'] === '1') writeFileSync(goldenFile, text);
  assert.equal(text, readFileSync(goldenFile, 'utf8'));
});

test('every operation is there with its id, authority and problems', () => {
  const entries = operationEntries(operations);
  const document = JSON.parse(JSON.stringify(buildOpenApi(entries, options))) as Node;
  for (const { id, operation } of entries) {
    const described = document['paths']?.[operation.path]?.[operation.method.toLowerCase()];
    assert.equal(described?.['operationId'], id);
    assert.equal(described?.['x-acp-role'], operation.role ?? undefined);
    assert.deepEqual(described?.['x-acp-scope'], operation.scope ?? undefined);
    for (const status of Object.keys(operation.responses)) assert.ok(described?.['responses']?.[status], id);
    for (const code of operation.errors) {
      const status = operation.envelope === 'OpenAi' ? openAiStatus(code) : errorTable[code].status;
      const response: Node | undefined = described?.['responses']?.[status];
      const name: string = response?.['$ref']?.split('/').at(-1) ?? '';
      const about: string | undefined =
        response?.['description'] ?? document['components']?.['responses']?.[name]?.['description'];
      assert.ok(about?.includes(`\`${code}\``), `${id} ${code}`);
    }
  }
});

test('parameters, headers and a body are described with what is required', () => {
  const document = documentOf({
    ...plain,
    method: 'POST',
    path: '/api/demo/{name}',
    params: Type.Object({ name: Type.String({ description: 'Its name' }) }),
    query: Type.Object({ take: Type.Optional(Type.Integer()) }),
    headers: Type.Object({ prefer: Type.Optional(Type.String()) }),
    body: Type.Object({ a: Type.String() }, { title: 'DemoRequest' }),
  });
  const act = document['paths']?.['/api/demo/{name}']?.['post'];
  assert.deepEqual(act?.['parameters'], [
    { name: 'name', in: 'path', required: true, description: 'Its name', schema: { type: 'string' } },
    { name: 'take', in: 'query', required: false, schema: { type: 'integer' } },
    { name: 'prefer', in: 'header', required: false, schema: { type: 'string' } },
  ]);
  assert.deepEqual(act?.['requestBody'], {
    required: true,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/DemoRequest' } } },
  });
  assert.ok(act?.['responses']?.['413']);
});

test('an operation without a credential says so, and has no problems of one', () => {
  const act = documentOf({ ...plain, role: null, scope: null })['paths']?.['/api/demo']?.['get'];
  assert.deepEqual(act?.['security'], []);
  assert.deepEqual(Object.keys(act?.['responses'] ?? {}), ['200', '400', '429', '500']);
});

test('a stream is one more media type of the answer, and its frames are described', () => {
  const Event = Type.Object({ type: Type.String() }, { title: 'DemoEvent' });
  const streamed = documentOf({ ...plain, stream: Event })['paths']?.['/api/demo']?.['get']?.['responses']?.['200'];
  assert.deepEqual(Object.keys(streamed?.['content'] ?? {}), ['text/event-stream', 'application/json']);
  const frame = streamed?.['content']?.['text/event-stream']?.['schema'];
  assert.deepEqual(frame?.['properties']?.['data'], { $ref: '#/components/schemas/DemoEvent' });
  const only = documentOf({ ...plain, responses: {}, stream: Event });
  const media = only['paths']?.['/api/demo']?.['get']?.['responses']?.['200']?.['content'];
  assert.deepEqual(Object.keys(media ?? {}), ['text/event-stream']);
});

test('an answer of OTLP is described in both of its encodings, and is no file to save', () => {
  const described = documentOf({
    ...{ ...plain, envelope: 'Otlp', download: 'In the encoding of the request' },
    responses: { 200: Type.Object({ partialSuccess: Type.String() }) },
  })['paths']?.['/api/demo']?.['get']?.['responses']?.['200'];
  assert.deepEqual(Object.keys(described ?? {}), ['description', 'content']);
  const content = described?.['content'];
  assert.deepEqual(Object.keys(content ?? {}), ['application/x-protobuf', 'application/json']);
  assert.deepEqual(content?.['application/json']?.['schema']?.['required'], ['partialSuccess']);
});

test('schemas with a title are components, null or not, and described anew where they are used', () => {
  const Part = Type.Object({ n: Type.Integer() }, { title: 'Part', description: 'A part' });
  const Whole = Type.Object(
    {
      one: Part,
      maybe: nullable(Part),
      many: Type.Array(Part),
      other: Type.Object({ ...Part.properties }, { ...Part, description: 'Mine' }),
    },
    { title: 'Whole' },
  );
  const document = documentOf({ ...plain, responses: { 200: Whole } });
  const whole = document['components']?.['schemas']?.['Whole']?.['properties'];
  const ref = { $ref: '#/components/schemas/Part' };
  assert.deepEqual(whole?.['one'], ref);
  assert.deepEqual(whole?.['maybe'], { anyOf: [ref, { type: 'null' }] });
  assert.deepEqual(whole?.['many'], { type: 'array', items: ref });
  assert.deepEqual(whole?.['other'], { ...ref, description: 'Mine' });
});

test('two different schemas of one title cannot be described', () => {
  const responses = {
    200: Type.Object({ a: Type.String() }, { title: 'Same' }),
    201: Type.Object({ b: Type.String() }, { title: 'Same' }),
  };
  assert.throws(() => documentOf({ ...plain, responses }), /titled Same/);
});

test('the table keeps its operations apart: two features may share a path', () => {
  const shared = {
    a: defineOperations({ get: plain }),
    b: defineOperations({ remove: { ...plain, method: 'DELETE', responses: { 204: null } } }),
  };
  const { paths } = buildOpenApi(operationEntries(shared), options) as { paths: Record<string, object> };
  assert.deepEqual(Object.keys(paths['/api/demo'] ?? {}), ['get', 'delete']);
});
