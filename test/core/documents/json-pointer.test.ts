import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isJsonPointer, valueAtPointer } from '../../../src/core/documents/json-pointer.ts';

test('FLOW a key is a JSON Pointer: names, escapes and places in lists lead to a value, or to none', () => {
  const document = { a: { 'b/c': 1, '~': [true, 'x'] }, '': 'empty' };
  for (const [pointer, value] of [
    ['/a/b~1c', 1],
    ['/a/~0/1', 'x'],
    ['/', 'empty'],
    ['/a/~0/2', undefined],
    ['/a/~0/-', undefined],
    ['/a/~0/01', undefined],
    ['/a/~0/length', undefined],
    ['/constructor', undefined],
    ['/a/b~1c/d', undefined],
  ] as const)
    assert.equal(valueAtPointer(document, pointer), value, pointer);
  assert.equal(valueAtPointer(document, ''), document);
  for (const fine of ['', '/', '/a/0', '/~0~1']) assert.ok(isJsonPointer(fine), fine);
  for (const wrong of ['a', '/~', '/~2', '#/a', ' /a']) assert.ok(!isJsonPointer(wrong), wrong);
});
