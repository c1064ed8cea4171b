import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseDefinitionDocuments } from '../../../src/core/documents/definition-documents.ts';
import { CodeAgentsError, loadCodeAgents } from '../../../src/features/agents/index.ts';
import { forEachService } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { references } from './agent-world.ts';
import { folderOf } from './code-agent-files.ts';

const model = { provider: 'demo', model: 'demo-1' };

const tool = {
  name: 'weather',
  description: 'The weather.',
  inputSchema: { type: 'object' },
  execute: async () => 'sunny',
};

forEachService('AGENT-1 agents of modules are code agents beside those of the store', async (open) => {
  const { client } = await open({
    tools: [tool],
    script: [
      { when: { tool: 'weather' }, reply: { text: 'It is {{last}}.' } },
      { when: { message: 'weather' }, reply: { toolCalls: [{ name: 'weather', arguments: {} }] } },
    ],
    module: {
      agents: [
        { name: 'forecaster', model, toolNames: ['weather'], description: 'Tells the weather.' },
        { name: 'asker', model, callableAgentNames: ['forecaster'] },
      ],
    },
    agents: [{ name: 'middle' }],
  });
  const { body: agents } = await client.agents.list({});
  assert.deepEqual(
    agents.map(({ name, origin, version }) => [name, origin, version]),
    [
      ['asker', 'code', 1],
      ['forecaster', 'code', 1],
      ['middle', 'database', 1],
    ],
  );
  assert.equal((await runJson(client, 'forecaster', 'weather')).output, 'It is sunny.');
});

forEachService('AGENT-4 AGENT-5 an agent of a module cannot be read as a version or changed', async (open) => {
  const { client } = await open({ module: { agents: [{ name: 'fixed', model }] } });
  const params = { name: 'fixed' };
  const { body } = await client.agents.get({ params });
  assert.deepEqual([body.definition, body.isEditable, body.descriptor.origin], [null, false, 'code']);
  assert.equal((await refusal(client.agents.versions({ params }))).status, 404);
  assert.equal((await refusal(client.agents.diff({ params: { name: 'fixed', a: 1, b: 1 } }))).status, 404);
  for (const change of [
    () => client.agents.save({ params, body: { name: 'fixed', model } }),
    () => client.agents.remove({ params }),
    () => client.agents.rollback({ params, body: { version: 1 } }),
  ])
    assert.equal((await refusal(change())).code, 'agent-code-defined');
  assert.equal((await refusal(client.agents.create({ body: { name: 'fixed', model } }))).code, 'agent-name-taken');
});

const problemsOf = async (paths: readonly string[], ...value: object[]): Promise<string[]> => {
  const modules = [{ file: '/m/desk.mjs', value: value as Record<string, unknown>[] }];
  try {
    await loadCodeAgents(paths, { ...references, parse: parseDefinitionDocuments, modules });
    return [];
  } catch (error) {
    if (!(error instanceof CodeAgentsError)) throw error;
    return error.message.split('\n').slice(1);
  }
};

test('AGENT-6 a module agent that does not compile stops the start, with module, agent and field', async () => {
  assert.deepEqual(
    await problemsOf(
      [],
      { name: 'a', model, toolNames: ['gone'], skilNames: [] },
      { name: 'b', model, displayName: 7 },
    ),
    [
      '  /m/desk.mjs (b): displayName: The value must be either string or null.',
      '  /m/desk.mjs (a): skilNames: "skilNames" is not a known field. Did you mean skillNames?',
      '  /m/desk.mjs (a): toolNames[0]: There is no tool "gone".',
    ],
  );
});

test('AGENT-6 an agent of a module needs a name, a model binding and nothing but data', async () => {
  const circle: Record<string, unknown> = { name: 'c', model };
  circle['metadata'] = circle;
  const problems = await problemsOf(
    [],
    { name: 'own', run: async () => 'Hi' },
    { model },
    { name: 'late', model, instructions: () => 'Hi' },
    circle,
    { name: 'bare' },
  );
  assert.equal(problems.length, 5);
  assert.match(problems[0] ?? '', /desk\.mjs \(own\): run: An agent that runs code of its own is not available/);
  assert.match(problems[1] ?? '', /desk\.mjs \(late\): The definition is no JSON value: A function/);
  assert.match(problems[2] ?? '', /desk\.mjs \(c\): The definition is no JSON value: .*nested deeper/);
  assert.match(problems[3] ?? '', /desk\.mjs: agents\[1\]\.name: /);
  assert.match(problems[4] ?? '', /desk\.mjs \(bare\): model: /);
});

test('AGENT-1 a name of a file and of a module stops the start, naming both', async (context) => {
  const folder = await folderOf(context, { 'a.yaml': '# one\nname: same\nmodel: {provider: demo, model: demo-1}\n' });
  const file = join(folder, 'a.yaml');
  assert.deepEqual(
    await problemsOf([file], { name: 'same', model }, { name: 'twin', model }, { name: 'twin', model }),
    [
      `  /m/desk.mjs (same): name: The name is taken by the agent in ${file}:2.`,
      '  /m/desk.mjs (twin): name: The name is taken by the agent in /m/desk.mjs.',
    ],
  );
});

test('AGENT-1 what a module does to its definition after the start changes nothing', async () => {
  const definition = { name: 'a', model: { ...model }, instructions: 'Be kind.', toolNames: [] as string[] };
  const modules = [{ file: '/m/desk.mjs', value: [definition] }];
  const agents = await loadCodeAgents([], { ...references, parse: parseDefinitionDocuments, modules });
  definition.instructions = 'Be rude.';
  definition.toolNames.push('gone');
  assert.deepEqual(agents.contents.get('a')?.toolNames, []);
  assert.equal(agents.contents.get('a')?.instructions, 'Be kind.');
});
