import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProblemError } from '../../../src/client/problem.ts';
import { openApp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { connected, mcpSetup, rawServer, refresh, refused, save, tool, withTools } from './mcp-world.ts';

test('AGENT-19 a tool of a server that does not answer is a warning without a verdict, and is saved if it was listed', async (t) => {
  const app = await openApp(t, 'in process', mcpSetup());
  const server = await rawServer(t, withTools([tool('look')]));
  await connected(app.client, server.endpoint);
  const definition = (name: string) => ({
    name: 'helper',
    model: { provider: 'demo', model: 'demo-1' },
    toolNames: [`weather_${name}`],
  });
  const report = async (name: string) => (await app.client.agents.validate({ body: definition(name) as never })).body;
  const known = await report('look');
  assert.deepEqual([known.valid, known.inconclusive, known.messages], [true, false, []]);
  server.answer(() => ({ raw: (response) => response.writeHead(503).end() }));
  assert.equal((await refresh(app.client)).servers[0]?.state, 'Unreachable');
  for (const name of ['look', 'other']) {
    const { valid, inconclusive, messages } = await report(name);
    assert.deepEqual(
      [valid, inconclusive, messages.map(({ code, severity }) => [code, severity])],
      [true, true, [['mcp-unreachable', 'Warning']]],
      name,
    );
  }
  assert.equal((await refused(app.client.agents.create({ body: definition('other') as never })))[0], 400);
  assert.equal((await app.client.agents.create({ body: definition('look') as never })).status, 201);
  const why = async (): Promise<string> => {
    const failure = await runJson(app.client, 'helper', 'Hi').catch((error: unknown) => error);
    assert.ok(failure instanceof ProblemError);
    assert.equal(failure.problem.code, 'agent-not-compilable');
    return failure.problem.detail;
  };
  assert.match(
    await why(),
    /There is no tool "weather_look": the MCP server "weather" does not answer, or does not offer/,
  );
  await app.client.mcpServers.remove({ params: { name: 'weather' } });
  assert.match(await why(), /There is no tool "weather_look"\.$/);
});

test('AGENT-19 a validation waits for a silent server as long as it may, and no longer', async (t) => {
  const server = await rawServer(t, () => ({ raw: () => undefined }));
  const definition = { name: 'helper', model: { provider: 'demo', model: 'demo-1' }, toolNames: ['weather_look'] };
  const validation = async (McpTimeout: string) => {
    const service = {
      Egress: { AllowPrivateNetworkTargets: true },
      Mcp: { ConnectionTimeout: '10m' },
      Validation: { McpTimeout },
    };
    const app = await openApp(t, 'in process', mcpSetup({ service }));
    await save(app.client, server.endpoint);
    return { McpTimeout, report: app.client.agents.validate({ body: definition as never }) };
  };
  const both = [await validation('10m'), await validation('200ms')];
  // The one that began later is over first, however slow the machine is.
  const { McpTimeout, body } = await Promise.race(
    both.map(async (one) => ({ McpTimeout: one.McpTimeout, body: (await one.report).body })),
  );
  assert.equal(McpTimeout, '200ms');
  assert.deepEqual([body.inconclusive, body.messages.map(({ code }) => code)], [true, ['mcp-unreachable']]);
});
