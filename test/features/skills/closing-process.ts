import { existsSync } from 'node:fs';
import { findIsolation } from '../../../src/features/skills/script-isolation.ts';
import { runScriptProcess } from '../../../src/features/skills/script-process.ts';
import { skillContent } from '../../../src/features/skills/skills.content.ts';

// Permissions do not bind the superuser, so that the process first becomes somebody else, after everything is loaded.
const [withNamespace = ''] = process.argv.slice(2);
const nobody = 65_534;
process.chdir('/');
if (process.getuid?.() === 0) {
  process.setgroups?.([]);
  process.setgid?.(nobody);
  process.setuid?.(nobody);
}
const source = 'pwd; mkdir -p a/b; echo x > a/b/c; ln -s / a/root; chmod 0 a/b a .\n';
const content = skillContent({
  name: 'closing',
  description: 'Closes its folder.',
  instructions: 'Go.',
  scripts: [{ name: 'go', extension: 'sh', content: source }],
});
const [script] = content.scripts;
if (script === undefined) throw new Error('The skill has a script.');
const warnings: unknown[] = [];
const end = await runScriptProcess(
  {
    skill: { ...content, origin: 'host', fingerprint: 'f' },
    script,
    interpreter: { Command: '/bin/sh', Arguments: [] },
    input: '{}',
    signal: new AbortController().signal,
  },
  {
    timeoutMs: 20_000,
    maxOutputBytes: 1000,
    environment: { PATH: '/usr/bin:/bin' },
    isolation: withNamespace === 'yes' ? await findIsolation() : null,
    log: { warn: (fields) => warnings.push(fields) },
  },
);
const folder = end.kind === 'exited' ? (end.text.split('\n')[2] ?? '') : '';
process.stdout.write(JSON.stringify({ end, folder, exists: existsSync(folder), warnings }));
