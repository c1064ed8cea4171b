import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually, processMs } from '../support/eventually.ts';
import { createFolder, type Folder } from './support.ts';

const prepared = async (t: Parameters<typeof createFolder>[0]): Promise<Folder> => {
  const folder = createFolder(t);
  await folder.serve();
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'hello.yaml'])).code, 0);
  return folder;
};

const ndjson = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('run', () => {
  test('puts the answer alone on stdout, and tools, tokens and the id on stderr', async (t) => {
    const folder = await prepared(t);
    const { code, stdout, stderr } = await folder.acp(['run', 'hello', 'What', 'time', 'is', 'it?']);
    assert.equal(code, 0);
    assert.match(stdout, /^It is \d{4}-.*\[UTC\]\.\n$/);
    assert.match(
      stderr,
      /^→ clock_now \{"timeZone":"UTC"\}\n✓ clock_now \d.*\[UTC\]\ncompleted · .*63 tokens \(50 in, 13 out\) · run [0-9a-f-]{36}\n$/,
    );
  });

  test('reads the message from stdin, sends documents and parameters, and keeps a session', async (t) => {
    const folder = await prepared(t);
    folder.write('notes.txt', 'some notes');
    folder.write(
      'p.yaml',
      'name: p\nmodel: { provider: demo, model: m }\ninstructions: "{{who}}"\nparameters: [{ name: who, kind: Text, required: true }]',
    );
    await folder.acp(['agents', 'apply', '-f', 'p.yaml']);
    const args = ['run', 'p', '-', '-p', 'who=me', '-d', 'notes.txt', '-s', 'talk-1', '--json'];
    const first = await folder.acp(args, { input: 'hi\n' });
    const answer = JSON.parse(first.stdout) as Record<string, unknown>;
    assert.deepEqual([first.code, answer['output'], answer['sessionId']], [0, 'Hello there.', 'talk-1']);
    const missing = await folder.acp(['run', 'p', 'hi']);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /who/);
    assert.equal((await folder.acp(['run', 'p', 'hi', '-p', 'novalue'])).code, 2);
    assert.equal((await folder.acp(['run', 'p', 'hi', '-d', 'nowhere.txt'])).code, 2);
  });

  test('--json gives the answer of the API, --json --stream its events, --idempotency-key the same answer twice', async (t) => {
    const folder = await prepared(t);
    const events = ndjson((await folder.acp(['run', 'hello', 'time', '--json', '--stream'])).stdout);
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      events.map((_event, index) => index),
    );
    assert.equal(events.at(-1)?.['type'], 'run.completed');
    const keyed = ['run', 'hello', 'hi', '--json', '--idempotency-key', 'k1'];
    const first = await folder.acp(keyed);
    assert.equal((JSON.parse(first.stdout) as Record<string, unknown>)['status'], 'Completed');
    assert.equal((await folder.acp(keyed)).stdout, first.stdout);
    const other = await folder.acp(['run', 'hello', 'another', '--json', '--idempotency-key', 'k1']);
    assert.equal(other.code, 2);
    assert.equal((JSON.parse(other.stderr) as Record<string, unknown>)['code'], 'idempotency-key-reused');
  });

  test('ends with the code of what went wrong, streamed or not', async (t) => {
    const folder = await prepared(t);
    for (const args of [[], ['--no-stream'], ['--json'], ['--json', '--stream']]) {
      const { code } = await folder.acp(['run', 'hello', 'break', ...args]);
      assert.equal(code, 7, args.join(' '));
    }
    assert.equal((await folder.acp(['run', 'nobody', 'hi'])).code, 4);
    assert.equal((await folder.acp(['run', 'hello'])).code, 2);
  });

  test('the first Ctrl-C cancels the run and waits for the outcome', async (t) => {
    const folder = await prepared(t);
    for (const flags of [[], ['--no-stream']]) {
      const running = folder.start(['run', 'hello', 'stall', ...flags]);
      // Once the run is listed as running, the command waits for it.
      const look = async () => {
        const { stdout } = await folder.acp(['runs', 'list', '--status', 'running', '--json']);
        return (JSON.parse(stdout) as { id: string }[])[0]?.id;
      };
      const runId = await eventually('a run in progress', look, processMs);
      running.child.kill('SIGINT');
      const { code } = await running.done;
      assert.equal(code, 130);
      const { stdout } = await folder.acp(['runs', 'get', runId, '--json']);
      assert.equal((JSON.parse(stdout) as Record<string, unknown>)['status'], 'Canceled');
    }
  });

  test('--queued prints the id, and --follow shows the run as it executes', async (t) => {
    const folder = await prepared(t);
    const queued = await folder.acp(['run', 'hello', 'hi', '--queued']);
    assert.match(queued.stdout, /^[0-9a-f-]{36}\n$/);
    const tailed = await folder.acp(['runs', 'tail', queued.stdout.trim()]);
    assert.equal(tailed.code, 0);
    assert.match(tailed.stdout, /Hello there\.\n[\s\S]*completed/);
    const followed = await folder.acp(['run', 'hello', 'time', '--queued', '--follow']);
    assert.equal(followed.code, 0);
    assert.match(followed.stdout, /^It is /);
  });

  test('--follow says so where nobody executes what is queued, and goes on', async (t) => {
    const folder = createFolder(t);
    await folder.serve(['--set', 'Service:Scheduling:RunWorker=false']);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const following = folder.start(['run', 'hello', 'hi', '--queued', '--follow', '--json']);
    const told = await following.until('still queued', 'stderr');
    assert.match(told, /^Run [0-9a-f-]{36} is still queued\. .*Service:Scheduling:RunWorker/);
    const [, runId = ''] = /^Run (\S+)/.exec(told) ?? [];
    await folder.acp(['runs', 'cancel', runId]);
    const { code, stdout } = await following.done;
    assert.equal(code, 5);
    assert.match(stdout, /"type":"run\.canceled"/);
  });

  test('AGENT-43 the answers of a loop each have their own line', async (t) => {
    const folder = await prepared(t);
    folder.write(
      'looped.yaml',
      `
name: looped
model: { provider: demo, model: demo-1 }
instructions: Be brief.
harness: { loop: { maxIterations: 2, criteria: [{ kind: completionMarker, marker: DONE }] } }
`,
    );
    assert.equal((await folder.acp(['agents', 'apply', '-f', 'looped.yaml'])).code, 0);
    const { stdout } = await folder.acp(['run', 'looped', 'hi']);
    assert.equal(stdout, 'Hello there.\nHello there.\n');
  });

  test('passes an answer on untouched to a file, and ends quietly when nobody reads it', async (t) => {
    const folder = await prepared(t);
    const { stdout } = await folder.acp(['run', 'hello', 'weird']);
    assert.equal(stdout, 'red \u001b[31m bell \u0007 end\n');
    const running = folder.start(['run', 'hello', 'slowly']);
    await running.until('one');
    running.child.stdout.destroy();
    const { code, stderr } = await running.done;
    assert.deepEqual([code, stderr], [0, '']);
  });
});
