import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { cacheFolder, extractFile } from '../../src/core/asset-extraction.ts';

const content = Buffer.from('the library');
const source = pathToFileURL(join(import.meta.dirname, '../../src/core/asset-extraction.ts')).href;

describe('unpacking the files of the executable', () => {
  let home: string;
  let folder: string;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'acp-extract-'));
    folder = join(home, 'acp', '1.0.0-abc');
  });

  afterEach(() => rmSync(home, { recursive: true, force: true }));

  test('the file has its name and content, and only its owner can reach it', () => {
    const file = extractFile(folder, 'vec0.so', content);
    assert.equal(file, join(folder, 'vec0.so'));
    assert.deepEqual(readFileSync(file), content);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(statSync(dirname(folder)).mode & 0o777, 0o700);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  test('a file that is already there is used as it is', () => {
    const before = statSync(extractFile(folder, 'vec0.so', content));
    const after = statSync(extractFile(folder, 'vec0.so', content));
    assert.equal(after.ino, before.ino);
    assert.equal(after.mtimeMs, before.mtimeMs);
  });

  test('a file that was changed, even with the same size, is replaced', () => {
    const file = extractFile(folder, 'vec0.so', content);
    writeFileSync(file, 'THE LIBRARY');
    extractFile(folder, 'vec0.so', content);
    assert.deepEqual(readFileSync(file), content);
    assert.deepEqual(readdirSync(folder), ['vec0.so']);
  });

  test('a link in place of the file is replaced, not followed', () => {
    const elsewhere = join(home, 'elsewhere');
    writeFileSync(elsewhere, content);
    mkdirSync(folder, { recursive: true });
    symlinkSync(elsewhere, join(folder, 'vec0.so'));
    const file = extractFile(folder, 'vec0.so', Buffer.from('another build'));
    assert.equal(lstatSync(file).isFile(), true);
    assert.deepEqual(readFileSync(elsewhere), content);
  });

  test('a folder that others can write to is closed to them', () => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    extractFile(folder, 'vec0.so', content);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  test('names with folders keep them', () => {
    const file = extractFile(folder, 'console/app.js', content);
    assert.equal(file, join(folder, 'console', 'app.js'));
  });

  test('a folder that cannot be used is replaced by a temporary one under the same file name', () => {
    writeFileSync(join(home, 'acp'), 'a file where the folder should be');
    const file = extractFile(folder, 'vec0.so', content);
    assert.equal(basename(file), 'vec0.so');
    assert.equal(file.startsWith(folder), false);
    assert.deepEqual(readFileSync(file), content);
    assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
  });

  test('a folder below /proc, which no folder can be made in, is replaced, too', () => {
    const script = `import { extractFile } from '${source}';
      process.stdout.write(extractFile('/proc/none/acp', 'vec0.so', Buffer.from('x')));`;
    const args = ['--input-type=module', '-e', script];
    const file = execFileSync(process.execPath, args, { encoding: 'utf8', env: { TMPDIR: home }, timeout: 10_000 });
    assert.equal(file.startsWith(join(home, 'acp-')), true);
  });

  test('a folder that is a link is not used', () => {
    const target = join(home, 'target');
    mkdirSync(target);
    mkdirSync(dirname(folder), { recursive: true });
    symlinkSync(target, folder);
    extractFile(folder, 'vec0.so', content);
    assert.deepEqual(readdirSync(target), []);
  });

  test('a temporary folder goes with the process', () => {
    writeFileSync(join(home, 'acp'), '');
    const script = `import { extractFile } from '${source}';
      process.stdout.write(extractFile(process.argv[1], 'vec0.so', Buffer.from('x')));`;
    const args = ['--input-type=module', '-e', script, folder];
    const file = execFileSync(process.execPath, args, { encoding: 'utf8', env: { TMPDIR: home } });
    assert.equal(file.startsWith(join(home, 'acp-')), true);
    assert.deepEqual(readdirSync(home), ['acp']);
  });

  test('with nowhere to write, the error says what to set', () => {
    writeFileSync(join(home, 'acp'), '');
    const script = `import { extractFile } from '${source}';
      try { extractFile(process.argv[1], 'vec0.so', Buffer.from('x')); } catch (error) { process.stdout.write(error.message); }`;
    const args = ['--input-type=module', '-e', script, folder];
    const message = execFileSync(process.execPath, args, { encoding: 'utf8', env: { TMPDIR: join(home, 'none') } });
    assert.match(message, /cannot unpack vec0\.so/);
    assert.match(message, /XDG_CACHE_HOME or TMPDIR/);
  });

  test('the cache folder follows XDG_CACHE_HOME when it is absolute', () => {
    assert.equal(cacheFolder({ XDG_CACHE_HOME: '/var/cache/me' }), join('/var/cache/me', 'acp'));
    assert.equal(cacheFolder({ XDG_CACHE_HOME: 'relative' }), join(homedir(), '.cache', 'acp'));
    assert.equal(cacheFolder({}), join(homedir(), '.cache', 'acp'));
  });
});
