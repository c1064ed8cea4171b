import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { message, rpc } from '../a2a/a2a-world.ts';
import { stateless } from '../mcp-endpoint/mcp-world.ts';
import { tool } from '../runs/run-calls.ts';

/** How a system outside says something to an agent. */
const doors = {
  McpServer: (app: TestApp, text: string) =>
    stateless(app, 'tools/call', { name: 'helper', arguments: { message: text } }),
  A2A: (app: TestApp, text: string) => rpc(app, 'SendMessage', { message: message(text) }),
};

const calls = (names: readonly string[], args: object = {}) => ({
  toolCalls: names.map((name) => ({ name, arguments: args })),
  usage: { inputTokens: 50, outputTokens: 10 },
});

const model = (name: string) => ({ provider: 'demo', model: name });
const script = [
  ...[1, 2, 3].map((call) => ({ when: { message: 'tokens', call }, reply: calls(['look']) })),
  { when: { message: 'runs', call: 1 }, reply: calls(['call_child', 'call_child'], { message: 'Hi' }) },
  { when: { message: 'depth', call: 1 }, reply: calls(['call_child'], { message: 'on' }) },
  { when: { message: 'on', model: 'child-1', call: 1 }, reply: calls(['call_grandchild'], { message: 'Hi' }) },
  { reply: { text: 'Done.' } },
];
const agents = [
  { name: 'grandchild', model: model('grandchild-1') },
  { name: 'child', model: model('child-1'), callableAgentNames: ['grandchild'] },
  { name: 'helper', model: model('helper-1'), toolNames: ['look'], callableAgentNames: ['child'] },
];

for (const [door, say] of Object.entries(doors))
  overHttp(`MCP-52 A2A-16 the budget of ${door} holds for what comes through it, and widens no other`, async (open) => {
    const runsOf = async (text: string, Budget: object, AgentGraph: object) => {
      const app = await open({
        script,
        agents,
        tools: [tool('look', async () => 'seen')],
        service: { AgentGraph },
        host: { [door]: { Agents: ['helper'], Budget } },
      });
      await say(app, text);
      const runs = (await app.client.runs.list({ query: { includeChildren: true } })).body;
      const root = runs.find(({ parentRunId }) => parentRunId === null);
      return [root?.error?.type ?? root?.status, runs.length];
    };
    const wide = { MaxDepth: 9, MaxTotalRuns: 99, MaxTotalTokens: 99_999 };
    for (const [text, budget, graph, expected] of [
      ['tokens', wide, wide, ['Completed', 1]],
      ['tokens', { ...wide, MaxTotalTokens: 100 }, wide, ['budget_exceeded', 1]],
      ['tokens', wide, { ...wide, MaxTotalTokens: 100 }, ['budget_exceeded', 1]],
      ['tokens', { ...wide, MaxTotalTokens: 0 }, { ...wide, MaxTotalTokens: 100 }, ['budget_exceeded', 1]],
      ['runs', wide, wide, ['Completed', 3]],
      ['runs', { ...wide, MaxTotalRuns: 1 }, wide, ['Completed', 2]],
      ['runs', wide, { ...wide, MaxTotalRuns: 1 }, ['Completed', 2]],
      ['depth', wide, wide, ['Completed', 3]],
      ['depth', { ...wide, MaxDepth: 1 }, wide, ['Completed', 2]],
      ['depth', wide, { ...wide, MaxDepth: 1 }, ['Completed', 2]],
      ['depth', {}, {}, ['Completed', 2]],
    ] as const)
      assert.deepEqual(await runsOf(text, budget, graph), expected, JSON.stringify([text, budget, graph]));
  });
