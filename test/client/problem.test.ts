import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemError } from '../../src/client/problem.ts';

test('a problem comes back as the error that it was, extensions included', () => {
  const body = {
    type: 'urn:acp:problem:definition-invalid',
    title: 'The agent definition is not valid',
    status: 400,
    detail: 'The definition has an error.',
    instance: '/api/agents',
    code: 'definition-invalid',
    requestId: 'r1',
    errors: [{ path: 'toolNames[0]', message: 'There is no tool "x".' }],
    retryAfterMs: 1500,
  };
  const error = problemError(400, body, '/api/agents', 'run-1');
  assert.equal(error.code, 'definition-invalid');
  assert.equal(error.message, 'The definition has an error.');
  assert.deepEqual(error.problem, body);
  assert.deepEqual(error.details, { errors: body.errors, retryAfterMs: 1500, runId: 'run-1' });
});

test('a code that only a newer service knows keeps its text and gets an error of the same status', () => {
  const body = { detail: 'Too many of them.', code: 'of-a-later-version', status: 429 };
  const error = problemError(429, body, '/api/runs');
  assert.equal(error.code, 'rate-limited', 'the first of its status');
  assert.equal(error.message, 'Too many of them.');
  assert.equal((error.problem as { code: string }).code, 'of-a-later-version');
});

test('an answer without problem details is told by its status', () => {
  assert.equal(problemError(502, undefined, '/').code, 'provider-error');
  assert.equal(problemError(418, '<html>', '/').code, 'validation-failed');
  assert.equal(problemError(599, null, '/').code, 'internal');
});
