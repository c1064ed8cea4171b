import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import type { A2AMessageRow } from '../../../src/db/tables/a2a.ts';
import { a2aMessageStore } from '../../../src/features/a2a/a2a-messages.store.ts';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import { storedRows } from '../../support/store.ts';
import { keyFor, message, openA2A, refusalOf, result, rpc, send, type Wire, working } from './a2a-world.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

forEachHttpService(
  'A2A-16 A2A-17 A2A-18 a message is one run, with its id for the task and its session for the context',
  async (open) => {
    const app = await openA2A(open);
    const token = await keyFor(app, 'partner');
    const said = message('Hi');
    const { task } = await result(app, 'SendMessage', { message: said }, { token });
    const { body: run } = await app.client.runs.get({ params: { runId: task.id } });
    assert.deepEqual(
      [run.kind, run.agentName, run.sessionId, run.labels?.['source'], run.labels?.['apiKey'], run.parentRunId],
      ['Agent', 'helper', task.contextId, 'a2a', 'partner', null],
    );
    assert.deepEqual(task.metadata, { 'acp.runId': task.id, 'acp.agent': 'helper' });
    // The same message is the same task, whatever it says now and however it is sent; another caller's is another's.
    const again = { message: { ...said, parts: [{ text: 'Something else' }] } };
    assert.deepEqual((await result(app, 'SendMessage', again, { token })).task, task);
    const other = await result(app, 'SendMessage', { message: said });
    assert.notEqual(other.task.id, task.id);
    assert.equal((await app.client.runs.list({})).body.length, 2);
    // For a day.
    await app.clock.jump(86_400_000 - 60_000);
    assert.equal((await result(app, 'SendMessage', { message: said }, { token })).task.id, task.id);
    await app.clock.jump(120_000);
    const fresh = await result(app, 'SendMessage', { message: said }, { token });
    assert.notEqual(fresh.task.id, task.id);
    assert.equal((await app.client.runs.list({})).body.length, 3);
  },
);

forEachHttpService('A2A-18 of many messages with one id at once one starts a run', async (open) => {
  const app = await openA2A(open);
  const said = { message: message('slowly'), configuration: { returnImmediately: true } };
  const ids = (await Promise.all(Array.from({ length: 8 }, () => result(app, 'SendMessage', said)))).map(
    ({ task }: Wire) => task.id,
  );
  assert.deepEqual(new Set(ids).size, 1);
  assert.equal((await app.client.runs.list({})).body.length, 1);
});

overHttp(
  'A2A-18 a message whose process died before its run was there makes a task after all, and one',
  async (open) => {
    const app = await openA2A(open);
    const said = { message: message('Hi') };
    const { task } = await result(app, 'SendMessage', said);
    // What is left of such a process: a note of a run that never came.
    const storage = app.store.open();
    const [note] = (await storedRows(storage, 'messages of tasks')) as unknown as readonly A2AMessageRow[];
    assert.ok(note !== undefined);
    assert.ok(await storage.stores(a2aMessageStore).reserve({ ...note, task_id: newId() }, task.id));
    await app.clock.jump(31_000);
    const sent = await Promise.all([result(app, 'SendMessage', said), result(app, 'SendMessage', said)]);
    const ids = new Set(sent.map((answer: Wire) => answer.task.id));
    assert.equal(ids.size, 1);
    assert.ok(!ids.has(task.id));
    assert.equal((await app.client.runs.list({})).body.length, 2);
  },
);

overHttp('A2A-18 a message that an earlier process has answered makes no second task', async (open) => {
  const first = await openA2A(open);
  const said = { message: message('Hi') };
  const { task } = await result(first, 'SendMessage', said);
  const { folder } = first;
  await first.close();
  const second = await open({ folder, host: { A2A: { Agents: ['helper'] } } });
  const again = (await result(second, 'SendMessage', said)).task;
  assert.deepEqual([again.id, again.history], [task.id, task.history]);
  assert.equal((await second.client.runs.list({})).body.length, 1);
});

forEachHttpService(
  'A2A-18 A2A-20 A2A-23 A2A-24 A2A-25 what is wrong with a message is said before a run starts',
  async (open) => {
    const app = await openA2A(open);
    const params = (more: object, configuration?: object) => ({
      message: { ...message('Hi'), ...more },
      ...(configuration === undefined ? {} : { configuration }),
    });
    const invalid = [-32602, 'INVALID_PARAMS'];
    const refused = [-32005, 'CONTENT_TYPE_NOT_SUPPORTED'];
    for (const [given, expected] of [
      [{}, invalid],
      [{ message: 'Hi' }, invalid],
      [params({ messageId: undefined }), invalid],
      [params({ messageId: '' }), invalid],
      [params({ messageId: 'm'.repeat(257) }), invalid],
      [params({ role: 'ROLE_AGENT' }), invalid],
      [params({ role: 'user' }), invalid],
      [params({ role: undefined }), invalid],
      [params({ parts: undefined }), invalid],
      [params({ parts: [] }), invalid],
      [params({ parts: Array.from({ length: 51 }, () => ({ text: 'a' })) }), invalid],
      [params({ parts: [{}] }), invalid],
      [params({ parts: [{ text: 'a', data: {} }] }), invalid],
      [params({ parts: [{ text: 5 }] }), invalid],
      [params({ parts: [{ text: '  ' }] }), invalid],
      [params({ parts: [{ raw: png }] }), invalid],
      [params({ parts: [{ text: 'a' }, { raw: 'not base64!' }] }), invalid],
      [params({ parts: [{ data: 'x'.repeat(262_144) }] }), invalid],
      [params({ parts: [{ text: 'a' }, { url: 'http://169.254.169.254/' }] }), refused],
      [params({ parts: [{ text: 'a' }, { raw: 'AAECAwQFBgcICQ==' }] }), refused],
      [params({ parts: [{ text: 'a' }, { raw: 'dGNr', mediaType: 'application/x-unsupported' }] }), refused],
      [params({ parts: [{ text: 'a' }, { raw: '' }] }), [-32005, 'FILE_EMPTY']],
      [params({}, { acceptedOutputModes: ['image/png'] }), [-32005, 'OUTPUT_MODES_NOT_SUPPORTED']],
      [params({}, { historyLength: -1 }), invalid],
      [params({}, { historyLength: 1.5 }), invalid],
      [params({}, { returnImmediately: 'yes' }), invalid],
      [params({ contextId: 'not a context' }), [-32602, 'CONTEXT_INVALID']],
      [params({ contextId: 'c'.repeat(129) }), [-32602, 'CONTEXT_INVALID']],
      [params({ taskId: 'nothing' }), [-32001, 'TASK_NOT_FOUND']],
      [{ ...params({}), metadata: { 'acp.parameters': { a: 1 } } }, invalid],
      [{ ...params({}), metadata: { 'acp.parameters': { unknown: 'x' } } }, [-32602, 'PARAMETER_INVALID']],
    ] as const)
      assert.deepEqual(await refusalOf(app, 'SendMessage', given), expected, JSON.stringify(given).slice(0, 200));
    assert.deepEqual((await app.client.runs.list({})).body, []);
    assert.deepEqual((await app.client.attachments.list({})).body, []);
    const modes = await result(
      app,
      'SendMessage',
      params({}, { acceptedOutputModes: ['image/png', 'text/plain; charset=utf-8'] }),
    );
    assert.equal(modes.task.status.state, 'TASK_STATE_COMPLETED');
  },
);

forEachHttpService('A2A-23 A2A-29 texts, data and files reach the agent, and stand in the history', async (open) => {
  const app = await openA2A(open, {
    script: [{ reply: { text: 'Noted.' } }],
    agents: [{ name: 'echo', parameters: [{ name: 'tone', kind: 'Text' }] }],
    host: { A2A: { Agents: ['echo'] } },
  });
  const parts = [
    { text: 'First.' },
    { data: { order: 7 } },
    { text: 'Second.' },
    { raw: png, filename: 'dot.png', mediaType: 'image/png' },
  ];
  const params = { message: message('', { parts }), metadata: { 'acp.parameters': { tone: 'kind' } } };
  const { task } = await result(app, 'SendMessage', params, { agent: 'echo' });
  const [sent, answered] = task.history;
  assert.deepEqual([sent.messageId, sent.role, answered.role], [params.message.messageId, 'ROLE_USER', 'ROLE_AGENT']);
  const [file] = (await app.client.attachments.list({ query: { sessionId: task.contextId } })).body;
  assert.equal(file?.mediaType, 'image/png');
  assert.deepEqual(sent.parts, [
    { text: 'First.\n\nSecond.' },
    { data: { order: 7 }, mediaType: 'application/json' },
    { url: `${app.url}/api/attachments/${file?.id}`, filename: 'dot.png', mediaType: 'image/png' },
  ]);
  const { body: input } = await app.client.runs.input({ params: { runId: task.id } });
  const contents = input.messages.findLast(({ role }) => role === 'User')?.contents ?? [];
  assert.deepEqual(
    contents.map(({ type }) => type),
    ['Document', 'Attachment', 'Text'],
  );
  // Data alone is a message, too.
  const data = message('', { parts: [{ data: [1, null] }] });
  const alone = (await result(app, 'SendMessage', { message: data }, { agent: 'echo' })).task;
  assert.deepEqual(alone.history[0].parts, [{ data: [1, null], mediaType: 'application/json' }]);
  // historyLength counts from the newest; 0 leaves it out.
  const cut = async (historyLength: number) =>
    (await result(app, 'GetTask', { id: task.id, historyLength }, { agent: 'echo' })).history;
  assert.deepEqual(await cut(1), [answered]);
  assert.equal(await cut(0), undefined);
  assert.deepEqual(await cut(10), task.history);
});

forEachHttpService(
  'A2A-19 A2A-20 a context is its caller\u2019s and its agent\u2019s, and has one task at a time',
  async (open) => {
    const app = await openA2A(open, { agents: [{ name: 'other' }], host: { A2A: { Agents: ['helper', 'other'] } } });
    const [one, two] = [await keyFor(app, 'one'), await keyFor(app, 'two')];
    const contextId = 'our-context';
    const first = await send(app, 'Hi', { contextId }, { token: one });
    assert.equal(first.contextId, contextId);
    const second = await send(app, 'And?', { contextId }, { token: one });
    assert.notEqual(second.id, first.id);
    const { body: session } = await app.client.sessions.get({ params: { sessionId: contextId } });
    assert.equal(session.messages?.length ?? 4, 4);
    const notYours = [-32602, 'CONTEXT_NOT_YOURS'];
    const say = (more: object, options: object) =>
      refusalOf(app, 'SendMessage', { message: message('Hi', { ...more }) }, options);
    assert.deepEqual(await say({ contextId }, { token: two }), notYours);
    assert.deepEqual(await say({ contextId }, { token: one, agent: 'other' }), notYours);
    assert.deepEqual(await say({ contextId }, {}), notYours);
    // One that was opened in another way is nobody's here.
    await app.client.runs.start({
      params: { name: 'helper' },
      body: { message: 'Hi', sessionId: 'native', stream: false },
    });
    assert.deepEqual(await say({ contextId: 'native' }, { token: one }), notYours);

    const open1 = await working(app, { token: one });
    assert.deepEqual(await say({ contextId: open1.contextId }, { token: one }), [-32004, 'CONTEXT_BUSY']);
    assert.deepEqual(await say({ taskId: open1.id }, { token: one }), [-32004, 'TASK_IN_PROGRESS']);
    assert.deepEqual(await say({ taskId: first.id }, { token: one }), [-32004, 'TASK_FINAL']);
    assert.deepEqual(await say({ taskId: first.id, contextId: 'wrong' }, { token: one }), [-32004, 'TASK_FINAL']);
    assert.deepEqual(await say({ taskId: first.id }, { token: two }), [-32001, 'TASK_NOT_FOUND']);
  },
);

overHttp('A2A-22 a message waits for its end, so long at most, unless it is not to', async (open) => {
  const app = await openA2A(open, { host: { A2A: { MaxWait: '1s' } } });
  const soon = await working(app);
  assert.equal(soon.status.state, 'TASK_STATE_WORKING');
  const waiting = send(app, 'wait');
  let answered = false;
  void waiting.then(() => {
    answered = true;
  });
  for (let tasks = 0; tasks < 2; ) tasks = (await result(app, 'ListTasks', {})).totalSize;
  assert.equal(answered, false);
  await app.clock.advance(1000);
  assert.equal((await waiting).status.state, 'TASK_STATE_WORKING');
});

overHttp('A2A-16 what the host or a quota refuses is no task, and HTTP says so', async (open) => {
  const runAuthorization = {
    authorize: async ({ action, agentName }: RunAuthorizationRequest) => ({
      allowed: action !== 'Start' || agentName !== 'other',
    }),
  };
  const app = await openA2A(open, {
    module: { runAuthorization },
    agents: [{ name: 'other' }],
    host: { A2A: { Agents: ['helper', 'other'] } },
  });
  const denied = await rpc(app, 'SendMessage', { message: message('Hi') }, { agent: 'other' });
  assert.deepEqual([denied.status, denied.body.code], [403, 'run-not-allowed']);
  await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
  assert.equal((await send(app, 'Hi')).status.state, 'TASK_STATE_COMPLETED');
  const over = await rpc(app, 'SendMessage', { message: message('Hi', { parts: [{ text: 'a' }, { raw: png }] }) });
  assert.deepEqual([over.status, over.body.code], [429, 'quota-exceeded']);
  assert.ok(Number(over.headers.get('retry-after')) > 0);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 1);
  assert.deepEqual((await app.client.attachments.list({})).body, []);
});

overHttp('A2A-16 without records of runs there are no tasks', async (open) => {
  const app = await openA2A(open, { service: { RunRecording: { Enabled: false } } });
  const { status, body } = await rpc(app, 'SendMessage', { message: message('Hi') });
  assert.deepEqual([status, body.code], [501, 'run-recording-disabled']);
});

overHttp('A2A-4 the tenant of a message is that of its credential, whatever the message says', async (open) => {
  const app = await openA2A(open, { host: { Tenancy: { Enabled: true } } });
  const acme = app.inTenant('acme');
  await acme.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  const token = await keyFor({ client: acme }, 'theirs');
  const { task } = await result(app, 'SendMessage', { tenant: 'default', message: message('Hi') }, { token });
  assert.equal((await acme.runs.get({ params: { runId: task.id } })).body.id, task.id);
  assert.deepEqual((await app.client.runs.list({})).body, []);
  assert.equal((await result(app, 'GetTask', { tenant: 'default', id: task.id }, { token })).id, task.id);
});

overHttp(
  'A2A-21 APPR-7 nobody can be asked in a task: a call that a policy wants approved fails, and the run goes on',
  async (open) => {
    const made: string[] = [];
    const app = await openA2A(open, {
      tools: [
        {
          name: 'look',
          description: 'Looks.',
          inputSchema: { type: 'object' },
          execute: async () => {
            made.push('look');
            return 'seen';
          },
        },
      ],
      module: { approvalPolicy: { decide: async () => 'Required' } },
      script: [
        { when: { tool: 'look' }, reply: { text: 'I could not look.' } },
        { reply: { toolCalls: [{ name: 'look', arguments: {} }] } },
      ],
      agents: [{ name: 'seer', toolNames: ['look'] }],
      host: { A2A: { Agents: ['seer'] } },
    });
    const task = await send(app, 'Look', {}, { agent: 'seer' });
    assert.deepEqual(
      [task.status.state, task.artifacts?.[0]?.parts],
      ['TASK_STATE_COMPLETED', [{ text: 'I could not look.' }]],
    );
    assert.deepEqual([made, (await app.client.approvals.list({})).body], [[], []]);
  },
);

overHttp(
  'A2A-30 RUN-39 SEC-23 a task that the host refuses its caller is none, and a list is refused as a whole',
  async (open) => {
    const denied = new Set<string>();
    const asked: RunAuthorizationRequest[] = [];
    const runAuthorization = {
      async authorize(request: RunAuthorizationRequest) {
        asked.push(request);
        return { allowed: !denied.has(request.action) };
      },
    };
    const app = await openA2A(open, { module: { runAuthorization } });
    const { id } = await working(app);
    const unknown = await refusalOf(app, 'GetTask', { id: '0190b6a2-0000-7000-8000-000000000000' });
    denied.add('Read');
    assert.deepEqual(await refusalOf(app, 'GetTask', { id }), unknown);
    const listening = await rpc(app, 'SubscribeToTask', { id }, { headers: { accept: 'text/event-stream' } });
    assert.equal(listening.body.error.code, unknown[0]);
    assert.deepEqual(await refusalOf(app, 'SendMessage', { message: message('more', { taskId: id }) }), unknown);
    assert.equal((await result(app, 'ListTasks', {})).totalSize, 1);
    denied.clear();
    denied.add('Cancel');
    assert.deepEqual(await refusalOf(app, 'CancelTask', { id }), unknown);
    assert.equal((await result(app, 'GetTask', { id })).status.state, 'TASK_STATE_WORKING');
    denied.clear();
    denied.add('List');
    for (const filter of [{}, { status: 'TASK_STATE_AUTH_REQUIRED' }]) {
      const { status, body } = await rpc(app, 'ListTasks', filter);
      assert.deepEqual([status, body.code], [403, 'run-not-allowed']);
    }
    denied.clear();
    asked.length = 0;
    assert.equal((await result(app, 'CancelTask', { id })).status.state, 'TASK_STATE_CANCELED');
    assert.deepEqual(
      asked.map(({ action, resource, runId }) => [action, resource, runId]),
      [['Cancel', 'Run', id]],
    );
  },
);

overHttp('A2A-23 of a message whose second file is refused the first one is not kept either', async (open) => {
  const app = await openA2A(open);
  const script = Buffer.from('MZ\u0090\u0000 a program').toString('base64');
  const parts = [{ text: 'Look' }, { raw: png }, { raw: script }];
  const said = message('', { parts });
  assert.equal((await refusalOf(app, 'SendMessage', { message: said }))[0], -32005);
  assert.deepEqual((await app.client.attachments.list({})).body, []);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);
  // Nor does the id of what was refused stand for anything.
  const { task } = await result(app, 'SendMessage', { message: { ...said, parts: parts.slice(0, 2) } });
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal((await app.client.attachments.list({})).body.length, 1);
});

overHttp('A2A-18 an id of a message stands for the task of one agent, and for none of another', async (open) => {
  const app = await openA2A(open, { agents: [{ name: 'other' }], host: { A2A: { Agents: ['helper', 'other'] } } });
  const said = { message: message('Hi') };
  const { task } = await result(app, 'SendMessage', said);
  const { task: others } = await result(app, 'SendMessage', said, { agent: 'other' });
  assert.notEqual(others.id, task.id);
  assert.deepEqual([task.metadata['acp.agent'], others.metadata['acp.agent']], ['helper', 'other']);
  assert.equal((await result(app, 'SendMessage', said)).task.id, task.id);
  assert.equal((await result(app, 'SendMessage', said, { agent: 'other' })).task.id, others.id);
});
