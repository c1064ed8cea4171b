import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentBodyErrors, unknownFieldFindings } from '../../../src/features/agents/unknown-fields.rules.ts';

const pathsOf = (body: unknown): readonly string[] => unknownFieldFindings(body).map(({ path }) => path);
const unknown = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`x${at}`, 1]));

test('AGENT-20 members that a stored definition brings back are known at its top alone', () => {
  const body = { name: 'a', version: 3, origin: 'Api', model: { provider: 'demo', model: 'one', version: 3 } };
  assert.deepEqual(pathsOf(body), ['model.version']);
});

test('AGENT-20 a name that every object of the language has is no known field', () => {
  assert.deepEqual(pathsOf({ name: 'a', constructor: 1, model: { toString: 1 } }), ['constructor', 'model.toString']);
});

test('AGENT-11 AGENT-20 a body with very many unknown fields has a bounded number of findings with bounded paths', () => {
  const long = 'y'.repeat(1000);
  assert.equal(pathsOf({ ...unknown(60), model: unknown(60) }).length, 100);
  assert.ok(pathsOf({ [long]: 1 }).every((path) => path.length <= 256));
  // A body that does not fit its schema may have lists of any length.
  const body = { ...unknown(40), model: { fallbacks: Array.from({ length: 1000 }, () => unknown(1)) } };
  for (const errorsOf of Object.values(agentBodyErrors)) {
    const errors = errorsOf(body);
    assert.ok(errors.length >= 50 && errors.length < 100, String(errors.length));
  }
  assert.deepEqual(Object.keys(agentBodyErrors), ['agents.create', 'agents.save', 'agents.validate']);
});
