import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findIsolation } from '../../../src/features/skills/script-isolation.ts';
import { eventually } from '../../support/eventually.ts';
import { processesWith, scriptWorld } from './script-world.ts';

const noNamespaces = (await findIsolation()) === null && 'this system makes no PID namespaces';

/** A command that gives up every tie to its script: parent, session, environment, folder. */
const hiding = (command: string): string => `(cd / && setsid env -i PATH="$PATH" ${command} &)`;

/** The same with a script that goes on once its child has hidden: before that, a busy machine lets it be found. */
const hidden = (t: TestContext, command: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-hidden-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sign = `${folder}/$$`;
  return `${hiding(`sh -c ': >"$0"; exec ${command}' "${sign}"`)}; until [ -e "${sign}" ]; do sleep 0.01; done`;
};

/** Ends what a test has left alive on purpose. */
const endLater = (t: TestContext, mark: string): void =>
  t.after(async () => {
    for (const pid of await processesWith(mark)) process.kill(Number(pid), 'SIGKILL');
  });

test('SCRIPT-11 SCRIPT-18 a child that hides and keeps the pipes holds up neither its script nor the next one', async (t) => {
  const mark = `41${process.pid}1`;
  endLater(t, mark);
  const world = await scriptWorld(t, `${hidden(t, `sleep ${mark}`)}; echo done; exit 3\n`, {
    isolation: 'none',
    perTenant: 1,
    timeoutMs: 600_000,
  });
  const answer = 'exit_code: 3\nstdout:\ndone\nstderr:';
  assert.equal(await world.run(), answer);
  // It could not be found, and its output is cut.
  assert.equal((await processesWith(mark)).length, 1);
  assert.equal(await world.run(), answer);
  await world.scripts.idle();
});

test('SCRIPT-18 nor the end of one whose time is up', async (t) => {
  const mark = `42${process.pid}2`;
  endLater(t, mark);
  const world = await scriptWorld(t, `${hidden(t, `sleep ${mark}`)}; sleep ${mark}\n`, {
    isolation: 'none',
    timeoutMs: 1500,
  });
  await assert.rejects(world.run(), /timed out after 1500 ms/);
});

test('SCRIPT-21 nor the stop of the service', async (t) => {
  const mark = `45${process.pid}5`;
  endLater(t, mark);
  const world = await scriptWorld(t, `${hidden(t, `sleep ${mark}`)}; sleep ${mark}\n`, {
    isolation: 'none',
    timeoutMs: 100_000,
  });
  const ended = assert.rejects(world.run(), { name: 'ToolError' });
  // The script itself and the child of it that hides.
  await eventually('both run', async () => (await processesWith(mark)).length >= 2);
  world.stopping.abort();
  await ended;
  await world.scripts.idle();
});

test('SCRIPT-18 in a namespace nothing hides: not from the exit of its script', { skip: noNamespaces }, async (t) => {
  const mark = `43${process.pid}3`;
  endLater(t, mark);
  const world = await scriptWorld(t, `${hiding(`sleep ${mark}`)}; sleep 0.1; echo done\n`);
  assert.equal(await world.run(), 'exit_code: 0\nstdout:\ndone\nstderr:');
  assert.deepEqual(await processesWith(mark), []);
});

test('SCRIPT-18 nor from its end from outside, as a chain that forks and exits', { skip: noNamespaces }, async (t) => {
  const mark = `chain44${process.pid}4`;
  endLater(t, mark);
  const folder = mkdtempSync(join(tmpdir(), 'acp-chain-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const links = join(folder, 'links');
  const link = `echo x >>${links}; sleep 0.01; setsid sh -c "$1" "$0" "$1" &`;
  const source = `link='${link}'\n${hiding(`sh -c "$link" ${mark} "$link"`)}\nsleep 600\n`;
  const world = await scriptWorld(t, source, { timeoutMs: 600_000 });
  const canceled = new AbortController();
  const running = world.scripts.run(world.callOf(null, canceled.signal));
  const ended = assert.rejects(running, { name: 'ToolError' });
  const length = (): number => statSync(links, { throwIfNoEntry: false })?.size ?? 0;
  await eventually('the chain has three links', () => length() >= 6);
  canceled.abort();
  await ended;
  assert.deepEqual(await processesWith(mark), []);
  const before = length();
  // A link that was starting while the others were counted would go on.
  assert.deepEqual([await processesWith(mark), length()], [[], before]);
});

test('SCRIPT-15 SCRIPT-17 a namespace changes neither variables, output, exit codes nor ends by a signal', async (t) => {
  const source = 'cat; env | cut -d= -f1 | sort | grep -v ^_ ; echo problem >&2; kill -KILL $$\n';
  const world = await scriptWorld(t, source, { schema: '{"type":"object"}' });
  const bare = await scriptWorld(t, source, { schema: '{"type":"object"}', isolation: 'none' });
  const said = await world.run({ a: 1 });
  assert.match(said, /^exit_code: 137\nstdout:\n\{"a":1\}ACP_SKILL_NAME\n/);
  assert.match(said, /\nstderr:\nproblem$/);
  assert.equal(said, await bare.run({ a: 1 }));
});

for (const withNamespace of ['yes', 'no'])
  test(`SCRIPT-14 a folder that its script has closed is removed, and the script succeeds (namespace: ${withNamespace})`, () => {
    const program = join(import.meta.dirname, 'closing-process.ts');
    const { stdout, stderr } = spawnSync(process.execPath, [program, withNamespace], { encoding: 'utf8' });
    const { end, folder, exists, warnings } = JSON.parse(stdout || JSON.stringify({ end: stderr }));
    assert.equal(end.kind, 'exited', stderr);
    assert.match(folder, /\/acp-skill-/);
    assert.equal(end.text, `exit_code: 0\nstdout:\n${folder}\nstderr:`);
    assert.deepEqual([exists, warnings], [false, []]);
  });

test('SCRIPT-14 a resource that is no text is given to scripts byte for byte', async (t) => {
  const world = await scriptWorld(t, 'od -An -tx1 logo.bin\n');
  assert.equal(await world.run(), 'exit_code: 0\nstdout:\n 00 ff 89 50\nstderr:');
});
