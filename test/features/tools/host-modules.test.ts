import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadModule } from '../../../src/core/load-module.ts';
import { createToolRegistry } from '../../../src/engine/tools/registry.ts';
import { describeToolProblem } from '../../../src/engine/tools/tool-problem.ts';
import { hostLibrary, loadHostModules } from '../../../src/features/tools/host-modules.ts';

/** Writes modules and loads them as the service does. */
const load = async (t: TestContext, files: Record<string, string>) => {
  const path = await mkdtemp(join(tmpdir(), 'acp-modules-'));
  t.after(() => rm(path, { recursive: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), content);
  const paths = Object.keys(files).map((name) => join(path, name));
  const loaded = await loadHostModules(paths, (file) => loadModule(file, hostLibrary));
  return {
    ...loaded,
    report: loaded.problems.map((problem) => describeToolProblem(problem).replaceAll(`${path}/`, '')),
  };
};

const tool = (name: string): string =>
  `{ name: '${name}', description: 'x', inputSchema: { type: 'object' }, execute: async () => '${name}' }`;

test('TOOL-1 modules export a module by default or by name, as an object or a function, in JavaScript or TypeScript', async (t) => {
  const loaded = await load(t, {
    'plain.mjs': `export default { tools: [${tool('plain')}] };`,
    'named.mjs': `export const module = { name: 'other', tools: [${tool('named')}] };`,
    'factory.mjs': `export default async () => ({ tools: [${tool('made')}] });`,
    'typed.mts': `
      import { defineModule, ToolError } from 'acp';
      const name: string = 'typed';
      export default defineModule({ tools: [{ name, description: 'x', inputSchema: { type: 'object' },
        async execute(): Promise<string> { throw new ToolError('no'); } }] });`,
    'common.cjs': `module.exports = { tools: [${tool('common')}] };`,
  });
  assert.deepEqual(loaded.report, []);
  assert.deepEqual(loaded.names, ['plain', 'other', 'factory', 'typed', 'common']);
  const registry = createToolRegistry(loaded.registrations, loaded.problems);
  assert.deepEqual(
    registry.list().map(({ descriptor }) => descriptor.name),
    ['common', 'made', 'named', 'plain', 'typed'],
  );
  assert.equal(loaded.toolAuthorizer, null);
});

test('TOOL-12 one module may bring the authorizer', async (t) => {
  const authorizer = 'toolAuthorizer: { async authorize() { return { allowed: true }; } }';
  const one = await load(t, { 'a.mjs': `export default { ${authorizer} };` });
  assert.equal(typeof one.toolAuthorizer?.authorize, 'function');
  const two = await load(t, {
    'a.mjs': `export default { ${authorizer} };`,
    'b.mjs': `export default { ${authorizer} };`,
  });
  assert.deepEqual(two.report, ['b.mjs: toolAuthorizer is taken: a.mjs registers one already']);
});

test('CONF-14 everything wrong with every module is reported together', async (t) => {
  const { report } = await load(t, {
    'syntax.mjs': 'export default {',
    'throws.mjs': "throw new Error('no database');",
    'factory.mjs': "export default () => { throw new Error('no licence'); };",
    'empty.mjs': 'export const tools = [];',
    'list.mjs': 'export default [];',
    'members.mjs': "export default { name: 'a b', tools: {}, toolAuthorizer: () => true, guards: [], judges: 1 };",
    'one.mjs': "export default { name: 'same' };",
    'two.mjs': "export default { name: 'same' };",
  });
  assert.equal(report.length, 11);
  assert.match(report[0] ?? '', /^syntax\.mjs: could not be loaded: /);
  assert.match(report[1] ?? '', /^throws\.mjs: could not be loaded: .*no database/);
  assert.match(report[2] ?? '', /^factory\.mjs: could not be loaded: no licence$/);
  assert.deepEqual(report.slice(3), [
    'empty.mjs: has neither a default export nor one named module',
    'list.mjs: must export a module object or a function that returns one',
    'members.mjs: guards is not a member that this version knows; known are name, tools, toolAuthorizer',
    'members.mjs: judges is not a member that this version knows; known are name, tools, toolAuthorizer',
    'members.mjs: name must be 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit',
    'members.mjs: tools must be a list of tools',
    'members.mjs: toolAuthorizer must be an object with a function authorize',
    'two.mjs: name is taken: one.mjs is the module same already',
  ]);
});

test('TOOL-2 a tool of two modules is a problem of the second', async (t) => {
  const loaded = await load(t, {
    'a.mjs': `export default { tools: [${tool('same')}] };`,
    'b.mjs': `export default { tools: [${tool('same')}, null] };`,
  });
  assert.throws(
    () => createToolRegistry(loaded.registrations, loaded.problems),
    /b\.mjs \(same\): name is taken: .*a\.mjs registers a tool of this name\n.*b\.mjs: must be an object/,
  );
});

test('a module that is not there is a problem with its path', async () => {
  const { problems } = await loadHostModules(['/nowhere/m.mjs'], (file) => loadModule(file, hostLibrary));
  assert.equal(problems.length, 1);
  assert.equal(problems[0]?.file, '/nowhere/m.mjs');
});
