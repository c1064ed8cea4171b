import assert from 'node:assert/strict';
import { forEachHttpService } from '../../support/app.ts';
import { openA2A, rpc, stream, type Wire } from './a2a-world.ts';

const headers = { 'a2a-version': '0.3' };
const text = (said: string) => ({ kind: 'text', text: said });

const message = (messageId: string, ...parts: object[]) => ({ kind: 'message', messageId, role: 'user', parts });

/** No object of version 0.3 is without its kind, and none has a word of 1.0. */
const assertLegacy = (value: Wire): void => {
  const said = JSON.stringify(value);
  assert.doesNotMatch(said, /TASK_STATE_|ROLE_|statusUpdate|artifactUpdate|"raw"|mediaType/);
};

forEachHttpService('A2A-12 A2A-33 callers of version 0.3 send and read its own forms', async (open) => {
  const app = await openA2A(open, {
    agents: [{ name: 'typed', model: { provider: 'demo', model: 'd', responseFormat: { kind: 'Json' } } }],
    script: [
      { when: { message: 'wait' }, reply: { text: 'One moment', stall: true } },
      { when: { message: 'list' }, reply: { text: '[1]' } },
      { when: { message: 'fail' }, reply: { error: 'provider_error' } },
      { reply: { text: 'Hello.', chunkSize: 3 } },
    ],
    host: { A2A: { Agents: ['helper', 'typed'] } },
  });
  const call = async (method: string, params: unknown, agent = 'helper') =>
    (await rpc(app, method, params, { headers, agent })).body;

  const { result: task } = await call('message/send', {
    message: message(
      'm1',
      text('Hi'),
      { kind: 'data', data: { a: 1 } },
      { kind: 'file', file: { bytes: 'QSBub3Rl', name: 'n.txt', mimeType: 'text/plain' } },
    ),
    configuration: { blocking: true, acceptedOutputModes: ['text/plain'] },
  });
  assertLegacy(task);
  assert.deepEqual([task.kind, task.status.state, task.artifacts[0].parts], ['task', 'completed', [text('Hello.')]]);
  const [sent, answered] = task.history;
  assert.deepEqual([sent.kind, sent.role, answered.role], ['message', 'user', 'agent']);
  assert.deepEqual(sent.parts[0], text('Hi'));
  assert.deepEqual(sent.parts[1], { kind: 'data', data: { a: 1 } });
  assert.deepEqual(
    [sent.parts[2].kind, sent.parts[2].file.name, sent.parts[2].file.mimeType],
    ['file', 'n.txt', 'text/plain'],
  );
  assert.deepEqual((await call('tasks/get', { id: task.id, historyLength: 1 })).result.history, [answered]);

  // What is no object is wrapped, with the mark by which clients of both versions unwrap it.
  const { result: listed } = await call('message/send', { message: message('m2', text('list')) }, 'typed');
  assert.deepEqual(listed.artifacts[0].parts, [
    { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
  ]);
  const { result: failed } = await call('message/send', { message: message('m3', text('fail')) });
  assert.deepEqual([failed.status.state, failed.status.message.kind], ['failed', 'message']);

  const { result: open1 } = await call('message/send', {
    message: message('m4', text('wait')),
    configuration: { blocking: false },
  });
  assert.equal(open1.status.state, 'working');
  const subscribed = await stream(app, 'tasks/resubscribe', { id: open1.id }, { headers });
  assert.equal(subscribed.headers.get('a2a-version'), '0.3');
  const { value: first } = await subscribed.events.next();
  assert.deepEqual([first.kind, first.id], ['task', open1.id]);
  assert.equal((await call('tasks/cancel', { id: open1.id })).result.status.state, 'canceled');
  const rest: Wire[] = [];
  for await (const event of subscribed.events) rest.push(event);
  const last = rest.at(-1);
  assert.deepEqual([last.kind, last.final, last.status.state], ['status-update', true, 'canceled']);

  const whole = await stream(app, 'message/stream', { message: message('m5', text('Hi')) }, { headers });
  const events: Wire[] = [];
  for await (const event of whole.events) events.push(event);
  assertLegacy(events);
  assert.deepEqual(events.filter(({ final }) => final === true).length, 1);
  assert.equal(events.at(-1).final, true);
  const said = events
    .filter(({ kind }) => kind === 'artifact-update')
    .reduce((sofar: string, { append, artifact }) => (append ? sofar : '') + artifact.parts[0].text, '');
  assert.equal(said, 'Hello.');

  for (const [method, params, code] of [
    ['message/send', { message: message('m6', { kind: 'video' }) }, -32602],
    [
      'message/send',
      { message: message('m6', { kind: 'file', file: { uri: 'http://x.example/' } }, text('a')) },
      -32005,
    ],
    ['message/send', { message: { ...message('m6', text('a')), role: 'agent' } }, -32602],
    [
      'message/send',
      { message: message('m6', text('a')), configuration: { pushNotificationConfig: { url: 'x' } } },
      -32003,
    ],
    ['message/send', { message: { ...message('m6', text('a')), taskId: task.id } }, -32004],
    ['tasks/get', { id: 'nothing' }, -32001],
    ['tasks/get', {}, -32602],
    ['tasks/cancel', { id: task.id }, -32002],
    ['tasks/pushNotificationConfig/set', {}, -32003],
    ['tasks/pushNotificationConfig/get', {}, -32003],
    ['tasks/pushNotificationConfig/list', {}, -32003],
    ['tasks/pushNotificationConfig/delete', {}, -32003],
    ['agent/getAuthenticatedExtendedCard', {}, -32007],
  ] as const) {
    const { error } = await call(method, params);
    assert.equal(error?.code, code, `${method} ${JSON.stringify(params)}`);
    assert.equal(Array.isArray(error.data), false);
    assert.equal(typeof error.data.reason, 'string');
  }
});
