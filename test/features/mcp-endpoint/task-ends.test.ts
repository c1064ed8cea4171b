import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  errorOf,
  heldTool,
  holdingScript,
  keyFor,
  type McpCall,
  messagesOf,
  openMcp,
  post,
  resultOf,
  stateless,
  statelessRequest,
  tasksCapability,
} from './mcp-world.ts';

const declared = { capabilities: tasksCapability };
const tasks = (more: object = {}) => ({ McpServer: { Agents: ['helper'], Tasks: { InlineWait: '0s', ...more } } });
const call = (message = 'wait') => ({ name: 'helper', arguments: { message } });
const statusOf = async (app: TestApp, taskId: string, as: McpCall = declared) =>
  resultOf(await stateless(app, 'tasks/get', { taskId }, as));

/** A service whose agent waits in a tool. */
const holding = async (open: Parameters<typeof openMcp>[0], host: Readonly<Record<string, unknown>>) => {
  const held = heldTool();
  const app = await openMcp(open, {
    agents: [{ name: 'helper', toolNames: ['hold'] }],
    tools: [held.tool],
    script: holdingScript,
    host,
  });
  const begin = async (as: McpCall = declared): Promise<string> => {
    const { resultType, taskId } = resultOf(await stateless(app, 'tools/call', call(), as));
    assert.equal(resultType, 'task');
    return String(taskId);
  };
  return { app, held, begin };
};

overHttp('MCP-54 a run that ends while its caller waits is answered in line, and a longer one is not', async (open) => {
  const { app, held } = await holding(open, { McpServer: { Agents: ['helper'], Tasks: { InlineWait: '5s' } } });
  app.clock.stand();
  const short = resultOf(await stateless(app, 'tools/call', call('Hi'), declared));
  assert.deepEqual([short['resultType'], short['content']], ['complete', [{ type: 'text', text: 'Hello.' }]]);
  const long = stateless(app, 'tools/call', call(), declared);
  await held.entered;
  await app.clock.advance(4999);
  held.letGo();
  assert.equal(resultOf(await long)['resultType'], 'complete');
  const other = await holding(open, { McpServer: { Agents: ['helper'], Tasks: { InlineWait: '5s' } } });
  other.app.clock.stand();
  const task = stateless(other.app, 'tools/call', call(), declared);
  await other.held.entered;
  await other.app.clock.advance(5000);
  assert.equal(resultOf(await task)['resultType'], 'task');
  other.held.letGo();
});

overHttp('MCP-54 where tasks are switched off everybody waits, whatever a caller declares', async (open) => {
  const { app, held } = await holding(open, tasks({ Enabled: false }));
  const answer = stateless(app, 'tools/call', call(), declared);
  await held.entered;
  held.letGo();
  assert.equal(resultOf(await answer)['resultType'], 'complete');
});

overHttp(
  'MCP-55 a task that is cancelled says so, and its handle ends with its time to the millisecond',
  async (open) => {
    const { app, begin } = await holding(open, tasks({ TimeToLive: '10m', PollInterval: '7s' }));
    app.clock.stand();
    const taskId = await begin();
    resultOf(await stateless(app, 'tasks/cancel', { taskId }, declared));
    const cancelled = await eventually('it is cancelled', async () => {
      const task = await statusOf(app, taskId);
      return task['status'] !== 'working' && task;
    });
    assert.deepEqual(
      [cancelled['status'], cancelled['ttlMs'], cancelled['pollIntervalMs']],
      ['cancelled', 600_000, 7000],
    );
    assert.deepEqual(['result' in cancelled, 'error' in cancelled], [false, false]);
    await app.clock.jump(599_999);
    assert.equal((await statusOf(app, taskId))['status'], 'cancelled');
    await app.clock.jump(1);
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
      assert.deepEqual(errorOf(await stateless(app, method, { taskId }, declared)), [400, -32602], method);
  },
);

overHttp(
  'MCP-55 a run that failed is a task that completed with an error, and one that broke down has failed',
  async (open) => {
    const app = await openMcp(open, {
      script: [{ when: { message: 'wait' }, reply: { error: 'provider_unavailable' } }],
      host: tasks(),
    });
    const ended = (taskId: string, in_: TestApp = app) =>
      eventually('it is over', async () => {
        const task = await statusOf(in_, taskId);
        return task['status'] !== 'working' && task;
      });
    const begun = resultOf(await stateless(app, 'tools/call', call(), declared));
    const task = await ended(String(begun['taskId']));
    const result = task['result'] as Record<string, unknown>;
    assert.deepEqual([task['status'], result['isError'], 'error' in task], ['completed', true, false]);
    assert.equal((result['structuredContent'] as { runId: string }).runId, begun['taskId']);
    assert.equal(typeof (result['structuredContent'] as { errorType: unknown }).errorType, 'string');

    // The service stops in the middle of a run.
    const { app: first, held, begin } = await holding(open, tasks());
    const taskId = await begin();
    await held.entered;
    await first.close();
    const second = await openMcp(open, { folder: first.folder, agents: [], host: tasks() });
    const broken = await ended(taskId, second);
    assert.deepEqual([broken['status'], 'result' in broken], ['failed', false]);
    assert.equal((broken['error'] as { code: number }).code, -32603);
  },
);

overHttp(
  'MCP-51 MCP-55 a stream tells of the tasks of its caller until each is over, and of no other',
  async (open) => {
    const { app, held, begin } = await holding(open, tasks());
    app.clock.stand();
    const [one, two] = [await keyFor(app, 'one'), await keyFor(app, 'two')];
    const own = { ...declared, token: one };
    const taskId = await begin(own);
    const foreign = await begin({ ...declared, token: two });
    const listen = async (notifications: object, token = one) => {
      const { body, headers } = statelessRequest('subscriptions/listen', { notifications }, { id: 'sub' });
      return post(app, body, { token, headers });
    };
    const many = Array.from({ length: 101 }, (_, index) => `t${index}`);
    assert.deepEqual((await listen({ taskIds: many })).status, 400);
    assert.equal((await listen({ taskIds: 'all' })).status, 400);
    const leaving = await listen({ taskIds: many.slice(1) });
    assert.equal(leaving.status, 200, 'as many as it may name');
    await leaving.body?.cancel();
    const messages = messagesOf(await listen({ taskIds: [taskId, foreign, taskId] }));
    const first = (await messages.next()).value as { params: { notifications: unknown } };
    assert.deepEqual(first.params.notifications, { taskIds: [taskId] });
    await held.entered;
    // What it has not asked for is not told: the list of tools changes now.
    await app.client.agents.remove({ params: { name: 'helper' } });
    held.letGo();
    await eventually('both are over', async () => {
      const [mine, theirs] = [await statusOf(app, taskId, own), await statusOf(app, foreign, { ...own, token: two })];
      return mine['status'] === 'completed' && theirs['status'] === 'completed';
    });
    await app.clock.advance(2000);
    const told = (await messages.next()).value as { method: string; params: Record<string, unknown> };
    assert.equal(told.method, 'notifications/tasks');
    assert.deepEqual(
      [told.params['taskId'], told.params['status'], told.params['_meta']],
      [taskId, 'completed', { 'io.modelcontextprotocol/subscriptionId': 'sub' }],
    );
    await app.clock.advance(20_000);
    const closing = app.close();
    const last = (await messages.next()).value as { result?: { resultType: string } };
    assert.equal(last.result?.resultType, 'complete', 'nothing more was told');
    await closing;
  },
);
