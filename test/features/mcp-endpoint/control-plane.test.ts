import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as HandshakeClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HandshakeTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { forEachHttpService } from '../../support/app.ts';
import { errorOf, keyFor, openMcp, resultOf, stateless } from './mcp-world.ts';

interface Shape {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly annotations?: { readOnlyHint: boolean; destructiveHint: boolean };
}
const shapesOf = (result: Record<string, unknown>) => result['tools'] as Shape[];

forEachHttpService('MCP-42 without a word of the host there is no endpoint', async (open) => {
  const app = await open({});
  assert.equal((await stateless(app, 'server/discover')).status, 404);
  assert.equal((await fetch(`${app.url}/mcp`)).status, 404);
  const moved = await openMcp(open, { host: { Prefix: '/acp', McpServer: { Agents: ['helper'], Path: '/tools' } } });
  assert.equal((await stateless(moved, 'server/discover')).status, 404);
  assert.equal((await fetch(`${moved.url}/tools`)).status, 405);
});

forEachHttpService(
  'SEC-19 operations are tools of those who may call them, with the same dispatch and the same audit',
  async (open) => {
    const mode = (ControlPlane: string) => ({ host: { McpServer: { Agents: ['helper'], ControlPlane } } });
    const reading = await openMcp(open, mode('Read'));
    const all = shapesOf(resultOf(await stateless(reading, 'tools/list'))).map(({ name }) => name);
    assert.ok(all.includes('agents_list') && all.includes('helper') && !all.includes('agents_create'));
    assert.ok(all.includes('agents_validate') && !all.includes('runs_start'), 'a POST may change nothing');
    const draft = { name: 'draft', model: { provider: 'demo', model: 'demo-1' } };
    const looked = resultOf(
      await stateless(reading, 'tools/call', { name: 'agents_validate', arguments: { body: draft } }),
    );
    assert.equal((looked['structuredContent'] as { valid: boolean }).valid, true);
    assert.ok((await reading.client.agents.list()).body.every(({ name }) => name !== 'draft'));
    assert.deepEqual(
      errorOf(await stateless(reading, 'tools/call', { name: 'agents_create', arguments: {} })),
      [400, -32602],
    );

    const app = await openMcp(open, mode('Write'));
    const key = await keyFor(app, 'assistant', ['ExternalInvoke', 'AgentsRead']);
    const shown = shapesOf(resultOf(await stateless(app, 'tools/list', {}, { token: key })));
    const names = shown.map(({ name }) => name);
    assert.ok(names.includes('agents_list') && !names.includes('runs_list') && !names.includes('agents_create'));
    for (const { name, annotations } of shapesOf(resultOf(await stateless(app, 'tools/list'))))
      if (name !== 'helper') assert.notEqual(annotations?.readOnlyHint, annotations?.destructiveHint, name);
    const hints = shapesOf(resultOf(await stateless(app, 'tools/list')));
    assert.deepEqual(
      ['agents_validate', 'agents_estimate', 'agents_list', 'agents_create', 'retention_run'].map(
        (tool) => hints.find(({ name }) => name === tool)?.annotations?.readOnlyHint,
      ),
      [true, true, true, false, false],
    );
    const hidden = await stateless(app, 'tools/call', { name: 'runs_list', arguments: {} }, { token: key });
    assert.deepEqual(errorOf(hidden), [400, -32602]);
    const body = { name: 'made', model: { provider: 'demo', model: 'demo-1' } };
    const made = resultOf(await stateless(app, 'tools/call', { name: 'agents_create', arguments: { body } }));
    assert.equal((made['structuredContent'] as { name: string }).name, 'made');
    const trail = (await app.client.audit.list({ query: {} })).body.map(({ action }) => action);
    assert.ok(trail.includes('agent.create'));
    const wrong = resultOf(await stateless(app, 'tools/call', { name: 'agents_get', arguments: { name: 'nobody' } }));
    assert.equal(wrong['isError'], true);
    assert.equal((wrong['structuredContent'] as { code: string }).code, 'agent-not-found');
    const run = resultOf(
      await stateless(app, 'tools/call', { name: 'runs_start', arguments: { name: 'made', body: { message: 'Hi' } } }),
    );
    assert.equal((run['structuredContent'] as { output: string }).output, 'Hello.');
    // What a tool does not know would otherwise be left out of what is asked for: a filter, or that nothing is to be saved.
    for (const [name, args, path, message] of [
      ['runs_list', { agentname: 'made' }, 'agentname', 'is no argument'],
      [
        'mcpServers_save',
        { name: 'later', dry_run: true, body: { endpoint: 'https://example.com' } },
        'dry_run',
        'is no argument',
      ],
      [
        'runs_start',
        { name: 'made', message: 'Hi', body: {} },
        'message',
        'is a member of body, and no argument beside it',
      ],
      ['runs_start', { name: 'made' }, 'body', 'is required'],
      ['runs_list', { body: {} }, 'body', 'is no argument'],
    ] as const) {
      const told = resultOf(await stateless(app, 'tools/call', { name, arguments: args }));
      const { code, errors } = told['structuredContent'] as { code: string; errors: unknown[] };
      assert.deepEqual([told['isError'], code, errors], [true, 'validation-failed', [{ path, message }]], name);
    }
    assert.deepEqual((await app.client.mcpServers.list()).body, []);
    assert.equal((await app.client.runs.list()).body.length, 1);
  },
);

forEachHttpService(
  'SEC-19 the description of an operation tells a model all that there is to know of it',
  async (open) => {
    const app = await openMcp(open, { host: { McpServer: { ControlPlane: 'Write' } } });
    const operations = shapesOf(resultOf(await stateless(app, 'tools/list'))).filter(({ annotations }) => annotations);
    assert.ok(operations.length > 50);
    for (const { name, title = '', description = '' } of operations) {
      assert.ok(title !== '' && description.startsWith(`${title}. `), `${name}: ${description}`);
      assert.ok(!description.includes('..'), name);
    }
    assert.ok(!operations.some(({ name }) => name.startsWith('mcpEndpoint_')), 'the door is no tool behind itself');
  },
);

forEachHttpService('MCP-46 the official clients of both generations list and call, unchanged', async (open) => {
  const app = await openMcp(open);
  const url = new URL(`${app.url}/mcp`);
  const older = new HandshakeClient({ name: 'test', version: '1' });
  await older.connect(new HandshakeTransport(url) as never);
  const newer = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await newer.connect(new StreamableHTTPClientTransport(url));
  for (const client of [older, newer]) {
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }: { name: string }) => name),
      ['helper'],
    );
    const result = await client.callTool({ name: 'helper', arguments: { message: 'Hi' } });
    assert.deepEqual(result.content, [{ type: 'text', text: 'Hello.' }]);
    await assert.rejects(client.callTool({ name: 'nobody', arguments: {} }), /-32602|no such tool/);
    await client.close();
  }
});
