import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorTable } from '../../src/contract/errors.ts';
import { problemCode, RunFailure, storedError, toRunFailure } from '../../src/engine/run-failure.ts';
import { ModelCallError } from '../../src/providers/models/model-error.ts';

const print = (message: string, type = 'tool_error', errorClass: 'ToolError' | 'Unknown' = 'ToolError') =>
  storedError(new RunFailure(errorClass, type, message)).fingerprint;

test('RUN-72 ids, numbers and quoted parts do not tell failures apart; class, type and words do', () => {
  const first = print('Tool "pay" failed after 3 calls (run 0190b6a2-1111-7000-8000-00000000000a).');
  assert.match(first, /^[0-9a-f]{16}$/);
  assert.equal(print('Tool "book" failed after 12.5 calls (run 01A1F94B-BD58-7010-AEEB-DA662ED15C90).'), first);
  assert.equal(print("Tool 'x' failed after 1 calls (run 0190b6a2-2222-7000-8000-00000000000b)."), first);
  assert.notEqual(print('Tool "pay" broke after 3 calls (run 0190b6a2-1111-7000-8000-00000000000a).'), first);
  assert.notEqual(print('x', 'tool_timeout'), print('x'));
  assert.notEqual(print('x', 'tool_error', 'Unknown'), print('x'));
});

test('RUN-20 every class and type has its code and status', () => {
  const table: [Parameters<typeof problemCode>[0], string, string, number][] = [
    ['ContentBlocked', 'content_blocked', 'content-blocked', 422],
    ['ContentFiltered', 'content_filtered', 'content-filtered', 422],
    ['QuotaExceeded', 'budget_exceeded', 'run-budget-exceeded', 422],
    ['ProviderError', 'provider_error', 'provider-error', 502],
    ['ProviderError', 'provider_credential_unresolved', 'provider-error', 502],
    ['ProviderError', 'context_overflow', 'context-window-exceeded', 400],
    ['ProviderUnavailable', 'provider_unavailable', 'provider-unavailable', 502],
    ['ProviderUnavailable', 'circuit_open', 'provider-unavailable', 502],
    ['RateLimited', 'provider_rate_limited', 'provider-rate-limited', 502],
    ['Timeout', 'provider_timeout', 'provider-timeout', 502],
    ['ToolError', 'tool_error', 'tool-failed', 502],
    ['ToolTimeout', 'tool_timeout', 'tool-timeout', 502],
    ['CompilationFailed', 'compilation_failed', 'agent-not-compilable', 400],
    ['Canceled', 'canceled', 'run-canceled', 409],
    ['Infrastructure', 'session_conflict', 'session-conflict', 409],
    ['Infrastructure', 'shutdown', 'draining', 503],
    ['Infrastructure', 'orphaned', 'internal', 500],
    ['Unknown', 'internal', 'internal', 500],
  ];
  for (const [errorClass, type, code, status] of table) {
    const found = problemCode(errorClass, type);
    assert.deepEqual([found, errorTable[found].status], [code, status], `${errorClass} ${type}`);
  }
});

test('RUN-71 an unexpected error gives nothing of itself away', () => {
  const cause = new TypeError('password=hunter2');
  const failure = toRunFailure(cause);
  assert.deepEqual(
    [failure.errorClass, failure.type, failure.message],
    ['Unknown', 'internal', 'The run failed because of an internal error.'],
  );
  assert.equal(failure.cause, cause, 'the log gets it');
  assert.equal(toRunFailure(failure), failure);
});

test('RUN-73 RUN-21 a failed model call keeps class, type and the time to wait', () => {
  const error = new ModelCallError('provider_rate_limited', 'Provider "p" answered with HTTP 429.', {
    provider: 'p',
    httpStatus: 429,
    retryAfterMs: 700,
  });
  const { errorClass, type, message, retryAfterMs } = toRunFailure(error);
  assert.deepEqual(
    [errorClass, type, message, retryAfterMs],
    ['RateLimited', 'provider_rate_limited', error.message, 700],
  );
});
