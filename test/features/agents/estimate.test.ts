import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContextWindowEstimate } from '../../../src/features/agents/agents.schema.ts';
import { estimateTokens } from '../../../src/features/agents/index.ts';
import { create, definition, openWorld, refusal, save, withModel } from './agent-world.ts';

test('AGENT-50 estimate refuses what a run refuses', async (context) => {
  const world = await openWorld(context);
  await create(
    world,
    definition('support', { instructions: '{{n}}', parameters: [{ name: 'n', kind: 'Number', required: true }] }),
  );
  const refused = async (body: unknown, name = 'support') =>
    (await refusal(world.call('estimate', { name }, body))).code;
  assert.equal(await refused({ message: 'hi' }, 'nobody'), 'agent-not-found');
  assert.equal(await refused({}), 'message-required');
  assert.equal(await refused({ message: ' ' }), 'message-required');
  assert.equal(await refused({ message: 'hi' }), 'parameter-invalid');
  assert.equal(await refused({ message: 'hi', parameters: { n: 'x' } }), 'parameter-invalid');
  assert.equal(await refused({ message: 'hi', sesionId: 'x' }), 'validation-failed');
  assert.equal(
    await refused({ message: 'hi', documents: [{ name: 'd', content: 'é'.repeat(131_073) }] }),
    'validation-failed',
  );
  for (const member of ['approvals', 'toolResults'])
    assert.equal(
      await refused({ message: 'hi', parameters: { n: '1' }, [member]: ['018f0000-0000-7000-8000-000000000000'] }),
      'validation-failed',
    );
});

test('AGENT-50 an agent that does not compile is 400 with its findings', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('helper'));
  await create(world, definition('support', { callableAgentNames: ['helper'] }));
  await world.call('remove', { name: 'helper' });
  const error = await refusal(world.call('estimate', { name: 'support' }, { message: 'hi' }));
  assert.equal(error.code, 'agent-not-compilable');
  assert.deepEqual(
    error.details.errors?.map(({ path }) => path),
    ['callableAgentNames[0]'],
  );
});

test('AGENT-51 every part of the prompt counts', async (context) => {
  const world = await openWorld(context, { history: ['what was said before', 'and what was answered'] });
  const tokens = async (body: Record<string, unknown>) =>
    ((await world.call('estimate', { name: 'support' }, { message: 'hello', ...body })).body as ContextWindowEstimate)
      .promptTokens;
  const text = {
    instructions: 'Be brief, {{who}}.',
    instructionsByCulture: { de: 'Fasse dich bitte immer so kurz wie nur möglich, {{who}}.' },
  };
  const parameters = [{ name: 'who', kind: 'Text', defaultValue: 'Bo' }];
  await create(world, definition('support', { ...text, parameters }));
  const plain = await tokens({});
  assert.ok(plain > 0);
  assert.equal(await tokens({ message: 'hello hello' }), plain + 1);
  for (const more of [
    { culture: 'de-AT' },
    { parameters: { who: 'my old friend' } },
    { documents: [{ name: 'notes', content: 'some text to read' }] },
    { sessionId: 'session-1' },
  ])
    assert.ok((await tokens(more)) > plain, JSON.stringify(more));
  await save(world, definition('support', { ...text, parameters, toolNames: ['weather'] }));
  assert.ok((await tokens({})) > plain);
});

test('AGENT-52 the window of the catalog less the reserve decides', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('small'));
  await create(world, withModel('unlisted', { model: 'demo-9' }));
  await create(world, withModel('windowless', { model: 'demo-plain' }));
  const estimate = async (name: string, words: number) =>
    (await world.call('estimate', { name }, { message: 'hello'.concat(' hello'.repeat(words - 1)) })).body;
  const window = { contextWindowTokens: 1000, allowedPromptTokens: 800 };
  assert.deepEqual(await estimate('small', 800), { promptTokens: 800, ...window, wouldBeRejected: false });
  assert.deepEqual(await estimate('small', 801), { promptTokens: 801, ...window, wouldBeRejected: true });
  const unknown = { contextWindowTokens: null, allowedPromptTokens: null, wouldBeRejected: false };
  assert.deepEqual(await estimate('unlisted', 5000), { promptTokens: 5000, ...unknown });
  assert.deepEqual(await estimate('windowless', 5000), { promptTokens: 5000, ...unknown });
});

test('AGENT-51 hostile texts are counted in bounded time, and special tokens are text', async () => {
  assert.ok((await estimateTokens(['<|endoftext|>'])) > 1);
  assert.equal(await estimateTokens([]), 0);
  assert.equal(await estimateTokens(['', '']), 0);
  // Each of these takes minutes when it is given to the tokenizer in one piece.
  for (const unit of ['a', '中', ' ', '\n', '=', '😀', 'é', '\u0301', '\ud800'])
    assert.ok((await estimateTokens([unit.repeat(200_000)])) > 0, JSON.stringify(unit));
});
