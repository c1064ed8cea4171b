import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import { canonicalText, minOutputBytes, outputLimit, truncateOutput } from '../../../src/engine/tools/tool-output.ts';

test('TOOL-18 strings stay, nothing becomes null, the rest becomes JSON', () => {
  const cases: [Json | undefined, string][] = [
    ['plain "text"', 'plain "text"'],
    ['', ''],
    [undefined, 'null'],
    [null, 'null'],
    [0, '0'],
    [false, 'false'],
    [{ b: 1, a: [1, null] }, '{"b":1,"a":[1,null]}'],
    ['half \ud83d pair', 'half \ufffd pair'],
  ];
  for (const [value, text] of cases) assert.equal(canonicalText(value), text);
  assert.throws(() => canonicalText(10n as unknown as Json), TypeError);
});

test('TOOL-18 a result that nests deeper than JSON may that is kept is refused by its depth, on any machine', () => {
  const nested = (depth: number): Json => {
    let value: Json = 'in';
    for (let at = 0; at < depth; at += 1) value = at % 2 === 0 ? [value] : { a: value };
    return value;
  };
  assert.equal(JSON.parse(canonicalText(nested(1)))[0], 'in');
  assert.equal(canonicalText(nested(500)).match(/[[{]/g)?.length, 500);
  const refused = { name: 'ToolError', message: 'The result of the tool is nested deeper than 500 levels.' };
  for (const depth of [501, 5000, 200_000]) assert.throws(() => canonicalText(nested(depth)), refused);
  // Text is no JSON, whatever is in it.
  assert.equal(canonicalText('['.repeat(600)).length, 600);
});

test('TOOL-19 a text within the limit stays as it is, counted in UTF-8 bytes', () => {
  assert.deepEqual(truncateOutput('é'.repeat(50), 100), { text: 'é'.repeat(50), truncation: null });
  assert.notEqual(truncateOutput('é'.repeat(51), 100).truncation, null);
  assert.equal(truncateOutput('x'.repeat(1_000_000), outputLimit(null, null)).truncation, null);
});

test('TOOL-19 the whole envelope stays within the limit and says what is missing', () => {
  const texts = [
    'a'.repeat(5000),
    '"\\\n\u0001'.repeat(900),
    '😀é€'.repeat(700),
    `${'x'.repeat(60)}${'😀'.repeat(500)}`,
  ];
  for (const text of texts)
    for (let limit = minOutputBytes; limit < 300; limit++) {
      const { text: cut, truncation } = truncateOutput(text, limit);
      assert.ok(Buffer.byteLength(cut) <= limit, `${Buffer.byteLength(cut)} > ${limit}`);
      const envelope = JSON.parse(cut) as { truncated: boolean; omittedBytes: number; content: string };
      assert.deepEqual(Object.keys(envelope), ['truncated', 'omittedBytes', 'content']);
      assert.equal(envelope.truncated, true);
      assert.ok(text.startsWith(envelope.content));
      assert.ok(envelope.content.isWellFormed());
      assert.equal(Buffer.byteLength(envelope.content) + envelope.omittedBytes, Buffer.byteLength(text));
      assert.deepEqual(truncation, { originalBytes: Buffer.byteLength(text), omittedBytes: envelope.omittedBytes });
    }
});

test('TOOL-19 the smallest limit is 57 and gives an empty content', () => {
  assert.equal(minOutputBytes, 57);
  assert.equal(truncateOutput('ü'.repeat(100), 57).text.length <= 57, true);
});

test('a result without a limit has one all the same', () => {
  const { text, truncation } = truncateOutput('x'.repeat(9_000_000), outputLimit(null, null));
  assert.equal(truncation?.originalBytes, 9_000_000);
  assert.ok(text.length <= 8_388_608);
  assert.deepEqual(
    [outputLimit(100, 200), outputLimit(null, 200), outputLimit(10_000_000, null)],
    [100, 200, 10_000_000],
  );
});
