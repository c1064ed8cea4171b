import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const source = [
  '---\r\n# kept as it is\r\ndescription: "Works: on files"\r\nname: pdf\r\nlicense: MIT\r\n',
  'allowed-tools: [Read, Bash]\r\nversion: 1.0\r\nmetadata: { author: Zoë, level: 2 }\r\n---\r\n\r\n# Hallo Zürich 👋\r\n',
].join('');

test('skills apply is idempotent, and export gives the folder back byte for byte', async (t) => {
  const folder = createFolder(t);
  const files: Record<string, string> = {
    'pdf/SKILL.md': source,
    'pdf/references/deep/form.md': '\uFEFFGrüezi\r\n',
    'pdf/data.json': '{}',
  };
  for (const [path, text] of Object.entries(files)) folder.write(path, text);
  await folder.serve();
  const apply = async () => JSON.parse((await folder.acp(['skills', 'apply', 'pdf', '--json'])).stdout)[0];
  assert.deepEqual(await apply(), { name: 'pdf', action: 'created', version: 1, notes: [] });
  assert.equal((await apply()).action, 'unchanged');
  const { code, stderr } = await folder.acp(['skills', 'export', 'pdf', '-o', 'out']);
  assert.equal(code, 0, stderr);
  for (const [path, text] of Object.entries(files))
    assert.equal(readFileSync(join(folder.path, path.replace(/^pdf/, 'out')), 'utf8'), text, path);
  assert.equal((await folder.acp(['skills', 'export', 'pdf', '-o', 'out'])).code, 2);
});

test('skills apply takes a folder of skill folders, and tells what a skill cannot hold', async (t) => {
  const folder = createFolder(t);
  const skill = (name: string) => `---\nname: ${name}\ndescription: Works.\n---\nGo.\n`;
  folder.write('skills/one/SKILL.md', skill('one'));
  writeFileSync(join(folder.path, 'skills/one/logo.png'), new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x00]));
  folder.write('skills/one/.env', 'TOKEN=x');
  folder.write('skills/one/node_modules/x/index.js', 'x');
  folder.write('skills/group/two/SKILL.md', skill('two'));
  folder.write('skills/group/two/nested/SKILL.md', skill('nested'));
  folder.write('skills/.git/three/SKILL.md', skill('three'));
  await folder.serve();
  const { code, stdout, stderr } = await folder.acp(['skills', 'apply', 'skills', '--json']);
  assert.equal(code, 0, stderr);
  const outcomes = JSON.parse(stdout) as { name: string; action: string; notes: string[] }[];
  assert.deepEqual(
    outcomes.map(({ name, action }) => `${action} ${name}`),
    ['created two', 'created one'],
  );
  assert.deepEqual(outcomes[1]?.notes.map((note) => note.split(':')[0]).sort(), [
    '.env is left out',
    'node_modules is left out',
  ]);
  assert.deepEqual((await folder.acp(['skills', 'apply', 'skills'])).stdout.split('\n').slice(0, 2), [
    'unchanged  two  version 1',
    'unchanged  one  version 1',
  ]);

  folder.write('skills/one/scripts/run.py', '#!/usr/bin/env python3\nprint()\n');
  folder.write('skills/one/scripts/go.sh', 'true\n');
  const kept = await folder.acp(['skills', 'apply', 'skills']);
  assert.equal(kept.code, 0, kept.stderr);
  assert.equal(kept.stdout, 'unchanged  two  version 1\nupdated    one  version 2\n');
  const lines = kept.stderr.split('\n').filter((line) => line.includes('scripts/'));
  assert.deepEqual(lines, [
    'note: one: scripts/go.sh, scripts/run.py can be read and not run: there is no Service:Skills:Scripts:Interpreters entry for sh, py.',
  ]);
  assert.match((await folder.acp(['skills', 'apply', 'skills'])).stdout, /unchanged {2}one {2}version 2\n$/);
  const stored = JSON.parse((await folder.acp(['skills', 'get', 'one', '--json'])).stdout);
  assert.deepEqual(
    [stored.scripts, stored.resources.map(({ name }: { name: string }) => name)],
    [[], ['logo.png', 'scripts/go.sh', 'scripts/run.py']],
  );
  assert.equal((await folder.acp(['skills', 'export', 'one', '-o', 'back'])).code, 0);
  for (const path of ['logo.png', 'scripts/go.sh', 'scripts/run.py'])
    assert.deepEqual(
      readFileSync(join(folder.path, 'back', path)),
      readFileSync(join(folder.path, 'skills/one', path)),
    );
  assert.equal(statSync(join(folder.path, 'back')).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder.path, 'back/scripts/run.py')).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder.path, 'back/logo.png')).mode & 0o777, 0o600);

  folder.write('skills/twin/SKILL.md', skill('two'));
  const twins = await folder.acp(['skills', 'apply', 'skills']);
  assert.deepEqual([twins.code, twins.stdout], [2, '']);
  assert.match(twins.stderr, /skills\/group\/two and skills\/twin are both the skill "two"; nothing was saved/);
  const none = await folder.acp(['skills', 'apply', 'skills/one/node_modules']);
  assert.match(none.stderr, /There is no SKILL\.md, neither there nor at most 2 folders below/);
});

test('skills apply: one folder that is refused does not stop the others, and each is told with its setting', async (t) => {
  const folder = createFolder(t);
  const skill = (name: string, text = 'Go.\n') => `---\nname: ${name}\ndescription: Works.\n---\n${text}`;
  folder.write('skills/a-broken/SKILL.md', 'No frontmatter.\n');
  folder.write('skills/b-long/SKILL.md', skill('b-long', 'x'.repeat(70_000)));
  for (let index = 0; index < 21; index += 1) folder.write(`skills/c-many/${index}.md`, 'x');
  folder.write('skills/c-many/SKILL.md', skill('c-many'));
  folder.write('skills/d-fine/SKILL.md', skill('d-fine'));
  await folder.serve();
  const refused = await folder.acp(['skills', 'apply', 'skills']);
  assert.equal(refused.code, 2);
  assert.equal(refused.stdout, 'created    d-fine  version 1\n');
  assert.match(refused.stderr, /3 skills were refused:/);
  assert.match(refused.stderr, /skills\/a-broken: must start with a line of ---/);
  assert.match(
    refused.stderr,
    /instructions must have at most 65536 bytes \(Service:Skills:MaxInstructionsLength\), and has 70000/,
  );
  assert.match(refused.stderr, /at most 20 entries \(Service:Skills:MaxResourcesPerSkill\), and has 21/);
});

test('what acp init writes fits a public skill, and a bare file keeps the defaults', async (t) => {
  const folder = createFolder(t);
  folder.write('big/SKILL.md', '---\nname: big\ndescription: Works.\n---\nGo.\n');
  for (let index = 0; index < 60; index += 1) folder.write(`big/fonts/${index}.md`, 'x'.repeat(10_000));
  folder.write('big/schema.xsd', 'x'.repeat(300_000));
  assert.equal((await folder.acp(['skills', 'apply', 'big'])).code, 2);
  assert.equal((await folder.acp(['init', 'new'])).code, 0);
  const config = ['--config', join(folder.path, 'new/service.yaml')];
  const fits = await folder.acp(['skills', 'apply', 'big', ...config]);
  assert.equal(fits.code, 0, fits.stderr);
  rmSync(join(folder.path, 'new'), { recursive: true });
});

test('skills apply takes YAML documents too, and with --dry-run writes nothing', async (t) => {
  const folder = createFolder(t);
  const yaml =
    'name: one\ndescription: First.\ninstructions: Go.\n---\nname: two\ndescription: Second.\ninstructions: Go.\n';
  folder.write('skills.yaml', yaml);
  await folder.serve();
  const apply = async (...more: string[]) => {
    const { code, stdout, stderr } = await folder.acp(['skills', 'apply', 'skills.yaml', '--json', ...more]);
    assert.equal(code, 0, stderr);
    return (JSON.parse(stdout) as { name: string; action: string; version: number }[]).map(
      ({ name, action, version }) => `${action} ${name} ${version}`,
    );
  };
  const names = async () =>
    (JSON.parse((await folder.acp(['skills', 'list', '--json'])).stdout) as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(await apply('--dry-run'), ['created one 1', 'created two 1']);
  assert.deepEqual(await names(), []);
  assert.deepEqual(await apply(), ['created one 1', 'created two 1']);
  folder.write('skills.yaml', yaml.replace('Second.', 'Changed.'));
  assert.deepEqual(await apply('--dry-run'), ['unchanged one 1', 'updated two 2']);
  assert.deepEqual(await apply(), ['unchanged one 1', 'updated two 2']);
  folder.write('skills.yaml', 'name: Bad Name\ndescription: x\ninstructions: y\n');
  const { code, stderr } = await folder.acp(['skills', 'apply', 'skills.yaml']);
  assert.equal(code, 2);
  assert.match(stderr, /name/);
  assert.deepEqual(await names(), ['one', 'two']);
});

test('grants add, list and revoke', async (t) => {
  const folder = createFolder(t);
  folder.write('pdf/SKILL.md', '---\nname: pdf\ndescription: Works.\n---\nGo.\n');
  folder.write('pdf/scripts/go.sh', 'echo\n');
  const scripts = 'Service:Skills:Scripts';
  const set = ['Host:SkillScripts:Register=true', `${scripts}:PlatformIsolationAcknowledged=true`];
  set.push(`${scripts}:Interpreters:sh=/bin/sh`);
  await folder.serve(set.flatMap((pair) => ['--set', pair]));
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await folder.acp([...args, '--json']);
    assert.equal(code, 0, stderr);
    return stdout === '' ? null : JSON.parse(stdout);
  };
  await json('skills', 'apply', 'pdf');
  const added = await json('grants', 'add', 'pdf', '--script', 'go', '--expires', '30d');
  assert.deepEqual([added.skillName, added.scriptName], ['pdf', 'go']);
  assert.equal(Math.round((Date.parse(added.expiresAt) - Date.now()) / 86_400_000), 30);
  assert.equal((await json('grants', 'add', 'pdf')).expiresAt, null);
  const { stdout } = await folder.acp(['grants', 'list']);
  assert.match(stdout, /skillName|SKILL/i);
  assert.match(stdout, /pdf +go/);
  assert.equal((await folder.acp(['grants', 'revoke', 'pdf', '--script-name', 'go'])).code, 0);
  const left = (await json('grants', 'list')) as { scriptName: string | null; revokedAt: string | null }[];
  assert.deepEqual(
    left.map(({ scriptName, revokedAt }) => [scriptName, revokedAt === null]),
    [
      [null, true],
      ['go', false],
    ],
  );
  const again = await folder.acp(['grants', 'revoke', 'pdf', '--script-name', 'go']);
  assert.notEqual(again.code, 0);
  const unknown = await folder.acp(['grants', 'add', 'nobody']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /skillName/);
});
