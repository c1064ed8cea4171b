import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artifact, cardOf, rawAgent, task } from '../features/remote-agents/remote-world.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { createFolder, helloAgent } from './support.ts';

const token = 'token-of-this-service-0123456789';

test('A2A-12 acp a2a calls an agent by the address of its card: our own, and any other', async (t) => {
  const folder = createFolder(t);
  folder.write('agents/hello.yaml', helloAgent);
  const { url } = await folder.serve([
    '--set',
    `Host:AuthToken=${token}`,
    '--set',
    'Host:Agents:0=./agents',
    '--set',
    'Host:A2A:Agents:0=hello',
  ]);
  const card = `${url}/a2a/hello/.well-known/agent-card.json`;
  const a2a = (args: readonly string[], secret = `Bearer ${token}`) =>
    folder.acp(['a2a', ...args], { env: secret === '' ? {} : { A2A_AUTHORIZATION: secret } });

  const shown = await a2a(['card', card, '--json']);
  assert.equal(shown.code, 0, shown.stderr);
  assert.equal(
    (JSON.parse(shown.stdout) as { supportedInterfaces: { url: string }[] }).supportedInterfaces[0]?.url,
    `${url}/a2a/hello`,
  );
  for (const how of ['send', 'stream']) {
    const { code, stdout, stderr } = await a2a([how, card, 'Hello', '--message-id', 'm-1']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^\S.*\n$/);
    assert.match(stderr, /COMPLETED · task [0-9a-f-]{36}/);
  }
  const sent = JSON.parse((await a2a(['send', card, 'Hello', '--message-id', 'm-1', '--json'])).stdout) as {
    readonly taskId: string;
    readonly state: string;
  };
  const got = JSON.parse((await a2a(['get', card, sent.taskId, '--json'])).stdout) as typeof sent;
  assert.deepEqual(got, sent);
  const canceled = await a2a(['cancel', card, sent.taskId]);
  assert.equal(canceled.code, 7);
  assert.match(canceled.stderr, /The task cannot be canceled, as it has ended or is elsewhere \(-32002\)\./);
  for (const [args, words] of [
    [['get', card, 'nobody'], /It has no such task \(-32001\)\.\n$/],
    [['send', card, ' '], /It does not accept the message as it is \(-32602\)\.\n$/],
    [['card', `${url}/a2a/hello`], /HTTP 405\.\nhint: The address is that of the card itself, such as/],
    [['card', `${url}/a2a/nobody`], /HTTP 40[45]\.\nhint: The address is that of the card itself, such as/],
    [['card', 'http://127.0.0.1:9/x'], /at http:\/\/127\.0\.0\.1:9\.\nhint: Is the agent running, and can/],
  ] as const) {
    const { code, stderr } = await a2a(args);
    assert.notEqual(code, 0);
    assert.match(stderr, words);
  }

  const refused = await a2a(['card', card], '');
  assert.match(refused.stderr, /wants a credential: set A2A_AUTHORIZATION/);
  for (const wrong of ['Bearer another', token])
    assert.match(
      (await a2a(['card', card], wrong)).stderr,
      /does not take the credential of A2A_AUTHORIZATION.*HTTP 401/,
    );
  assert.match((await a2a(['card', 'ftp://nowhere'])).stderr, /none/);
  const lists = await folder.acp(['a2a', 'list', '--json', '--url', url], { env: { ACP_TOKEN: token } });
  assert.deepEqual(JSON.parse(lists.stdout), []);

  const elsewhere = await rawAgent(t, () => ({ task: task('COMPLETED') }));
  const partner = await rawAgent(t, ({ method }) => {
    if (method === 'SendMessage') return { task: task('FAILED', { artifacts: [artifact('broken\u001b[2J')] }) };
    return task('CANCELED');
  });
  const failed = await a2a(['send', partner.cardUrl, 'Hello']);
  assert.equal(failed.code, 1);
  assert.ok(!failed.stdout.includes('\u001b'));
  assert.match((await a2a(['cancel', partner.cardUrl, 'task-1'])).stdout, /CANCELED/);
  partner.card = cardOf(`${elsewhere.url}/a2a`);
  assert.match((await a2a(['send', partner.cardUrl, 'Hello'])).stderr, /credential of .* is not sent/);
  assert.equal(elsewhere.received.length, 0);
  assert.equal((await a2a(['send', partner.cardUrl, 'Hello'], '')).code, 0);
});

test('acp a2a hides nothing that an agent says of its task, and Ctrl-C cancels it there', async (t) => {
  const folder = createFolder(t);
  const odd = { id: 'task\u001b[2J-1', contextId: 'c\u202e1' };
  const canceled: string[] = [];
  const partner = await rawAgent(t, ({ method, params }) => {
    if (method === 'SendMessage') {
      const waits = params.message.parts[0].text === 'wait';
      return { task: task(waits ? 'WORKING' : 'COMPLETED', { ...odd, artifacts: [artifact('done')] }) };
    }
    if (method === 'CancelTask') canceled.push(params.id);
    return task(method === 'CancelTask' ? 'CANCELED' : 'WORKING', odd);
  });
  for (const args of [
    ['send', partner.cardUrl, 'Hello'],
    ['get', partner.cardUrl, 'one'],
  ]) {
    const { code, stdout, stderr } = await folder.acp(['a2a', ...args]);
    assert.equal(code, 0, stderr);
    for (const hidden of ['\u001b[2J', '\u202e']) assert.ok(!`${stdout}${stderr}`.includes(hidden), args.join(' '));
  }
  for (const [how, cancels] of [
    ['send', 1],
    ['stream', 2],
  ] as const) {
    const looks = partner.asked.length;
    const running = folder.start(['a2a', how, partner.cardUrl, 'wait']);
    await eventually(
      'a look at the task',
      () => partner.asked.slice(looks).some(({ method }) => method === 'GetTask') || null,
      processMs,
    );
    running.child.kill('SIGINT');
    assert.equal((await running.done).code, 130);
    assert.deepEqual(canceled, Array(cancels).fill(odd.id));
  }
});
