import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
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
import { cacheFolder, extractFile } from '../../../src/core/files/asset-extraction.ts';

const content = Buffer.from('the library');
const source = pathToFileURL(join(import.meta.dirname, '../../../src/core/files/asset-extraction.ts')).href;

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

  /** Uses a folder as the executable does, and says where the file went. */
  const unpack = (): string => {
    const file = extractFile(folder, 'vec0.so', content);
    assert.deepEqual(readFileSync(file), content);
    assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
    return file;
  };

  for (const [who, mode] of [
    ['everybody', 0o777],
    ['the group', 0o770],
  ] as const)
    for (const [what, place] of [
      ['the folder', ''],
      ['a folder above it', '..'],
      ['a folder far above it', '../..'],
    ] as const)
      test(`where ${who} can write to ${what}, a private folder is used`, () => {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        chmodSync(join(folder, place), mode);
        assert.equal(unpack().startsWith(home), false);
        assert.deepEqual(readdirSync(folder), []);
      });

  test('a sticky folder above, such as /tmp, lets others add and change nothing that is here', () => {
    chmodSync(home, 0o1777);
    assert.equal(unpack(), join(folder, 'vec0.so'));
  });

  test('a sticky folder itself is not used', () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o1777);
    assert.equal(unpack().startsWith(home), false);
  });

  describe('of another user', {
    skip: process.getuid?.() === 0 ? false : 'only the superuser can give files away',
  }, () => {
    const another = 65_534;

    for (const [what, place] of [
      ['the folder', ''],
      ['a folder above it', '..'],
    ] as const)
      test(`where ${what} belongs to another user, a private folder is used`, () => {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        chownSync(join(folder, place), another, another);
        assert.equal(unpack().startsWith(home), false);
      });

    test('a file with the right content that another user can change later is replaced', () => {
      const planted = unpack();
      chownSync(planted, another, another);
      assert.equal(unpack(), planted);
      assert.equal(statSync(planted).uid, process.getuid?.());
    });
  });

  test('a file that others can change later is replaced, too', () => {
    const planted = unpack();
    chmodSync(planted, 0o666);
    assert.equal(unpack(), planted);
    assert.equal(statSync(planted).mode & 0o777, 0o600);
  });

  test('a link above the folder is followed once: the path that is used has none', () => {
    mkdirSync(join(home, 'elsewhere'), { mode: 0o700 });
    symlinkSync(join(home, 'elsewhere'), join(home, 'acp'));
    assert.equal(unpack(), join(home, 'elsewhere', basename(folder), 'vec0.so'));
  });

  test('where others can replace the temporary folder, too, nothing is unpacked', () => {
    const shared = join(home, 'shared');
    mkdirSync(shared);
    chmodSync(shared, 0o777);
    const script = `import { extractFile } from '${source}';
      try { extractFile('${shared}/acp', 'vec0.so', Buffer.from('x')); } catch (error) { process.stdout.write(error.message); }`;
    const args = ['--input-type=module', '-e', script];
    const message = execFileSync(process.execPath, args, { encoding: 'utf8', env: { TMPDIR: shared } });
    assert.match(
      message,
      /cannot unpack vec0\.so: .*\/shared can be written to by others; .*\/shared can be written to/,
    );
    assert.match(message, /XDG_CACHE_HOME or TMPDIR/);
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
