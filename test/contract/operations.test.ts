import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationEntries } from '../../src/core/dispatch.ts';
import { compileChecker } from '../../src/core/validate.ts';
import { operations } from '../../src/operations.ts';

const entries = operationEntries(operations);

test('every operation has a method and path of its own', () => {
  const routes = entries.map(({ operation }) => `${operation.method} ${operation.path.replace(/\{[^}]+\}/g, '{}')}`);
  assert.deepEqual([...new Set(routes)].sort(), routes.sort());
});

test('every path parameter is declared, and no other', () => {
  for (const { id, operation } of entries) {
    const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
    assert.deepEqual(Object.keys(operation.params?.properties ?? {}).sort(), inPath, id);
  }
});

test('every schema compiles', () => {
  for (const { id, operation } of entries) {
    const schemas = [operation.params, operation.query, operation.headers, operation.body, operation.stream];
    for (const schema of [...schemas, ...Object.values(operation.responses)])
      if (schema !== undefined && schema !== null) assert.doesNotThrow(() => compileChecker(schema), id);
  }
});

test('SEC-3 every operation has a role and a scope, or neither; only meta has neither', () => {
  for (const { id, operation } of entries) assert.equal(operation.role === null, operation.scope === null, id);
  assert.deepEqual(
    entries.filter(({ operation }) => operation.role === null).map(({ id }) => id),
    ['meta.get'],
  );
});

test('AUDIT-20 every write that is audited names its action, and names are unique', () => {
  const actions = entries.flatMap(({ operation }) => operation.audit ?? []);
  assert.equal(new Set(actions).size, actions.length);
  for (const { id, operation } of entries)
    if (operation.role === 'Admin' && operation.method !== 'GET')
      assert.ok(operation.audit, `${id} has no audit action`);
});
