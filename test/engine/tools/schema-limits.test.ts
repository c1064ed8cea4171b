import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { isNestedTooDeep, nestsTooDeep } from '../../../src/core/documents/json-depth.ts';
import { argumentsChecker } from '../../../src/engine/tools/arguments.ts';
import { inputSchemaProblems } from '../../../src/engine/tools/input-schema.ts';
import type { Recursion } from '../../../src/engine/tools/schema-graph.ts';
import { formatPath } from '../../../src/engine/tools/tool-problem.ts';

const objectOf = (members: Record<string, Json>): Json => ({ type: 'object', ...members });
const problemsOf = (schema: Json, recursion: Recursion = 'refused'): string[] =>
  inputSchemaProblems(schema, recursion).map(({ path, message }) => `${formatPath(path)}: ${message}`);
const checked = (schema: Json, value: Json, recursion: Recursion = 'refused'): string[] =>
  argumentsChecker(schema, { recursion })(value);
const withPattern = (pattern: string): Json => objectOf({ properties: { a: { type: 'string', pattern } } });

describe('patterns of schemas', { timeout: 20_000 }, () => {
  // Each takes a backtracking engine longer than the test may, by many orders of magnitude.
  for (const pattern of ['^(a+)+$', '^(a|a)*$', '^(\\w+\\s?)*$', '(a*)*b'])
    test(`${pattern} takes no longer than its text`, () => {
      const text = `${'a'.repeat(2_000)}!`;
      const expected = ['a must match pattern'];
      assert.deepEqual(
        checked(withPattern(pattern), { a: text }).map((message) => message.slice(0, 20)),
        expected,
      );
      assert.notDeepEqual(
        checked(objectOf({ patternProperties: { [pattern]: false }, additionalProperties: false }), { [text]: 1 }),
        [],
      );
      assert.notDeepEqual(checked(objectOf({ propertyNames: { pattern } }), { [text]: 1 }), []);
    });

  test('a text that is too long for a pattern does not fit, and the next one is looked at again', () => {
    const check = argumentsChecker(withPattern('^(?:[a-z0-9]{1,400}){2}$'), { recursion: 'refused' });
    assert.notDeepEqual(check({ a: 'x'.repeat(500_000) }), []);
    assert.deepEqual(check({ a: 'x'.repeat(500) }), []);
  });

  test('a text that is too long for an address is not looked at', () => {
    const schema = objectOf({ properties: { a: { type: 'string', format: 'uri' } } });
    assert.deepEqual(checked(schema, { a: `${'a'.repeat(1_000_000)}!` }), ['a must match format "uri"']);
    assert.deepEqual(checked(schema, { a: 'https://example.test/a?b=c' }), []);
  });

  const refused = [
    '^(?=a)b',
    '(?<!a)b',
    '(a)\\1',
    'a{2000}',
    '\\p{Script=Greek}',
    '(?:[a-z]{1,1000}[a-z]{1,1000}){1}x{1000}[a-z]{1000}',
  ];
  for (const pattern of refused)
    test(`${pattern} is refused with what is allowed`, () => {
      const expected =
        /^properties\.a\.pattern: must be a (?:regular expression that RE2 can run, such as .* it has no lookahead|simpler regular expression: counts)/;
      assert.match(problemsOf(withPattern(pattern)).join(), expected);
      assert.match(
        problemsOf(objectOf({ patternProperties: { [pattern]: true } })).join(),
        /^patternProperties: .* each must be a/,
      );
      // Of a schema that was stored before.
      assert.match(
        checked(withPattern(pattern), { a: 'ab' }).join(),
        /^the schema cannot be used: schema\.properties\.a\.pattern must be a/,
      );
    });

  const kept = [
    '^[a-z]{1,20}$',
    '\\u0041',
    '\\p{L}+',
    '(?<year>\\d{4})',
    '^\\/a$',
    '[^\\s]',
    '\\cA',
    '^\\S+@\\S+$',
    '',
  ];
  for (const pattern of kept)
    test(`${pattern === '' ? 'the empty pattern' : pattern} is kept`, () => {
      assert.deepEqual(problemsOf(withPattern(pattern)), []);
      const means = new RegExp(pattern, 'u');
      for (const text of ['A', 'abc', '2026', '/a', ' ', 'a@b', '', '\u0001'])
        assert.equal(
          checked(withPattern(pattern), { a: text }).length === 0,
          means.test(text),
          `${pattern} on ${text}`,
        );
    });
});

describe('members that go by patterns', () => {
  const schema = objectOf({
    $defs: { n: { type: 'integer' } },
    properties: {
      id: { type: 'string' },
      inner: { type: 'object', patternProperties: { '^y': { $ref: '#/$defs/n' } } },
    },
    patternProperties: { '^x-': { $ref: '#/$defs/n' }, '-z$': { type: 'number', maximum: 5 } },
    additionalProperties: false,
  });
  const cases: readonly [value: Json, fits: boolean][] = [
    [{ id: 'a', 'x-1': 1 }, true],
    [{ 'x-1': 1.5 }, false],
    [{ 'x-z': 5 }, true],
    [{ 'x-z': 6 }, false],
    [{ other: 1 }, false],
    [{ id: 1 }, false],
    [{ inner: { y: 1, other: 'free' } }, true],
    [{ inner: { y: 'a' } }, false],
    [{ constructor: 1 }, false],
  ];
  for (const [value, fits] of cases)
    test(`${JSON.stringify(value)} ${fits ? 'fits' : 'does not fit'}`, () => {
      const messages = checked(schema, value);
      assert.equal(messages.length === 0, fits, messages.join());
    });

  test('they lead into documents inside the schema and back', () => {
    const inside = objectOf({
      $id: 'https://example.test/root',
      properties: {
        a: {
          $id: 'inner',
          type: 'object',
          $defs: { t: { type: 'boolean' } },
          patternProperties: { '^b': { $ref: '#/$defs/t' }, '^r/~': { $ref: 'root' } },
        },
      },
      required: ['a'],
    });
    assert.deepEqual(checked(inside, { a: { b: true } }, 'through-members'), []);
    assert.notDeepEqual(checked(inside, { a: { b: 1 } }, 'through-members'), []);
    assert.deepEqual(checked(inside, { a: { 'r/~': { a: {} } } }, 'through-members'), []);
    assert.notDeepEqual(checked(inside, { a: { 'r/~': {} } }, 'through-members'), []);
  });

  test('what they cover cannot be unevaluated, so both together are refused', () => {
    const both = objectOf({ allOf: [{ patternProperties: { '^x': true } }], unevaluatedProperties: false });
    assert.deepEqual(problemsOf(both), [
      'allOf[0].patternProperties: cannot be used in a schema that has unevaluatedProperties',
    ]);
  });
});

describe('schemas that contain themselves', () => {
  const self: Readonly<Record<string, Json>> = {
    'at the root': objectOf({ $ref: '#' }),
    'by a keyword': objectOf({ allOf: [{ anyOf: [{ $ref: '#' }] }] }),
    'over two steps': objectOf({
      $ref: '#/$defs/a',
      $defs: { a: { $ref: '#/$defs/b' }, b: { not: { $ref: '#/$defs/a' } } },
    }),
    'by a dynamic reference': objectOf({ $dynamicAnchor: 'me', $dynamicRef: '#me' }),
  };
  for (const [where, schema] of Object.entries(self))
    for (const recursion of ['refused', 'through-members'] as const)
      test(`${where}, with recursion ${recursion}, are refused`, () => {
        assert.match(problemsOf(schema, recursion).join(), /contains itself, which is not allowed$/);
        assert.match(checked(schema, {}, recursion).join(), /^the schema cannot be used: .* contains itself/);
      });

  test('through members only those of a host may', () => {
    const tree = objectOf({ properties: { next: { $ref: '#' } }, additionalProperties: false });
    assert.deepEqual(problemsOf(tree, 'through-members'), []);
    assert.deepEqual(checked(tree, { next: { next: {} } }, 'through-members'), []);
    assert.deepEqual(problemsOf(tree), [': contains itself, which is not allowed']);
  });

  test('a definition that is named twice does not contain itself', () => {
    const twice = objectOf({
      properties: { a: { $ref: '#/$defs/n' }, b: { $ref: '#/$defs/n' } },
      $defs: { n: { type: 'integer' } },
    });
    assert.deepEqual(problemsOf(twice), []);
  });

  test('a reference to something that is no schema of this one is refused', () => {
    // Nothing would have looked at the pattern in it.
    const hidden = objectOf({ properties: { a: { $ref: '#/x-hidden' } }, 'x-hidden': { pattern: '(?=a)' } });
    assert.deepEqual(problemsOf(hidden), ['properties.a.$ref: names no schema inside this one']);
  });
});

describe('sizes of schemas and values', { timeout: 20_000 }, () => {
  test('references that double with every step are refused', () => {
    const levels = Array.from({ length: 30 }, (_, level): [string, Json] => [
      `l${level}`,
      level === 0
        ? { type: 'string' }
        : { allOf: [{ $ref: `#/$defs/l${level - 1}` }, { $ref: `#/$defs/l${level - 1}` }] },
    ]);
    const schema = objectOf({ properties: { a: { $ref: '#/$defs/l29' } }, $defs: Object.fromEntries(levels) });
    assert.match(problemsOf(schema).join(), /must not have more than 10000 schemas and words/);
  });

  test('a long chain of references is refused, and no stack overflows', () => {
    const links = Array.from({ length: 50_000 }, (_, link): [string, Json] => [
      `l${link}`,
      { $ref: `#/$defs/l${link + 1}` },
    ]);
    const schema = objectOf({ $ref: '#/$defs/l0', $defs: { ...Object.fromEntries(links), l50000: true } });
    assert.match(problemsOf(schema).join(), /is nested deeper than 200 schemas, references counted/);
  });

  test('words that nest too deep are refused', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as Json;
    for (const keyword of ['default', 'const', 'x-note'])
      assert.deepEqual(problemsOf(objectOf({ properties: { a: { [keyword]: deep } } })), [
        ': is nested deeper than 500 levels',
      ]);
  });

  for (const length of [1_400, 5_000])
    test(`${length} members, alternatives or words are ${length > 1_500 ? 'refused' : 'compiled'}`, () => {
      const numbers = Array.from({ length }, (_, index) => index);
      const lists: readonly Record<string, Json>[] = [
        { enum: numbers },
        { anyOf: numbers.map((const_): Json => ({ const: const_ })) },
        { allOf: numbers.map((minimum): Json => ({ minimum: -minimum })) },
        { type: 'object', properties: Object.fromEntries(numbers.map((number) => [`p${number}`, { type: 'string' }])) },
      ];
      for (const list of lists) {
        const schema = objectOf({ properties: { a: list } });
        if (length > 1_500) assert.match(problemsOf(schema).join(), /must not have more than 1500 members/);
        else {
          assert.deepEqual(problemsOf(schema), []);
          assert.notDeepEqual(checked(schema, { a: list['type'] === 'object' ? [] : -9_999 }), []);
        }
      }
    });

  test('a value that would be looked at too often is refused with what can be', () => {
    const options = Array.from({ length: 1_000 }, (_, index): Json => ({ const: index }));
    const schema = objectOf({ properties: { a: { type: 'array', items: { anyOf: options } } } });
    assert.match(
      checked(schema, { a: Array.from({ length: 100_000 }, () => -1) }).join(),
      /at most \d+ can be checked/,
    );
    assert.deepEqual(checked(schema, { a: [1, 2, 3] }), []);
  });

  test('a large value that does not fit is told so without all of its mistakes', () => {
    const schema = objectOf({ properties: { a: { type: 'array', uniqueItems: true } } });
    assert.deepEqual(checked(schema, { a: Array.from({ length: 200_000 }, () => 0) }), [
      'the arguments must fit the schema',
    ]);
  });
});

test('the depth of JSON is that of its brackets outside texts', () => {
  const nested = (depth: number): string => `${'[{"a":'.repeat(depth / 2)}0${'}]'.repeat(depth / 2)}`;
  for (const [text, tooDeep] of [
    [nested(500), false],
    [nested(502), true],
    [JSON.stringify('['.repeat(600)), false],
    [JSON.stringify(['\\"', '['.repeat(600), '"[[']), false],
    [nested(100_000), true],
  ] as const) {
    assert.equal(nestsTooDeep(text), tooDeep);
    assert.equal(isNestedTooDeep(JSON.parse(text)), tooDeep);
  }
});
