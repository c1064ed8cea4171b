import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openApp } from '../../support/app.ts';
import { send } from '../a2a/a2a-world.ts';
import { resultOf, stateless } from '../mcp-endpoint/mcp-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { type Asked, connected, mcpSetup, rawServer, tool, withTools } from './mcp-world.ts';

const refusedText = 'Tool failed: weather asked for something that it cannot be given';
const question = {
  method: 'elicitation/create',
  params: { message: 'Who are you?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
};

test('MCP-39 MCP-53 A2A-21 a run that another system started asks nobody, though it has a session', async (t) => {
  const server = await rawServer(t, (asked) =>
    asked.method === 'tools/call'
      ? { resultType: 'input_required', inputRequests: { who: question } }
      : withTools([tool('look')])(asked),
  );
  const script = [
    { when: { tool: 'weather_look' }, reply: { text: '{{last}}' } },
    { reply: { toolCalls: [{ name: 'weather_look', arguments: { city: 'Ulm' } }] } },
  ];
  const host = { McpServer: { Agents: ['helper'] }, A2A: { Agents: ['helper'] } };
  const app = await openApp(t, 'http', mcpSetup({ script, host }));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  const declared = (): unknown => {
    const { params } = server.asked.findLast(({ method }) => method === 'tools/call') as Asked;
    return params['_meta']['io.modelcontextprotocol/clientCapabilities'].elicitation;
  };

  const params = { name: 'helper', arguments: { message: 'Hi', sessionId: 's1' } };
  const told = resultOf(await stateless(app, 'tools/call', params));
  assert.deepEqual(told['content'], [{ type: 'text', text: refusedText }]);
  assert.equal(declared(), undefined);

  const task = await send(app, 'Hi');
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(task.artifacts?.[0]?.parts, [{ text: refusedText }]);
  assert.equal(declared(), undefined);

  // The same agent asks whoever can answer.
  const run = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's2' });
  assert.equal(run.status, 'AwaitingInput');
  assert.notEqual(declared(), undefined);
});
