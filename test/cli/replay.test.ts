import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createFolder, helloAgent } from './support.ts';

/** Well-formed as far as it matters here: every tag is closed, in order. */
const assertBalanced = (xml: string): void => {
  const open: string[] = [];
  for (const [, close, name, self] of xml.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g)) {
    if (close === '/') assert.equal(open.pop(), name);
    else if (self !== '/') open.push(name ?? '');
  }
  assert.deepEqual(open, []);
};

test('a run is exported, replayed without a service, and checked against a changed definition', async (t) => {
  const folder = createFolder(t);
  const { running } = await folder.serve();
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'hello.yaml'])).code, 0);
  const run = await folder.acp(['run', 'hello', 'What time is it?', '--json']);
  const { runId } = JSON.parse(run.stdout) as { runId: string };

  const again = await folder.acp(['runs', 'replay', runId]);
  assert.deepEqual([again.code, again.stdout.startsWith('It is ')], [0, true]);
  assert.match(again.stderr, new RegExp(`acp runs compare ${runId} [0-9a-f-]{36}`));

  assert.equal((await folder.acp(['runs', 'export', runId, '-o', 'run.acp'])).code, 0);
  running.child.kill('SIGTERM');
  await running.done;
  folder.write('service.yaml', 'this is: [no configuration');

  const same = await folder.acp(['replay', 'run.acp', '--offline', '--junit', 'same.xml']);
  assert.deepEqual([same.code, same.stderr], [0, '']);
  assert.match(same.stdout, /hello v1 {2}identical {2}2 steps/);
  const xml = readFileSync(join(folder.path, 'same.xml'), 'utf8');
  assertBalanced(xml);
  assert.match(xml, /<testsuites name="acp replay" tests="3" failures="0" errors="0">/);

  folder.write('changed.yaml', helloAgent.replace('Be brief.', 'Be <very> "long" & loud.'));
  const gate = ['replay', 'run.acp', '--with', 'hello=changed.yaml'];
  const changed = await folder.acp([...gate, '--junit', 'changed.xml']);
  assert.equal(changed.code, 10);
  assert.match(changed.stdout, /^First divergence: hello .* step 1: drifted, instructions differ/);
  assert.match(changed.stdout, /^-Be brief\.\n\+Be <very> "long" & loud\.$/m);
  const failed = readFileSync(join(folder.path, 'changed.xml'), 'utf8');
  assertBalanced(failed);
  assert.match(failed, /failures="2" errors="0">/);
  const report = JSON.parse((await folder.acp([...gate, '--json'])).stdout) as { divergences: { step: number }[] };
  assert.equal(report.divergences[0]?.step, 1);

  const path = join(folder.path, 'run.acp');
  const bytes = readFileSync(path);
  const broken = async (content: Uint8Array): Promise<string> => {
    writeFileSync(join(folder.path, 'broken.acp'), content);
    const { code, stderr } = await folder.acp(['replay', 'broken.acp']);
    assert.equal(code, 2);
    return stderr;
  };
  assert.match(await broken(bytes.subarray(0, bytes.length / 2)), /cut off/);
  assert.match(await broken(Buffer.from('no bundle')), /no run bundle/);
  const text = gunzipSync(bytes).toString('utf8');
  assert.match(await broken(gzipSync(text.replace('Be brief', 'Be wrong'))), /Section "\S+" of the bundle was changed/);
  assert.match(await broken(gzipSync(text.replace('"version":1', '"version":9'))), /format version 9.*up to 1/);
});
