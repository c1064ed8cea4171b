import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { isForEverybody } from '../../src/contract/operation.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { compileChecker } from '../../src/core/validate.ts';
import { JobRecord } from '../../src/features/jobs/jobs.schema.ts';
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

/** Every format that a schema names, with the schema that does. */
const formatsOf = (schema: unknown): [string, TSchema][] => {
  if (typeof schema !== 'object' || schema === null) return [];
  const { format } = schema as { readonly format?: unknown };
  const own: [string, TSchema][] = typeof format === 'string' ? [[format, schema as TSchema]] : [];
  return [...own, ...Object.values(schema).flatMap(formatsOf)];
};

test('a text of the wrong format is told what it has to be, and not the name of a format', () => {
  const inputs = entries.flatMap(({ operation: { params, query, headers, body } }) => [params, query, headers, body]);
  const formats = new Map(inputs.flatMap(formatsOf));
  assert.ok(formats.has('uuid') && formats.has('date-time'));
  for (const [format, schema] of formats) {
    const [error] = compileChecker(schema).errors('neither');
    assert.match(error?.message ?? '', /^must be an? .* such as /, format);
    const example = /such as (.*)$/.exec(error?.message ?? '')?.[1];
    assert.ok(compileChecker(schema).check(example), `the example of ${format} is one`);
  }
});

test('SEC-3 every operation has a role and a scope, or neither: meta, whoami, where tokens come from, where people come back to, and what a signature protects', () => {
  for (const { id, operation } of entries) assert.equal(operation.role === null, operation.scope === null, id);
  assert.deepEqual(
    entries.filter(({ operation }) => operation.role === null).map(({ id }) => id),
    ['triggers.accept', 'mcpServers.oauthCallback', 'keys.whoami', 'mcpEndpoint.resource', 'meta.get'],
  );
  assert.deepEqual(
    entries.filter(({ operation }) => isForEverybody(operation)).map(({ id }) => id),
    ['triggers.accept', 'mcpServers.oauthCallback', 'mcpEndpoint.resource', 'meta.get'],
  );
  assert.deepEqual(
    entries.filter(({ operation }) => operation.signed === true).map(({ id }) => id),
    ['triggers.accept'],
  );
});

test('SEC-19 what says that it changes nothing is a POST without an entry in the audit trail or an answer that is kept', () => {
  const such = entries.filter(({ operation }) => operation.changesNothing === true);
  assert.deepEqual(such.map(({ id }) => id).sort(), [
    'agents.estimate',
    'agents.validate',
    'mcpServers.check',
    'mcpServers.prompt',
    'policyTests.run',
  ]);
  for (const { id, operation } of such)
    assert.deepEqual([operation.method, operation.audit, operation.idempotency], ['POST', undefined, undefined], id);
});

test('AUDIT-20 every write that is audited names its action, and names are unique', () => {
  const actions = entries.flatMap(({ operation }) => operation.audit?.action ?? []);
  assert.equal(new Set(actions).size, actions.length);
  for (const { id, operation } of entries)
    if (operation.role === 'Admin' && operation.method !== 'GET')
      assert.ok(operation.audit, `${id} has no audit action`);
});

test('JOB-21 counters of jobs are described from 0 on', () => {
  for (const name of ['totalItems', 'doneItems', 'failedItems', 'attempt'] as const) {
    const { minimum, default: initial } = JobRecord.properties[name] as { minimum?: number; default?: number };
    assert.deepEqual([minimum, initial], [0, 0], name);
  }
});

test('SEC-19 what needs several scopes, or more for some bodies, says so in the table', () => {
  assert.deepEqual(operations.replays.bundle.scope, ['RunsRead', 'AgentsRead']);
  const raised = entries.flatMap(({ id, operation }) =>
    (operation.raised ?? []).map((more) => [id, more.member.join('.')]),
  );
  assert.deepEqual(raised, [
    ['runs.start', 'approvals.remember'],
    ['replays.create', 'toolMode'],
  ]);
});

test('SEC-19 no handler checks a role or a scope itself', () => {
  const folder = new URL('../../src/features/', import.meta.url);
  const checking = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && /'insufficient-(?:role|scope)'/.test(readFileSync(new URL(file, folder), 'utf8')),
  );
  assert.deepEqual(checking, []);
});
