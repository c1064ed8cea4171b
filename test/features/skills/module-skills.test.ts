import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '../../../src/core/config/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { save, skill, skillFile, writeFiles } from './skill-bodies.ts';

const house = {
  name: 'house-style',
  description: 'How we write.',
  instructions: 'Short sentences.',
  resources: [{ name: 'words.md', content: 'Never "leverage".' }],
};

forEachDurableService('SKILL-18 SKILL-11 SKILL-21 a module registers a skill for every tenant', async (open, t) => {
  const root = mkdtempSync(join(tmpdir(), 'acp-host-skills-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFiles(root, { 'house-style/SKILL.md': skillFile('house-style', 'Long sentences.') });
  const app = await open({
    service: { Skills: { Scripts: { SkillRoots: [root] } } },
    simulator: {},
    module: { skills: [house] },
    agents: [{ name: 'writer', model: { provider: 'local', model: 'any' }, skillNames: ['house-style'] }],
  });
  app.simulator.enqueue({
    answer: { toolCalls: [{ id: 'c', name: 'load_skill', arguments: '{"skillName":"house-style"}' }] },
  });
  await runJson(app.client, 'writer', 'Write');
  const { messages } = app.simulator.lastRequest().body as { messages: { role: string; content: string }[] };
  assert.match(messages.find(({ role }) => role === 'system')?.content ?? '', /- house-style: How we write\./);
  assert.match(messages.at(-1)?.content ?? '', /^Short sentences\.\n\nResources.*\n- words\.md$/);
  assert.ok(
    app.log.some(({ fields }) => fields['rule'] === 'name is that of an earlier one'),
    'the folder of the same name is left out, and the log says so',
  );
  assert.deepEqual((await app.client.skills.list({})).body, []);
  assert.equal((await refusal(app.client.skills.get({ params: { name: 'house-style' } }))).status, 404);
  assert.equal((await refusal(save(app, skill('house-style')))).code, 'skill-code-defined');
});

forEachDurableService(
  'SKILL-11 SKILL-21 a host skill hides a stored one of its name, which can still be removed',
  async (open) => {
    const writer = { name: 'writer', model: { provider: 'local', model: 'any' }, skillNames: ['house-style'] };
    const first = await open({ simulator: {} });
    await save(first, skill('house-style', { instructions: 'Stored text.', description: 'Of the tenant.' }));
    await first.close();
    const app = await open({ folder: first.folder, simulator: {}, module: { skills: [house] }, agents: [writer] });
    const params = { name: 'house-style' };
    const prompt = async () => {
      await runJson(app.client, 'writer', 'Write');
      const { messages } = app.simulator.lastRequest().body as { messages: { role: string; content: string }[] };
      return messages.find(({ role }) => role === 'system')?.content ?? '';
    };
    assert.match(await prompt(), /- house-style: How we write\./);
    // Those who look after stored skills go on seeing theirs; it cannot be saved again.
    assert.equal((await app.client.skills.get({ params })).body.instructions, 'Stored text.');
    assert.deepEqual(
      (await app.client.skills.list({})).body.map(({ name }) => name),
      ['house-style'],
    );
    assert.equal((await refusal(save(app, skill('house-style')))).code, 'skill-code-defined');
    assert.equal((await app.client.skills.remove({ params })).status, 204);
    assert.deepEqual((await app.client.skills.list({})).body, []);
    const again = await refusal(app.client.skills.remove({ params }));
    assert.deepEqual([again.status, again.code], [409, 'skill-code-defined']);
    assert.match(await prompt(), /- house-style: How we write\./);
  },
);

forEachDurableService(
  'CONF-14 SKILL-19 module skills that break a rule stop the start, all in one report',
  async (open) => {
    const scripts = [{ name: 'go', extension: 'sh', content: '' }];
    const faulty: unknown[] = [
      { ...house, name: 'A b', description: '' },
      { ...house, name: 'wrong', resources: 'none', more: 1 },
      { ...house, name: 'empty-script', scripts },
      { ...house, name: 'code', license: () => 'MIT' },
    ];
    const start = open({ module: { skills: faulty as (typeof house)[] } });
    const lines = await start.then(
      () => assert.fail('the service started'),
      (error: Error) => {
        assert.equal(error.name, 'ModuleSkillsError');
        return error.message.split('\n').map((line) => line.replace(/^.*\.mjs /, ''));
      },
    );
    assert.equal(lines[0], `The skills of the modules have ${lines.length - 1} problems:`);
    assert.deepEqual(
      lines.slice(1).map((line) =>
        line
          .split(' ')
          .slice(0, line.startsWith('(A b)') ? 3 : 2)
          .join(' '),
      ),
      [
        '(A b): name',
        '(A b): description',
        '(wrong): more',
        '(wrong): resources',
        '(empty-script): scripts[0].content',
        '(code): is',
      ],
    );
  },
);

forEachDurableService(
  'SKILL-18 a folder of SkillRoots that is missing stops the start and names the setting',
  async (open) => {
    await assert.rejects(open({ service: { Skills: { Scripts: { SkillRoots: ['/nowhere/skills'] } } } }), {
      name: 'SkillRootError',
      message: 'Service:Skills:Scripts:SkillRoots: /nowhere/skills is no folder that can be read.',
    });
  },
);

forEachDurableService(
  'SCRIPT-2 SCRIPT-5 scripts are not switched on without the word that the platform isolates',
  async (open) => {
    const acknowledged = 'Service:Skills:Scripts:PlatformIsolationAcknowledged';
    for (const [setup, key] of [
      [{ host: { SkillScripts: { Register: true } } }, 'Host:SkillScripts:Register'],
      [{ service: { Skills: { Scripts: { Enabled: true } } } }, 'Service:Skills:Scripts:Enabled'],
    ] as const)
      await assert.rejects(open(setup), (error) => {
        assert.ok(error instanceof ConfigError);
        const [problem, more] = error.problems;
        assert.equal(more, undefined);
        assert.ok(problem?.key === key && problem.message.includes(acknowledged), error.report());
        return true;
      });
  },
);

forEachDurableService('SKILL-19 a file beside SKILL.md says what it has no place for', async (open, t) => {
  const root = mkdtempSync(join(tmpdir(), 'acp-host-skills-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const about = {
    resources: { 'form.md': { description: 'How to fill in' } },
    scripts: { 'scripts/go.sh': { name: 'start', description: 'Starts it', parametersSchema: { type: 'object' } } },
  };
  writeFiles(root, {
    'pdf/SKILL.md': skillFile('pdf', 'Body.'),
    'pdf/form.md': 'Form',
    'pdf/scripts/go.sh': 'echo',
    'pdf/acp-skill.yaml': JSON.stringify(about),
    'off/SKILL.md': skillFile('off'),
    'off/acp-skill.yaml': 'enabled: false',
    'wrong/SKILL.md': skillFile('wrong'),
    'wrong/acp-skill.yaml': 'resources: { gone.md: { description: x } }',
  });
  const app = await open({ service: { Skills: { Scripts: { SkillRoots: [root] } } }, simulator: {} });
  await app.createAgent({ name: 'a', model: { provider: 'local', model: 'any' }, skillNames: ['pdf', 'off'] });
  app.simulator.enqueue({ answer: { toolCalls: [{ id: 'c', name: 'load_skill', arguments: '{"skillName":"pdf"}' }] } });
  await runJson(app.client, 'a', 'Hi');
  const { messages } = app.simulator.lastRequest().body as { messages: { role: string; content: string }[] };
  const loaded = messages.at(-1)?.content ?? '';
  assert.match(loaded, /- form\.md: How to fill in/);
  assert.match(loaded, /- start: Starts it \(arguments: \{"type":"object"\}\)/);
  assert.ok(!loaded.includes('acp-skill.yaml'), 'it is no resource');
  assert.ok(!(messages[0]?.content ?? '').includes('- off'));
  const rules = app.log.map(({ fields }) => String(fields['rule'] ?? ''));
  assert.ok(
    rules.some((rule) => rule.includes('acp-skill.yaml') && rule.includes('gone.md')),
    rules.join('\n'),
  );
});
