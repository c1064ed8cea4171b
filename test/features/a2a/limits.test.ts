import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { type AppSetup, forEachSharedService, type OpenApp, overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startIssuer } from '../../support/issuer.ts';
import { opensRun } from '../runs/other-process.ts';
import { tool } from '../runs/run-calls.ts';
import {
  cardOf,
  keyFor,
  message,
  next,
  openA2A,
  refusalOf,
  result,
  rpc,
  send,
  stream,
  streamed,
  type Wire,
  working,
} from './a2a-world.ts';

/* What the protocol is told up to each limit, and beyond it. */

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const hour = 3_600_000;

overHttp('A2A-18 an id of a message is forgotten some time after its day, and not before', async (open) => {
  const app = await openA2A(open);
  await send(app, 'Hi');
  const kept = () => app.store.count('messages of tasks');
  await app.clock.jump(25 * hour);
  await app.clock.advance(hour / 4);
  assert.equal(await kept(), 1);
  await app.clock.jump(hour);
  await app.clock.advance(hour / 4);
  await eventually('what is forgotten', async () => (await kept()) === 0 || null);
  // Whoever reads the task still has it.
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 1);
});

overHttp('A2A-16 OBS-20 requests and open streams are counted, by no word of a caller', async (open) => {
  const app = await openA2A(open, { host: { Metrics: { Path: '/metrics' } } });
  const series = async (name: string) =>
    (await (await fetch(`${app.url}/metrics`)).text()).split('\n').filter((line) => line.startsWith(`acp_a2a_${name}`));
  await send(app, 'Hi');
  await rpc(app, 'Zanzibar', {});
  await rpc(app, 'GetTask', { id: 'Zanzibar' });
  await rpc(app, 'tasks/get', { id: 'Zanzibar' }, { headers: { 'a2a-version': '0.3' } });
  await streamed(app, 'SendStreamingMessage', { message: message('slowly') });
  const { id } = await working(app);
  const open1 = await stream(app, 'SubscribeToTask', { id });
  await next(open1);
  assert.deepEqual(await series('streams'), ['acp_a2a_streams 1']);
  open1.close();
  await eventually(
    'the end of the stream',
    async () => (await series('streams')).join() === 'acp_a2a_streams 0' || null,
  );
  const labels = (method: string, version: string, error: string) =>
    `acp_a2a_version="${version}",${error === '' ? '' : `error_type="${error}",`}rpc_method="${method}"`;
  const counted = (await series('requests_total')).map((line) => {
    const [, named = '', count] = /^[^{]*\{(.*)\} (\d+)$/.exec(line) ?? [];
    return `${named.split(',').toSorted().join()} ${count}`;
  });
  assert.deepEqual(
    counted.toSorted(),
    [
      `${labels('GetTask', '1.0', 'TASK_NOT_FOUND')} 1`,
      `${labels('SendMessage', '1.0', '')} 2`,
      `${labels('SendStreamingMessage', '1.0', '')} 1`,
      `${labels('SubscribeToTask', '1.0', '')} 1`,
      `${labels('_OTHER', '1.0', 'METHOD_NOT_FOUND')} 1`,
      `${labels('tasks/get', '0.3', 'TASK_NOT_FOUND')} 1`,
    ].toSorted(),
  );
});

overHttp('A2A-23 a message has 32 data parts and 32 files, and the types that are taken', async (open) => {
  const app = await openA2A(open, { service: { Attachments: { MaxBytes: 256 } } });
  const many = (count: number, part: object) => [{ text: 'Look' }, ...Array.from({ length: count }, () => part)];
  const say = (parts: readonly object[]) => ({ message: message('', { parts }) });
  for (const part of [{ data: { a: 1 } }, { raw: png }]) {
    assert.deepEqual(await refusalOf(app, 'SendMessage', say(many(33, part))), [-32602, 'INVALID_PARAMS']);
    assert.equal((await result(app, 'ListTasks', {})).totalSize, 'raw' in part ? 1 : 0);
    assert.equal((await app.client.attachments.list({})).body.length, 0);
    const { task } = await result(app, 'SendMessage', say(many(32, part)));
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  }
  const large = { raw: Buffer.from('a'.repeat(257)).toString('base64'), mediaType: 'text/plain' };
  assert.deepEqual(await refusalOf(app, 'SendMessage', say(many(1, large))), [-32005, 'ATTACHMENT_TOO_LARGE']);
  for (const part of [
    { text: 'a', mediaType: 'image/png' },
    { text: 'a', mediaType: 'application/octet-stream' },
    { data: {}, mediaType: 'image/png' },
    { raw: png, mediaType: 'application/zip' },
  ])
    assert.equal((await refusalOf(app, 'SendMessage', say([{ text: 'Look' }, part])))[0], -32005, JSON.stringify(part));
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 2);
  for (const part of [
    { text: 'a', mediaType: 'text/markdown; charset=utf-8' },
    { text: '{}', mediaType: 'application/json' },
    { data: {}, mediaType: 'application/ld+json' },
    { raw: png, mediaType: 'application/octet-stream' },
    { raw: png, mediaType: 'IMAGE/PNG' },
  ])
    assert.equal(
      (await result(app, 'SendMessage', say([{ text: 'Look' }, part]))).task.status.state,
      'TASK_STATE_COMPLETED',
    );
  const any = { ...say([{ text: 'Hi' }]), configuration: { acceptedOutputModes: ['image/png', '*/*'] } };
  assert.equal((await result(app, 'SendMessage', any)).task.status.state, 'TASK_STATE_COMPLETED');
});

overHttp('A2A-14 a failure of the service is told by the id of its request, and makes no task', async (open) => {
  const app = await openA2A(open);
  const restore = await app.store.refuse('messages of tasks');
  const parts = [{ text: 'Hi' }, { raw: png }];
  const { status, body, headers } = await rpc(app, 'SendMessage', { message: message('', { parts }) });
  await restore();
  const requestId = headers.get('x-request-id');
  assert.deepEqual(
    [status, body.error.code, body.error.message],
    [200, -32603, `The service failed. The request is ${requestId}.`],
  );
  const [{ reason, metadata }] = body.error.data;
  assert.deepEqual([reason, metadata], ['INTERNAL_ERROR', { requestId }]);
  assert.equal((await result(app, 'ListTasks', {})).totalSize, 0);
  assert.deepEqual((await app.client.attachments.list({})).body, []);
  assert.ok(
    app.log.some(({ message: said, fields }) => /another agent failed/.test(said) && fields['requestId'] === requestId),
  );
});

overHttp('A2A-19 what does not fit the window of the model is a mistake of the message', async (open) => {
  const app = await openA2A(open, {
    simulator: {},
    service: {
      Preflight: { Enabled: true, ReserveRatio: 0 },
      Providers: { Compatible: { local: { Models: [{ Name: 'small', ContextWindowTokens: 50 }] } } },
    },
    agents: [{ name: 'small', model: { provider: 'local', model: 'small' } }],
    host: { A2A: { Agents: ['small'] } },
  });
  const said = { message: message('many words '.repeat(60)) };
  assert.deepEqual(await refusalOf(app, 'SendMessage', said, { agent: 'small' }), [-32602, 'CONTEXT_WINDOW_EXCEEDED']);
});

overHttp(
  'A2A-6 A2A-7 A2A-10 a card has what is well formed, below the prefix, and the issuer of tokens',
  async (open, t) => {
    const issuer = await startIssuer(t);
    const app = await openA2A(open, {
      token: 'a-shared-token-of-this-test',
      agents: [
        {
          name: 'odd',
          metadata: { 'a2a.tags': ['verse', 7], 'a2a.examples': [], 'a2a.documentationUrl': '', 'a2a.iconUrl': 5 },
        },
      ],
      host: {
        Prefix: '/acp',
        AuthToken: 'a-shared-token-of-this-test',
        Oidc: { Issuer: issuer.url, Audience: 'acp' },
        A2A: { Agents: ['odd'], PublicBaseUrl: 'https://agents.example.org' },
      },
    });
    const served = { url: `${app.url.replace(/\/acp$/, '')}/acp` };
    const token = issuer.token({ roles: 'admin' });
    const { body } = await cardOf(served, { agent: 'odd', token, headers: { 'a2a-version': '1.0' } });
    const legacy = await cardOf(served, { agent: 'odd', token, headers: { 'a2a-version': '0.3' } });
    assert.equal(body.supportedInterfaces[0]?.url, 'https://agents.example.org/acp/a2a/odd');
    assert.deepEqual(body.skills, [{ id: 'odd', name: 'odd', description: '', tags: ['agent'] }]);
    assert.deepEqual([body.documentationUrl, body.iconUrl], [undefined, undefined]);
    const openIdConnectUrl = `${issuer.url}/.well-known/openid-configuration`;
    assert.deepEqual(body.securitySchemes['oidc'], { openIdConnectSecurityScheme: { openIdConnectUrl } });
    assert.deepEqual(
      body.securityRequirements.map(({ schemes }: Wire) => Object.keys(schemes).join()),
      ['bearer', 'apiKey', 'oidc'],
    );
    assert.deepEqual(legacy.body.securitySchemes['oidc'], { type: 'openIdConnect', openIdConnectUrl });
    assert.deepEqual(legacy.body.security, [{ bearer: [] }, { apiKey: [] }, { oidc: [] }]);
  },
);

overHttp('A2A-2 an agent that asks for every tool cannot be offered either', async (open) => {
  const app = await openA2A(open, {
    tools: [tool('look', async () => 'seen')],
    host: { A2A: { Agents: ['helper', 'later'] } },
  });
  const model = { provider: 'demo', model: 'demo-1' };
  const save = (more: object) =>
    app.client.agents.save({ params: { name: 'later' }, body: { name: 'later', model, ...more } });
  const harness = { disableToolAutoApproval: true };
  await app.createAgent({ name: 'later', toolNames: ['look'] });
  assert.equal((await cardOf(app, { agent: 'later' })).status, 200);
  await save({ toolNames: ['look'], harness });
  assert.equal((await cardOf(app, { agent: 'later' })).status, 404);
});

overHttp('A2A-28 A2A-34 in a stream, too, a file that the run made is told before the end', async (open) => {
  const app = await openA2A(open, {
    tools: [
      {
        name: 'draw',
        description: 'Draws.',
        inputSchema: { type: 'object' },
        execute: async (_args: unknown, { saveAttachment }: Wire) => {
          await saveAttachment(Buffer.from('A note.'), 'note.txt');
          return 'Saved.';
        },
      },
    ] as never,
    script: [
      { when: { tool: 'draw' }, reply: { text: 'Here it is.' } },
      { reply: { toolCalls: [{ name: 'draw', arguments: {} }] } },
    ],
    agents: [{ name: 'artist', toolNames: ['draw'] }],
    host: { A2A: { Agents: ['artist'] } },
  });
  const events = await streamed(app, 'SendStreamingMessage', { message: message('Draw') }, { agent: 'artist' });
  const [file] = (await app.client.attachments.list({})).body;
  const tail = events
    .slice(-3)
    .map(({ artifactUpdate, statusUpdate }) => artifactUpdate?.artifact.artifactId ?? statusUpdate.status.state);
  assert.deepEqual(tail, ['output', `file-${file?.id}`, 'TASK_STATE_COMPLETED']);
  const { append, lastChunk } = events.at(-2).artifactUpdate;
  assert.deepEqual([append, lastChunk], [false, true]);
});

overHttp('A2A-29 what is said so far is an artifact, and no answer in the history before the end', async (open) => {
  const app = await openA2A(open);
  const { id } = await working(app);
  const task = await eventually<Promise<Wire>>('the first words', async () => {
    const now = await result(app, 'GetTask', { id });
    return now.artifacts === undefined ? null : now;
  });
  assert.equal(task.artifacts[0].parts[0].text, 'One moment');
  assert.deepEqual(
    task.history.map(({ role }: Wire) => role),
    ['ROLE_USER'],
  );
});

overHttp('A2A-31 a page has 50 tasks, and 100 at the most', async (open) => {
  const app = await openA2A(open);
  for (let nth = 0; nth < 101; nth += 1) await send(app, 'Hi');
  for (const [pageSize, size] of [
    [undefined, 50],
    [100, 100],
    [101, 100],
  ]) {
    const page = await result(app, 'ListTasks', { pageSize });
    assert.deepEqual([page.tasks.length, page.totalSize, page.nextPageToken !== ''], [size, 101, true]);
  }
});

/** A task of a caller whose run another process has. */
const taskElsewhere = async (open: OpenApp, service: NonNullable<AppSetup['service']> = {}) => {
  const app = await openA2A(open, { service });
  const token = await keyFor(app, 'partner');
  const own = await send(app, 'Hi', {}, { token });
  const row = (await app.store.stored('runs')).find((one) => one['id'] === own.id);
  const id = newId();
  await opensRun(app.store.open(), id, { sessionId: 'there', door: String(row?.['door']) });
  assert.equal((await result(app, 'GetTask', { id }, { token })).status.state, 'TASK_STATE_WORKING');
  return { app, token, id };
};

overHttp('A2A-32 a task that another process carries out is not canceled from here', async (open) => {
  const { app, token, id } = await taskElsewhere(open);
  assert.deepEqual(await refusalOf(app, 'CancelTask', { id }, { token }), [-32002, 'OTHER_INSTANCE']);
  assert.deepEqual(await refusalOf(app, 'CancelTask', { id }), [-32001, 'TASK_NOT_FOUND']);
});

forEachSharedService(
  'A2A-32 where another process is asked to cancel, that is waited for five seconds',
  async (open) => {
    const { app, token, id } = await taskElsewhere(open, { RunCancellation: { Forward: true } });
    app.clock.stand();
    let answered = false;
    const canceling = result(app, 'CancelTask', { id }, { token }).finally(() => {
      answered = true;
    });
    await eventually('the request for the cancel', async () => (await app.store.count('cancels of runs')) > 0 || null);
    await app.clock.advance(4000);
    await result(app, 'GetTask', { id }, { token });
    assert.equal(answered, false);
    // The wait may have begun a moment after the request was seen.
    for (let seconds = 4; seconds < 7; seconds += 1) await app.clock.advance(1000);
    await eventually('the answer', () => answered || null);
    assert.equal((await canceling).status.state, 'TASK_STATE_WORKING');
  },
);

overHttp('A2A-36 who comes while the service drains gets the task as it is, and no more', async (open) => {
  const app = await openA2A(open, { service: { Drain: { Timeout: '1s' } } });
  const { id } = await working(app);
  const closing = app.app.drain();
  const subscribed = await stream(app, 'SubscribeToTask', { id });
  assert.equal((await next(subscribed)).task.status.state, 'TASK_STATE_WORKING');
  const rest: Wire[] = [];
  const reading = (async () => {
    for await (const event of subscribed.events) rest.push(event);
  })();
  await app.clock.advance(1000);
  await closing;
  await reading;
  assert.deepEqual(rest, []);
});
