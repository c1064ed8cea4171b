import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson, stream } from '../runs/run-calls.ts';
import { type Asked, connected, mcpSetup, type RawServer, rawServer, tool, withTools } from './mcp-world.ts';

const script = [
  { when: { tool: 'weather_look' }, reply: { text: '{{last}}' } },
  { when: { message: 'Hi' }, reply: { toolCalls: [{ name: 'weather_look', arguments: { city: 'Ulm' } }] } },
];
const task = { resultType: 'task', taskId: 't/1 ä', status: 'working', ttlMs: 60_000, pollIntervalMs: 0 };
const done = { content: [{ type: 'text', text: 'It rains' }] };

/** Answers a call with a task, and each poll with the next of these, the last one again and again. */
const working = (...states: object[]) => {
  let polls = 0;
  return (asked: Asked) => {
    if (asked.method === 'tools/call') return task;
    if (asked.method === 'tasks/update' || asked.method === 'tasks/cancel') return { resultType: 'complete' };
    if (asked.method !== 'tasks/get') return withTools([tool('look')])(asked);
    const state = states[Math.min(polls, states.length - 1)];
    polls += 1;
    return { ...task, resultType: 'complete', ...state };
  };
};

const of = (server: RawServer, method: string): Asked[] => server.asked.filter((asked) => asked.method === method);

const helped = async (app: TestApp, server: RawServer): Promise<void> => {
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
};

test('MCP-40 a task is asked for until it has ended, and asks in between', async (t) => {
  const server = await rawServer(t, working({}, { status: 'completed', result: done }));
  const app = await openApp(t, 'in process', mcpSetup({ script }));
  await helped(app, server);
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'It rains');
  const [call] = of(server, 'tools/call');
  const told = call?.params['_meta']['io.modelcontextprotocol/clientCapabilities'];
  assert.deepEqual(told, { extensions: { 'io.modelcontextprotocol/tasks': {} } });
  const polls = of(server, 'tasks/get');
  assert.deepEqual(
    polls.map(({ params, request }) => [params['taskId'], request.headers['mcp-name']]),
    Array.from({ length: 2 }, () => ['t/1 ä', `=?base64?${Buffer.from('t/1 ä').toString('base64')}?=`]),
  );
  assert.deepEqual(of(server, 'tasks/cancel'), []);

  server.answer(working({ status: 'completed', result: { ...done, isError: true } }));
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const [failed] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.deepEqual([failed?.succeeded, failed?.error], [false, 'It rains']);
  server.answer(working({ status: 'failed', error: { code: -32099, message: 'secret words of the server' } }));
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Tool failed: weather answered -32099');
  server.answer(working({ status: 'cancelled' }));
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Tool failed: weather did not answer');
  server.answer(working({ status: 'lost' }));
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Tool failed: weather gave no valid answer');

  const question = (message: string) => ({
    method: 'elicitation/create',
    params: { message, requestedSchema: { type: 'object' } },
  });
  const one = { one: question('One?') };
  const two = { ...one, two: question('Two?') };
  server.answer(
    working(
      { status: 'input_required', inputRequests: one },
      // Not taken yet, and then there is another one beside it.
      { status: 'input_required', inputRequests: one },
      { status: 'input_required', inputRequests: two },
      { status: 'completed', result: done },
    ),
  );
  const calls = of(server, 'tools/call').length;
  const first = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's1' });
  const answer = (callId: string | undefined) =>
    runJson(app.client, 'helper', {
      sessionId: 's1',
      toolResults: [{ callId: callId ?? '', result: '{"action":"accept","content":{}}' }],
    });
  assert.deepEqual(
    first.clientToolCalls.map(({ elicitation }) => elicitation?.message),
    ['One?'],
  );
  const second = await answer(first.clientToolCalls[0]?.callId);
  assert.deepEqual(
    second.clientToolCalls.map(({ elicitation }) => elicitation?.message),
    ['Two?'],
  );
  assert.equal((await answer(second.clientToolCalls[0]?.callId)).output, 'It rains');
  const accepted = { action: 'accept', content: {} };
  assert.deepEqual(
    of(server, 'tasks/update').map(({ params }) => [params['taskId'], params['inputResponses']]),
    [
      ['t/1 ä', { one: accepted }],
      ['t/1 ä', { two: accepted }],
    ],
  );
  assert.equal(of(server, 'tools/call').length, calls + 1);
  // Without a session nobody can be asked: the task is of no more use.
  server.answer(working({ status: 'input_required', inputRequests: one }));
  assert.match((await runJson(app.client, 'helper', 'Hi')).output ?? '', /cannot be given$/);
  await eventually('the task is cancelled', async () => of(server, 'tasks/cancel').length === 1);
});

test('MCP-40 a task that takes too long, or whose run is cancelled, is cancelled', async (t) => {
  const server = await rawServer(t, working({}));
  const app = await openApp(
    t,
    'in process',
    mcpSetup({ script, service: { Egress: { AllowPrivateNetworkTargets: true }, Tools: { DefaultTimeout: '1s' } } }),
  );
  await helped(app, server);
  assert.match((await runJson(app.client, 'helper', 'Hi')).output ?? '', /did not answer within 1000 ms/);
  await eventually('the task is cancelled', async () => of(server, 'tasks/cancel').length === 1);
  assert.deepEqual(of(server, 'tasks/cancel')[0]?.params['taskId'], 't/1 ä');
  // Half a second lies between two polls, whatever the server says.
  assert.ok(of(server, 'tasks/get').length <= 2);
  const { runId } = await stream(app.client, 'helper', 'Hi');
  const polls = of(server, 'tasks/get').length;
  await eventually('the task is under way', async () => of(server, 'tasks/get').length > polls);
  await app.client.runs.cancel({ params: { runId } });
  await eventually('the task is cancelled, too', async () => of(server, 'tasks/cancel').length === 2);
});

test('MCP-40 polls that get no answer end a task only where three in a row do', async (t) => {
  const away = { raw: (response: ServerResponse) => response.writeHead(503).end() };
  let polls = 0;
  let lost: ReadonlySet<number> = new Set();
  let last = 6;
  const server = await rawServer(t, (asked) => {
    if (asked.method === 'tools/call') polls = 0;
    if (asked.method !== 'tasks/get') return working({})(asked);
    polls += 1;
    if (lost.has(polls)) return away as never;
    return polls >= last ? { ...task, status: 'completed', result: done } : task;
  });
  const app = await openApp(t, 'in process', mcpSetup({ script }));
  await helped(app, server);
  lost = new Set([1, 2, 4, 5]);
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'It rains');
  lost = new Set([1, 2, 3]);
  last = 4;
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Tool failed: weather answered 503');
  assert.equal(of(server, 'tools/call').length, 2);
});
