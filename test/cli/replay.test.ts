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

test('a run is exported, replayed without a service, and checked against a changed definition; broken files are refused', async (t) => {
  const folder = createFolder(t);
  const { running } = await folder.serve();
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'hello.yaml'])).code, 0);
  const run = await folder.acp(['run', 'hello', 'What time is it?', '--json']);
  const { runId } = JSON.parse(run.stdout) as { runId: string };

  const again = await folder.acp(['runs', 'replay', runId]);
  assert.deepEqual([again.code, again.stdout.startsWith('It is ')], [0, true]);
  const [, compare = ''] = /acp (runs compare \S+ \S+)/.exec(again.stderr) ?? [];
  const compared = await folder.acp(compare.split(' '));
  assert.equal(compared.code, 0);
  assert.match(compared.stdout, new RegExp(`^A {2}${runId}\nB {2}\\S{36} {2}replay of A\n\n`));
  assert.match(compared.stdout, /\nstatus +Completed +Completed +yes\n/);
  assert.match(compared.stdout, /\nA and B\nIt is .*\n$/, 'an equal answer stands once');
  for (const line of compared.stdout.split('\n')) assert.ok(line.length <= 80, line);

  const exported = await folder.acp(['runs', 'export', runId, '-o', 'run.acp']);
  assert.match(exported.stderr, /^Wrote .*run\.acp: 1 run, \d+ bytes\.$/m);
  writeFileSync(join(folder.path, 'run.acp'), 'mine');
  const refused = await folder.acp(['runs', 'export', runId, '-o', 'run.acp']);
  assert.deepEqual([refused.code, readFileSync(join(folder.path, 'run.acp'), 'utf8')], [2, 'mine']);
  assert.match(refused.stderr, /run\.acp exists already; use --force to replace it/);
  const told = await folder.acp(['runs', 'export', runId, '-o', 'run.acp', '--json', '--force']);
  assert.equal((JSON.parse(told.stdout) as { runs: number }).runs, 1);
  const failed = await folder.acp(['runs', 'replay', runId, '--agent-version', '7']);
  assert.deepEqual([failed.code, failed.stdout], [4, '']);
  running.child.kill('SIGTERM');
  await running.done;
  folder.write('service.yaml', 'this is: [no configuration');

  const same = await folder.acp(['replay', 'run.acp', '--junit', 'same.xml']);
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
  const drifted = readFileSync(join(folder.path, 'changed.xml'), 'utf8');
  assertBalanced(drifted);
  assert.match(drifted, /failures="2" errors="0">/);
  // What a CI server shows of a failure is its body.
  assert.match(
    drifted,
    /<failure type="drifted" message="instructions differ">instructions differ\n--- recorded instructions\n/,
  );
  assert.match(drifted, /^-Be brief\.\n\+Be &lt;very&gt; &quot;long&quot; &amp; loud\.<\/failure>$/m);
  for (const [, body] of drifted.matchAll(/<failure [^>]*>([^<]*)<\/failure>/g)) assert.notEqual(body?.trim(), '');
  assert.equal(drifted.match(/<\/failure>/g)?.length, 2);
  const report = JSON.parse((await folder.acp([...gate, '--json'])).stdout) as { divergences: { step: number }[] };
  assert.equal(report.divergences[0]?.step, 1);

  const bytes = readFileSync(join(folder.path, 'run.acp'));
  const broken = async (content: Uint8Array): Promise<string> => {
    writeFileSync(join(folder.path, 'broken.acp'), content);
    const { code, stdout, stderr } = await folder.acp(['replay', 'broken.acp']);
    assert.deepEqual([code, stdout], [2, '']);
    return stderr;
  };
  assert.match(await broken(bytes.subarray(0, bytes.length / 2)), /broken\.acp was cut off/);
  assert.match(await broken(Buffer.from('no bundle')), /no run bundle, or is damaged/);
  assert.match(await broken(Buffer.alloc(0)), /empty|cut off/);
  assert.match(await broken(gzipSync('{"some":"json"}\n')), /Line 1 of the bundle is no line of a run bundle/);
  const text = gunzipSync(bytes).toString('utf8');
  assert.match(await broken(gzipSync(text.slice(0, text.lastIndexOf('\n{')))), /cut off: its manifest is missing/);
  assert.match(await broken(gzipSync(text.replace('Be brief', 'Be wrong'))), /Section "\S+" of the bundle was changed/);
  assert.match(await broken(gzipSync(text.replace('"version":1', '"version":9'))), /format version 9.*up to 1/);
  for (const [name, code] of [
    ['nowhere.acp', 'ENOENT'],
    ['.', 'EISDIR'],
  ] as const) {
    const unread = await folder.acp(['replay', name]);
    assert.equal(unread.code, 2);
    assert.match(unread.stderr, new RegExp(`cannot be read \\(${code}\\)`));
  }
  const scripted = JSON.parse((await folder.acp(['replay', 'broken.acp', '--json'])).stderr) as { code: string };
  assert.equal(scripted.code, 'bundle-invalid');
  for (const change of ['hello', 'hello=nowhere.yaml', 'other=changed.yaml'])
    assert.equal((await folder.acp(['replay', 'run.acp', '--with', change])).code, 2, change);
});

test('what could not be compared ends with a code of its own', async (t) => {
  const folder = createFolder(t);
  folder.write(
    'service.yaml',
    readFileSync(join(folder.path, 'service.yaml'), 'utf8').replace(
      'Service:\n',
      'Service:\n  RunRecording: { MaxPayloadLength: 5 }\n',
    ),
  );
  await folder.serve();
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'hello.yaml'])).code, 0);
  const run = await folder.acp(['run', 'hello', 'What time is it?', '--json']);
  const { runId } = JSON.parse(run.stdout) as { runId: string };
  const lost = await folder.acp(['runs', 'replay', runId]);
  assert.equal(lost.code, 6);
  assert.match(
    lost.stderr,
    /^Run \S+ failed: acp runs tail \S+\nerror: The recording has no whole result .*"clock_now"/,
  );
  assert.equal((await folder.acp(['runs', 'export', runId, '-o', 'run.acp'])).code, 0);
  const { code, stdout } = await folder.acp(['replay', 'run.acp', '--junit', 'report.xml']);
  assert.equal(code, 11);
  assert.match(
    stdout,
    /^First divergence: hello \S+ step 1: missing, The arguments of call \S+ were not recorded whole/,
  );
  assert.match(stdout, /\nResult: missing \(1 run, 2 steps\)\n$/);
  const xml = readFileSync(join(folder.path, 'report.xml'), 'utf8');
  assertBalanced(xml);
  assert.match(xml, /failures="0" errors="3">/);
});
