import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { generations, officialServer } from '../../support/mcp/mcp-server.ts';
import { runJson } from '../runs/run-calls.ts';
import { connected, get, mcpSetup, refresh } from './mcp-world.ts';

const calls = (toolName: string) => [
  { when: { lastMessage: 'Hi' }, toolCalls: [{ name: toolName, arguments: { city: 'Ulm' } }] },
];

for (const generation of generations) {
  forEachService(`MCP-12 MCP-17 MCP-35 MCP-37 an agent calls a tool of a server of the ${generation} generation`, async (open, t) => {
    const server = await officialServer(t, generation);
    const app = await open(mcpSetup({ script: calls('weather_weather') as never }));
    const looked = await connected(app.client, server.endpoint, { requiresApproval: false });
    assert.deepEqual(
      looked.servers.map(({ state, toolCount }) => [state, toolCount]),
      [['Connected', 3]],
    );
    const { status } = await get(app.client);
    assert.deepEqual(
      [status.protocolVersion, status.serverName],
      [generation === 'Stateless' ? '2026-07-28' : '2025-11-25', 'official'],
    );
    await app.createAgent({ name: 'helper', toolNames: ['weather_weather'] });
    const run = await runJson(app.client, 'helper', 'Hi');
    console.log(JSON.stringify(run));
    assert.deepEqual(server.calls, [{ tool: 'weather', args: { city: 'Ulm' } }]);
  });
}
