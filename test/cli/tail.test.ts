import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startCuttingProxy } from '../client/cutting-proxy.ts';
import { createFolder } from './support.ts';

const sequences = (text: string): number[] =>
  text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { sequence: number }).sequence);

describe('runs tail', () => {
  test('of one run goes on by sequence when the connection drops, and misses and repeats nothing', async (t) => {
    const folder = createFolder(t);
    const { url } = await folder.serve();
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const queued = await folder.acp(['run', 'hello', 'slowly', '--queued']);
    const proxy = await startCuttingProxy(url, [900, 0, 1200, 600]);
    t.after(() => proxy.close());
    const { code, stdout, stderr } = await folder.acp([
      'runs',
      'tail',
      queued.stdout.trim(),
      '--json',
      '--url',
      proxy.url,
    ]);
    assert.equal(code, 0, stderr);
    const seen = sequences(stdout);
    assert.deepEqual(
      seen,
      seen.map((_sequence, index) => index),
    );
    assert.ok(proxy.connections() >= 4);
    assert.match(stderr, /Trying again/);
    const from = await folder.acp(['runs', 'tail', queued.stdout.trim(), '--json', '--from', '3']);
    assert.deepEqual(sequences(from.stdout), seen.slice(3));
  });

  test('of all runs shows tool calls, tokens and the outcome of each run as it happens, until Ctrl-C', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    await folder.acp(['run', 'hello', 'hi']);
    const tail = folder.start(['runs', 'tail']);
    await tail.until('waiting for runs', 'stderr');
    const run = await folder.acp(['run', 'hello', 'time', '--json']);
    const { runId } = JSON.parse(run.stdout) as { runId: string };
    const text = await tail.until('completed');
    assert.ok(text.includes(`run ${runId}`));
    const mark = `hello ${runId.slice(-6)} `;
    for (const line of text.trim().split('\n')) assert.match(line, new RegExp(`^\\d\\d:\\d\\d:\\d\\d ${mark}`));
    assert.match(
      text,
      /25 tokens.*\n.*→ clock_now \{"timeZone":"UTC"\}\n.*✓ clock_now .*\n.*It is .*\n.*63 tokens.*\n.*completed/,
    );
    assert.ok(!text.includes('Hello there'), 'a run that was over before is not shown');
    tail.child.kill('SIGINT');
    assert.equal((await tail.done).code, 130);
  });

  test('of all runs goes on after the service was restarted', async (t) => {
    const folder = createFolder(t);
    const first = await folder.serve();
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const tail = folder.start(['runs', 'tail', '--json', '--url', first.url]);
    await tail.until('waiting for runs', 'stderr');
    await folder.acp(['run', 'hello', 'hi']);
    await tail.until('run.completed');
    first.running.child.kill('SIGTERM');
    assert.equal((await first.running.done).code, 0);
    await folder.serve(['--url', first.url]);
    await folder.acp(['run', 'hello', 'time']);
    const text = await tail.until('clock_now');
    assert.ok(text.includes('run.started'));
  });

  test('without a service, or of an unknown run, says so', async (t) => {
    const folder = createFolder(t);
    const alone = await folder.acp(['runs', 'tail']);
    assert.deepEqual(
      [alone.code, alone.stderr.split('\n', 1)[0]],
      [8, 'error: No service runs on this store, so there is nothing to wait for.'],
    );
    assert.equal((await folder.acp(['runs', 'tail', '01900000-0000-7000-8000-000000000000'])).code, 4);
    assert.equal((await folder.acp(['runs', 'tail', 'nonsense'])).code, 2);
  });
});
