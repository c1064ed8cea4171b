import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { inputSchemaProblems } from '../../../src/engine/tools/input-schema.ts';
import { createToolRegistry, type ToolRegistration } from '../../../src/engine/tools/registry.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { formatPath, ToolProblemsError } from '../../../src/engine/tools/tool-problem.ts';

const tool = (overrides: Record<string, unknown> = {}): ToolDefinition =>
  ({
    name: 'weather',
    description: 'Tells the weather',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
    execute: async () => 'sunny',
    ...overrides,
  }) as ToolDefinition;

const from = (file: string, ...definitions: unknown[]): ToolRegistration[] =>
  definitions.map((definition) => ({
    definition: definition as ToolDefinition,
    place: () => ({ file, line: null }),
  }));

/** `field message` of every problem, in order. */
const problemsOf = (...registrations: ToolRegistration[]): string[] => {
  try {
    createToolRegistry(registrations);
    return [];
  } catch (error) {
    assert.ok(error instanceof ToolProblemsError);
    return error.problems.map(({ field, message }) => `${field} ${message}`);
  }
};

test('TOOL-1 the registry lists by name, finds by exact name and copies what it was given', () => {
  const schema = { type: 'object', properties: { city: { type: 'string' } } };
  const registry = createToolRegistry(
    from('m.mjs', tool({ name: 'zoo' }), tool({ name: 'Add', inputSchema: schema }), tool({ name: 'add' })),
  );
  assert.deepEqual(
    registry.list().map(({ descriptor }) => descriptor.name),
    ['Add', 'add', 'zoo'],
  );
  schema.properties = {} as typeof schema.properties;
  assert.deepEqual(registry.get('Add')?.descriptor.jsonSchema, {
    type: 'object',
    properties: { city: { type: 'string' } },
  });
  assert.equal(registry.get('ADD'), undefined);
  assert.deepEqual(registry.get('zoo')?.descriptor, {
    name: 'zoo',
    description: 'Tells the weather',
    jsonSchema: { type: 'object', properties: { city: { type: 'string' } } },
    kind: 'Code',
    source: null,
    effect: 'Read',
    requiresApproval: false,
    runsOnClient: false,
    requiredPermission: null,
    timeoutMs: null,
    maxOutputBytes: null,
    safeToRepeat: false,
  });
});

test('TOOL-2 names outside the pattern, built-in names and the prefix call_ stop the start', () => {
  for (const name of ['', 'a b', 'ü', 'a.b', 'x'.repeat(65), 7, undefined, 'a\n'])
    assert.deepEqual(problemsOf(...from('m.mjs', tool({ name }))), ['name must be 1 to 64 of A-Z a-z 0-9 _ -']);
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ name: 'file_read' }))), ['name is the name of a built-in tool']);
  assert.match(problemsOf(...from('m.mjs', tool({ name: 'call_x' })))[0] ?? '', /must not start with call_/);
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ name: 'File_Read' }), tool({ name: 'x'.repeat(64) }))), []);
});

test('TOOL-2 a duplicate names both places', () => {
  assert.deepEqual(problemsOf(...from('a.mjs', tool()), ...from('b.mjs', tool())), [
    'name is taken: a.mjs registers a tool of this name',
  ]);
});

test('CONF-14 every problem of every module is in one report, with module, tool and field', () => {
  const registrations = [
    ...from('a.mjs', tool({ description: ' ', effect: 'read', timeoutMs: 0, colour: 'red' }), null, 'text'),
    ...from(
      'b.mjs',
      tool({ name: 'two', maxOutputBytes: 56, safeToRepeat: 'yes', requiredPermission: '', execute: 1 }),
    ),
  ];
  assert.throws(
    () =>
      createToolRegistry(registrations, [{ file: 'c.yaml', line: 4, tool: null, field: 'request', message: 'is odd' }]),
    (error) => {
      assert.ok(error instanceof ToolProblemsError);
      assert.equal(
        error.message,
        [
          'The tools have 11 problems:',
          '  c.yaml:4: request is odd',
          '  a.mjs (weather): colour is not a known member of a tool',
          '  a.mjs (weather): description must be text that is not empty',
          '  a.mjs (weather): effect must be one of Read, Write, Destructive, External',
          '  a.mjs (weather): timeoutMs must be a whole number from 1 to 86400000',
          '  a.mjs: must be an object',
          '  a.mjs: must be an object',
          '  b.mjs (two): requiredPermission must be the name of a permission, or null',
          '  b.mjs (two): maxOutputBytes must be a whole number from 57 up',
          '  b.mjs (two): safeToRepeat must be true or false',
          '  b.mjs (two): execute must be a function',
        ].join('\n'),
      );
      return true;
    },
  );
});

test('TOOL-33 a client-side tool is a declaration without a body', () => {
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ requiresApproval: true }))), []);
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ runsOnClient: true }))), [
    'execute must be left out: the tool runs on the client',
  ]);
  const { execute: _body, ...declared } = tool({ runsOnClient: true });
  assert.deepEqual(problemsOf(...from('m.mjs', declared)), []);
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ requiresApproval: false, runsOnClient: false }))), []);
});

const schemaProblems = (schema: unknown): string[] =>
  inputSchemaProblems(schema).map(({ path, message }) => `${formatPath(path)}: ${message}`);

test('TOOL-3 a schema that is not JSON Schema 2020-12 with an object root stops the start', () => {
  const cyclic: Record<string, unknown> = { type: 'object' };
  cyclic['properties'] = { self: cyclic };
  assert.deepEqual(problemsOf(...from('m.mjs', tool({ inputSchema: cyclic }))), [
    'inputSchema must be a JSON value without cycles',
  ]);
  for (const schema of [undefined, null, true, [], 'object'])
    assert.deepEqual(schemaProblems(schema), [': must be a JSON Schema object']);
  for (const type of [undefined, 'string', ['object', 'null'], ['object']])
    assert.deepEqual(schemaProblems({ ...(type === undefined ? {} : { type }) }), [
      'type: must be "object" at the root',
    ]);
  assert.deepEqual(schemaProblems({ type: 'object', $schema: 'http://json-schema.org/draft-07/schema#' }), [
    '$schema: must be JSON Schema 2020-12, or be left out',
  ]);
});

test('TOOL-3 mistakes deep inside a schema are found with their path', () => {
  assert.deepEqual(
    schemaProblems({
      type: 'object',
      required: 'city',
      properties: {
        city: { type: 'strng' },
        days: { type: 'integer', minimum: '1', multipleOf: 0 },
        tags: { type: 'array', items: [{ type: 'string' }] },
        code: { pattern: '(' },
        any: null,
      },
      patternProperties: { '[': true },
      $defs: { a: { anyOf: [] } },
      oneOf: [{ minLength: -1 }, 3],
    }),
    [
      'required: must be a list of names',
      'properties.city.type: must be one of array, boolean, integer, null, number, object, string, or a list of them',
      'properties.days.minimum: must be a number',
      'properties.days.multipleOf: must be a number above 0',
      'properties.tags.items: must be a schema (an object, true or false)',
      'properties.code.pattern: must be a regular expression',
      'properties.any: must be a schema (an object, true or false)',
      'patternProperties: must be an object of schemas whose names are regular expressions: each must be a regular expression',
      '$defs.a.anyOf: must be a list of schemas that is not empty',
      'oneOf[0].minLength: must be a whole number from 0 up',
      'oneOf[1]: must be a schema (an object, true or false)',
    ],
  );
});

test('TOOL-3 references must name a schema inside the schema', () => {
  const problems = schemaProblems({
    type: 'object',
    $id: 'https://example.test/root',
    properties: {
      a: { $ref: '#/$defs/p~1q' },
      b: { $ref: '#named' },
      c: { $ref: 'https://example.test/root#/$defs/p~1q' },
      d: { $ref: 'inner' },
      e: { $ref: '#' },
      f: { $ref: '#/$defs/gone' },
      g: { $ref: 'https://example.test/other' },
      h: { $ref: '#unnamed' },
      i: { $ref: '#/$defs/p~1q/type' },
      j: { $ref: '#/%' },
    },
    $defs: { 'p/q': { type: 'string' }, r: { $anchor: 'named' }, s: { $id: 'inner', type: 'object' } },
  });
  assert.deepEqual(
    problems,
    ['f', 'g', 'h', 'i', 'j'].map((name) => `properties.${name}.$ref: names no schema inside this one`),
  );
});

test('TOOL-3 a schema nested without end is refused', () => {
  let schema: Record<string, unknown> = {};
  for (let depth = 0; depth < 2000; depth++) schema = { properties: { a: schema } };
  assert.match(schemaProblems({ type: 'object', ...schema })[0] ?? '', /nested deeper than 64 schemas/);
});

const check = (schema: Json, args: Json): string[] => {
  const registry = createToolRegistry(from('m.mjs', tool({ inputSchema: schema })));
  const found = registry.get('weather');
  assert.ok(found);
  return found.checkArguments(args);
};

test('TOOL-13 arguments are checked by every keyword of JSON Schema 2020-12', () => {
  const cases: [schema: Record<string, Json>, good: Json, bad: Json][] = [
    [{ properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'integer' } } }, { a: 1 }, { a: 1.5 }],
    [{ properties: { a: { $ref: '#' } }, additionalProperties: false }, { a: { a: {} } }, { a: { b: 1 } }],
    [{ properties: { a: { $ref: '#x' } }, $defs: { q: { $anchor: 'x', type: 'null' } } }, { a: null }, { a: 0 }],
    [{ oneOf: [{ required: ['a'] }, { required: ['b'] }] }, { a: 1 }, { a: 1, b: 1 }],
    [{ anyOf: [{ required: ['a'] }, { required: ['b'] }] }, { b: 1 }, {}],
    [{ allOf: [{ required: ['a'] }, { required: ['b'] }] }, { a: 1, b: 1 }, { a: 1 }],
    [{ not: { required: ['a'] } }, {}, { a: 1 }],
    [JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}'), { c: 1 }, { a: 1 }],
    [{ patternProperties: { '^x-': { type: 'number' } }, additionalProperties: false }, { 'x-a': 1 }, { y: 1 }],
    [{ propertyNames: { pattern: '^[a-z]+$' } }, { a: 1 }, { A: 1 }],
    [{ minProperties: 1, maxProperties: 1 }, { a: 1 }, { a: 1, b: 1 }],
    [{ dependentRequired: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
    [{ dependentSchemas: { a: { required: ['b'] } } }, { b: 1 }, { a: 1 }],
    [{ allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, { a: 1 }, { b: 1 }],
    [{ properties: { a: { prefixItems: [{ type: 'string' }], items: false } } }, { a: ['x'] }, { a: ['x', 1] }],
    [{ properties: { a: { contains: { const: 1 }, maxContains: 1 } } }, { a: [1, 2] }, { a: [1, 1] }],
    [
      { properties: { a: { uniqueItems: true } } },
      { a: [{ x: 1 }, { x: 2 }] },
      {
        a: [
          { x: 1, y: 2 },
          { y: 2, x: 1 },
        ],
      },
    ],
    [{ properties: { a: { enum: [{ x: 1 }, null] } } }, { a: { x: 1 } }, { a: { x: 2 } }],
    [{ properties: { a: { type: ['string', 'null'], maxLength: 2 } } }, { a: '😀😀' }, { a: 'abc' }],
    [{ properties: { a: { multipleOf: 0.01 } } }, { a: 0.07 }, { a: 0.005 }],
    [{ properties: { a: { exclusiveMinimum: 0, maximum: 1 } } }, { a: 1 }, { a: 0 }],
    [{ properties: { a: { format: 'date-time' } } }, { a: '2026-01-02T03:04:05Z' }, { a: 'tomorrow' }],
    [{ properties: { a: { format: 'email' } } }, { a: 'a@example.test' }, { a: 'nobody' }],
    [{ properties: { a: { pattern: '^\\p{L}+$' } } }, { a: 'été' }, { a: '1' }],
  ];
  for (const [schema, good, bad] of cases) {
    const whole = { type: 'object', ...schema };
    assert.deepEqual(check(whole, good), [], JSON.stringify(schema));
    assert.notDeepEqual(check(whole, bad), [], JSON.stringify(schema));
  }
});

test('TOOL-13 the messages name what failed', () => {
  const schema: Json = {
    type: 'object',
    required: ['city'],
    properties: {
      city: { type: 'string' },
      days: { type: 'integer' },
      unit: { enum: ['metric', 'imperial'] },
      list: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer' } } } },
    },
    additionalProperties: false,
  };
  assert.deepEqual(check(schema, { days: 'two', unit: 'x', town: 1, list: [{ id: 1 }, { id: 'b' }] }).sort(), [
    'city is required',
    'days must be integer',
    'list[1].id must be integer',
    'town is not a known argument',
    'unit must be one of "metric", "imperial"',
  ]);
});
