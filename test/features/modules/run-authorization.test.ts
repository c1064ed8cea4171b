import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRunAuthorization } from '../../../src/core/caller/run-authorization.ts';
import type { CallContext } from '../../../src/core/context.ts';
import type { Logger } from '../../../src/core/logger.ts';
import { hostRunAuthorization } from '../../../src/features/modules/index.ts';

const context = {
  requestId: 'r',
  tenantId: 'default',
  principal: {
    kind: 'ApiKey',
    role: 'Operator',
    scopes: new Set(['RunsWrite', 'RunsRead']),
    actor: 'key:ci',
    userId: null,
    apiKey: { id: 'k', name: 'ci' },
    permissions: new Set(),
  },
  signal: new AbortController().signal,
} as unknown as CallContext;

const logOf = (lines: unknown[]): Logger => {
  const note = (fields: unknown) => void lines.push(fields);
  return { debug: note, info: note, warn: note, error: note } as unknown as Logger;
};

test('RUN-39 a handler that takes over 5 s refuses, and its signal is aborted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: unknown[] = [];
  const signals: AbortSignal[] = [];
  const port = hostRunAuthorization(
    {
      authorize: (_request, signal) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
    },
    logOf(lines),
  );
  const answer = port.allows(context, 'Read', { resource: 'Run', id: 'x' });
  t.mock.timers.tick(4999);
  assert.equal(signals[0]?.aborted, false);
  t.mock.timers.tick(1);
  assert.equal(await answer, false);
  assert.equal(signals[0]?.aborted, true);
  assert.deepEqual(lines, [{ requestId: 'r', action: 'Read', resource: 'Run', timeoutMs: 5000 }]);
});

test('SEC-22 the handler sees action, principal and resource as plain data', async () => {
  let seen: unknown;
  const port = hostRunAuthorization(
    {
      authorize: async (request) => {
        seen = request;
        return { allowed: true };
      },
    },
    logOf([]),
  );
  assert.equal(await port.allows(context, 'Delete', { resource: 'Session', id: 's', agentName: 'a' }), true);
  assert.deepEqual(seen, {
    action: 'Delete',
    resource: 'Session',
    id: 's',
    tenantId: 'default',
    agentName: 'a',
    sessionId: null,
    runId: null,
    userId: null,
    principal: {
      kind: 'ApiKey',
      role: 'Operator',
      scopes: ['RunsRead', 'RunsWrite'],
      actor: 'key:ci',
      userId: null,
      apiKey: { id: 'k', name: 'ci' },
      permissions: [],
    },
  });
});

test('RUN-39 without a handler everything is allowed', async () => {
  const port = hostRunAuthorization(null, logOf([]));
  assert.equal(port, openRunAuthorization);
  assert.equal(await port.allows(context, 'Read', { resource: 'Run', id: 'x' }), true);
  await port.require(context, 'Start', { resource: 'Run' });
});
