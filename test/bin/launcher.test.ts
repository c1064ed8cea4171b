import assert from 'node:assert/strict';
import { type ExecFileException, execFile } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';

const repository = resolve(import.meta.dirname, '../..');

/** Stands in for npm: "installs" the Node that runs this test, and counts its calls. */
const npm = `#!/usr/bin/env node
import { appendFileSync, cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
if (process.env.NPM_FAILS) { console.error('the registry is on fire'); process.exit(7); }
appendFileSync(join(process.cwd(), 'npm.log'), process.argv.slice(2).join(' ') + '\\n');
const { pinnedNode } = await import(join(process.cwd(), 'bin/setup.mjs'));
for (const link of [pinnedNode(), join(process.cwd(), 'node_modules/.bin/node')]) {
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(process.execPath, link);
}
cpSync('package-lock.json', 'node_modules/.package-lock.json');
`;

/** Stands in for the build: the program prints what it was called with. */
const build = `
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
appendFileSync('build.log', 'built\\n');
mkdirSync('dist', { recursive: true });
writeFileSync('dist/acp.mjs', 'console.log(JSON.stringify(process.argv.slice(2)))');
`;

const lock = (version: string) =>
  JSON.stringify({ packages: { '': {}, 'node_modules/dependency': { version, integrity: 'sha512-x' } } });

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe('bin/acp', () => {
  let home: string;
  let clone: string;

  const start = (args: readonly string[], options: { readonly via?: string; readonly env?: object } = {}) =>
    new Promise<Outcome>((done) => {
      const env = { PATH: `${join(home, 'tools')}:/usr/bin:/bin`, ...options.env };
      const cwd = realpathSync(tmpdir());
      const finish = (error: ExecFileException | null, stdout: string, stderr: string) =>
        done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      execFile(options.via ?? join(clone, 'bin/acp'), args, { cwd, env, encoding: 'utf8' }, finish);
    });
  const count = (log: string) =>
    existsSync(join(clone, log)) ? readFileSync(join(clone, log), 'utf8').trim().split('\n').length : 0;
  /** As an edit after the build: the file's time is what counts. */
  const edit = (path: string, text: string) => {
    appendFileSync(join(clone, path), text);
    const later = new Date(Date.now() + 2000);
    utimesSync(join(clone, path), later, later);
  };

  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'acp launcher ')));
    clone = join(home, 'my clone');
    for (const folder of ['tools', 'my clone/src', 'my clone/migrations', 'my clone/assets'])
      mkdirSync(join(home, folder), { recursive: true });
    cpSync(join(repository, 'bin'), join(clone, 'bin'), { recursive: true });
    writeFileSync(join(clone, 'package.json'), '{"type":"module"}');
    writeFileSync(join(clone, 'package-lock.json'), lock('1.0.0'));
    writeFileSync(join(clone, 'build.mjs'), build);
    writeFileSync(join(clone, 'src/main.ts'), '');
    // An ES module needs its ending or a package.json; npm itself has neither.
    writeFileSync(join(home, 'tools/npm.mjs'), npm);
    writeFileSync(join(home, 'tools/npm'), `#!/bin/sh\nexec node "${join(home, 'tools/npm.mjs')}" "$@"\n`);
    chmodSync(join(home, 'tools/npm'), 0o755);
    symlinkSync(process.execPath, join(home, 'tools/node'));
  });

  afterEach(() => rmSync(home, { recursive: true, force: true }));

  test('the first start installs and builds, the second does neither', async () => {
    const first = await start(['run', 'a b', '']);
    assert.deepEqual(first, { code: 0, stdout: '["run","a b",""]\n', stderr: first.stderr });
    assert.match(first.stderr, /installing dependencies[^\n]*\nacp: building\n$/);
    assert.deepEqual(await start(['--help']), { code: 0, stdout: '["--help"]\n', stderr: '' });
    assert.deepEqual([count('npm.log'), count('build.log')], [1, 1]);
  });

  test('a link in another folder starts the same clone', async () => {
    mkdirSync(join(home, 'links'));
    symlinkSync('../my clone/bin/acp', join(home, 'links/acp'));
    const { code, stdout } = await start(['x'], { via: join(home, 'links/acp') });
    assert.deepEqual([code, stdout], [0, '["x"]\n']);
  });

  test('starts at the same time set up once', async () => {
    const outcomes = await Promise.all(['1', '2', '3', '4'].map((name) => start([name])));
    assert.deepEqual(
      outcomes.map(({ code, stdout }) => [code, stdout]),
      [1, 2, 3, 4].map((name) => [0, `["${name}"]\n`]),
    );
    assert.deepEqual([count('npm.log'), count('build.log')], [1, 1]);
    assert.equal(existsSync(join(clone, 'dist/.setup.lock')), false);
  });

  test('a changed source builds again, a changed lock file installs again', async () => {
    await start([]);
    edit('src/main.ts', '// changed');
    await start([]);
    assert.deepEqual([count('npm.log'), count('build.log')], [1, 2]);
    rmSync(join(clone, 'node_modules/.bin/node'));
    rmSync(join(clone, 'node_modules'), { recursive: true });
    writeFileSync(join(clone, 'package-lock.json'), lock('1.0.1'));
    assert.equal((await start(['y'])).stdout, '["y"]\n');
    assert.equal(count('npm.log'), 2);
  });

  test('what npm installed by hand is taken as it is', async () => {
    await start([]);
    rmSync(join(clone, 'node_modules/.acp-lock'));
    assert.equal((await start(['z'])).stdout, '["z"]\n');
    assert.equal(count('npm.log'), 1);
  });

  test('a set-up that was killed does not block the next', async () => {
    mkdirSync(join(clone, 'dist'));
    // No process has this id: it is above what any system hands out.
    writeFileSync(join(clone, 'dist/.setup.lock'), '999999999');
    assert.equal((await start(['w'])).stdout, '["w"]\n');
  });

  test('a failed installation shows what npm said and starts nothing', async () => {
    const { code, stdout, stderr } = await start([], { env: { NPM_FAILS: '1' } });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /the registry is on fire/);
    assert.match(stderr, /`npm ci [^`]*` failed: exit code 7/);
    assert.equal(existsSync(join(clone, 'dist/.setup.lock')), false);
  });

  test('without Node the error says what is needed', async () => {
    const bare = join(home, 'bare');
    mkdirSync(bare);
    for (const tool of ['readlink', 'dirname', 'cmp', 'find']) symlinkSync(join('/usr/bin', tool), join(bare, tool));
    const { code, stderr } = await start([], { env: { PATH: bare } });
    assert.deepEqual([code, stderr], [1, 'acp: Node 20 or newer with npm is needed to set up this clone.\n']);
  });

  test('the exit code is the one of the program', async () => {
    writeFileSync(join(clone, 'build.mjs'), build.replace('console.log', 'process.exitCode = 5; console.log'));
    assert.equal((await start(['v'])).code, 5);
  });
});
