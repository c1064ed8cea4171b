import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from './opened-store.ts';
import { runWarm } from './warm-program.ts';

test('a command has its own folder and variables, whatever the one before had', async (t) => {
  const [first, second] = [temporaryFolder(t), temporaryFolder(t)];
  const set = await runWarm({ cwd: first, args: ['config'], env: { HOME: first, Host__LogLevel: 'debug' } });
  assert.match(set.stdout, /debug/);
  const unset = await runWarm({ cwd: second, args: ['config'], env: { HOME: second } });
  assert.deepEqual([unset.code, /debug/.test(unset.stdout)], [0, false]);
  assert.equal((await runWarm({ cwd: second, args: ['init'], env: { HOME: second } })).code, 0);
  const again = await runWarm({ cwd: first, args: ['init'], env: { HOME: first } });
  assert.equal(again.code, 0, 'the files of the other folder are not in this one');
});

test('a command that ends its process gives its exit code, and the next one gets another process', async (t) => {
  const folder = temporaryFolder(t);
  const call = { cwd: folder, env: { HOME: folder } };
  const ended = await runWarm({ ...call, args: ['__complete', '--', 'vers'] });
  assert.deepEqual([ended.code, ended.stdout.includes('version')], [0, true]);
  assert.equal((await runWarm({ ...call, args: ['--version'] })).code, 0);
});

test('two commands at once run in two processes', async (t) => {
  const folder = temporaryFolder(t);
  const call = { cwd: folder, env: { HOME: folder }, args: ['--version'] };
  const [left, right] = await Promise.all([runWarm(call), runWarm(call)]);
  assert.deepEqual(left, right);
});
