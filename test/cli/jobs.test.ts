import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openTerminal, withoutTmux } from '../tui/terminal.ts';
import { createFolder, type Folder } from './support.ts';

const batch = (payload: readonly unknown[], lane = 'default'): string =>
  JSON.stringify({ handlerKey: 'acp.agent-batch', targetName: 'hello', lane, payload });

/** A service with an agent, and what queues a job of messages to it. */
const prepare = async (t: Pick<TestContext, 'after'>, set: readonly string[] = []) => {
  const folder = createFolder(t);
  const applied = await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  assert.equal(applied.code, 0, applied.stderr);
  const serving = await folder.serve(set);
  const queue = (payload: readonly unknown[], lane?: string) => queueAt(folder, serving.url, payload, lane);
  return { folder, ...serving, queue };
};

const queueAt = async (folder: Folder, url: string, payload: readonly unknown[], lane?: string): Promise<string> => {
  folder.write('batch.json', batch(payload, lane));
  for (const args of [
    ['schedules', 'save', 'batch', '-f', 'batch.json'],
    ['schedules', 'trigger', 'batch'],
  ]) {
    const { code, stdout, stderr } = await folder.acp([...args, '--url', url, '--json']);
    assert.equal(code, 0, stderr);
    if (args[1] === 'trigger') return (JSON.parse(stdout) as { id: string }).id;
  }
  throw new Error('no job was queued');
};

/** Lines without the time that each begins with. */
const told = (stdout: string): string[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, ''));

describe('acp jobs watch', () => {
  test('follows a job to its end in plain lines; the exit code says how it ended', async (t) => {
    const { folder, url, queue } = await prepare(t);
    const watch = (id: string, ...more: string[]) => folder.acp(['jobs', 'watch', id, '--url', url, ...more]);

    const all = await watch(await queue(['one', 'two', 'three']));
    assert.equal(all.code, 0, all.stderr);
    assert.match(told(all.stdout).at(-1) ?? '', /^Completed {2}3 of 3 items · [\d.]+m?s$/);
    assert.ok(!all.stdout.includes('\r') && !all.stdout.includes('█'), 'no bar where nobody sees one');

    const some = await watch(await queue(['one', 'break', 'three']));
    assert.equal(some.code, 10, some.stderr);
    assert.match(told(some.stdout).at(-1) ?? '', /^Completed {2}3 of 3 items, 1 failed/);
    assert.match(some.stderr, /^item 1: provider[-_]/m);

    const none = await queue(['break', 'break it']);
    const failed = await watch(none);
    assert.equal(failed.code, 1, 'no code of the table is `all-items-failed`');
    assert.match(told(failed.stdout).at(-1) ?? '', /^Failed {2}2 of 2 items, 2 failed.*all-items-failed/);

    const lines = (await watch(none, '--json')).stdout.trimEnd().split('\n');
    const [job] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(lines.length, 1, 'a job that has ended is told once');
    assert.deepEqual([job?.['id'], job?.['status'], 'payload' in (job ?? {})], [none, 'Failed', false]);
  });

  test('ends with a job that is canceled, and refuses one that is not there', async (t) => {
    const { folder, url, queue } = await prepare(t);
    const id = await queue(['stall', 'stall too']);
    const watching = folder.start(['jobs', 'watch', id, '--url', url]);
    await watching.until('Running');
    assert.equal((await folder.acp(['jobs', 'cancel', id, '--url', url])).code, 0);
    const { code, stdout } = await watching.done;
    assert.equal(code, 5);
    assert.match(told(stdout).at(-1) ?? '', /^Canceled {2}0 of 2 items/);

    const unknown = '01900000-0000-7000-8000-000000000000';
    assert.equal((await folder.acp(['jobs', 'watch', unknown, '--url', url])).code, 4);
    assert.equal((await folder.acp(['jobs', 'watch', 'no-uuid', '--url', url])).code, 2);
    const both = await folder.acp(['jobs', 'watch', unknown, '--lane', 'x', '--url', url]);
    assert.equal(both.code, 2);
    assert.match(both.stderr, /with an id leave them out/);
    assert.equal((await folder.acp(['jobs', 'watch', '--schedule', 'nothing', '--url', url])).code, 4);
  });

  test('goes on after the service was away', async (t) => {
    const { folder, url, running, queue } = await prepare(t);
    const id = await queue(['one', 'stall']);
    const watching = folder.start(['jobs', 'watch', id, '--url', url]);
    await watching.until('Running');
    running.child.kill('SIGTERM');
    await watching.until('Trying again.', 'stderr');
    await running.done;
    folder.write('scripts/demo.yaml', 'rules: [{ reply: { text: "Hello." } }]');
    await folder.serve(['--url', url]);
    const { code, stdout, stderr } = await watching.done;
    assert.equal(code, 0, stderr);
    const retries = stderr.split('\n').filter((line) => line.includes('Trying again.'));
    assert.ok(retries.length > 0 && retries.every((line, at) => line !== retries[at - 1]), 'once for each reason');
    assert.match(told(stdout).at(-1) ?? '', /^Completed {2}2 of 2 items/);
  });

  test('without an id tells of every job that is on its way or comes, and of no other', async (t) => {
    const { folder, url, queue } = await prepare(t);
    await queue(['over before']);
    const stalled = await queue(['stall'], 'slow');
    const watching = folder.start(['jobs', 'watch', '--url', url, '--lane', 'slow'], { ownProcess: true });
    await watching.until('waiting for jobs', 'stderr');
    await watching.until(`acp.agent-batch hello ${stalled.slice(-6)}`);
    const other = await queue(['another lane']);
    assert.equal((await folder.acp(['jobs', 'watch', other, '--url', url])).code, 0);
    const later = await queue(['one', 'two'], 'slow');
    await watching.until(`acp.agent-batch hello ${later.slice(-6)}  Completed  2 of 2 items`);
    assert.equal((await folder.acp(['jobs', 'cancel', stalled, '--url', url])).code, 0);
    const text = await watching.until(`${stalled.slice(-6)}  Canceled`);
    assert.ok(!text.includes(other.slice(-6)), 'another lane');
    watching.child.kill('SIGINT');
    assert.equal((await watching.done).code, 130);
  });

  test('where no service runs, tells how a job ended, and does not wait for one that nobody works on', async (t) => {
    const { folder, running, queue } = await prepare(t, ['--set', 'Service:Scheduling:Lanes:0=default']);
    const ended = await queue(['one']);
    const waiting = await queue(['two'], 'elsewhere');
    assert.equal((await folder.acp(['jobs', 'watch', ended])).code, 0);
    running.child.kill('SIGTERM');
    await running.done;
    assert.equal((await folder.acp(['jobs', 'watch', ended])).code, 0);
    for (const args of [[waiting], []]) {
      const { code, stderr } = await folder.acp(['jobs', 'watch', ...args]);
      assert.equal(code, 8, stderr);
      assert.match(stderr, /No service runs on this store/);
    }
  });

  test('shows a bar on a terminal, in place, and leaves the end of the job', { skip: withoutTmux }, async (t) => {
    const { folder, url, queue } = await prepare(t);
    const id = await queue([...Array.from({ length: 3 }, (_none, index) => `message ${index}`), 'stall']);
    const terminal = await openTerminal(t, folder.path, ['jobs', 'watch', id, '--url', url]);
    const live = await terminal.until(/█{18}░{6} Running · 3 of 4 items · \d+s/);
    assert.equal(live.match(/3 of 4 items ·/g)?.length, 1, 'one bar, drawn in place');
    await folder.acp(['jobs', 'cancel', id, '--url', url]);
    const end = await terminal.until(/ended 5/);
    assert.match(end, /Canceled {2}3 of 4 items/);
    assert.ok(!end.includes('░'), 'the bar is gone');
  });
});
