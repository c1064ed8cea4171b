import assert from 'node:assert/strict';
import { forEachService, type TestApp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { connected, mcpSetup, rawServer, save, tool, withTools } from './mcp-world.ts';

forEachService(
  'MCP-9 MCP-26 a run that goes on calls no server that was switched off or has become another meanwhile',
  async (open, t) => {
    const [first, second] = [
      await rawServer(t, withTools([tool('look')])),
      await rawServer(t, withTools([tool('look')])),
    ];
    const params = { name: 'weather' };
    const changes = {
      off: () => save(app.client, first.endpoint, { requiresApproval: false, enabled: false }),
      async another() {
        await app.client.mcpServers.remove({ params });
        await connected(app.client, second.endpoint, { requiresApproval: false });
      },
    };
    const call = (name: string, args: object = {}) => ({ reply: { toolCalls: [{ name, arguments: args }] } });
    const app: TestApp = await open(
      mcpSetup({
        tools: [
          {
            name: 'change',
            description: 'Changes the server.',
            inputSchema: { type: 'object' },
            execute: async (args) => {
              const { to } = args as { to: string };
              await changes[to as keyof typeof changes]();
              return 'changed';
            },
          },
        ],
        script: Object.keys(changes).flatMap((to) => [
          { when: { message: to, call: 1 }, ...call('change', { to }) },
          { when: { message: to, tool: 'change' }, ...call('weather_look') },
          { when: { message: to, tool: 'weather_look' }, reply: { text: '{{last}}' } },
        ]),
      }),
    );
    await connected(app.client, first.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['change', 'weather_look'] });
    for (const to of Object.keys(changes)) {
      await connected(app.client, first.endpoint, { requiresApproval: false });
      assert.match((await runJson(app.client, 'helper', to)).output ?? '', /weather is not available/, to);
    }
    for (const { asked } of [first, second]) assert.ok(asked.every(({ method }) => method !== 'tools/call'));
  },
);
