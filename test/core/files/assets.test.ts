import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import {
  assetPath,
  isPackaged,
  listAssets,
  readAsset,
  readAssetText,
  workerPath,
} from '../../../src/core/files/assets.ts';
import { version } from '../../../src/core/version.ts';

const assets = resolve(import.meta.dirname, '../../../assets');

describe('assets in a clone', () => {
  test('a clone is not packaged, and knows its version', () => {
    assert.equal(isPackaged(), false);
    assert.match(version, /^\d+\.\d+\.\d+/);
  });

  test('every file below assets/ is listed under its folder and read by its name', () => {
    const files = globSync('*/**/*', { cwd: assets }).filter((path) => statSync(join(assets, path)).isFile());
    for (const name of files.map((path) => path.replaceAll('\\', '/'))) {
      assert.ok(listAssets(name.split('/')[0] ?? '').includes(name), name);
      assert.deepEqual(readAsset(name), readFileSync(join(assets, name)));
      assert.equal(readAssetText(name), readFileSync(assetPath(name), 'utf8'));
    }
  });

  test('a folder that is not there lists nothing; a file that is not there is an error', () => {
    assert.deepEqual(listAssets('no-such-folder'), []);
    assert.throws(() => readAsset('no-such-file'), { code: 'ENOENT' });
  });

  test('a worker runs from its source', () => {
    const source = new URL('./assets.test.ts', import.meta.url);
    assert.equal(existsSync(workerPath(source)), true);
  });
});
