import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { openApp, overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startIssuer } from '../../support/issuer.ts';
import {
  handshake,
  heldTool,
  holdingScript,
  keyFor,
  openMcp,
  resultOf,
  stateless,
  tasksCapability,
} from './mcp-world.ts';

const metadataPath = '/mcp/.well-known/oauth-protected-resource';

overHttp(
  'MCP-45 with an issuer the endpoint says where tokens come from, and takes none for another',
  async (open, t) => {
    const issuer = await startIssuer(t);
    const app = await openMcp(open, {
      host: { Oidc: { Issuer: issuer.url, Audience: 'acp' }, McpServer: { Agents: ['helper'] } },
      token: issuer.token({ sub: 'ada', roles: 'admin' }),
    });
    const refused = await stateless(app, 'tools/list');
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get('www-authenticate'), `Bearer resource_metadata="${app.url}${metadataPath}"`);
    const { status, body } = await fetch(`${app.url}${metadataPath}`).then(async (answer) => ({
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown>,
    }));
    assert.equal(status, 200);
    assert.deepEqual([body['resource'], body['authorization_servers']], [`${app.url}/mcp`, [issuer.url]]);
    const listed = (claims: object) =>
      stateless(app, 'tools/list', {}, { token: issuer.token({ sub: 'ada', ...claims }) });
    assert.equal((await listed({ roles: 'operator' })).status, 200);
    assert.equal((await listed({ roles: 'operator', aud: 'another' })).status, 401);
  },
);

overHttp('MCP-45 without an issuer there is no such metadata, and a 401 names none', async (open) => {
  const app = await openMcp(open);
  assert.equal((await fetch(`${app.url}${metadataPath}`)).status, 404);
  const refused = await stateless(app, 'tools/list', {}, { token: 'acp_default_nothing' });
  assert.equal(refused.status, 401);
  assert.doesNotMatch(refused.headers.get('www-authenticate') ?? '', /resource_metadata/);
});

const draw = {
  name: 'draw',
  description: 'Draws.',
  inputSchema: { type: 'object' },
  async execute(_args: unknown, { saveAttachment }: { saveAttachment(data: Buffer, name: string): Promise<object> }) {
    await saveAttachment(Buffer.from('A note.'), 'note.txt');
    return 'drawn';
  },
} as unknown as ToolDefinition;

overHttp(
  'MCP-58 an answer that is JSON comes parsed and has its schema, and files of the run are links',
  async (open) => {
    const schema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] };
    const model = { provider: 'demo', model: 'adder', responseFormat: { kind: 'JsonSchema', schema } };
    const app = await openMcp(open, {
      tools: [draw],
      agents: [
        { name: 'adder', model },
        { name: 'artist', toolNames: ['draw'] },
      ],
      script: [
        { when: { model: 'adder' }, reply: { text: '{"sum":8}' } },
        { when: { tool: 'draw' }, reply: { text: 'Here it is.' } },
        { reply: { toolCalls: [{ name: 'draw', arguments: {} }] } },
      ],
      host: { McpServer: { Agents: ['adder', 'artist'] } },
    });
    const tools = resultOf(await stateless(app, 'tools/list'))['tools'] as Record<string, Record<string, unknown>>[];
    const output = tools.map(
      ({ outputSchema }) => (outputSchema?.['properties'] as { output?: unknown } | undefined)?.output,
    );
    assert.deepEqual(output, [schema, undefined]);
    const call = async (name: string, token?: string) =>
      resultOf(
        await stateless(
          app,
          'tools/call',
          { name, arguments: { message: 'Hi' } },
          token === undefined ? {} : { token },
        ),
      );
    const note = { name: 'note.txt', mimeType: 'text/plain', size: 7 };
    const added = await call('adder');
    assert.deepEqual(added['content'], [{ type: 'text', text: '{"sum":8}' }]);
    assert.deepEqual((added['structuredContent'] as Record<string, unknown>)['output'], { sum: 8 });

    const key = await keyFor(app, 'outside');
    const drawn = await call('artist', key);
    const [file] = (await app.client.attachments.list({})).body;
    assert.deepEqual(drawn['content'], [
      { type: 'text', text: 'Here it is.' },
      { type: 'resource_link', uri: `${app.url}/api/attachments/${file?.id}`, ...note },
    ]);
    assert.ok(!Object.hasOwn(drawn['structuredContent'] as object, 'output'), 'a text is no JSON');
    // Claude Code shows its model what is structured in place of the texts beside it.
    assert.equal(
      (drawn['structuredContent'] as { text: string }).text,
      (drawn['content'] as { text: string }[])[0]?.text,
    );
    assert.ok(!Object.hasOwn(added['structuredContent'] as object, 'text'), 'JSON is told once');
    const read = (token: string) =>
      fetch(`${app.url}/api/attachments/${file?.id}`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await read(key)).status, 403);
    assert.equal((await read(await keyFor(app, 'reader', ['RunsRead']))).status, 200);
  },
);

overHttp('MCP-58 links are addresses by which the caller has come, also those of a task', async (open) => {
  const admin = 'a-shared-token-that-is-long-enough';
  const app = await openMcp(open, {
    token: admin,
    tools: [draw],
    agents: [{ name: 'artist', toolNames: ['draw'] }],
    script: [
      { when: { tool: 'draw' }, reply: { text: 'Here it is.' } },
      { reply: { toolCalls: [{ name: 'draw', arguments: {} }] } },
    ],
    host: {
      ...{ AuthToken: admin, AllowRemoteAccess: true },
      McpServer: { Agents: ['artist'], Tasks: { InlineWait: '0s' } },
    },
  });
  const key = await keyFor(app, 'outside');
  // The library for Python takes absolute addresses alone: those by which the caller has come.
  const draws = { name: 'artist', arguments: { message: 'Hi' } };
  const forwarded = { 'x-forwarded-host': 'acp.example.com', 'x-forwarded-proto': 'https' };
  const far = { token: key, headers: forwarded, capabilities: tasksCapability };
  const uriOf = (result: unknown) => (result as { content: { uri?: string }[] }).content[1]?.uri ?? '';
  const address = /^https:\/\/acp\.example\.com\/api\/attachments\/[0-9a-f-]{36}$/;
  const answered = { token: key, headers: forwarded };
  assert.match(uriOf(resultOf(await stateless(app, 'tools/call', draws, answered))), address);
  assert.match(uriOf(resultOf(await handshake(app, 'tools/call', draws, answered))), address);
  const { taskId } = resultOf(await stateless(app, 'tools/call', draws, far));
  const task = await eventually('the task has ended', async () => {
    const seen = resultOf(await stateless(app, 'tasks/get', { taskId }, far));
    return seen['status'] === 'completed' ? seen : null;
  });
  assert.match(uriOf(task['result']), address);
});

test('SEC-7 MCP-44 what is offered to other machines while nobody could call it is told at the start', async (t) => {
  const token = 'a-shared-token-that-is-long-enough';
  const remote = { AllowRemoteAccess: true, AuthToken: token };
  const offers = { McpServer: { Agents: ['helper'], ControlPlane: 'Read' }, A2A: { Agents: ['helper'] } };
  const warned = ({ log }: Awaited<ReturnType<typeof openApp>>): unknown[] =>
    log.filter(({ message }) => /neither an issuer/.test(message)).map(({ fields }) => fields['setting']);
  const first = await openApp(t, 'in process', { token, host: { ...remote, ...offers } });
  assert.deepEqual(warned(first), ['Host:McpServer:Agents', 'Host:McpServer:ControlPlane', 'Host:A2A:Agents']);
  const { folder } = first;
  await keyFor(first, 'reader', ['RunsRead']);
  await first.close();
  const second = await openApp(t, 'in process', {
    folder,
    token,
    host: { ...remote, McpServer: { Agents: ['helper'] } },
  });
  assert.deepEqual(warned(second), ['Host:McpServer:Agents'], 'a key of another scope calls nothing');
  await keyFor(second, 'outside');
  await second.close();
  const third = await openApp(t, 'in process', { folder, token, host: { ...remote, ...offers } });
  assert.deepEqual(warned(third), []);
  await third.close();
  const closed = await openApp(t, 'in process', { host: offers });
  assert.deepEqual(warned(closed), [], 'other machines are not served');
  const idle = await openApp(t, 'in process', { token, host: remote });
  assert.deepEqual(warned(idle), [], 'nothing is offered');
});

overHttp(
  'MCP-58 AGENT-7 the answer of a task has the format of the agent that gave it, whoever has its name by now',
  async (open) => {
    const model = { provider: 'demo', model: 'adder' };
    const json = { ...model, responseFormat: { kind: 'Json' } };
    const { tool, letGo } = heldTool();
    const toolNames = ['hold'];
    const app = await openMcp(open, {
      tools: [tool],
      agents: [
        { name: 'adder', model: json, toolNames },
        { name: 'teller', model, toolNames },
      ],
      script: [
        { when: { tool: 'hold' }, reply: { text: '{"sum":8}' } },
        { reply: { toolCalls: [{ name: 'hold', arguments: {} }] } },
      ],
      host: { McpServer: { Agents: ['adder', 'teller'], Tasks: { InlineWait: '0s' } } },
    });
    const token = await keyFor(app, 'outside');
    const own = { token, capabilities: tasksCapability };
    const ask = async (name: string): Promise<string> => {
      const asked = resultOf(await stateless(app, 'tools/call', { name, arguments: { message: 'Hi' } }, own));
      return String(asked['taskId']);
    };
    const outputOf = (taskId: string) =>
      eventually('the task has its answer', async () => {
        const { result } = resultOf(await stateless(app, 'tasks/get', { taskId }, own)) as {
          result?: { structuredContent: Record<string, unknown> };
        };
        return result !== undefined && { output: result.structuredContent['output'] };
      });
    const [adder, teller] = [await ask('adder'), await ask('teller')];
    letGo();
    const both = async () => [await outputOf(adder), await outputOf(teller)];
    const parsed = { output: { sum: 8 } };
    const text = { output: undefined };
    assert.deepEqual(await both(), [parsed, text]);
    const save = (name: string, binding: object) =>
      app.client.agents.save({ params: { name }, body: { name, model: binding, expectedVersion: 1 } as never });
    await save('adder', model);
    await save('teller', json);
    assert.deepEqual(await both(), [parsed, text], 'in the version that it had');
    for (const name of ['adder', 'teller']) await app.client.agents.remove({ params: { name } });
    await app.clock.jump(1000);
    for (const name of ['adder', 'teller']) await app.client.agents.create({ body: { name, model: json } as never });
    assert.deepEqual(await both(), [text, text], 'of one that is gone nothing is known');
  },
);

overHttp('MCP-55 RUN-39 SEC-23 a task that the host refuses its caller is none', async (open) => {
  const denied = new Set<string>();
  const hold = heldTool();
  const app = await openMcp(open, {
    module: { runAuthorization: { authorize: async ({ action }) => ({ allowed: !denied.has(action) }) } },
    agents: [{ name: 'helper', toolNames: ['hold'] }],
    tools: [hold.tool],
    script: holdingScript,
    host: { McpServer: { Agents: ['helper'], Tasks: { InlineWait: '0s' } } },
  });
  const declared = { capabilities: tasksCapability };
  denied.add('Read');
  const begun = await stateless(app, 'tools/call', { name: 'helper', arguments: { message: 'wait' } }, declared);
  const { taskId } = resultOf(begun) as { taskId: string };
  assert.ok(taskId, 'who starts a task hears of it');
  const unknown = await stateless(app, 'tasks/get', { taskId: '0190b6a2-0000-7000-8000-000000000000' }, declared);
  for (const method of ['tasks/get', 'tasks/update'])
    assert.deepEqual((await stateless(app, method, { taskId }, declared)).body, unknown.body);
  denied.clear();
  denied.add('Cancel');
  assert.deepEqual((await stateless(app, 'tasks/cancel', { taskId }, declared)).body, unknown.body);
  assert.equal(resultOf(await stateless(app, 'tasks/get', { taskId }, declared))['status'], 'working');
  denied.clear();
  resultOf(await stateless(app, 'tasks/cancel', { taskId }, declared));
});

overHttp('MCP-52 of a session that is not the caller’s own here it learns nothing', async (open) => {
  const app = await openMcp(open, {
    agents: [{ name: 'helper' }, { name: 'other' }],
    host: { McpServer: { Agents: ['helper', 'other'] } },
  });
  const [ann, ben] = [await keyFor(app, 'ann'), await keyFor(app, 'ben')];
  const say = (name: string, sessionId: string, token: string) =>
    stateless(app, 'tools/call', { name, arguments: { message: 'Hi', sessionId } }, { token });
  resultOf(await say('helper', 'talk', ann));
  await app.client.runs.start({
    params: { name: 'helper' },
    body: { message: 'Hi', sessionId: 'native', stream: false },
  });
  const told = async (name: string, sessionId: string, token: string) => {
    const { status, body } = await say(name, sessionId, token);
    return [status, body.error?.code, body.error?.message.replace(sessionId, 'ID')];
  };
  const expected = [400, -32602, 'Session "ID" is not one that you have opened here.'];
  for (const [name, sessionId, token] of [
    ['helper', 'talk', ben],
    ['other', 'talk', ben],
    ['other', 'talk', ann],
    ['helper', 'native', ann],
    ['other', 'native', ann],
  ] as const)
    assert.deepEqual(await told(name, sessionId, token), expected, `${name} ${sessionId}`);
  resultOf(await say('helper', 'talk', ann));
});

overHttp('MCP-54 where nobody waits every call becomes a task, however soon it is over', async (open) => {
  const app = await openMcp(open, {
    host: { McpServer: { Agents: ['helper'], Tasks: { InlineWait: '0s' } } },
  });
  app.clock.stand();
  const declared = { capabilities: tasksCapability };
  const begun = await stateless(app, 'tools/call', { name: 'helper', arguments: { message: 'Hi' } }, declared);
  const { resultType, taskId } = resultOf(begun) as { resultType: string; taskId: string };
  assert.equal(resultType, 'task');
  await eventually('its end', async () => {
    const { status } = resultOf(await stateless(app, 'tasks/get', { taskId }, declared));
    return status === 'completed' || null;
  });
  // Who knows no tasks waits.
  const waited = resultOf(await stateless(app, 'tools/call', { name: 'helper', arguments: { message: 'Hi' } }));
  assert.equal(waited['resultType'], 'complete');
});
