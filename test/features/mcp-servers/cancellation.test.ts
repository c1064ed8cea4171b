import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { openApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { stream } from '../runs/run-calls.ts';
import { type Asked, callsTool, connected, mcpSetup, rawServer, tool, withTools } from './mcp-world.ts';

const handshake = ({ method }: Asked) => {
  if (method === 'initialize')
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } };
  if (method?.startsWith('notifications/')) return { raw: (response: ServerResponse) => response.writeHead(202).end() };
  return undefined;
};

for (const generation of ['Stateless', 'Handshake'] as const)
  test(`MCP-41 the answer to a call is not waited for once its run is cancelled (${generation})`, async (t) => {
    const opened: ServerResponse[] = [];
    let closed = 0;
    let begins = false;
    const held = {
      raw: (response: ServerResponse) => {
        opened.push(response);
        response.on('close', () => {
          closed += 1;
        });
        if (begins) response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': wait\n\n');
      },
    };
    const server = await rawServer(t, (asked) => {
      if (asked.method === 'tools/call') return held as never;
      const shaken = generation === 'Handshake' ? handshake(asked) : undefined;
      return (shaken as never) ?? withTools([tool('look')])(asked);
    });
    const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
    await connected(app.client, server.endpoint, { requiresApproval: false, protocol: generation });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    for (const [index, whole] of [false, true].entries()) {
      begins = whole;
      const { runId } = await stream(app.client, 'helper', 'Hi');
      await eventually('the call is out', async () => opened.length === index + 1);
      await app.client.runs.cancel({ params: { runId } });
      await eventually('its answer is not waited for', async () => closed === index + 1);
    }
    const calls = server.asked.filter(({ method }) => method === 'tools/call');
    const told = () => server.asked.filter(({ method }) => method === 'notifications/cancelled');
    if (generation === 'Stateless') return assert.deepEqual(told(), []);
    await eventually('the server is told', async () => told().length === 2);
    assert.deepEqual(
      told().map(({ params }) => params['requestId']),
      calls.map(({ id }) => id),
    );
  });
