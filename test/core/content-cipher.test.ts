import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { createContentCipher, plainContent } from '../../src/core/content-cipher.ts';
import { createProtectedRows } from '../../src/db/protection/protected-rows.ts';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const keys = { a: key(1), b: key(2) };
const place = { table: 'jobs', column: 'payload', tenantId: 'acme', row: ['j-1'] };
const fails = (work: () => unknown): void =>
  assert.throws(
    work,
    (error) => error instanceof AcpError && error.code === 'decryption-failed' && error.status === 500,
  );

test('SEC-50 a value names its key, has a nonce of its own, and holds nothing of its text', () => {
  const cipher = createContentCipher('a', keys);
  const text = 'Grüße \u{1F600} '.repeat(50);
  const values = Array.from({ length: 3000 }, () => cipher.seal(place, text));
  assert.equal(new Set(values.map((value) => value.slice(0, 30))).size, 3000, 'no nonce comes twice');
  for (const value of values.slice(0, 3)) {
    assert.match(value, /^acp:sealed:1:a:[A-Za-z0-9+/=]+$/);
    assert.equal(cipher.open(place, value), text);
  }
  assert.equal(cipher.open(place, cipher.seal(place, '')), '');
});

test('SEC-50 a value counts only where it was written: table, column, row, tenant and key are its own', () => {
  const cipher = createContentCipher('a', { ...keys, c: keys.a });
  const value = cipher.seal(place, 'secret');
  for (const other of [
    { ...place, table: 'runs' },
    { ...place, column: 'error' },
    { ...place, tenantId: 'other' },
    { ...place, row: ['j-2'] },
    { ...place, row: ['j-1', ''] },
    { ...place, tenantId: '', row: ['acme', 'j-1'] },
  ])
    fails(() => cipher.open(other, value));
  fails(() => cipher.open(place, value.replace(':a:', ':b:')));
  fails(() => cipher.open(place, value.replace(':a:', ':c:')));
});

test('SEC-53 a value that was changed, cut off or is under an absent key is no text, and no message tells of keys', () => {
  const value = createContentCipher('a', keys).seal(place, 'secret text of some length');
  const later = createContentCipher('b', { b: keys.b });
  const at = value.length - 30;
  fails(() => later.open(place, value));
  fails(() => plainContent.open(place, value));
  const same = createContentCipher('a', keys);
  fails(() => same.open(place, `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`));
  for (const length of [13, 15, 20, 40, at]) fails(() => same.open(place, value.slice(0, length)));
  try {
    later.open(place, value);
  } catch (error) {
    assert.doesNotMatch(String((error as Error).message), /jobs|j-1|acp:sealed|AtRest/);
  }
});

test('SEC-53 there is no encrypting with a key that is not there', () => {
  assert.throws(() => createContentCipher('x', keys), /no key "x"/);
});

test('SEC-52 plain text stays what it is, also where it reads like a sealed value', () => {
  const former = createContentCipher(null, keys);
  for (const text of [
    '',
    '{}',
    'acp:',
    'acp:sealed',
    'acp:sealed:1:a:AAAA',
    'acp:plain:1:x',
    'acp:plain:1:acp:sealed:1:',
  ])
    for (const cipher of [plainContent, former]) assert.equal(cipher.open(place, cipher.seal(place, text)), text);
  assert.equal(plainContent.seal(place, '{"a":1}'), '{"a":1}');
  const sealed = createContentCipher('a', keys).seal(place, 'from before');
  assert.equal(former.open(place, sealed), 'from before', 'switched off, what was encrypted is still read');
});

test('SEC-50 rows: what is protected is sealed for its row and tenant, the rest and what is missing stays', () => {
  const rows = createProtectedRows(createContentCipher('a', keys));
  const row = { run_id: 'r', id: 't', state: 'Settled', arguments: '{"a":1}', result: null, error: 'no' };
  const sealed = rows.seal('tool_invocations', 'acme', row);
  assert.deepEqual([sealed.run_id, sealed.state, sealed.result], ['r', 'Settled', null]);
  assert.match(sealed.arguments, /^acp:sealed:1:a:/);
  assert.deepEqual(rows.open('tool_invocations', 'acme', sealed), row);
  fails(() => rows.open('tool_invocations', 'other', sealed));
  fails(() => rows.open('tool_invocations', 'acme', { ...sealed, id: 'u' }));
  fails(() => rows.open('tool_invocations', 'acme', { ...sealed, error: sealed.arguments }));
  assert.equal(createProtectedRows(plainContent).seal('tool_invocations', 'acme', row), row, 'off, a row is itself');
  assert.equal(rows.openAny('run_scores', 'acme', row), row);
});
