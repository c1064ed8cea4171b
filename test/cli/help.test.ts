import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createFolder } from './support.ts';

const heavy = /node_modules\/(fastify|kysely|ink|react|@ai-sdk|better-sqlite3|pino|undici|yaml|gpt-tokenizer|execa)\//;

describe('help', () => {
  test('loads no server, no store and no model library', async (t) => {
    const folder = createFolder(t);
    const list = folder.write('loaded.txt', '');
    const recorder = pathToFileURL(join(import.meta.dirname, 'module-recorder-main.ts')).href;
    const env = { NODE_OPTIONS: `--import=${recorder}`, LOADED_MODULES: list };
    const { code, stdout } = await folder.acp(['--help'], { env, fromSources: true });
    assert.equal(code, 0);
    assert.match(stdout, /quickstart[\s\S]+agents[\s\S]+doctor/);
    const loaded = readFileSync(list, 'utf8').trim().split('\n');
    assert.ok(loaded.length > 20, `${loaded.length} modules were seen`);
    assert.deepEqual(
      loaded.filter((url) => heavy.test(url) || /\/src\/(app|db|engine|http|providers)\b/.test(url)),
      [],
    );
  });

  test('a wrong command line names the nearest command and ends with 2, as JSON where that is asked for', async (t) => {
    const folder = createFolder(t);
    const typo = await folder.acp(['agents', 'aply'], { ownProcess: true });
    assert.deepEqual({ code: typo.code, stdout: typo.stdout }, { code: 2, stdout: '' });
    assert.match(typo.stderr, /^error: unknown command 'aply'\n\(Did you mean apply\?\)/);
    const missing = await folder.acp(['agents', 'get', '--json'], { ownProcess: true });
    assert.equal(missing.code, 2);
    const problem = JSON.parse(missing.stderr) as Record<string, unknown>;
    assert.equal(problem['code'], 'validation-failed');
    assert.match(String(problem['detail']), /missing required argument 'name'/);
  });

  test('a group without a command shows its help and ends with 2; version and help end with 0', async (t) => {
    const folder = createFolder(t);
    const group = await folder.acp(['agents'], { ownProcess: true });
    assert.equal(group.code, 2);
    assert.match(group.stderr, /Usage: acp agents <command>/);
    const version = await folder.acp(['--version'], { ownProcess: true });
    assert.deepEqual({ code: version.code, stderr: version.stderr }, { code: 0, stderr: '' });
    assert.match(version.stdout, /^\d+\.\d+\.\d+/);
  });

  for (const args of [['--help'], ['runs', 'score', '--help'], ['--version']])
    test(`acp ${args.join(' ')} ends quietly when nobody reads it`, async (t) => {
      const running = createFolder(t).start(args);
      running.child.stdout.destroy();
      const { code, stderr } = await running.done;
      assert.deepEqual([code, stderr], [0, '']);
    });
});
