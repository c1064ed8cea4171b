import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadModule } from '../../../src/core/files/load-module.ts';
import { createToolRegistry } from '../../../src/engine/tools/registry.ts';
import { describeToolProblem } from '../../../src/engine/tools/tool-problem.ts';
import { hostLibrary, loadHostModules } from '../../../src/features/modules/index.ts';

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

test('JOB-47 handlers of jobs have keys of their own, and none of the service', async (t) => {
  const job = (key: string, more = '') => `{ key: '${key}', async run() { return this.answer; }, answer: 1${more} }`;
  const loaded = await load(t, {
    'a.mjs': `export default { jobs: [${job('shop.import')}, ${job('0', ', schedulable: false')}] };`,
    'b.mjs': `export default { jobs: [${job('shop.import')}] };`,
    'c.mjs': `export default { jobs: [${job('Shop')}] };`,
    'd.mjs': `export default { jobs: [${job('acp.import')}] };`,
    'e.mjs': `export default { jobs: [${job('e', ", schedulable: 'no'")}] };`,
    'f.mjs': "export default { jobs: [{ key: 'f' }, null] };",
    'g.mjs': `export default { jobs: [${job('x'.repeat(129))}] };`,
  });
  assert.deepEqual(loaded.report, [
    'b.mjs: jobs is taken for shop.import: a.mjs registers one already',
    'c.mjs: jobs has "Shop", which is not 1 to 128 of a-z 0-9 . _ -, starting with a letter or digit',
    'd.mjs: jobs has acp.import: keys that begin with acp. are those of the service',
    'e.mjs: jobs has e, whose schedulable is neither true nor false',
    'f.mjs: jobs must be a list of objects with a key and a function run',
    `g.mjs: jobs has "${'x'.repeat(129)}", which is not 1 to 128 of a-z 0-9 . _ -, starting with a letter or digit`,
  ]);
  assert.deepEqual(
    loaded.jobs.map(({ value }) => [value.key, value.schedulable]),
    [
      ['shop.import', true],
      ['0', false],
    ],
  );
  const [first] = loaded.jobs;
  assert.equal(await first?.value.run({} as never, new AbortController().signal), 1, 'a handler may use this');
});

test('CONF-14 everything wrong with every module is reported together', async (t) => {
  const { report } = await load(t, {
    'syntax.mjs': 'export default {',
    'throws.mjs': "throw new Error('no database');",
    'factory.mjs': "export default () => { throw new Error('no licence'); };",
    'empty.mjs': 'export const tools = [];',
    'list.mjs': 'export default [];',
    'members.mjs': "export default { name: 'a b', tools: {}, toolAuthorizer: () => true, sinks: [], judges: 1 };",
    'one.mjs': "export default { name: 'same' };",
    'two.mjs': "export default { name: 'same' };",
  });
  assert.equal(report.length, 11);
  assert.match(report[0] ?? '', /^syntax\.mjs: could not be loaded: /);
  assert.match(report[1] ?? '', /^throws\.mjs: could not be loaded: .*no database/);
  assert.match(report[2] ?? '', /^factory\.mjs: could not be loaded: no licence$/);
  const shortened = report.slice(3).map((line) => line.replace(/; known are name, tools, .*$/, '; known are …'));
  assert.deepEqual(shortened, [
    'empty.mjs: has neither a default export nor one named module',
    'list.mjs: must export a module object or a function that returns one',
    'members.mjs: name must be 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit',
    'members.mjs: tools must be a list of tools',
    'members.mjs: toolAuthorizer must be an object with a function authorize',
    'members.mjs: sinks is not a member that this version knows; known are …',
    'members.mjs: judges must be a list of objects with a name and a function judge',
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

test('RUN-39 one module may bring the run authorization, and it must be one', async (t) => {
  const handler = 'runAuthorization: { async authorize() { return { allowed: true }; } }';
  const loaded = await load(t, {
    'a.mjs': `export default { ${handler} };`,
    'b.mjs': `export default { ${handler} };`,
    'c.mjs': 'export default { runAuthorization: () => true };',
  });
  assert.equal(typeof loaded.runAuthorization?.authorize, 'function');
  assert.deepEqual(loaded.report, [
    'b.mjs: runAuthorization is taken: a.mjs registers one already',
    'c.mjs: runAuthorization must be an object with a function authorize',
  ]);
});

const approvalMembers = {
  approvalPolicy: "{ async decide() { return 'Undecided'; } }",
  approvalPresenters: "[{ toolName: 'refund', async present() { return null; } }]",
};

const namedMembers = {
  ...approvalMembers,
  skills: "[{ name: 'a', description: 'b', instructions: 'c' }]",
  structuredResponseValidators: '{ invoice: () => undefined }',
  loopCriteria: '{ polite: async () => ({ met: true }) }',
};

test('CONF-14 members are checked, and each name is given once', async (t) => {
  const problemsOf = async (...modules: string[]): Promise<string[]> => {
    const files = Object.fromEntries(modules.map((members, index) => [`m${index}.mjs`, `export default ${members};`]));
    return (await load(t, files)).report;
  };
  assert.deepEqual(await problemsOf('{ approvalPolicy: {}, approvalPresenters: [{}], loopCriteria: [] }'), [
    'm0.mjs: approvalPolicy must be an object with a function decide',
    'm0.mjs: approvalPresenters must be a list of objects with a toolName and a function present',
    'm0.mjs: loopCriteria must be an object of functions by criterion kind',
  ]);
  assert.deepEqual(await problemsOf('{ loopCriteria: { aiJudge() {} }, agents: {}, skills: [{ name: 1 }] }'), [
    'm0.mjs: loopCriteria has aiJudge, which is built in',
    'm0.mjs: agents must be a list of agent definitions',
    'm0.mjs: skills must be a list of skills, each with name, description and instructions',
  ]);
  assert.deepEqual(
    await problemsOf('{ structuredResponseValidators: { a: 1 } }', "{ structuredResponseValidators: { 'a b'() {} } }"),
    [
      'm0.mjs: structuredResponseValidators must have a function for a',
      'm1.mjs: structuredResponseValidators has "a b", which is no agent name',
    ],
  );
  const twice = Object.entries(namedMembers)
    .map(([member, value]) => `${member}: ${value}`)
    .join(', ');
  assert.deepEqual(await problemsOf(`{ ${twice} }`, `{ ${twice} }`), [
    'm1.mjs: approvalPolicy is taken: m0.mjs registers one already',
    'm1.mjs: approvalPresenters is taken for refund: m0.mjs registers one already',
    'm1.mjs: skills is taken for a: m0.mjs registers one already',
    'm1.mjs: structuredResponseValidators is taken for invoice: m0.mjs registers one already',
    'm1.mjs: loopCriteria is taken for polite: m0.mjs registers one already',
  ]);
});

test('EVAL-33 judges have names of their own, in any case', async (t) => {
  const judge = (name: string, more = '') => `{ name: '${name}', judge() { return this.verdict; }, verdict: 1${more} }`;
  const loaded = await load(t, {
    'a.mjs': `export default { judges: [${judge('tone')}, ${judge('Facts', ", version: '3'")}] };`,
    'b.mjs': `export default { judges: [${judge('TONE')}] };`,
    'c.mjs': `export default { judges: [${judge('a b')}] };`,
    'd.mjs': `export default { judges: [${judge('d', ", version: ''")}] };`,
    'e.mjs': "export default { judges: [{ name: 'e' }] };",
  });
  assert.deepEqual(loaded.report, [
    'b.mjs: judges is taken for TONE: a.mjs registers one already',
    'c.mjs: judges has "a b", which is not 1 to 64 of A-Z a-z 0-9 . _ -',
    'd.mjs: judges has a version of d that is no text of 1 to 64 characters',
    'e.mjs: judges must be a list of objects with a name and a function judge',
  ]);
  assert.deepEqual(
    loaded.judges.map(({ value }) => [value.name, value.version]),
    [
      ['tone', undefined],
      ['Facts', '3'],
    ],
  );
  const run = { input: 'a', output: 'b', toolNames: [], tenantId: 'default' };
  const ask = async () => '';
  assert.equal(await loaded.judges[0]?.value.judge(run, new AbortController().signal, ask), 1, 'a judge may use this');
});
