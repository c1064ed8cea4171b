import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseDefinitionDocuments } from '../../../src/core/documents/definition-documents.ts';
import { CodeAgentsError } from '../../../src/features/agents/index.ts';
import { openWorld } from './agent-world.ts';
import { folderOf, load } from './code-agent-files.ts';

const model = 'model: {provider: demo, model: demo-1}';

const startFailure = async (loading: Promise<unknown>): Promise<CodeAgentsError> => {
  try {
    await loading;
  } catch (error) {
    if (error instanceof CodeAgentsError) return error;
    throw error;
  }
  throw new Error('The start was expected to fail.');
};

test('AGENT-1 code agents come from files and folders, many documents each', async (context) => {
  const folder = await folderOf(context, {
    'agents/a.yaml': `name: a\n${model}\n---\n# nothing here\n---\nname: b\n${model}\ncallableAgentNames: [c]\n`,
    'agents/deep/c.json': JSON.stringify({ name: 'c', model: { provider: 'open', model: 'x' } }),
    'agents/.hidden.yaml': 'name: [',
    'agents/readme.md': 'not a definition',
    'one.yml': `name: d\n${model}\nsharedInstructionsName: e\n---\nname: e\n${model}\ninstructions: Be kind.\n`,
  });
  const agents = await load(join(folder, 'agents'), join(folder, 'one.yml'));
  assert.deepEqual([...agents.contents.keys()], ['a', 'b', 'c', 'd', 'e']);
  assert.equal(agents.compiled.get('d')?.instructions(null, {}), 'Be kind.');
  const world = await openWorld(context, { codeAgents: agents });
  for (const tenant of ['red', 'blue'])
    assert.equal((await world.compile('b', tenant)).origin, 'code', 'every tenant sees them');
});

test('AGENT-6 every mistake is reported with file, line and field, together', async (context) => {
  const folder = await folderOf(context, {
    'a.yaml': `name: first\n${model}\ntoolNames:\n  - clock_now\n  - gone\ndisplayNmae: x\n---\nname: second\nmodel:\n  provider: nobody\n  model: m\n`,
    'b.yaml': `name: third\n${model}\ninstructions: 5\n---\nname: first\n${model}\n`,
    'c.yaml': 'name: broken\nmodel: {provider: demo\n',
    'd.yaml': '- a list\n',
  });
  const error = await startFailure(load(folder, join(folder, 'missing')));
  const found = error.problems.map(({ file, line, name, field }) => [file.slice(folder.length + 1), line, name, field]);
  assert.deepEqual(found.slice(0, 1), [['c.yaml', 3, null, '']]);
  assert.deepEqual(found.slice(1), [
    ['d.yaml', 1, null, ''],
    ['missing', null, null, ''],
    ['b.yaml', 3, 'third', 'instructions'],
    ['b.yaml', 5, 'first', 'name'],
    ['a.yaml', 6, 'first', 'displayNmae'],
    ['a.yaml', 5, 'first', 'toolNames[1]'],
    ['a.yaml', 10, 'second', 'model.provider'],
  ]);
  assert.match(error.message, /a\.yaml:5 \(first\): toolNames\[1\]: There is no tool "gone"\./);
});

test('AGENT-6 a cycle across code agents, or a call of a stored agent, stops the start', async (context) => {
  const folder = await folderOf(context, {
    'a.yaml': `name: a\n${model}\ncallableAgentNames: [b]\n`,
    'b.yaml': `name: b\n${model}\ncallableAgentNames: [a]\n`,
  });
  const error = await startFailure(load(folder));
  assert.deepEqual(
    error.problems.map(({ name, field }) => [name, field]),
    [
      ['a', 'callableAgentNames'],
      ['b', 'callableAgentNames'],
    ],
  );
  const lonely = await folderOf(context, { 'a.yaml': `name: a\n${model}\ncallableAgentNames: [stored]\n` });
  assert.equal((await startFailure(load(lonely))).problems[0]?.field, 'callableAgentNames[0]');
});

test('AGENT-6 warnings do not stop the start', async (context) => {
  const folder = await folderOf(context, { 'a.yaml': 'name: a\nmodel: {provider: demo, model: demo-9}\n' });
  const { warnings, compiled } = await load(folder);
  assert.deepEqual(
    warnings.map(({ line, field }) => [line, field]),
    [[2, 'model.model']],
  );
  assert.equal(compiled.size, 1);
});

test('definition files: hostile YAML ends in problems', () => {
  const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${'bcdefgh'
    .split('')
    .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`)
    .join('\n')}\n`;
  for (const text of [
    bomb,
    '['.repeat(50_000),
    'a: &a [*a]',
    'a: !!js/function x',
    'a: 1\na: 2',
    'a: .inf',
    '"\\x',
    '? [a]\n: b',
    '\u0000',
  ])
    assert.ok(parseDefinitionDocuments(text, 'x.yaml').problems.length > 0, JSON.stringify(text.slice(0, 20)));
  assert.deepEqual(parseDefinitionDocuments('', 'x.yaml'), { documents: [], problems: [] });
  assert.deepEqual(parseDefinitionDocuments('# only a comment\n', 'x.yaml').documents, []);
});

test('definition files: a path is found on its line, or on the nearest one', () => {
  const text =
    'name: a\nmodel:\n  provider: p\n  providerSettings:\n    p.top.k: 1\n    p: 2\n  fallbacks:\n    - provider: x\n      model: y\n';
  const [document] = parseDefinitionDocuments(`# head\n---\n${text}`, 'x.yaml').documents;
  assert.ok(document !== undefined);
  assert.equal(document.line, 3);
  const lines: Record<string, number> = {
    name: 3,
    'model.provider': 5,
    'model.providerSettings.p.top.k': 7,
    'model.providerSettings.p': 8,
    'model.fallbacks[0].model': 11,
    'model.fallbacks[4].model': 9,
    'model.temperature': 4,
    instructions: 3,
    '': 3,
  };
  for (const [path, line] of Object.entries(lines)) assert.equal(document.lineOf(path), line, path);
  assert.deepEqual(document.value['model'], {
    provider: 'p',
    providerSettings: { 'p.top.k': 1, p: 2 },
    fallbacks: [{ provider: 'x', model: 'y' }],
  });
});

test('the sample agent is a sound definition', async (context) => {
  const text = await readFile(join(import.meta.dirname, '../../../assets/samples/hello.yaml'), 'utf8');
  const { compiled } = await load(await folderOf(context, { 'hello.yaml': text }));
  const hello = compiled.get('hello');
  assert.deepEqual(
    [hello?.model.provider.name, hello?.model.model, [...(hello?.tools.keys() ?? [])]],
    ['demo', 'demo-1', ['clock_now']],
  );
  assert.match(hello?.instructions(null, hello.resolveParameters(null)) ?? '', /^You are Ada/);
});

test('the definitions in the guide are sound', async (context) => {
  const guide = await readFile(join(import.meta.dirname, '../../../docs/agents.md'), 'utf8');
  const [example] = [...guide.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? '');
  const { compiled, warnings } = await load(await folderOf(context, { 'guide.yaml': example ?? '' }));
  assert.deepEqual([...compiled.keys()], ['support', 'expert']);
  assert.deepEqual(warnings, []);
});
