import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type OpenApp, overHttp, type TestApp } from '../../support/app.ts';
import { calls, openApprovals, toolTexts } from '../approvals/approval-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { save, skill, skillFile, writeFiles } from './skill-bodies.ts';

const scripts = {
  home: 'printenv HOME || echo "home is not there"\n',
  fails: 'false\necho "it goes on"\n',
  chatters: `printf '%s' ${'x'.repeat(100)}\n`,
  reads: 'cat\n',
  sleeps: 'sleep 20\n',
};

const openScripts = async (open: OpenApp, settings: object, contents: Record<string, string> = scripts) => {
  const app = await openApprovals(open, {
    service: {
      Skills: {
        Scripts: {
          PlatformIsolationAcknowledged: true,
          AllowStoredScripts: true,
          Interpreters: { sh: '/bin/sh' },
          ...settings,
        },
      },
    },
    host: { SkillScripts: { Register: true } },
    tools: [],
    module: { approvalPolicy: { decide: async () => 'NotRequired' } },
  });
  const parametersSchema = '{"type":"object"}';
  const entries = Object.entries(contents).map(([name, content]) => ({ name, extension: 'sh', content }));
  await save(app, skill('pdf', { scripts: entries.map((script) => ({ ...script, parametersSchema })) }));
  await app.createAgent({ name: 'clerk', model: { provider: 'local', model: 'any' }, skillNames: ['pdf'] });
  await app.client.grants.create({ body: { skillName: 'pdf' } });
  return app;
};

/** What the model gets of the script. */
const resultOf = async (app: TestApp, scriptName: string, args: object = {}): Promise<string> => {
  const call = { skillName: 'pdf', scriptName, arguments: args };
  await runJson(app.client, 'clerk', { message: calls(['run_skill_script', call]) });
  return toolTexts(app.simulator.lastRequest()).at(-1) ?? '';
};

overHttp('SCRIPT-8 SCRIPT-9 SCRIPT-13 SCRIPT-15 SCRIPT-19 a script gets what is configured for it', async (open) => {
  const app = await openScripts(open, {
    Interpreters: { sh: { Command: '/bin/sh', Arguments: ['-e'] } },
    EnvironmentAllowList: ['PATH'],
    MaxOutputBytes: 64,
    MaxArgumentBytes: 32,
  });
  assert.match(await resultOf(app, 'home'), /home is not there/);
  const failed = await resultOf(app, 'fails');
  assert.match(failed, /^exit_code: 1\n/);
  assert.doesNotMatch(failed, /it goes on/);
  assert.match(await resultOf(app, 'chatters'), /\nx{64}\n.*\[output truncated: 36 bytes omitted\]/s);
  assert.match(await resultOf(app, 'reads', { n: 1 }), /^exit_code: 0\n/);
  assert.equal(await resultOf(app, 'reads', { text: 'x'.repeat(32) }), 'The script could not be run.');
});

overHttp('SCRIPT-18 a script is ended after the configured time', async (open) => {
  const app = await openScripts(open, { Timeout: '50ms' });
  assert.match(await resultOf(app, 'sleeps'), /timed out after 50 ms/);
});

overHttp('SCRIPT-11 as many scripts run side by side as is configured', async (open, t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-scripts-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const count = 9;
  const meets = `
touch ${folder}/$$-$(basename "$ACP_SKILL_TEMP")
tries=0
while [ "$(ls ${folder} | wc -l)" -lt ${count} ]; do
  tries=$((tries + 1))
  [ "$tries" -gt 400 ] && exit 7
  sleep 0.02
done
`;
  const app = await openScripts(open, { MaxConcurrentPerTenant: count, MaxConcurrentTotal: count }, { meets });
  const call = { skillName: 'pdf', scriptName: 'meets', arguments: {} };
  const message = calls(['run_skill_script', call]);
  await Promise.all(Array.from({ length: count }, () => runJson(app.client, 'clerk', { message })));
  const results = app.simulator.requests.flatMap(toolTexts);
  assert.deepEqual(
    results.map((text) => text.split('\n')[0]),
    Array.from({ length: count }, () => 'exit_code: 0'),
  );
});

overHttp('SKILL-18 folders of skills are searched as deep as is configured', async (open, t) => {
  const root = mkdtempSync(join(tmpdir(), 'acp-host-skills-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFiles(root, {
    'one/SKILL.md': skillFile('one'),
    'a/two/SKILL.md': skillFile('two'),
    'a/b/three/SKILL.md': skillFile('three'),
    'a/b/c/four/SKILL.md': skillFile('four'),
  });
  const app = await open({ service: { Skills: { Scripts: { SkillRoots: [root], SearchDepth: 3 } } } });
  const isFound = async (name: string): Promise<boolean> => {
    const created = app.createAgent({ name: `with-${name}`, skillNames: [name] });
    return created.then(
      () => true,
      () => false,
    );
  };
  assert.deepEqual(await Promise.all(['one', 'two', 'three', 'four'].map(isFound)), [true, true, true, false]);
});
