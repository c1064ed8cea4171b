import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { argumentsChecker, readForeignSchema } from '../../../src/engine/tools/index.ts';

const check = (schema: unknown) => {
  const read = readForeignSchema(schema);
  assert.ok('schema' in read, 'problem' in read ? read.problem : '');
  const checker = argumentsChecker(read.schema as Json, { recursion: 'through-members' });
  return (args: Json): boolean => checker(args).length === 0;
};

const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' };

test('MCP-18 a schema of draft 7 counts as what it says: items, dependencies and references', () => {
  const pair = check({
    ...draft7,
    properties: { pair: { items: [{ type: 'string' }, { type: 'number' }], additionalItems: false } },
  });
  assert.deepEqual(
    [pair({ pair: ['a', 1] }), pair({ pair: ['a'] }), pair({ pair: [1] }), pair({ pair: ['a', 1, 2] })],
    [true, true, false, false],
  );
  const needs = check({ ...draft7, dependencies: { a: ['b'], c: { required: ['d'] } } });
  assert.deepEqual(
    [needs({ a: 1 }), needs({ a: 1, b: 1 }), needs({ c: 1 }), needs({ c: 1, d: 1 })],
    [false, true, false, true],
  );
  const refers = check({
    ...draft7,
    definitions: { name: { type: 'string' } },
    properties: { name: { $ref: '#/definitions/name', maxLength: 1 } },
  });
  assert.deepEqual([refers({ name: 'longer than one' }), refers({ name: 1 })], [true, false]);
});

test('MCP-18 bounds of draft 4 belong to the range or not, as they say', () => {
  const bound = check({
    $schema: 'http://json-schema.org/draft-04/schema#',
    type: 'object',
    properties: { n: { minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: false } },
  });
  assert.deepEqual([bound({ n: 1 }), bound({ n: 2 }), bound({ n: 3 }), bound({ n: 4 })], [false, true, true, false]);
});

test('MCP-18 a schema that names no dialect, or no type, is one of 2020-12 for an object', () => {
  const bare = check({ properties: { pair: { prefixItems: [{ type: 'string' }] } } });
  assert.deepEqual([bare({ pair: ['a'] }), bare({ pair: [1] })], [true, false]);
});

test('MCP-18 an expression that cannot be run in bounded time is left out, and refuses nothing', () => {
  const mail = check({ type: 'object', properties: { mail: { type: 'string', pattern: '^(?!x).+@.+$' } } });
  assert.deepEqual([mail({ mail: 'whatever' }), mail({ mail: 1 })], [true, false]);
  const named = check({
    type: 'object',
    patternProperties: { '^(?=a)': { type: 'string' } },
    additionalProperties: false,
  });
  assert.equal(named({ abc: 'x' }), true);
});

test('MCP-18 what is no schema of an object is none', () => {
  for (const schema of [
    null,
    [],
    'x',
    true,
    { type: 'string' },
    { $schema: 'https://a.example/', type: 'object' },
    { type: 'object', $ref: 'https://a.example/' },
    { type: 'object', properties: { a: { type: 'nothing' } } },
    { $ref: '#', type: 'object' },
  ])
    assert.ok('problem' in readForeignSchema(schema), JSON.stringify(schema));
});
