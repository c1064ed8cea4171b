import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { ToolStop } from '../../../src/engine/tools/tool.ts';
import { createScriptQueue } from '../../../src/features/skills/script-queue.ts';
import { eventually } from '../../support/eventually.ts';
import { faults } from '../../support/faults.ts';
import { temporaryFolder } from '../../support/opened-store.ts';
import { defaultStore } from '../../support/store.ts';
import { processesWith, scriptWorld } from './script-world.ts';

const refused = async (work: Promise<unknown>): Promise<ToolStop> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof ToolStop) return error;
    throw error;
  }
  return assert.fail('the script was expected to be refused');
};

test('SCRIPT-13 SCRIPT-14 SCRIPT-15 SCRIPT-16 SCRIPT-17 a script gets its folder, few variables and its arguments', async (t) => {
  const source = 'cat; echo; cat data/in.txt; pwd; env | sort; stat -c %a .; echo oops >&2; exit 3\n';
  const world = await scriptWorld(t, source, {
    schema: '{"type":"object","properties":{"b":{},"a":{}}}',
    environment: { HOME: '/nowhere', ACP_TOKEN: 'x', SECRET: 'y' },
  });
  const text = await world.run({ b: 1, a: 'ü' });
  const folder = /ACP_SKILL_TEMP=(.*)/.exec(text)?.[1] ?? '';
  const lines = text.split('\n');
  assert.deepEqual(lines.slice(0, 5), ['exit_code: 3', 'stdout:', '{"a":"ü","b":1}', 'from a resource', folder]);
  const variables = lines.filter((line) => /^[A-Z_]+=/.test(line)).map((line) => line.split('=')[0]);
  // A shell sets PWD and such by itself.
  assert.deepEqual(
    variables.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name ?? '')),
    ['ACP_SKILL_NAME', 'ACP_SKILL_TEMP', 'HOME', 'PATH'],
  );
  assert.deepEqual(lines.slice(-3), ['700', 'stderr:', 'oops']);
  assert.ok(!existsSync(folder), 'the folder is gone');
});

test('GRANT-7 SCRIPT-6 SCRIPT-7 SCRIPT-8 SCRIPT-9 SCRIPT-12 gates 1 to 4 refuse with one text and tell the record why', async (t) => {
  const expect = async (work: Promise<unknown>, reason: RegExp): Promise<void> => {
    const stop = await refused(work);
    assert.equal(stop.message, 'The script could not be run.');
    assert.match(stop.recorded, reason);
  };
  const stored = await scriptWorld(t, 'echo', { origin: 'stored' });
  await expect(stored.run(), /switched on.*stored/);
  await expect(stored.scripts.admit(stored.callOf()), /switched on/);
  const ungranted = await scriptWorld(t, 'echo', { granted: false });
  await expect(ungranted.run(), /grant/);
  await ungranted.grant('other');
  await expect(ungranted.run(), /grant/);
  await ungranted.grant('go', Date.now() - 1);
  await expect(ungranted.run(), /grant/);
  const missing = await scriptWorld(t, 'echo', { interpreter: '/no/such/sh' });
  await expect(missing.run(), /interpreter/);
  const plain = await scriptWorld(t, 'echo');
  await expect(plain.run({ a: 1 }), /takes none/);
  await expect(plain.run({ a: 'x'.repeat(64) }), /bytes, more than 64/);
  const strict = await scriptWorld(t, 'echo', { schema: '{"type":"object","required":["a"]}' });
  await expect(strict.run(), /a is required/);
  assert.deepEqual(await strict.actions(), [['script.denied', 'arguments']]);
  plain.skills.set('pdf', { ...plain.skill, enabled: false });
  await expect(plain.run(), /switched off/);
  assert.deepEqual(await plain.actions(), [
    ['script.denied', 'arguments'],
    ['script.denied', 'arguments'],
    ['script.denied', 'switched on'],
  ]);
});

test('SCRIPT-10 the entry stands before the process; without it nothing starts', async (t) => {
  const folder = temporaryFolder(t);
  const world = await scriptWorld(t, 'echo started\n', { folder });
  assert.match(await world.run(), /started/);
  assert.deepEqual(await world.actions(), [['script.run', null]]);
  await defaultStore.aside?.(folder).refuse(faults['audit entries']);
  const stop = await refused(world.run());
  assert.match(stop.recorded, /"audit"/);
});

test('SCRIPT-16 a script that closes its input, or never reads it, does not fail for that', async (t) => {
  const world = await scriptWorld(t, 'exec 0<&-; echo fine\n');
  assert.equal(await world.run(), 'exit_code: 0\nstdout:\nfine\nstderr:');
});

test('SCRIPT-17 the end by a signal is an exit code too', async (t) => {
  const world = await scriptWorld(t, 'kill -TERM $$\n');
  assert.match(await world.run(), /^exit_code: 143\n/);
});

test('SCRIPT-18 a script past its time ends with everything that it started', async (t) => {
  const mark = `31${process.pid}7`;
  const source = [
    'trap "" TERM INT HUP',
    `sleep ${mark}1 &`,
    `setsid sleep ${mark}2 &`,
    `(setsid sh -c 'sleep ${mark}3 & exit 0') &`,
    `(trap "" TERM; sh -c 'sleep ${mark}4') &`,
    `sleep ${mark}5`,
  ].join('\n');
  const world = await scriptWorld(t, source, { timeoutMs: 700 });
  const stop = await refused(world.run());
  assert.equal(stop.status, 'timed_out');
  assert.equal(stop.message, 'The script timed out after 700 ms.');
  assert.deepEqual(await processesWith(mark), []);
});

test('SCRIPT-18 cancelling the run ends the tree', async (t) => {
  const mark = `32${process.pid}8`;
  const world = await scriptWorld(t, `sleep ${mark}1 & sleep ${mark}2\n`);
  const canceled = new AbortController();
  const running = world.scripts.run(world.callOf(null, canceled.signal));
  await eventually('the processes', async () => (await processesWith(mark)).length >= 2);
  canceled.abort();
  await assert.rejects(running, { name: 'ToolError' });
  assert.deepEqual(await processesWith(mark), []);
});

test('SCRIPT-21 the stop of the service ends every script', async (t) => {
  const mark = `33${process.pid}9`;
  const world = await scriptWorld(t, `sleep ${mark}\n`);
  const running = world.run();
  const ended = assert.rejects(running, { name: 'ToolError' });
  await eventually('the processes', async () => (await processesWith(mark)).length >= 1);
  world.stopping.abort();
  await world.scripts.idle();
  await ended;
  assert.deepEqual(await processesWith(mark), []);
});

test('SCRIPT-14 what a script leaves behind ends with it and does not hold it up', async (t) => {
  const mark = `34${process.pid}6`;
  const world = await scriptWorld(t, `sleep ${mark}1 &\nsetsid sleep ${mark}2 &\necho done\n`);
  assert.equal(await world.run(), 'exit_code: 0\nstdout:\ndone\nstderr:');
  assert.deepEqual(await processesWith(mark), []);
});

test('SCRIPT-19 output beyond the cap of both streams is counted and dropped, the exit code stays', async (t) => {
  const source = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 1000 /dev/zero | tr '\\0' y >&2; exit 7\n";
  const world = await scriptWorld(t, source, { maxOutputBytes: 1000 });
  const text = await world.run();
  assert.match(text, /^exit_code: 7\nstdout:\n/);
  assert.match(text, /\[output truncated: 3000000 bytes omitted\]$/);
  assert.equal((text.match(/^[xy]+$/gm) ?? []).join('').length, 1000);
});

test('SCRIPT-20 bytes that are no UTF-8 become U+FFFD', async (t) => {
  const world = await scriptWorld(t, "printf 'a\\377b'\n");
  assert.equal(await world.run(), 'exit_code: 0\nstdout:\na\uFFFDb\nstderr:');
});

test('SCRIPT-14 two scripts write in folders of their own', async (t) => {
  const world = await scriptWorld(t, 'ls data; echo x > data/out; echo y > out; pwd\n');
  const [first, second] = await Promise.all([world.run(), world.run()]);
  assert.notEqual(first, second);
  for (const text of [first, second]) assert.match(text ?? '', /^exit_code: 0\nstdout:\nin\.txt\n\//);
});

test('GRANT-7 a grant revoked while the call waits for its turn authorizes nothing', async (t) => {
  const world = await scriptWorld(t, 'cat >/dev/null; while [ ! -e "$HOME/go" ]; do sleep 0.05; done\n', {
    perTenant: 1,
    environment: { HOME: tmpdir() },
  });
  const canceled = new AbortController();
  const entries = async (count: number): Promise<void> => {
    await eventually('the entry', async () => (await world.actions()).length >= count);
  };
  const firstEnds = assert.rejects(world.scripts.run(world.callOf(null, canceled.signal)));
  // Its entry stands, so the one place is its own.
  await entries(1);
  const secondRefused = refused(world.run());
  await entries(2);
  await world.grants.revoke('default', { skillName: 'pdf', scriptName: null }, Date.now());
  canceled.abort();
  await firstEnds;
  assert.match((await secondRefused).recorded, /grant/);
});

test('SCRIPT-11 places are given in the order of arrival, per tenant and in total', async () => {
  const queue = createScriptQueue({ perTenant: 1, total: 2 });
  const order: string[] = [];
  const never = new AbortController().signal;
  const enter = async (tenant: string, name: string, signal = never) => {
    const leave = await queue.enter(tenant, signal);
    order.push(name);
    return leave;
  };
  const a1 = await enter('a', 'a1');
  const a2 = enter('a', 'a2');
  const gone = new AbortController();
  const a3 = assert.rejects(enter('a', 'a3', gone.signal));
  const b1 = await enter('b', 'b1');
  const c1 = enter('c', 'c1');
  gone.abort();
  await a3;
  b1();
  const c = await c1;
  assert.deepEqual(order, ['a1', 'b1', 'c1'], 'a tenant at its limit does not hold up another');
  a1();
  a1();
  const a = await a2;
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2']);
  a();
  c();
});
