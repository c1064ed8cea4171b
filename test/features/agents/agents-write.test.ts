import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentDefinition } from '../../../src/features/agents/agents.schema.ts';
import { noCodeAgents } from '../../../src/features/agents/index.ts';
import { forEachStore } from '../../support/store.ts';
import { create, definition, errorPaths, noSkills, openWorld, refusal, save, withModel } from './agent-world.ts';
import { codeAgentsOf } from './code-agent-files.ts';

forEachStore('AGENT-8 create answers 201 with version 1, every default and its location', async (context, store) => {
  const world = await openWorld(context, { store });
  const reply = await world.call('create', {}, definition('Support.2'));
  assert.equal(reply.status, 201);
  assert.equal(reply.headers['location'], '/base/api/agents/Support.2');
  assert.deepEqual(reply.body, {
    name: 'Support.2',
    model: {
      provider: 'demo',
      model: 'demo-1',
      temperature: null,
      topP: null,
      maxOutputTokens: null,
      reasoningEffort: null,
      providerSettings: {},
      responseFormat: null,
      fallbacks: [],
      responseCache: null,
      allowConcurrentToolCalls: false,
    },
    displayName: null,
    description: null,
    instructions: null,
    instructionsByCulture: null,
    sharedInstructionsName: null,
    parameters: [],
    toolNames: [],
    toolDiscovery: 'all',
    skillNames: [],
    callableAgentNames: [],
    remoteAgents: [],
    subAgents: null,
    flow: null,
    mcpResourceUris: [],
    harness: null,
    compaction: null,
    memory: null,
    metadata: {},
    origin: 'database',
    version: 1,
    tenantId: 'default',
    updatedAt: '2030-01-01T00:00:00.000Z',
    updatedBy: 'tester',
    restoredFrom: null,
  });
});

forEachStore('AGENT-8 a refused create names every Error finding and writes nothing', async (context, store) => {
  const world = await openWorld(context, { store });
  const body = definition('support', {
    toolNames: ['clock_now', 'missing'],
    callableAgentNames: ['nobody'],
    toolNmaes: [],
  });
  const error = await refusal(world.call('create', {}, body));
  assert.equal(error.code, 'definition-invalid');
  assert.deepEqual(errorPaths(error), ['toolNmaes', 'toolNames[1]', 'callableAgentNames[0]']);
  assert.equal((await refusal(world.call('get', { name: 'support' }))).code, 'agent-not-found');
});

forEachStore('AGENT-8 findings come before a taken name, a taken name is 409', async (context, store) => {
  const world = await openWorld(context, { store, codeAgents: await codeAgentsOf(context, definition('coded')) });
  await create(world, definition('support'));
  assert.equal(
    (await refusal(world.call('create', {}, definition('support', { toolNames: ['missing'] })))).code,
    'definition-invalid',
  );
  assert.equal((await refusal(world.call('create', {}, definition('support')))).code, 'agent-name-taken');
  assert.equal((await refusal(world.call('create', {}, definition('coded')))).code, 'agent-name-taken');
});

forEachStore('AGENT-2 names differ by case, and the path and body must name the same agent', async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('Support'));
  await create(world, definition('support', { description: 'small' }));
  const { body } = await world.call('list', {});
  assert.deepEqual(
    (body as { name: string }[]).map(({ name }) => name),
    ['Support', 'support'],
  );
  const error = await refusal(world.call('save', { name: 'Support' }, definition('support')));
  assert.equal(error.code, 'name-mismatch');
});

forEachStore("AGENT-3 another tenant's agent is unknown, and the name is free there", async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('support'), 'red');
  for (const [verb, params, body] of [
    ['get', { name: 'support' }, undefined],
    ['save', { name: 'support' }, definition('support')],
    ['remove', { name: 'support' }, undefined],
    ['versions', { name: 'support' }, undefined],
    ['rollback', { name: 'support' }, { version: 1 }],
    ['diff', { name: 'support', a: 1, b: 1 }, undefined],
    ['estimate', { name: 'support' }, { message: 'hi' }],
  ] as const)
    assert.equal((await refusal(world.call(verb, params, body, 'blue'))).code, 'agent-not-found', verb);
  assert.equal((await create(world, definition('support'), 'blue')).version, 1);
  assert.equal(
    (await refusal(world.call('create', {}, definition('caller', { callableAgentNames: ['support'] }), 'green'))).code,
    'definition-invalid',
  );
});

forEachStore('AGENT-9 every success appends a version; an omitted field takes its default', async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('support', { description: 'first', toolNames: ['weather'] }));
  const same = await save(world, definition('support', { description: 'first', toolNames: ['weather'] }));
  assert.equal(same.version, 2);
  const replaced = await save(world, definition('support'));
  assert.deepEqual([replaced.version, replaced.description, replaced.toolNames], [3, null, []]);
});

forEachStore('AGENT-9 update never creates, and 404 comes before findings', async (context, store) => {
  const world = await openWorld(context, { store });
  const error = await refusal(world.call('save', { name: 'nobody' }, definition('nobody', { toolNames: ['missing'] })));
  assert.equal(error.code, 'agent-not-found');
});

forEachStore('AGENT-10 expectedVersion guards update and rollback; nothing is written', async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('support'));
  await save(world, definition('support', { expectedVersion: 1 }));
  for (const call of [
    () => world.call('save', { name: 'support' }, definition('support', { expectedVersion: 1 })),
    () => world.call('rollback', { name: 'support' }, { version: 1, expectedVersion: 1 }),
  ])
    assert.equal((await refusal(call())).code, 'version-conflict');
  const { body } = await world.call('versions', { name: 'support' });
  assert.deepEqual(
    (body as AgentDefinition[]).map(({ version }) => version),
    [2, 1],
  );
});

forEachStore('AGENT-10 concurrent writers get consecutive versions and none is lost', async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('support', { description: 'writer 0' }));
  const writers = Array.from({ length: 20 }, (_, index) => `writer ${index + 1}`);
  const saved = await Promise.all(writers.map((description) => save(world, definition('support', { description }))));
  assert.deepEqual(
    saved.map(({ version }) => version).sort((a, b) => a - b),
    writers.map((_, index) => index + 2),
  );
  const { body } = await world.call('versions', { name: 'support' });
  const stored = new Map((body as AgentDefinition[]).map(({ version, description }) => [version, description]));
  for (const { version, description } of saved) assert.equal(stored.get(version), description);
  assert.equal(stored.size, 21);
});

forEachStore(
  'AGENT-11 wrong JSON types are unreadable; read-only members are accepted and ignored',
  async (context, store) => {
    const world = await openWorld(context, { store });
    for (const body of [
      definition('support', { toolNames: null }),
      definition('support', { toolNames: 'weather' }),
      definition('support', { displayName: 5 }),
      withModel('support', { temperature: 'hot' }),
      withModel('support', { fallbacks: [{ provider: 'demo' }] }),
      definition('support', { metadata: [] }),
      { name: 'support' },
      { name: 'support', model: { provider: 'demo' } },
      { model: { provider: 'demo', model: 'demo-1' } },
      [],
      null,
    ])
      assert.equal((await refusal(world.call('create', {}, body))).code, 'validation-failed', JSON.stringify(body));
    const read = await create(world, definition('support', { displayName: 'Support' }));
    const again = await save(world, { ...read, displayName: 'Changed' });
    assert.deepEqual([again.version, again.displayName, again.tenantId], [2, 'Changed', 'default']);
  },
);

forEachStore(
  'AGENT-12 delete takes all versions, a repeat is 404, a new agent starts at version 1',
  async (context, store) => {
    const world = await openWorld(context, { store });
    await create(world, definition('support'));
    await save(world, definition('support'));
    assert.equal((await world.call('remove', { name: 'support' })).status, 204);
    for (const verb of ['get', 'versions', 'remove'] as const)
      assert.equal((await refusal(world.call(verb, { name: 'support' }))).code, 'agent-not-found');
    assert.equal((await create(world, definition('support'))).version, 1);
    const { body } = await world.call('versions', { name: 'support' });
    assert.equal((body as unknown[]).length, 1);
  },
);

forEachStore('AGENT-14 versions are full snapshots, newest first', async (context, store) => {
  const world = await openWorld(context, { store });
  const first = await create(world, definition('support', { description: 'one', metadata: { team: 'é', n: 1 } }));
  const second = await save(world, definition('support', { description: 'two' }));
  const { body } = await world.call('versions', { name: 'support' });
  assert.deepEqual(body, [second, first]);
});

forEachStore(
  'AGENT-15 rollback appends the old content unchecked, and can itself be rolled back',
  async (context, store) => {
    const world = await openWorld(context, { store });
    await create(world, definition('helper'));
    await create(world, definition('support', { callableAgentNames: ['helper'] }));
    await save(world, definition('support', { description: 'alone' }));
    await world.call('remove', { name: 'helper' });
    const back = (await world.call('rollback', { name: 'support' }, { version: 1 })).body as AgentDefinition;
    assert.deepEqual([back.version, back.restoredFrom, back.callableAgentNames], [3, 1, ['helper']]);
    const forth = (await world.call('rollback', { name: 'support' }, { version: 2 })).body as AgentDefinition;
    assert.deepEqual([forth.version, forth.restoredFrom, forth.description], [4, 2, 'alone']);
  },
);

forEachStore('AGENT-15 an unknown version is 404 with missingVersion and leaves no gap', async (context, store) => {
  const world = await openWorld(context, { store });
  await create(world, definition('support'));
  for (const version of [2, 9]) {
    const error = await refusal(world.call('rollback', { name: 'support' }, { version }));
    assert.deepEqual([error.code, error.details.missingVersion], ['version-not-found', version]);
  }
  assert.equal((await save(world, definition('support'))).version, 2);
});

forEachStore(
  'AGENT-16 diff gives two versions verbatim, in either order, and names a missing one',
  async (context, store) => {
    const world = await openWorld(context, { store });
    const one = await create(world, definition('support', { description: 'one' }));
    const two = await save(world, definition('support', { description: 'two' }));
    const diff = async (a: unknown, b: unknown) => (await world.call('diff', { name: 'support', a, b })).body;
    assert.deepEqual(await diff('2', '1'), { left: two, right: one });
    assert.deepEqual(await diff('1', '1'), { left: one, right: one });
    const missing = await refusal(diff('7', '8'));
    assert.deepEqual([missing.code, missing.details.missingVersion], ['version-not-found', 7]);
    assert.match(missing.message, /7/);
    assert.equal((await refusal(diff('1', '8'))).details.missingVersion, 8);
    for (const bad of ['0', '-1', '1.5', 'x', '2147483648'])
      assert.equal((await refusal(diff('1', bad))).code, 'validation-failed', bad);
  },
);

forEachStore('AGENT-1, AGENT-4, AGENT-5 a code agent wins its name and cannot be changed', async (context, store) => {
  const codeAgents = await codeAgentsOf(context, definition('support', { description: 'coded' }), definition('alpha'));
  const world = await openWorld(context, { store, codeAgents });
  await create(world, definition('middle'));
  const { body: list } = await world.call('list', {});
  assert.deepEqual(
    (list as { name: string; origin: string }[]).map(({ name, origin }) => [name, origin]),
    [
      ['alpha', 'code'],
      ['middle', 'database'],
      ['support', 'code'],
    ],
  );
  const { body: detail } = await world.call('get', { name: 'support' });
  assert.partialDeepStrictEqual(detail, {
    definition: null,
    isEditable: false,
    descriptor: { name: 'support', description: 'coded', origin: 'code', version: 1, updatedAt: null },
  });
  const { body: stored } = await world.call('get', { name: 'middle' });
  assert.partialDeepStrictEqual(stored, {
    isEditable: true,
    definition: { version: 1 },
    descriptor: { origin: 'database' },
  });
  for (const [verb, params, body] of [
    ['save', { name: 'support' }, definition('support')],
    ['remove', { name: 'support' }, undefined],
    ['rollback', { name: 'support' }, { version: 1 }],
  ] as const)
    assert.equal((await refusal(world.call(verb, params, body))).code, 'agent-code-defined', verb);
  assert.equal((await refusal(world.call('versions', { name: 'support' }))).code, 'agent-not-found');
  assert.equal((await refusal(world.call('diff', { name: 'support', a: 1, b: 1 }))).code, 'agent-not-found');
});

test('AGENT-5 a stored agent behind a code agent is out of reach everywhere', async (context) => {
  const { openTestStorage } = await import('../../support/store.ts');
  const { createAgentCatalog } = await import('../../../src/features/agents/agents.catalog.ts');
  const { agentStore } = await import('../../../src/features/agents/agents.store.ts');
  const { agentContent } = await import('../../../src/features/agents/agents.content.ts');
  const store = (await openTestStorage(context)).stores(agentStore);
  const content = agentContent({
    name: 'support',
    model: { provider: 'demo', model: 'demo-1' },
    description: 'stored',
  });
  await store.create('default', content, { updatedAt: 0, updatedBy: null });
  assert.equal(
    (await createAgentCatalog(store, noCodeAgents.contents, noSkills).find('default', 'support'))?.origin,
    'database',
  );
  const { contents } = await codeAgentsOf(context, definition('support', { description: 'coded' }));
  const catalog = createAgentCatalog(store, contents, noSkills);
  assert.equal((await catalog.find('default', 'support'))?.origin, 'code');
  assert.deepEqual(
    (await catalog.list('default')).map(({ origin }) => origin),
    ['code'],
  );
  const caller = agentContent({ name: 'caller', model: content.model, callableAgentNames: ['support'] });
  assert.equal((await catalog.reach('default', caller)).agents.get('support')?.description, 'coded');
});
