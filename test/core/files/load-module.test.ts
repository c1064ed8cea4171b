import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadModule } from '../../../src/core/files/load-module.ts';

const modules: Readonly<Record<string, string>> = {
  'plain.mjs': "export const name = 'plain';",
  'typed.mts': 'interface Shape { name: string } export const shape: Shape = { name: "typed" };',
  'face.mts': "import { defineModule } from 'acp'; export const module = defineModule({ tools: [] });",
  'awaits.mjs': "export const name = await Promise.resolve('awaited');",
  'common.cjs': "module.exports = { module: require('acp').defineModule({ tools: ['x'] }) };",
  'neighbour.mjs':
    "import { name } from './plain.mjs'; export const seen = name; export const builtin = (await import('node:path')).sep;",
  'broken.mjs': 'export const = 1;',
  'throws.mjs': "throw new Error('no database here');",
  'enum.mts': 'enum Colour { Red } export const colour = Colour.Red;',
  'lacks.mjs': "import 'a-package-that-is-not-installed';",
  'with space é.mjs': "export const name = 'spaced';",
};

describe('host modules', () => {
  let folder: string;
  const load = (file: string) => loadModule(join(folder, file));
  const refused = (file: string, reason: RegExp) =>
    assert.rejects(load(file), (error: Error & { code: string }) => {
      assert.equal(error.code, 'validation-failed');
      assert.ok(error.message.includes(file), error.message);
      assert.match(error.message, reason);
      return true;
    });

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'acp-modules-'));
    for (const [file, text] of Object.entries(modules)) writeFileSync(join(folder, file), text);
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  test('JavaScript and TypeScript with erasable types load from any folder', async () => {
    assert.equal((await load('plain.mjs'))['name'], 'plain');
    assert.deepEqual((await load('typed.mts'))['shape'], { name: 'typed' });
    assert.equal((await load('with space é.mjs'))['name'], 'spaced');
  });

  test('`acp` resolves to the host library from ES modules and CommonJS', async () => {
    assert.deepEqual((await load('face.mts'))['module'], { tools: [] });
    assert.deepEqual((await load('common.cjs'))['module'], { tools: ['x'] });
  });

  test('a module may await, and import its own files and built-in modules', async () => {
    assert.equal((await load('awaits.mjs'))['name'], 'awaited');
    const neighbour = await load('neighbour.mjs');
    assert.equal(neighbour['seen'], 'plain');
    assert.equal(typeof neighbour['builtin'], 'string');
  });

  test('a module that cannot be loaded is refused with its path and the reason', async () => {
    await refused('missing.mjs', /Cannot find module/);
    await refused('broken.mjs', /Unexpected token/);
    await refused('throws.mjs', /no database here/);
    await refused('enum.mts', /enum is not supported/);
    await refused('lacks.mjs', /a-package-that-is-not-installed/);
  });

  test('a module is evaluated once', async () => {
    assert.equal(await load('plain.mjs'), await load('plain.mjs'));
  });
});
