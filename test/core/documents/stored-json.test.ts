import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storedJson } from '../../../src/core/documents/stored-text.ts';

const stored = (source: string): string => Buffer.from(storedJson(Buffer.from(source))).toString();

test('NUL and half surrogates of a body become U+FFFD before it is parsed, in names as in texts, and nothing else changes', () => {
  for (const [source, expected] of [
    ['"\\u0000"', '"\\ufffd"'],
    ['"a\\u0000\\u0000b"', '"a\\ufffd\\ufffdb"'],
    ['{"\\u0000":1}', '{"\\ufffd":1}'],
    ['"\\ud83d"', '"\\ufffd"'],
    ['"\\uDE00x"', '"\\ufffdx"'],
    ['"\\ud83dn\\ude00"', '"\\ufffdn\\ufffd"'],
    ['"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"'],
    ['"\\ud83d\\u0041"', '"\\ufffd\\u0041"'],
    ['"\\ud83d\\n"', '"\\ufffd\\n"'],
    ['"\\\\\\u0000"', '"\\\\\\ufffd"'],
  ] as const) {
    assert.equal(stored(source), expected, source);
    assert.equal(JSON.stringify(JSON.parse(expected)), JSON.stringify(JSON.parse(stored(source))));
  }
  for (const source of [
    '"a"',
    '"\\ud83d\\uDE00"',
    '"\\uD7FF\\ue000\\u0001\\u0041"',
    // The backslash is escaped, so that no escape follows.
    '"\\\\u0000"',
    '"\\\\ud83d"',
    // No JSON, and none afterwards.
    '"\\u000"',
    '"\\ud8zz"',
    '"\\ud83d',
  ]) {
    const bytes = Buffer.from(source);
    if (source !== '"\\ud83d') assert.equal(storedJson(bytes), bytes, source);
  }
  assert.throws(() => JSON.parse(stored('"\\ud83d')));
});
