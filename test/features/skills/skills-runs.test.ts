import assert from 'node:assert/strict';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { Gate, refusal, runJson, runStream, tool } from '../runs/run-calls.ts';
import { save, skill } from './skill-bodies.ts';

const local = { provider: 'local', model: 'any' };
const helper = (skillNames: readonly string[]) => ({
  name: 'helper',
  model: local,
  instructions: 'You help {{who}}.',
  parameters: [{ name: 'who', kind: 'Text', defaultValue: 'Ada' }],
  skillNames,
});

interface Sent {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}
const lastSent = (app: TestApp): Sent => app.simulator.lastRequest().body as unknown as Sent;
const system = (app: TestApp): string | undefined =>
  lastSent(app).messages.find(({ role }) => role === 'system')?.content;
const toolNames = (app: TestApp): string[] => (lastSent(app).tools ?? []).map((tool) => tool.function.name);
const results = (app: TestApp): string[] =>
  lastSent(app)
    .messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);
const asks = (app: TestApp, ...calls: readonly (readonly [string, unknown])[]): void =>
  app.simulator.enqueue({
    answer: {
      toolCalls: calls.map(([name, args], index) => ({ id: `c${index}`, name, arguments: JSON.stringify(args) })),
    },
  });

forEachDurableService(
  'SKILL-22 AGENT-31 the model reads names and descriptions, in order, behind the instructions',
  async (open) => {
    const app = await open({ simulator: {} });
    await save(app, skill('zeta', { description: 'Does z {{who}}.\nAlways.' }));
    await save(app, skill('alpha'));
    await save(app, skill('off', { enabled: false }));
    await app.createAgent(helper(['zeta', 'off', 'alpha']));
    await runJson(app.client, 'helper', 'Hi');
    assert.equal(
      system(app),
      [
        'You help Ada.',
        '',
        'You have skills. When a task matches one, load it with load_skill before you begin, and follow it:',
        '- zeta: Does z {{who}}. Always.',
        '- alpha: What alpha does and when to use it.',
      ].join('\n'),
    );
    assert.deepEqual(toolNames(app), ['load_skill'], 'SKILL-23 nothing to read, so no tool to read it with');
  },
);

forEachDurableService(
  'SKILL-23 SKILL-24 SKILL-27 skills are loaded piece by piece, and only those of the agent',
  async (open) => {
    const app = await open({ simulator: {} });
    await save(
      app,
      skill('pdf', {
        instructions: 'Read references/form.md first.',
        resources: [{ name: 'references/form.md', content: 'Fill in 👍', description: 'How to fill in' }],
      }),
    );
    await save(app, skill('secret'));
    await app.createAgent(helper(['pdf']));
    asks(
      app,
      ['load_skill', { skillName: 'pdf' }],
      ['read_skill_resource', { skillName: 'pdf', resourceName: 'references/form.md' }],
      ['load_skill', { skillName: 'secret' }],
      ['read_skill_resource', { skillName: 'pdf', resourceName: 'gone' }],
    );
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual(toolNames(app), ['load_skill', 'read_skill_resource']);
    assert.deepEqual(results(app), [
      'Read references/form.md first.\n\nResources, to be read with read_skill_resource:\n- references/form.md: How to fill in',
      'Fill in 👍',
      'There is no skill of this name here. Skills: pdf.',
      'The skill pdf has no such resource. Resources: references/form.md.',
    ]);
    const calls = (await app.client.runs.tools({ params: { runId } })).body.map(({ toolName, source, succeeded }) => ({
      ...{ tool_name: toolName, source, succeeded: Number(succeeded) },
    }));
    assert.deepEqual(calls, [
      { tool_name: 'load_skill', source: 'skill:pdf', succeeded: 1 },
      { tool_name: 'read_skill_resource', source: 'skill:pdf', succeeded: 1 },
      { tool_name: 'load_skill', source: null, succeeded: 0 },
      { tool_name: 'read_skill_resource', source: 'skill:pdf', succeeded: 0 },
    ]);
  },
);

forEachDurableService('SKILL-23 SKILL-24 a resource that is no text is named and not read', async (open) => {
  const app = await open({ simulator: {} });
  const logo = { name: 'logo.png', mediaType: 'image/png', content: 'AP+JUA==', encoding: 'base64' as const };
  await save(app, skill('pdf', { instructions: 'Go.', resources: [logo] }));
  await app.createAgent(helper(['pdf']));
  asks(
    app,
    ['load_skill', { skillName: 'pdf' }],
    ['read_skill_resource', { skillName: 'pdf', resourceName: 'logo.png' }],
  );
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(results(app), [
    'Go.\n\nResources, to be read with read_skill_resource:\n- logo.png (no text, for scripts only)',
    'logo.png is no text (image/png): only scripts of the skill can use it.',
  ]);
});

forEachDurableService('SKILL-16 an edit reaches the next run without saving the agent', async (open) => {
  const app = await open({ simulator: {} });
  await save(app, skill('pdf', { description: 'First.' }));
  await app.createAgent(helper(['pdf']));
  await runJson(app.client, 'helper', 'Hi');
  assert.match(system(app) ?? '', /- pdf: First\.$/);
  await save(app, skill('pdf', { description: 'Second.' }));
  await runJson(app.client, 'helper', 'Hi');
  assert.match(system(app) ?? '', /- pdf: Second\.$/);
  await save(app, skill('pdf', { enabled: false }));
  await runJson(app.client, 'helper', 'Hi');
  assert.equal(system(app), 'You help Ada.', 'SKILL-15 hidden from the model');
  assert.deepEqual(toolNames(app), []);
});

forEachDurableService('SKILL-16 a run in progress keeps the skill that it was compiled with', async (open) => {
  const gate = new Gate();
  const wait = tool('wait', async () => {
    await gate.pass();
    return 'done';
  });
  const app = await open({ simulator: {}, tools: [wait] });
  await save(app, skill('pdf', { instructions: 'Old text.' }));
  await app.createAgent({ ...helper(['pdf']), toolNames: ['wait'] });
  asks(app, ['wait', {}]);
  asks(app, ['load_skill', { skillName: 'pdf' }]);
  const running = runStream(app.client, 'helper', 'Hi');
  await gate.reached;
  await save(app, skill('pdf', { instructions: 'New text.' }));
  gate.open();
  await running;
  assert.equal(results(app).at(-1), 'Old text.');
});

forEachDurableService('SKILL-12 an agent whose skill was removed does not compile until it is back', async (open) => {
  const app = await open({ simulator: {} });
  await save(app, skill('pdf'));
  await app.createAgent(helper(['pdf']));
  await runJson(app.client, 'helper', 'Hi');
  await app.client.skills.remove({ params: { name: 'pdf' } });
  const problem = await refusal(app.client.runs.start({ params: { name: 'helper' }, body: { message: 'Hi' } }));
  assert.equal(problem.code, 'agent-not-compilable');
  assert.match(JSON.stringify(problem), /There is no skill \\"pdf\\"|There is no skill \\\\"pdf/);
  await save(app, skill('pdf'));
  await runJson(app.client, 'helper', 'Hi');
});

forEachDurableService('SKILL-14 SKILL-15 findings of definitions that name skills', async (open) => {
  const app = await open({ service: { Skills: { MaxSkillsPerAgent: 2 } } });
  await save(app, skill('off', { enabled: false }));
  await save(app, skill('on'));
  const model = { provider: 'demo', model: 'demo-1' };
  const findings = async (skillNames: string[]) => {
    const { body } = await app.client.agents.validate({ body: { name: 'a', model, skillNames } });
    return body.messages.map(({ severity, code, path }) => [severity, code, path]);
  };
  assert.deepEqual(await findings(['on', 'off']), [['Warning', 'skill-disabled', 'skillNames[1]']]);
  assert.deepEqual(await findings(['gone', 'on']), [['Error', 'skill-not-found', 'skillNames[0]']]);
  assert.deepEqual(await findings(['on', 'on']), [['Error', 'duplicate-entry', 'skillNames[1]']]);
  assert.deepEqual(await findings(['on', 'off', 'gone']), [
    ['Error', 'too-many-skills', 'skillNames'],
    ['Warning', 'skill-disabled', 'skillNames[1]'],
  ]);
  const problem = await refusal(app.client.agents.create({ body: { name: 'a', model, skillNames: ['gone'] } }));
  assert.deepEqual([problem.status, problem.code], [400, 'definition-invalid']);
});
