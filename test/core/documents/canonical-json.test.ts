import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { canonicalJson } from '../../../src/core/documents/canonical-json.ts';

test('canonical JSON sorts members by UTF-16 units at every level and keeps the order of lists', () => {
  const text = '{"b":[3,1,{"z":1,"a":2}],"a":null,"\\u20ac":1,"\\r":2,"1":3,"\\ufb33":5,"\\ud83d\\ude00":4}';
  assert.equal(
    canonicalJson(JSON.parse(text) as Json),
    '{"\\r":2,"1":3,"a":null,"b":[3,1,{"a":2,"z":1}],"\u20ac":1,"\ud83d\ude00":4,"\ufb33":5}',
  );
});

test('canonical JSON writes numbers and texts as ECMAScript does', () => {
  assert.equal(
    canonicalJson([JSON.parse('333333333.33333329'), 1e30, 4.5, 2e-3, 1e-27, -0, 'a"\\\n\u0007é']),
    '[333333333.3333333,1e+30,4.5,0.002,1e-27,0,"a\\"\\\\\\n\\u0007é"]',
  );
});

test('equal values have equal canonical texts whatever the order of their members', () => {
  const one = JSON.parse('{"city":"Bern","days":3,"opts":{"x":1,"y":[true,false]}}') as Json;
  const two = JSON.parse('{ "opts": {"y":[true,false],"x":1.0}, "days": 3, "city": "Bern" }') as Json;
  assert.equal(canonicalJson(one), canonicalJson(two));
});

test('a hostile depth is a RangeError of ours and not a stack overflow', () => {
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) as Json;
  assert.throws(() => canonicalJson(deep), /nested deeper than 500/);
});

test('what JSON cannot hold is refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Symbol('s'), () => 1])
    assert.throws(() => canonicalJson(value as unknown as Json), TypeError);
  assert.equal(canonicalJson({ a: undefined, b: 1 } as unknown as Json), '{"b":1}');
});

test('a member named __proto__ is a member like any other', () => {
  assert.equal(canonicalJson(JSON.parse('{"__proto__":{"x":1},"a":1}') as Json), '{"__proto__":{"x":1},"a":1}');
});
