import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal } from '../runs/run-calls.ts';
import { save, skill, skillFile, writeFiles } from './skill-bodies.ts';

const on = {
  service: { Skills: { Scripts: { PlatformIsolationAcknowledged: true, Interpreters: { sh: '/bin/sh' } } } },
  host: { SkillScripts: { Register: true } },
};
const withScript = skill('pdf', { scripts: [{ name: 'go', extension: 'sh', content: 'echo' }] });

forEachService('GRANT-1 SCRIPT-3 without the registration a grant is 409, whatever it says', async (open) => {
  const scripts = { Enabled: true, PlatformIsolationAcknowledged: true };
  const app = await open({ service: { Skills: { Scripts: scripts } } });
  const problem = await refusal(
    app.client.grants.create({ body: { skillName: 'gone', expiresAt: '2001-01-01T00:00:00Z' } }),
  );
  assert.deepEqual([problem.status, problem.code], [409, 'script-execution-disabled']);
  for (const body of [{}, { skillName: 7 }, { skillName: 'gone', unknown: true }]) {
    const early = await refusal(app.client.grants.create({ body: body as never }));
    assert.deepEqual([early.status, early.code], [409, 'script-execution-disabled'], JSON.stringify(body));
  }
  assert.ok(app.app.config.warnings.some(({ key }) => key?.includes('Skills:Scripts:Enabled')));
});

forEachService('GRANT-3 GRANT-4 a grant names what is there, and ends in the future', async (open) => {
  const app = await open(on);
  await save(app, withScript);
  const create = (body: Parameters<typeof app.client.grants.create>[0]['body']) =>
    refusal(app.client.grants.create({ body }));
  const past = await create({ skillName: 'pdf', expiresAt: '2001-01-01T00:00:00Z' });
  assert.deepEqual([past.status, past.code], [400, 'expires-at-not-in-future']);
  assert.deepEqual((await create({ skillName: 'gone' })).errors?.[0]?.path, 'skillName');
  assert.deepEqual((await create({ skillName: 'pdf', scriptName: 'gone' })).errors?.[0]?.path, 'scriptName');
  assert.deepEqual((await app.client.grants.list({})).body, []);
});

forEachService('GRANT-5 GRANT-6 GRANT-8 GRANT-9 one grant for each scope, revoked as it was given', async (open) => {
  const app = await open(on);
  await save(app, withScript);
  const whole = (await app.client.grants.create({ body: { skillName: 'pdf' } })).body;
  const one = (await app.client.grants.create({ body: { skillName: 'pdf', scriptName: 'go' } })).body;
  const again = (await app.client.grants.create({ body: { skillName: 'pdf', expiresAt: '2999-01-01T00:00:00Z' } }))
    .body;
  assert.equal(again.expiresAt, '2999-01-01T00:00:00.000Z');
  const listed = async () =>
    (await app.client.grants.list({})).body.map(({ id, revokedAt }) => [id, revokedAt === null]);
  assert.deepEqual(await listed(), [
    [again.id, true],
    [one.id, true],
    [whole.id, false],
  ]);
  const revoke = (scriptName?: string) =>
    app.client.grants.remove({ params: { skillName: 'pdf' }, query: scriptName === undefined ? {} : { scriptName } });
  await revoke('go');
  assert.deepEqual(await listed(), [
    [again.id, true],
    [one.id, false],
    [whole.id, false],
  ]);
  assert.equal((await refusal(revoke('go'))).status, 404);
  await revoke();
  assert.equal((await refusal(revoke())).status, 404);
  assert.deepEqual(
    (await trail(app))
      .filter(({ action }) => action.startsWith('skill-script-grant'))
      .map(({ action, entity }) => [action.split('.')[1], entity.split(':')[1]]),
    [
      ['create', whole.id],
      ['create', one.id],
      ['revoke', whole.id],
      ['create', again.id],
      ['revoke', one.id],
      ['revoke', again.id],
    ],
  );
});

forEachService('SKILL-13 the grants of a skill go with it, with an entry each', async (open) => {
  const app = await open(on);
  await save(app, withScript);
  await app.client.grants.create({ body: { skillName: 'pdf' } });
  await app.client.grants.create({ body: { skillName: 'pdf', scriptName: 'go' } });
  await app.client.skills.remove({ params: { name: 'pdf' } });
  await save(app, withScript);
  assert.ok((await app.client.grants.list({})).body.every(({ revokedAt }) => revokedAt !== null));
  assert.equal((await trail(app)).filter(({ action }) => action === 'skill-script-grant.revoke').length, 2);
});

forEachDurableService('GRANT-10 without its entry nothing is granted or revoked', async (open) => {
  const app = await open(on);
  await save(app, withScript);
  await app.client.grants.create({ body: { skillName: 'pdf' } });
  await app.store.refuse('audit entries');
  const create = await refusal(app.client.grants.create({ body: { skillName: 'pdf', scriptName: 'go' } }));
  assert.deepEqual([create.status, create.code], [503, 'audit-unavailable']);
  const revoke = await refusal(app.client.grants.remove({ params: { skillName: 'pdf' } }));
  assert.deepEqual([revoke.status, revoke.code], [503, 'audit-unavailable']);
  assert.equal((await refusal(app.client.skills.remove({ params: { name: 'pdf' } }))).code, 'audit-unavailable');
  assert.deepEqual(
    (await app.client.grants.list({})).body.map(({ scriptName, revokedAt }) => [scriptName, revokedAt]),
    [[null, null]],
  );
});

forEachService(
  'SKILL-11 SKILL-18 SKILL-19 SKILL-20 SKILL-21 host skills serve agents and are out of reach of the API',
  async (open, t) => {
    const root = mkdtempSync(join(tmpdir(), 'acp-host-skills-'));
    t.after(() => rmSync(root, { recursive: true, force: true }));
    const { symlinkSync } = await import('node:fs');
    writeFiles(root, {
      'office/pdf/SKILL.md': skillFile('pdf', 'Read references/deep/form.md.\r\n'),
      'office/pdf/references/deep/form.md': 'Grüezi\r\n',
      'office/pdf/scripts/go.sh': 'echo hi\n',
      'office/pdf/scripts/lib/part.sh': 'echo part\n',
      'office/pdf/logo.png': Buffer.from([0x89, 0x50, 0, 1]),
      'wrong/SKILL.md': skillFile('other'),
      'bare/SKILL.md': 'no frontmatter',
      'a/b/deep/SKILL.md': skillFile('deep'),
    });
    symlinkSync('/etc/passwd', join(root, 'office/pdf/references/passwd.md'));
    const Scripts = { ...on.service.Skills.Scripts, SkillRoots: [root] };
    const app = await open({ service: { Skills: { Scripts } }, host: on.host });
    assert.deepEqual((await app.client.skills.list({})).body, []);
    assert.equal((await refusal(app.client.skills.get({ params: { name: 'pdf' } }))).status, 404);
    assert.equal((await refusal(save(app, skill('pdf')))).code, 'skill-code-defined');
    assert.equal((await refusal(app.client.skills.remove({ params: { name: 'pdf' } }))).code, 'skill-code-defined');
    const rules = app.log.filter(({ level }) => level === 'warn').map(({ fields }) => fields['file'] ?? fields['rule']);
    assert.ok(rules.includes('references/passwd.md') && !rules.includes('logo.png'));
    assert.equal(rules.filter((rule) => String(rule).startsWith('SKILL.md:')).length, 2);
    const model = { provider: 'demo', model: 'demo-1' };
    const { body } = await app.client.agents.validate({
      body: { name: 'a', model, skillNames: ['pdf', 'deep', 'other'] },
    });
    assert.deepEqual(
      body.messages.map(({ path }) => path),
      ['skillNames[1]', 'skillNames[2]'],
      'deeper than SearchDepth, and with another name than the folder',
    );
    assert.equal((await app.client.grants.create({ body: { skillName: 'pdf', scriptName: 'go' } })).status, 201);
  },
);
