import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from '../support/warm-program.ts';
import { createFolder } from './support.ts';

test('sessions are listed, read, branched and deleted, in process as over HTTP', async (t) => {
  const folder = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  await folder.acp(['run', 'hello', 'time', '--session', 'order-1']);
  const list = await folder.acp(['sessions', 'list']);
  assert.match(list.stdout, /^ID +AGENT NAME +MESSAGE COUNT .*\norder-1 +hello +4 +1 /);
  const shown = await folder.acp(['sessions', 'get', 'order-1']);
  assert.match(shown.stdout, /^id +order-1\n/);
  assert.match(
    shown.stdout,
    /\n#0 User .*\n {2}time\n\n#1 Assistant .*\n {2}clock_now \{"timeZone":"UTC"\}\n\n#2 Tool /,
  );
  assert.match(shown.stdout, /\n#3 Assistant .*\n {2}It is .*\n$/);
  const made = await folder.acp(['sessions', 'branch', 'order-1', '--up-to-sequence', '0', '--new-session-id', 'b']);
  assert.match(made.stdout, /copiedItemCount +1\n/);
  const beyond = ['sessions', 'branch', 'order-1', '--up-to-sequence', '4'];
  const calls = [
    ['sessions', 'list'],
    ['sessions', 'list', '--agent-name', 'nobody'],
    ['sessions', 'get', 'b'],
    ['sessions', 'get', 'b', '--json'],
    ['sessions', 'get', 'nothing'],
    ['sessions', 'delete', 'nothing'],
    beyond,
  ];
  const local: Outcome[] = [];
  for (const call of calls) local.push(await folder.acp(call));
  assert.deepEqual(
    local.map(({ code }) => code),
    [0, 0, 0, 0, 4, 4, 2],
  );
  await folder.serve();
  for (const [index, call] of calls.entries()) assert.deepEqual(await folder.acp(call), local[index], call.join(' '));
  assert.equal((await folder.acp(['sessions', 'delete', 'order-1'])).code, 0);
  const left = JSON.parse((await folder.acp(['sessions', 'list', '--json'])).stdout) as { readonly id: string }[];
  assert.deepEqual(
    left.map(({ id }) => id),
    ['b'],
  );
});
