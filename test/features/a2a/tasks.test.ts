import assert from 'node:assert/strict';
import { hostLibrary } from '../../../src/features/modules/index.ts';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import { keyFor, openA2A, refusalOf, result, rpc, send, stream, type Wire, working } from './a2a-world.ts';

forEachHttpService('A2A-27 A2A-28 the state of a task is that of its run, and says no word of others', async (open) => {
  const app = await openA2A(open, {
    script: [
      { when: { message: 'wait' }, reply: { text: 'One moment', stall: true } },
      { when: { message: 'fail' }, reply: { error: { type: 'provider_error', httpStatus: 503 } } },
      { when: { message: 'json' }, reply: { text: '{"a": [1, null]}' } },
      { when: { message: 'leak' }, reply: { text: 'my secret-word' } },
      { reply: { text: 'Done.' } },
    ],
    agents: [{ name: 'typed', model: { provider: 'demo', model: 'demo-1', responseFormat: { kind: 'Json' } } }],
    service: {
      ContentGuard: { Pattern: { DeniedTerms: ['secret-word'] } },
    },
    module: { guards: [hostLibrary.patternGuard()] },
    host: { A2A: { Agents: ['helper', 'typed'] } },
  });
  const done = await send(app, 'Hi');
  assert.deepEqual(done.artifacts, [{ artifactId: 'output', name: 'output', parts: [{ text: 'Done.' }] }]);
  assert.match(done.status.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(done.status.message, undefined);
  const typed = await send(app, 'json', {}, { agent: 'typed' });
  assert.deepEqual(typed.artifacts?.[0]?.parts, [{ data: { a: [1, null] }, mediaType: 'application/json' }]);
  const failed = await send(app, 'fail');
  assert.deepEqual(
    [failed.status.state, failed.artifacts, failed.status.message?.parts],
    ['TASK_STATE_FAILED', undefined, [{ text: `The task failed (provider_error). Its run is ${failed.id}.` }]],
  );
  const rejected = await send(app, 'my secret-word');
  assert.deepEqual(
    [rejected.status.state, rejected.status.message?.parts],
    ['TASK_STATE_REJECTED', [{ text: `The message was rejected (content_blocked). Its run is ${rejected.id}.` }]],
  );
  const leaked = await send(app, 'leak');
  assert.equal(leaked.status.state, 'TASK_STATE_FAILED');
  const open1 = await working(app);
  const states = async (status: string) => (await result(app, 'ListTasks', { status })).tasks.map(({ id }: Wire) => id);
  assert.deepEqual(await states('TASK_STATE_COMPLETED'), [done.id]);
  assert.deepEqual(await states('TASK_STATE_FAILED'), [leaked.id, failed.id]);
  assert.deepEqual(await states('TASK_STATE_REJECTED'), [rejected.id]);
  assert.deepEqual(await states('TASK_STATE_WORKING'), [open1.id]);
  for (const never of ['SUBMITTED', 'CANCELED', 'INPUT_REQUIRED', 'AUTH_REQUIRED'])
    assert.deepEqual(await states(`TASK_STATE_${never}`), [], never);
  const canceled = await result(app, 'CancelTask', { id: open1.id });
  assert.deepEqual([canceled.id, canceled.status.state], [open1.id, 'TASK_STATE_CANCELED']);
  assert.deepEqual(await states('TASK_STATE_CANCELED'), [open1.id]);
});

forEachHttpService(
  'A2A-30 a task is there for the credential that made it, at its agent, and for nobody else',
  async (open) => {
    const app = await openA2A(open, {
      agents: [{ name: 'other' }],
      host: { Tenancy: { Enabled: true }, A2A: { Agents: ['helper', 'other'] } },
    });
    const acme = app.inTenant('acme');
    for (const name of ['helper', 'other'])
      await acme.agents.create({ body: { name, model: { provider: 'demo', model: 'demo-1' } } });
    const [one, two] = [await keyFor(app, 'one'), await keyFor(app, 'two')];
    const theirs = await keyFor({ client: acme }, 'one');
    const task = await working(app, { token: one });
    const native = (await app.client.runs.start({ params: { name: 'helper' }, body: { message: 'Hi', stream: false } }))
      .headers['x-run-id'];
    const missing = [-32001, 'TASK_NOT_FOUND'];
    for (const [id, options] of [
      [task.id, { token: two }],
      [task.id, { token: one, agent: 'other' }],
      [task.id, { token: theirs }],
      [task.id, {}],
      [native, { token: one }],
      [native, {}],
      ['0199f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b', { token: one }],
      ['nothing', { token: one }],
      ["' or 1=1 --", { token: one }],
    ] as const) {
      for (const method of ['GetTask', 'CancelTask'])
        assert.deepEqual(await refusalOf(app, method, { id }, options), missing, `${method} ${id}`);
      const headers = { accept: 'text/event-stream' };
      assert.deepEqual(await refusalOf(app, 'SubscribeToTask', { id }, { ...options, headers }), missing);
    }
    for (const options of [{ token: two }, { token: theirs }, {}, { token: one, agent: 'other' }])
      assert.deepEqual((await result(app, 'ListTasks', {}, options)).tasks, []);
    assert.equal((await result(app, 'GetTask', { id: task.id.toUpperCase() }, { token: one })).id, task.id);
    assert.equal((await result(app, 'ListTasks', {}, { token: one })).totalSize, 1);
  },
);

forEachHttpService(
  'A2A-31 tasks are listed by their last change, in pages that neither skip nor repeat',
  async (open) => {
    const app = await openA2A(open);
    const made: Wire[] = [];
    for (let nth = 0; nth < 5; nth += 1) {
      made.push(await send(app, 'Hi', nth === 3 ? { contextId: 'one' } : {}));
      await app.clock.advance(1000);
    }
    const slow = await working(app);
    await app.clock.advance(1000);
    made.push(await send(app, 'Hi'));
    await app.clock.advance(1000);
    made.push(await result(app, 'CancelTask', { id: slow.id }));
    const newest = made.map(({ id }) => id).reverse();
    const all = await result(app, 'ListTasks', {});
    assert.deepEqual(
      all.tasks.map(({ id }: Wire) => id),
      newest,
    );
    assert.deepEqual([all.totalSize, all.pageSize, all.nextPageToken], [7, 7, '']);
    assert.ok(all.tasks.every((task: Wire) => !('artifacts' in task)));
    const paged: string[] = [];
    for (let pageToken = '', pages = 0; pages === 0 || pageToken !== ''; pages += 1) {
      const page = await result(app, 'ListTasks', { pageSize: 3, pageToken, includeArtifacts: true, historyLength: 0 });
      assert.deepEqual([page.totalSize, page.pageSize], [7, Math.min(3, 7 - 3 * pages)]);
      assert.ok(page.tasks.every((task: Wire) => task.history === undefined));
      paged.push(...page.tasks.map(({ id }: Wire) => id));
      pageToken = page.nextPageToken;
    }
    assert.deepEqual(paged, newest);
    const whole = await result(app, 'ListTasks', { contextId: 'one', includeArtifacts: true });
    assert.deepEqual(
      whole.tasks.map(({ id, artifacts }: Wire) => [id, artifacts.length]),
      [[made[3].id, 1]],
    );
    assert.equal((await result(app, 'ListTasks', { contextId: 'two' })).totalSize, 0);
    const since = made[3].status.timestamp;
    const later = await result(app, 'ListTasks', { statusTimestampAfter: since });
    assert.deepEqual(
      later.tasks.map(({ id }: Wire) => id),
      newest.slice(0, 3),
    );
    for (const pageSize of [0, -5]) assert.equal((await result(app, 'ListTasks', { pageSize })).tasks.length, 1);
    assert.equal((await result(app, 'ListTasks', { pageSize: 1000 })).tasks.length, 7);
    for (const bad of ['x', 'MTIz', '....', 'a'.repeat(500)])
      assert.deepEqual(await refusalOf(app, 'ListTasks', { pageToken: bad }), [-32602, 'PAGE_TOKEN_INVALID'], bad);
    for (const bad of [
      { status: 'WORKING' },
      { pageSize: 'ten' },
      { statusTimestampAfter: 'yesterday' },
      { historyLength: -1 },
    ])
      assert.deepEqual(await refusalOf(app, 'ListTasks', bad), [-32602, 'INVALID_PARAMS'], JSON.stringify(bad));
  },
);

overHttp('A2A-32 a task that is over cannot be canceled, and one that is canceled tells its streams', async (open) => {
  const app = await openA2A(open);
  const done = await send(app, 'Hi');
  assert.deepEqual(await refusalOf(app, 'CancelTask', { id: done.id }), [-32002, 'TASK_NOT_CANCELABLE']);
  const task = await working(app);
  const subscribed = await stream(app, 'SubscribeToTask', { id: task.id });
  const events: Wire[] = [];
  const reading = (async () => {
    for await (const event of subscribed.events) events.push(event);
  })();
  assert.equal((await result(app, 'CancelTask', { id: task.id, metadata: {} })).status.state, 'TASK_STATE_CANCELED');
  await reading;
  assert.equal(events.at(-1).statusUpdate.status.state, 'TASK_STATE_CANCELED');
  assert.deepEqual(await refusalOf(app, 'CancelTask', { id: task.id }), [-32002, 'TASK_NOT_CANCELABLE']);
  const headers = { accept: 'text/event-stream' };
  assert.deepEqual(await refusalOf(app, 'SubscribeToTask', { id: task.id }, { headers }), [-32004, 'TASK_FINAL']);
});

overHttp('A2A-28 each file that a run makes is an artifact with an address', async (open) => {
  const app = await openA2A(open, {
    tools: [
      {
        name: 'draw',
        description: 'Draws.',
        inputSchema: { type: 'object' },
        execute: async (_args: unknown, { saveAttachment }: Wire) => {
          const { id } = await saveAttachment(Buffer.from('A note.'), 'note.txt');
          return `Saved ${id}.`;
        },
      },
    ] as never,
    script: [
      { when: { tool: 'draw' }, reply: { text: 'Here it is.' } },
      { reply: { text: 'Let me draw.', toolCalls: [{ name: 'draw', arguments: {} }] } },
    ],
    agents: [{ name: 'artist', toolNames: ['draw'] }],
    host: { A2A: { Agents: ['artist'] } },
  });
  const options = { agent: 'artist' };
  const task = await send(app, 'Draw', {}, options);
  const [file] = (await app.client.attachments.list({})).body;
  assert.deepEqual(task.artifacts, [
    { artifactId: 'output', name: 'output', parts: [{ text: 'Here it is.' }] },
    {
      artifactId: `file-${file?.id}`,
      name: 'note.txt',
      parts: [{ url: `${app.url}/api/attachments/${file?.id}`, filename: 'note.txt', mediaType: 'text/plain' }],
    },
  ]);
  assert.equal(task.history?.length, 2);
  const { body } = await rpc(app, 'GetTask', { id: task.id }, options);
  assert.deepEqual(body.result, task);
  const [part] = task.artifacts?.[1]?.parts ?? [];
  const answer = await fetch(part !== undefined && 'url' in part ? part.url : '');
  assert.equal(await answer.text(), 'A note.');
});
