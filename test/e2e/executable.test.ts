import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { openWorkplace, type Workplace } from '../support/executable.ts';

/** A tool in TypeScript that awaits, imports a file of its own and the running program. */
const toolModule = `
import { defineModule } from 'acp';
import { shout } from './shout.mts';
interface Arguments { readonly text: string }
const effect: string = await Promise.resolve('Read');
export default defineModule({
  tools: [{
    name: 'shout',
    description: 'Says it louder',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    effect,
    execute: ({ text }: Arguments) => shout(text),
  }],
});
`;

describe('the executable in an empty folder', () => {
  let place: Workplace;

  beforeEach(() => {
    place = openWorkplace();
  });

  afterEach(() => place.close());

  const cacheFolder = () => {
    const cache = join(place.home, '.cache', 'acp');
    const [build = ''] = readdirSync(cache);
    return join(cache, build);
  };

  test('help and version need nothing and leave nothing behind', async () => {
    const help = await place.call(['--help']);
    assert.equal(help.code, 0);
    for (const command of ['serve', 'quickstart', 'agents', 'run', 'runs'])
      assert.match(help.stdout, new RegExp(command));
    const version = await place.call(['--version']);
    assert.deepEqual(version, { code: 0, signal: null, stdout: `${manifest.version}\n`, stderr: '' });
    assert.deepEqual(
      [place.folder, place.home, place.temporary].flatMap((path) => readdirSync(path)),
      [],
    );
  });

  test('the API description is printed without a server', async () => {
    const { code, stdout } = await place.call(['openapi']);
    assert.equal(code, 0);
    assert.match((JSON.parse(stdout) as { openapi: string }).openapi, /^3\.1\./);
  });

  test('quickstart runs the sample agent with its tool and says what is next', async () => {
    const { code, stdout, stderr } = await place.call(['quickstart', '--once', '--set', 'Host:Url=http://127.0.0.1:0']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /clock_now/);
    assert.match(stdout, /acp agents apply/);
    assert.equal(existsSync(join(place.folder, 'data', 'acp.db')), true);
  });

  test('serve answers, and ends in order on SIGTERM', async () => {
    const server = await place.serve();
    const ready = await fetch(`${server.url}/health/ready`);
    assert.deepEqual([ready.status, await ready.json()], [200, { status: 'Healthy' }]);
    const { code, stderr } = await server.stop('SIGTERM');
    assert.equal(code, 0, stderr);
  });

  test('host modules in TypeScript load from the user’s folder', async () => {
    writeFileSync(
      join(place.folder, 'shout.mts'),
      'export const shout = (text: string): string => text.toUpperCase();',
    );
    writeFileSync(join(place.folder, 'tools.mts'), toolModule);
    writeFileSync(join(place.folder, 'with-tools.yaml'), 'Host: { Modules: [./tools.mts] }\n');
    const { code, stdout, stderr } = await place.call(['tools', 'list', '--json', '--config', 'with-tools.yaml']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /"shout"/);
  });

  test('native parts are unpacked once, for the owner alone', async () => {
    assert.equal((await place.call(['db', 'migrate'])).code, 0);
    const folder = cacheFolder();
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    const before = statSync(join(folder, 'better_sqlite3.node'));
    assert.equal(before.mode & 0o077, 0);
    assert.equal((await place.call(['db', 'status'])).code, 0);
    assert.equal(statSync(join(folder, 'better_sqlite3.node')).ino, before.ino);
    assert.deepEqual(readdirSync(place.temporary), []);
  });

  test('an unpacked file that was changed is not loaded but replaced', async () => {
    await place.call(['db', 'migrate']);
    const addon = join(cacheFolder(), 'better_sqlite3.node');
    const original = readFileSync(addon);
    writeFileSync(addon, Buffer.alloc(original.length));
    const { code, stderr } = await place.call(['db', 'status']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(readFileSync(addon), original);
  });

  test('processes that start together unpack without harm', async () => {
    const calls = Array.from({ length: 4 }, (_, index) =>
      place.call(['db', 'migrate', '--set', `Service:Persistence:Sqlite:ConnectionString=./data/${index}.db`]),
    );
    assert.deepEqual(
      (await Promise.all(calls)).map(({ code }) => code),
      [0, 0, 0, 0],
    );
    assert.deepEqual(
      readdirSync(cacheFolder()).filter((name) => name.startsWith('better_sqlite3.node.')),
      [],
    );
  });

  test('without a usable cache folder a temporary one is used and removed', async () => {
    mkdirSync(join(place.home, '.cache'));
    writeFileSync(join(place.home, '.cache', 'acp'), 'a file where the folder should be');
    const { code, stderr } = await place.call(['db', 'migrate']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(readdirSync(place.temporary), []);
  });

  test('with nowhere to unpack to, the error says what to set', async () => {
    writeFileSync(join(place.home, '.cache'), '');
    const { code, stderr } = await place.call(['db', 'migrate'], { env: { TMPDIR: join(place.home, 'none') } });
    assert.notEqual(code, 0);
    assert.match(stderr, /XDG_CACHE_HOME or TMPDIR/);
  });
});
