import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CompileError } from '../../../src/engine/compiled-agent.ts';
import { forEachStore } from '../../support/store.ts';
import { create, definition, errorPaths, openWorld, refusal, save, withModel } from './agent-world.ts';
import { codeAgentsOf } from './code-agent-files.ts';

const compileError = async (compiling: Promise<unknown>): Promise<CompileError> => {
  try {
    await compiling;
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
  throw new Error('The agent was expected not to compile.');
};

for (const ownsStore of [true, false])
  forEachStore(
    `AGENT-7 a compile takes the current version (${ownsStore ? 'owned' : 'shared'} store)`,
    async (context, store) => {
      const world = await openWorld(context, { store, ownsStore });
      assert.equal((await refusal(world.compile('support'))).code, 'agent-not-found');
      await create(world, definition('support', { instructions: 'one' }));
      const first = await world.compile('support');
      assert.equal(await world.compile('support'), first, 'an unchanged agent is compiled once');
      await save(world, definition('support', { instructions: 'two' }));
      const second = await world.compile('support');
      assert.deepEqual([second.version, second.instructions(null, {})], [2, 'two']);
      assert.equal(first.instructions(null, {}), 'one', 'what a run holds is not touched');
      await world.call('rollback', { name: 'support' }, { version: 1 });
      assert.deepEqual(
        [(await world.compile('support')).version, (await world.compile('support')).instructions(null, {})],
        [3, 'one'],
      );
      await world.call('remove', { name: 'support' });
      assert.equal((await refusal(world.compile('support'))).code, 'agent-not-found');
      await create(world, definition('support', { instructions: 'again' }));
      assert.equal((await world.compile('support')).instructions(null, {}), 'again');
      const caller = definition('caller', { callableAgentNames: ['support'] });
      await create(world, caller);
      const reached = await world.compile('caller');
      assert.equal(await world.compile('caller'), reached);
      // Nobody compiles it in between, and its number is the same again.
      await world.call('remove', { name: 'support' });
      await create(world, definition('support', { instructions: 'anew' }));
      const anew = await world.compile('support');
      assert.deepEqual([anew.version, anew.instructions(null, {})], [1, 'anew']);
      assert.notEqual(await world.compile('caller'), reached, 'nor is it reached as it was');
    },
  );

test('AGENT-7 versions are of one tenant', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('support', { instructions: 'red' }), 'red');
  await create(world, definition('support', { instructions: 'blue' }), 'blue');
  assert.equal((await world.compile('support', 'red')).instructions(null, {}), 'red');
  assert.equal((await world.compile('support', 'blue')).instructions(null, {}), 'blue');
  await world.call('remove', { name: 'support' }, undefined, 'red');
  assert.equal((await world.compile('support', 'blue')).version, 1);
});

test('AGENT-12 an agent that calls a deleted one does not compile until the name exists again', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('helper'));
  await create(world, definition('support', { callableAgentNames: ['helper'] }));
  await world.compile('support');
  await world.call('remove', { name: 'helper' });
  const error = await compileError(world.compile('support'));
  assert.deepEqual([error.version, error.findings.map(({ path }) => path)], [1, ['callableAgentNames[0]']]);
  const next = await refusal(
    world.call('save', { name: 'support' }, definition('support', { callableAgentNames: ['helper'] })),
  );
  assert.deepEqual([next.code, errorPaths(next)], ['definition-invalid', ['callableAgentNames[0]']]);
  await create(world, definition('helper'));
  assert.equal((await world.compile('support')).version, 1);
});

test('AGENT-15 the compile after a rollback reports a cycle that it closed', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('b'));
  await create(world, definition('a', { callableAgentNames: ['b'] }));
  await save(world, definition('a'));
  await save(world, definition('b', { callableAgentNames: ['a'] }));
  await world.call('rollback', { name: 'a' }, { version: 1 });
  for (const name of ['a', 'b'])
    assert.deepEqual(
      (await compileError(world.compile(name))).findings.map(({ path }) => path),
      ['callableAgentNames'],
    );
});

test('AGENT-22, AGENT-24, AGENT-25 the binding is resolved, each provider with its own settings', async (context) => {
  const world = await openWorld(context);
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  await create(
    world,
    withModel('support', {
      temperature: 0.5,
      providerSettings: { 'demo.seed': 7, 'open.top.k': [1], 'nobody.x': 1 },
      fallbacks: [{ provider: 'open', model: 'backup' }],
      responseFormat: { kind: 'jsonschema', schema },
      allowConcurrentToolCalls: true,
    }),
  );
  const { model } = await world.compile('support');
  assert.deepEqual([model.provider.name, model.model, model.catalog?.contextWindowTokens], ['demo', 'demo-1', 1000]);
  assert.deepEqual(model.settings, { seed: 7 });
  assert.deepEqual(
    model.fallbacks.map(({ provider, model: name, settings, catalog }) => [provider.name, name, settings, catalog]),
    [['open', 'backup', { 'top.k': [1] }, null]],
  );
  assert.deepEqual(model.responseFormat, { kind: 'JsonSchema', schema, name: 'response' });
  assert.deepEqual([model.temperature, model.topP, model.allowConcurrentToolCalls], [0.5, null, true]);
});

test('AGENT-28 no response format and the format Text are different', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('none'));
  await create(world, withModel('text', { responseFormat: { kind: 'Text' } }));
  assert.equal((await world.compile('none')).model.responseFormat, null);
  assert.deepEqual((await world.compile('text')).model.responseFormat, { kind: 'Text' });
});

test('AGENT-46 tools and callable agents are tools of the model, in the order of the definition', async (context) => {
  const world = await openWorld(context, {
    codeAgents: await codeAgentsOf(context, definition('house.keeper', { description: 'Keeps the house.' })),
  });
  await create(
    world,
    definition('support', { toolNames: ['weather', 'clock_now'], callableAgentNames: ['house.keeper'] }),
  );
  const { tools, modelTools } = await world.compile('support');
  assert.deepEqual(
    modelTools.map(({ name }) => name),
    ['weather', 'clock_now', 'call_house_keeper'],
  );
  assert.match(modelTools[2]?.description ?? '', /Keeps the house\./);
  assert.deepEqual(modelTools[2]?.inputSchema['required'], ['message']);
  assert.deepEqual(tools.get('call_house_keeper'), { kind: 'agent', agentName: 'house.keeper' });
  assert.equal(tools.get('weather')?.kind, 'tool');
});

test('AGENT-31, AGENT-33 shared instructions first, an empty line, own ones; placeholders in one pass', async (context) => {
  const world = await openWorld(context);
  const firm = { name: 'firm', kind: 'Text' };
  await create(world, definition('house', { instructions: 'We are {{firm}}.', parameters: [firm] }));
  await create(
    world,
    definition('support', {
      instructions: 'Help {{who}} of {{firm}}.',
      sharedInstructionsName: 'house',
      parameters: [firm, { name: 'who', kind: 'Text' }],
    }),
  );
  const agent = await world.compile('support');
  const values = agent.resolveParameters({ firm: '{{who}} $&', who: 'Bo' });
  assert.equal(agent.instructions(null, values), 'We are {{who}} $&.\n\nHelp Bo of {{who}} $&.');
  await save(world, definition('house', { instructions: 'They are {{firm}}.', parameters: [firm] }));
  const changed = await world.compile('support');
  assert.equal(changed.version, 1);
  assert.equal(changed.instructions(null, { firm: 'X', who: 'Bo' }), 'They are X.\n\nHelp Bo of X.');
  await create(world, definition('mute'));
  assert.equal((await world.compile('mute')).instructions(null, {}), null);
});

test('AGENT-32 a culture is looked up as given, then shorter, then the default', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('house', { instructions: 'shared', instructionsByCulture: { 'de-CH': 'geteilt' } }));
  await create(
    world,
    definition('support', {
      instructions: 'default',
      instructionsByCulture: { de: 'deutsch', 'zh-Hant': '繁體' },
      sharedInstructionsName: 'house',
    }),
  );
  const { instructions } = await world.compile('support');
  const expected: Record<string, string> = {
    'DE-ch-1996': 'geteilt\n\ndeutsch',
    'de-AT': 'shared\n\ndeutsch',
    'zh-Hant-TW': 'shared\n\n繁體',
    zh: 'shared\n\ndefault',
    fr: 'shared\n\ndefault',
    'de-': 'shared\n\ndefault',
    de_DE: 'shared\n\ndefault',
    '': 'shared\n\ndefault',
  };
  for (const [culture, text] of Object.entries(expected)) assert.equal(instructions(culture, {}), text, culture);
  assert.equal(instructions(null, {}), 'shared\n\ndefault');
});

test('AGENT-35 parameters: defaults, the empty string, and every mistake at once', async (context) => {
  const world = await openWorld(context);
  await create(
    world,
    definition('support', {
      instructions: '{{who}}{{age}}{{vip}}{{tone}}{{__proto__}}',
      parameters: [
        { name: 'who', kind: 'Text', required: true },
        { name: 'age', kind: 'Number', defaultValue: '3' },
        { name: 'vip', kind: 'Boolean', required: true, defaultValue: 'false' },
        { name: 'tone', kind: 'Text' },
        { name: '__proto__', kind: 'Text', defaultValue: 'p' },
      ],
    }),
  );
  const { resolveParameters, instructions } = await world.compile('support');
  const values = resolveParameters({ who: '', age: '-1.5e3' });
  assert.equal(instructions(null, values), '-1.5e3falsep');
  const error = await refusal(
    (async () => resolveParameters({ age: '1,5', vip: 'TRUE', tone: 'é'.repeat(9), extra: 'x' }))(),
  );
  assert.equal(error.code, 'parameter-invalid');
  assert.deepEqual(errorPaths(error), [
    'parameters.extra',
    'parameters.who',
    'parameters.age',
    'parameters.vip',
    'parameters.tone',
  ]);
  assert.equal((await refusal((async () => resolveParameters(null))())).code, 'parameter-invalid');
});

test('AGENT-48 the waits of a definition go before those of the service', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('support', { subAgents: { childDeadlineMs: 1000, waitTimeoutMs: 2000 } }));
  await create(world, definition('plain'));
  assert.deepEqual((await world.compile('support')).subAgents, { childDeadlineMs: 1000, waitTimeoutMs: 2000 });
  assert.deepEqual((await world.compile('plain')).subAgents, { childDeadlineMs: null, waitTimeoutMs: null });
});

test('AGENT-7 a write between the reads of a compile is never remembered as current', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('helper', { description: 'v1' }));
  await create(world, definition('support', { callableAgentNames: ['helper'] }));
  // Compiles and writes interleave; whatever the order was, the next compile sees the last write.
  for (let round = 2; round <= 12; round += 1) {
    const compiling = [world.compile('support'), world.compile('helper')];
    const writing = save(world, definition('helper', { description: `v${round}` }));
    await Promise.all([...compiling, writing, world.compile('support')]);
    assert.equal((await world.compile('helper')).version, round);
    assert.match((await world.compile('support')).modelTools[0]?.description ?? '', new RegExp(`v${round}$`));
  }
});
