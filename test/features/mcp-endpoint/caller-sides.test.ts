import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  errorOf,
  handshake,
  heldTool,
  holdingScript,
  keyFor,
  messagesOf,
  notify,
  openMcp,
  post,
  resultOf,
  stateless,
  statelessRequest,
} from './mcp-world.ts';

const call = (name: string, message = 'Hi') => ({ name, arguments: { message } });
const listed = async (app: TestApp) =>
  resultOf(await stateless(app, 'tools/list'))['tools'] as { name: string; title?: string; outputSchema?: object }[];

overHttp('MCP-56 a cancellation ends the one call of its caller that has its id, and no other', async (open) => {
  const held = heldTool();
  const app = await openMcp(open, {
    agents: [{ name: 'helper', toolNames: ['hold'] }],
    tools: [held.tool],
    script: holdingScript,
  });
  const [one, two] = [await keyFor(app, 'one'), await keyFor(app, 'two')];
  const running = async (): Promise<number> => {
    const { body } = await app.client.runs.list({ query: {} });
    return body.filter(({ status }) => status === 'Running').length;
  };
  const waits = async (id: string | number, token: string) => {
    const before = await running();
    const answer = handshake(app, 'tools/call', call('helper', 'wait'), { id, token });
    await eventually('it runs', async () => (await running()) === before + 1);
    return answer;
  };
  const cancel = (requestId: unknown, token: string) =>
    notify(app, 'notifications/cancelled', { requestId }, { token });
  const begun = waits(5, one);
  await eventually('it runs', async () => (await running()) === 1);
  await cancel(5, two);
  await cancel('5', one);
  await cancel({ id: 5 }, one);
  assert.equal(await running(), 1, 'neither another caller nor another id ends it');
  await cancel(5, one);
  const canceled = resultOf(await begun);
  assert.equal(canceled['isError'], true);
  assert.equal((canceled['structuredContent'] as { errorType: string }).errorType, 'canceled');

  // Two clients with one credential count from one: neither ends what the other has asked for.
  const both = [waits(7, one)];
  await eventually('it runs', async () => (await running()) === 1);
  both.push(waits(7, one));
  await eventually('both run', async () => (await running()) === 2);
  await cancel(7, one);
  assert.equal(await running(), 2);
  held.letGo();
  for (const answer of both) assert.equal(resultOf(await answer)['isError'], undefined);
});

overHttp('MCP-57 progress goes to those who read streams and count it, by a text or by a number', async (open) => {
  const held = heldTool();
  held.letGo();
  const app = await openMcp(open, {
    agents: [{ name: 'helper', toolNames: ['hold'] }],
    tools: [held.tool],
    script: holdingScript,
  });
  const sent = (progressToken: unknown, accept: string) => {
    const { body, headers } = statelessRequest('tools/call', call('helper', 'wait'), { meta: { progressToken } });
    return post(app, body, { headers: { ...headers, accept } });
  };
  const both = 'application/json, text/event-stream';
  for (const [token, accept] of [
    ['p', 'application/json'],
    ['p', '*/*'],
    [{ p: 1 }, both],
    [undefined, both],
  ] as const) {
    const response = await sent(token, accept);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/, JSON.stringify([token, accept]));
    const { result } = (await response.json()) as { result: { content: unknown } };
    assert.deepEqual(result.content, [{ type: 'text', text: 'Hello.' }]);
  }
  for (const token of [0, 7, 'p']) {
    const tokens: unknown[] = [];
    for await (const { method, params } of messagesOf(await sent(token, both)))
      if (method === 'notifications/progress') tokens.push((params as { progressToken: unknown }).progressToken);
    assert.deepEqual(tokens, [token, token]);
  }
});

overHttp(
  'MCP-57 a call that takes longer is answered by a stream, so that something comes until it ends',
  async (open) => {
    const params = call('helper', 'wait');
    const shaken = {
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      headers: { 'mcp-protocol-version': '2025-11-25' },
    };
    for (const { body, headers } of [shaken, statelessRequest('tools/call', params)])
      for (const accept of ['application/json, text/event-stream', 'application/json']) {
        const held = heldTool();
        const app = await openMcp(open, {
          agents: [{ name: 'helper', toolNames: ['hold'] }],
          tools: [held.tool],
          script: holdingScript,
        });
        const answer = post(app, body, { headers: { ...headers, accept } });
        await held.entered;
        await app.clock.advance(10_000);
        const isStream = accept.includes('event-stream');
        if (!isStream) held.letGo();
        const response = await answer;
        held.letGo();
        const messages: unknown[] = [];
        if (isStream) for await (const message of messagesOf(response)) messages.push(message);
        else messages.push(await response.json());
        const [{ id, result }, ...others] = messages as [{ id: number; result: { content: unknown } }];
        assert.deepEqual([id, result.content, others], [1, [{ type: 'text', text: 'Hello.' }], []]);
        await app.close();
      }
  },
);

overHttp('MCP-42 MCP-43 what of the allowlist is not offered is told at the start, with its reason', async (open) => {
  const tools = [
    {
      name: 'guarded',
      description: 'Asks.',
      inputSchema: { type: 'object' },
      requiresApproval: true,
      execute: async () => 1,
    },
    { name: 'theirs', description: 'Elsewhere.', inputSchema: { type: 'object' }, runsOnClient: true },
    { name: 'free', description: 'Free.', inputSchema: { type: 'object' }, execute: async () => 1 },
  ] as never;
  const agents = [
    { name: 'helper' },
    { name: 'careful', toolNames: ['guarded'] },
    { name: 'client', toolNames: ['theirs'] },
    { name: 'strict', toolNames: ['free'], harness: { disableToolAutoApproval: true } },
  ];
  const first = await open({ tools, agents });
  await first.close();
  const Agents = ['helper', 'careful', 'client', 'strict', 'absent'];
  const app = await openMcp(open, { folder: first.folder, tools, agents: [], host: { McpServer: { Agents } } });
  const told = () =>
    app.log.flatMap(({ level, message, fields }) =>
      message === 'An agent of the allowlist is not offered'
        ? [[level, fields['setting'], fields['agent'], fields['reason']]]
        : [],
    );
  await eventually('all are told', () => told().length >= 4 || null);
  const setting = 'Host:McpServer:Agents';
  assert.deepEqual(told(), [
    ['warn', setting, 'careful', 'its tool "guarded" needs an approval'],
    ['warn', setting, 'client', 'its tool "theirs" runs on the client'],
    ['warn', setting, 'strict', 'its tool "free" needs an approval'],
    ['warn', setting, 'absent', 'there is no such agent'],
  ]);
  assert.deepEqual(
    (await listed(app)).map(({ name }) => name),
    ['helper'],
  );
  for (const name of Agents.slice(1))
    assert.deepEqual(errorOf(await stateless(app, 'tools/call', call(name))), [400, -32602], name);
});

overHttp(
  'MCP-42 names of tools have the prefix of the host, 64 characters at most, and one owner each',
  async (open) => {
    const long = `agent-${'x'.repeat(55)}`;
    const longer = `${long}yz`;
    const app = await openMcp(open, {
      agents: [{ name: long }, { name: longer }, { name: 'helper' }],
      host: { McpServer: { Agents: [long, longer, 'helper'], ToolNamePrefix: 'my.' } },
    });
    const cut = (name: string) =>
      `${name.slice(0, 55)}_${createHash('sha256')
        .update(`my.${name.slice(3)}`)
        .digest('hex')
        .slice(0, 8)}`;
    const names = [`my_${long}`, cut(`my_${longer}`), 'my_helper'];
    assert.deepEqual(
      names.map(({ length }) => length),
      [64, 64, 9],
    );
    assert.deepEqual(
      (await listed(app)).map(({ name }) => name),
      names.toSorted(),
    );
    for (const name of names)
      assert.equal(resultOf(await stateless(app, 'tools/call', call(name)))['isError'], undefined);
    for (const name of ['helper', long, 'my.helper'])
      assert.deepEqual(errorOf(await stateless(app, 'tools/call', call(name))), [400, -32602], name);

    // The name of an agent of the list is that agent's, whether or not it is there.
    const clashing = await openMcp(open, {
      agents: [],
      host: { McpServer: { Agents: ['runs_list'], ControlPlane: 'Read' } },
    });
    assert.ok((await listed(clashing)).every(({ name }) => name !== 'runs_list'));
    assert.deepEqual(
      errorOf(await stateless(clashing, 'tools/call', { name: 'runs_list', arguments: {} })),
      [400, -32602],
    );
  },
);

overHttp('MCP-58 a schema is told as far as its references lead where they did', async (open) => {
  const item = { type: 'object', properties: { n: { type: 'integer' } } };
  const schemas: Readonly<Record<string, object>> = {
    defs: { type: 'object', $defs: { item }, properties: { one: { $ref: '#/$defs/item' } } },
    within: { type: 'object', properties: { a: item, b: { $ref: '#/properties/a' } } },
  };
  const agents = Object.entries(schemas).map(([name, schema]) => ({
    name,
    model: { provider: 'demo', model: 'demo-1', responseFormat: { kind: 'JsonSchema', schema } },
  }));
  const app = await openMcp(open, { agents, host: { McpServer: { Agents: Object.keys(schemas) } } });
  const told = Object.fromEntries(
    (await listed(app)).map(({ name, outputSchema }) => {
      const { $defs, properties } = outputSchema as { $defs?: object; properties: { output: object } };
      return [name, [properties.output, $defs]];
    }),
  );
  assert.deepEqual(told, {
    defs: [{ type: 'object', properties: { one: { $ref: '#/$defs/item' } } }, { item }],
    within: [{}, undefined],
  });
});
