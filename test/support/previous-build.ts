import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';

/**
 * The version before this one, which works beside it on one store. Whoever releases a version writes its commit here, and
 * names what the migrations since then work from.
 */
const previousCommit = 'c0fd6b0';

const root = resolve(import.meta.dirname, '../..');
const cache = join(root, 'node_modules', '.cache', 'acp-previous');

/** Why the previous version cannot be built here; null: it can. */
export const whyNoPreviousBuild = (): string | null => {
  if (existsSync(join(cache, previousCommit, 'dist', 'acp.mjs'))) return null;
  const { status } = spawnSync('git', ['cat-file', '-e', `${previousCommit}^{commit}`], { cwd: root, stdio: 'ignore' });
  return status === 0
    ? null
    : `the history of this clone does not reach back to ${previousCommit}, the previous version`;
};

/** Its bundle, as it is started; built once for each clone. Throws where `whyNoPreviousBuild` has a reason. */
export const previousBuild = (): readonly [command: string, file: string] => {
  const folder = join(cache, previousCommit);
  const file = join(folder, 'dist', 'acp.mjs');
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    const making = mkdtempSync(join(cache, 'making-'));
    const archive = join(making, 'sources.tar');
    execFileSync('git', ['archive', '--output', archive, previousCommit], { cwd: root });
    execFileSync('tar', ['-xf', archive, '-C', making]);
    rmSync(archive);
    symlinkSync(join(root, 'node_modules'), join(making, 'node_modules'));
    // It is built with what is installed here. By its own lock it would install that, over the packages of this run.
    copyFileSync(join(root, 'package-lock.json'), join(making, 'package-lock.json'));
    execFileSync(process.execPath, ['build.mjs', 'bundle'], { cwd: making, stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      renameSync(making, folder);
    } catch {
      // Another process was quicker, with the same.
      rmSync(making, { recursive: true, force: true });
    }
  }
  return [process.execPath, file];
};
