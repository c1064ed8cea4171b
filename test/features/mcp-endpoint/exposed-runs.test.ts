import assert from 'node:assert/strict';
import { forEachHttpService } from '../../support/app.ts';
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
  tasksCapability,
} from './mcp-world.ts';

const unattended = [
  { name: 'helper' },
  { name: 'careful', toolNames: ['guarded'] },
  { name: 'holder', toolNames: ['hold'] },
];
const guarded = {
  name: 'guarded',
  description: 'Asks first.',
  inputSchema: { type: 'object' },
  requiresApproval: true,
  execute: async () => 'done',
};
const call = (name: string, args: object = { message: 'Hi' }) => ({ name, arguments: args });
const contentOf = (result: Record<string, unknown>) => result['structuredContent'] as Record<string, unknown>;

forEachHttpService(
  'MCP-42 MCP-43 only agents of the allowlist are tools, and none in whose runs somebody would be asked',
  async (open) => {
    const app = await openMcp(open, {
      agents: unattended,
      tools: [guarded as never, heldTool().tool],
      host: { McpServer: { Agents: ['helper', 'careful', 'absent', 'Holder'] } },
    });
    const names = async () =>
      (resultOf(await stateless(app, 'tools/list'))['tools'] as { name: string }[]).map(({ name }) => name);
    assert.deepEqual(await names(), ['helper']);
    for (const name of ['careful', 'absent', 'Holder', 'holder', 'HELPER'])
      assert.deepEqual(errorOf(await stateless(app, 'tools/call', call(name))), [400, -32602], name);
    const { version } = (await app.client.agents.get({ params: { name: 'helper' } })).body.descriptor;
    const body = {
      name: 'helper',
      model: { provider: 'demo', model: 'demo-1' },
      toolNames: ['guarded'],
      expectedVersion: version,
    };
    await app.client.agents.save({ params: { name: 'helper' }, body: body as never });
    assert.deepEqual(await names(), []);
    assert.deepEqual(errorOf(await stateless(app, 'tools/call', call('helper'))), [400, -32602]);
    const { runs } = { runs: (await app.client.runs.list({ query: {} })).body };
    assert.deepEqual(runs, []);
  },
);

forEachHttpService(
  'MCP-44 MCP-52 the caller needs ExternalInvoke, the run is its own, and a session is for who opened it here',
  async (open) => {
    const app = await openMcp(open);
    const [key, other, blind] = [
      await keyFor(app, 'one'),
      await keyFor(app, 'two'),
      await keyFor(app, 'three', ['RunsWrite', 'RunsRead']),
    ];
    assert.equal((await stateless(app, 'tools/list', {}, { token: blind })).status, 403);
    assert.equal((await stateless(app, 'tools/list', {}, { token: 'acp_default_nothing' })).status, 401);
    const args = { message: 'Hi', sessionId: 'talk-1' };
    const first = resultOf(await stateless(app, 'tools/call', call('helper', args), { token: key }));
    assert.deepEqual(first['content'], [{ type: 'text', text: 'Hello.' }]);
    assert.equal(first['isError'], undefined);
    const { runId, sessionId } = contentOf(first);
    assert.equal(sessionId, 'talk-1');
    const record = (await app.client.runs.get({ params: { runId: String(runId) } })).body;
    assert.deepEqual(record.labels, { apiKey: 'one', source: 'mcp' });
    assert.equal(
      resultOf(await handshake(app, 'tools/call', call('helper', args), { token: key }))['isError'],
      undefined,
    );
    const foreign = await stateless(app, 'tools/call', call('helper', args), { token: other });
    assert.deepEqual(errorOf(foreign), [400, -32602]);
    // A session that was opened elsewhere is refused in the same words.
    await app.client.runs.start({
      params: { name: 'helper' },
      query: {},
      headers: {},
      body: { message: 'Hi', sessionId: 'own-1', stream: false },
    });
    const native = await stateless(app, 'tools/call', call('helper', { message: 'Hi', sessionId: 'own-1' }), {
      token: key,
    });
    assert.deepEqual(errorOf(native), [400, -32602]);
    assert.equal(native.body.error?.message.replace('own-1', 'talk-1'), foreign.body.error?.message);
  },
);

forEachHttpService(
  'MCP-53 APPR-7 a call that a policy wants decided fails in words, and the run goes on',
  async (open) => {
    const calls = { tool: 0 };
    const app = await openMcp(open, {
      agents: [{ name: 'helper', toolNames: ['free'] }],
      script: [
        { when: { tool: 'free' }, reply: { text: 'Without it.' } },
        { when: { message: '/^use/' }, reply: { toolCalls: [{ name: 'free', arguments: {} }] } },
        { reply: { text: 'Without it.' } },
      ],
      tools: [
        {
          name: 'free',
          description: 'Free.',
          inputSchema: { type: 'object' },
          execute: async () => {
            calls.tool += 1;
            return 'done';
          },
        } as never,
      ],
      module: { approvalPolicy: { decide: async () => 'Required' } } as never,
    });
    const args = { message: 'use', sessionId: 'talk-1' };
    const result = resultOf(await stateless(app, 'tools/call', call('helper', args)));
    assert.deepEqual(result['content'], [{ type: 'text', text: 'Without it.' }]);
    assert.equal(calls.tool, 0);
    const { runId } = contentOf(result);
    const [tool] = (await app.client.runs.tools({ params: { runId: String(runId) } })).body;
    assert.match(tool?.error ?? '', /^approval-not-available/);
    assert.deepEqual((await app.client.approvals.list({})).body, []);
  },
);

forEachHttpService(
  'MCP-54 MCP-55 a run that outlives the wait is a task of its caller alone, with its end',
  async (open) => {
    const held = heldTool();
    const app = await openMcp(open, {
      agents: unattended,
      tools: [held.tool, guarded as never],
      script: holdingScript,
      host: { McpServer: { Agents: ['holder'], Tasks: { InlineWait: '0s' } } },
    });
    const [key, other] = [await keyFor(app, 'one'), await keyFor(app, 'two')];
    const own = { token: key, capabilities: tasksCapability };
    const asked = resultOf(await stateless(app, 'tools/call', call('holder', { message: 'wait' }), own));
    const taskId = String(asked['taskId']);
    assert.deepEqual(
      [asked['resultType'], asked['status'], asked['ttlMs'], asked['pollIntervalMs']],
      ['task', 'working', 86_400_000, 2000],
    );
    const task = (id = taskId, as: object = own) => stateless(app, 'tasks/get', { taskId: id }, as);
    assert.equal(resultOf(await task())['status'], 'working');
    assert.deepEqual(errorOf(await task(taskId, { ...own, token: other })), [400, -32602], 'of another key');
    assert.deepEqual(errorOf(await task(taskId, { capabilities: tasksCapability })), [400, -32602], 'of nobody');
    const undeclared = await task(taskId, { token: key });
    assert.deepEqual(errorOf(undeclared), [400, -32021]);
    assert.deepEqual(undeclared.body.error?.data, { requiredCapabilities: tasksCapability });
    assert.deepEqual(errorOf(await task('nothing')), [400, -32602]);
    const run = (
      await app.client.runs.start({
        params: { name: 'helper' },
        query: {},
        headers: {},
        body: { message: 'Hi', stream: false },
      })
    ).body;
    assert.deepEqual(errorOf(await task((run as { runId: string }).runId)), [400, -32602], 'a run is no task');
    resultOf(await stateless(app, 'tasks/update', { taskId, inputResponses: { x: {} } }, own));
    await held.entered;
    held.letGo();
    await eventually('the task ends', async () => resultOf(await task())['status'] === 'completed');
    const done = resultOf(await task());
    assert.equal(done['resultType'], 'complete');
    const result = done['result'] as Record<string, unknown>;
    assert.deepEqual(result['content'], [{ type: 'text', text: 'Hello.' }]);
    assert.equal(contentOf(result)['runId'], taskId);
    const canceled = await stateless(app, 'tasks/cancel', { taskId }, own);
    assert.deepEqual(
      Object.keys(resultOf(canceled)).sort(),
      ['_meta', 'resultType'],
      'a task that is over is acknowledged',
    );
    assert.equal(resultOf(await task())['status'], 'completed');
    const second = resultOf(await stateless(app, 'tools/call', call('holder', { message: 'wait' }), own));
    for (let times = 0; times < 2; times += 1)
      resultOf(await stateless(app, 'tasks/cancel', { taskId: second['taskId'] }, own));
    await eventually('the other one is canceled', async () => {
      const { status } = resultOf(await task(String(second['taskId'])));
      return status === 'cancelled' || status === 'completed';
    });
    await app.clock.jump(25 * 3_600_000);
    assert.deepEqual(errorOf(await task()), [400, -32602], 'its time is over');
    assert.equal((await app.client.runs.get({ params: { runId: taskId } })).body.status, 'Completed', 'the run stays');
  },
);

forEachHttpService(
  'MCP-56 MCP-57 progress is counted without content, and who leaves before a handle ends the run',
  async (open) => {
    const held = heldTool();
    const app = await openMcp(open, {
      agents: unattended,
      tools: [held.tool, guarded as never],
      script: holdingScript,
      host: { McpServer: { Agents: ['holder'] } },
    });
    const followed = statelessRequest('tools/call', call('holder', { message: 'wait' }), {
      meta: { progressToken: 'p' },
      id: 7,
    });
    const leaving = new AbortController();
    const response = await post(app, followed.body, { headers: followed.headers, signal: leaving.signal });
    const messages = messagesOf(response);
    const first = await messages.next();
    assert.deepEqual(first.value, {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'p', progress: 1 },
    });
    await held.entered;
    leaving.abort();
    await messages.next().catch(() => undefined);
    await eventually('the run is canceled', async () => {
      const [run] = (await app.client.runs.list({ query: {} })).body;
      return run?.status === 'Canceled';
    });
    held.letGo();
    const again = await post(app, followed.body, { headers: followed.headers });
    const told: Record<string, unknown>[] = [];
    for await (const message of messagesOf(again)) told.push(message);
    const counts = told.flatMap(({ params }) =>
      params === undefined ? [] : [(params as { progress: number }).progress],
    );
    assert.deepEqual(counts, [1, 2]);
    const last = told.at(-1) as { id: number; result: Record<string, unknown> };
    assert.deepEqual(
      [last.id, last.result['resultType'], last.result['content']],
      [7, 'complete', [{ type: 'text', text: 'Hello.' }]],
    );
  },
);

forEachHttpService(
  'MCP-46 MCP-47 MCP-56 a handshake gives no session, and only its cancellation ends a call',
  async (open) => {
    const held = heldTool();
    const app = await openMcp(open, {
      agents: unattended,
      tools: [held.tool, guarded as never],
      script: holdingScript,
      host: { McpServer: { Agents: ['holder'] } },
    });
    for (const [asked, given] of [
      ['2025-11-25', '2025-11-25'],
      ['2025-06-18', '2025-06-18'],
      ['2025-03-26', '2025-03-26'],
      ['2024-11-05', '2025-11-25'],
      ['2026-07-28', '2025-11-25'],
    ]) {
      const reply = await handshake(
        app,
        'initialize',
        { protocolVersion: asked, capabilities: {} },
        { headers: { 'mcp-protocol-version': null } },
      );
      assert.equal(resultOf(reply)['protocolVersion'], given);
      assert.equal(reply.headers.get('mcp-session-id'), null);
    }
    assert.deepEqual(resultOf(await handshake(app, 'ping')), {});
    assert.equal((await notify(app, 'notifications/initialized', {})).status, 202);
    assert.deepEqual(errorOf(await handshake(app, 'prompts/list')), [200, -32601]);
    assert.deepEqual(errorOf(await handshake(app, 'tools/call', call('nobody'))), [200, -32602]);
    assert.deepEqual(
      errorOf(await handshake(app, 'ping', {}, { headers: { 'mcp-protocol-version': '2019-01-01' } })),
      [400, -32600],
    );
    const leaving = new AbortController();
    const left = handshake(app, 'tools/call', call('holder', { message: 'wait' }), { id: 5, signal: leaving.signal });
    await held.entered;
    leaving.abort();
    await left.catch(() => undefined);
    const status = async () => (await app.client.runs.list({ query: {} })).body[0]?.status;
    await notify(app, 'notifications/cancelled', { requestId: 6 });
    assert.equal(await status(), 'Running', 'another request does not end it');
    assert.equal((await notify(app, 'notifications/cancelled', { requestId: 5 })).status, 202);
    await eventually('the run is canceled', async () => (await status()) === 'Canceled');
  },
);

forEachHttpService(
  'MCP-51 a stream tells first what it honours, then that, and ends with the service',
  async (open) => {
    const app = await openMcp(open, { agents: [], host: { McpServer: { Agents: ['helper'] } } });
    const listen = statelessRequest(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true, promptsListChanged: true, taskIds: ['x'] } },
      { id: 'sub' },
    );
    assert.equal(
      (await post(app, listen.body, { headers: { ...listen.headers, accept: 'application/json' } })).status,
      406,
    );
    const messages = messagesOf(await post(app, listen.body, { headers: listen.headers }));
    const Meta = { 'io.modelcontextprotocol/subscriptionId': 'sub' };
    assert.deepEqual((await messages.next()).value, {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true }, _meta: Meta },
    });
    await app.createAgent({ name: 'helper' });
    await app.clock.advance(2000);
    assert.deepEqual((await messages.next()).value, {
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: { _meta: Meta },
    });
    const closing = app.close();
    const last = (await messages.next()).value as { id: string; result: Record<string, unknown> };
    assert.deepEqual([last.id, last.result['resultType']], ['sub', 'complete']);
    assert.equal((await messages.next()).done, true);
    await closing;
  },
);
