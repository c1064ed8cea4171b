import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { openRunAuthorization } from '../../../src/core/caller/run-authorization.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { CallContext } from '../../../src/core/context.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { modelsFeature } from '../../../src/features/models/index.ts';
import { toolsFeature } from '../../../src/features/tools/index.ts';
import type { ModelProviders } from '../../../src/providers/models/index.ts';
import { createCallProtection, defaultProtection } from '../../../src/providers/models/protection/call-protection.ts';
import { instanceStateOf } from '../../support/instance-state.ts';
import { openTestStorage } from '../../support/store.ts';
import { providers, tools } from '../agents/agent-world.ts';

const world = async (t: TestContext, found: Pick<ModelProviders, 'list' | 'get'>) => {
  const state = instanceStateOf(true, Date.now);
  const feature = modelsFeature({
    providers: { ...found, protection: createCallProtection(defaultProtection, Date.now, null) },
    settings: { cacheTtlMs: 1000, backgroundIntervalMs: null },
    ...{ clock: systemClock, storeClock: systemClock, state, isShared: false, log: silentLogger },
    storage: await openTestStorage(t),
    allows: () => true,
  });
  await state.load();
  return feature;
};

const context = { tenantId: 'default' } as CallContext;
const nothing = { params: {}, query: {}, headers: {}, body: undefined };

test('AGENT-54, MODEL-1 providers by name, each with its catalog in configured order', async (t) => {
  const { body } = await (await world(t, providers)).handlers.list(context, nothing);
  assert.deepEqual(
    body.map(({ name, status, allowed, models }) => [name, status, allowed, models.map((model) => model.name)]),
    [
      ['demo', 'Unknown', true, ['demo-1', 'demo-plain']],
      ['open', 'Unknown', true, []],
    ],
  );
});

test('MODEL-5 the catalog has no member beyond its schema', async (t) => {
  const { body } = await (await world(t, providers)).handlers.list(context, nothing);
  assert.deepEqual(Object.keys(body[0] ?? {}), ['name', 'displayName', 'status', 'allowed', 'models']);
});

test('MODEL-1 no provider gives an empty list', async (t) => {
  const { handlers } = await world(t, { list: () => [], get: () => undefined });
  assert.deepEqual((await handlers.list(context, nothing)).body, []);
});

test('AGENT-53 tools by name, with their schemas', async (t) => {
  const storage = await openTestStorage(t);
  const { body } = await toolsFeature({
    tools,
    remoteTools: { ready: () => null, list: () => [] },
    storage,
    authorization: openRunAuthorization,
  }).handlers.list(context, nothing);
  assert.deepEqual(
    body.map(({ name, kind, effect }) => [name, kind, effect]),
    [
      ['clock_now', 'Code', 'Read'],
      ['weather', 'Code', 'Read'],
    ],
  );
  assert.deepEqual(body[0]?.jsonSchema, { type: 'object', properties: { city: { type: 'string' } } });
});
