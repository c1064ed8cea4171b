import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const key = 'Service:TriggerSecrets:crm';

test('triggers set, list and delete; send signs a call as its sender would', async (t) => {
  const folder = createFolder(t);
  const set = ['--set', `${key}=${secret}`];
  const { url } = await folder.serve(set);
  const acp = (...args: string[]) => folder.acp([...args, '--url', url]);
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await acp(...args, '--json');
    assert.equal(code, 0, stderr);
    return stdout === '' ? null : JSON.parse(stdout);
  };
  await json('agents', 'apply', '-f', 'hello.yaml');
  const definition = ['--target-name', 'hello', '--secret-configuration-key', key];
  const saved = await json('triggers', 'set', 'ticket', ...definition);
  assert.deepEqual([saved.scheme, saved.resolved], ['standard', true]);

  const accepted = await json('triggers', 'send', 'ticket', '--data', 'Hi', '--id', 'evt-1', ...set);
  assert.equal(accepted.jobId, accepted.runId);
  const again = await acp('triggers', 'send', 'ticket', '--data', 'Hi', '--id', 'evt-1', ...set);
  assert.deepEqual([again.code, again.stdout], [5, '']);
  assert.match(again.stderr, /accepted before/);
  const told = await acp('triggers', 'send', 'ticket', '--data', 'Hi', ...set);
  assert.match(told.stdout, /^[0-9a-f-]{36}\n$/);
  assert.match(told.stderr, /is queued/);

  for (const scheme of ['github', 'stripe', 'slack']) {
    await json('triggers', 'set', scheme, ...definition, '--scheme', scheme);
    const body = JSON.stringify({ id: 'evt_1', event_id: 'Ev1', text: 'Grüße' });
    folder.write('call.json', body);
    assert.ok((await json('triggers', 'send', scheme, '--file', 'call.json', ...set)).runId, scheme);
  }
  assert.deepEqual(
    (await json('triggers', 'list')).map(({ name }: { name: string }) => name),
    ['github', 'slack', 'stripe', 'ticket'],
  );
  await json('triggers', 'delete', 'slack');
  assert.equal((await acp('triggers', 'get', 'slack')).code, 4);
});

test('triggers send takes its secret from a file, a variable or the configuration, and from no option', async (t) => {
  const folder = createFolder(t);
  const { url } = await folder.serve(['--set', `${key}=${secret}`]);
  const send = (args: readonly string[], env: Record<string, string> = {}) =>
    folder.acp(['triggers', 'send', 'ticket', '--data', 'Hi', ...args, '--url', url], { env });
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml', '--url', url]);
  await folder.acp([
    'triggers',
    'set',
    'ticket',
    '--target-name',
    'hello',
    '--secret-configuration-key',
    key,
    '--url',
    url,
  ]);
  folder.write('secret', `${secret}\n`);
  assert.equal((await send(['--secret-file', 'secret'])).code, 0);
  assert.equal((await send([], { ACP_TRIGGER_SECRET: secret })).code, 0);
  const wrong = await send([], { ACP_TRIGGER_SECRET: 'wrong' });
  assert.equal(wrong.code, 3);
  assert.match(wrong.stderr, /did not accept the signature\. The secret must be that of Service:TriggerSecrets:crm/);
  assert.match(wrong.stderr, /--secret-file <path> or in ACP_TRIGGER_SECRET/);
  const absent = ['--target-name', 'hello', '--secret-configuration-key', 'Service:TriggerSecrets:absent'];
  await folder.acp(['triggers', 'set', 'absent', ...absent, '--url', url]);
  const env = { ACP_TRIGGER_SECRET: secret };
  const unset = await folder.acp(['triggers', 'send', 'absent', '--data', 'Hi', '--url', url], { env });
  assert.deepEqual([unset.code, unset.stdout], [3, '']);
  assert.match(unset.stderr, /Service:TriggerSecrets:absent has no value at the service/);
  const none = await send([]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /--secret-file/);
  for (const args of [
    ['--secret-file', 'nothing'],
    ['--file', 'secret'],
  ] as const)
    assert.equal((await send(args)).code, 2, args.join(' '));
  const empty = await folder.acp(['triggers', 'send', 'ticket', '--url', url], { env: { ACP_TRIGGER_SECRET: secret } });
  assert.equal(empty.code, 2);
});
