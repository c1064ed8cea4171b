/**
 * `npm run test:sweeps`: breaks the service on purpose, one place at a time, and expects a red test for each.
 * `-- settings` or `-- tenants` for one of the two; `--only <pattern>` for names that it matches, `--from <n>/<m>` for one of m
 * equal parts, `--workers <n>` (as many as cores), `--resume` for what the last run of settings has no verdict of, `--verbose`.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { ensureInstalled } from '../../bin/setup.mjs';
import { startPostgres } from '../postgres.mjs';
import { temporaryFolder } from '../temporary-folder.mjs';
import { settingsSweep } from './settings.sweep.mjs';
import { tenantsSweep } from './tenants.sweep.mjs';

const sweeps = { tenants: tenantsSweep, settings: settingsSweep };
const option = (name, fallback) => {
  const index = process.argv.indexOf(name);
  return index === -1 ? fallback : (process.argv[index + 1] ?? fallback);
};

await ensureInstalled();
const [part, parts] = option('--from', '1/1').split('/').map(Number);
const chosen = Object.keys(sweeps).filter((name) => process.argv.includes(name));
const scratch = mkdtempSync(join(temporaryFolder(), 'acp-sweep-'));
chmodSync(scratch, 0o1777);
// Also when a signal stops it.
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const postgres = await startPostgres({ TMPDIR: scratch });
try {
  const asked = {
    only: new RegExp(option('--only', '')),
    part,
    parts,
    workers: Number(option('--workers', availableParallelism())),
    isResumed: process.argv.includes('--resume'),
    isVerbose: process.argv.includes('--verbose'),
    scratch,
    variables: postgres?.variables ?? {},
  };
  for (const name of chosen.length === 0 ? Object.keys(sweeps) : chosen)
    if (!(await sweeps[name](asked))) process.exitCode = 1;
} finally {
  await postgres?.stop();
}
