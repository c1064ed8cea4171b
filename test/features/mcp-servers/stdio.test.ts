import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ConfigError } from '../../../src/core/config/index.ts';
import { openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { refusal, runJson, stream } from '../runs/run-calls.ts';
import { get, mcpSetup, refresh } from './mcp-world.ts';

const names = ['about', 'hang', 'lines', 'line', 'child', 'orphan'];
const script = names.flatMap((name) => [
  { when: { tool: `local_${name}` }, reply: { text: '{{last}}' } },
  { when: { message: name }, reply: { toolCalls: [{ name: `local_${name}`, arguments: {} }] } },
]);
const program = [process.execPath, resolve(import.meta.dirname, '../../support/mcp/stdio-server-process.ts')];

const opened = async (
  t: TestContext,
  local: object,
  more: Readonly<Record<string, unknown>> = {},
  host: object = {},
): Promise<TestApp> =>
  openApp(
    t,
    'in process',
    mcpSetup({ script, service: more, host: { ...host, McpStdio: { local: { RequiresApproval: false, ...local } } } }),
  );

const reached = async (app: TestApp, state: string): Promise<void> => {
  await eventually(`it is ${state}`, async () => {
    const { status } = await get(app.client, 'local').catch(() => ({ status: { state: null } }));
    return status.state === state;
  });
};

const helped = async (app: TestApp): Promise<void> => {
  await reached(app, 'Connected');
  await app.createAgent({ name: 'helper', toolNames: names.map((name) => `local_${name}`) });
};

const said = async (app: TestApp, name: string): Promise<string> =>
  (await runJson(app.client, 'helper', name)).output ?? '';

interface About {
  readonly pid: number;
  readonly env: readonly string[];
  readonly greeting: string;
  readonly calls: readonly string[];
}

const about = async (app: TestApp): Promise<About> => JSON.parse(await said(app, 'about')) as About;

const lives = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    // There is none of this number.
    return false;
  }
};

const gone = (what: string, pid: number) => eventually(`${what} is gone`, async () => !lives(pid));

test('MCP-17 a program of the host is a server, which nobody changes over the API and which ends with all that it has started', async (t) => {
  const app = await opened(
    t,
    { Command: program, Environment: { GREETING: 'hi $' + '{key:Service:McpSecrets:weather}' } },
    {},
    { Tenancy: { Enabled: true } },
  );
  const home = app.inTenant('default');
  await eventually('it is reached', async () => (await home.mcpServers.list()).body[0]?.status.state === 'Connected');
  const [server, ...others] = (await home.mcpServers.list()).body;
  assert.deepEqual(others, []);
  assert.deepEqual(
    [
      server?.name,
      server?.endpoint,
      server?.transport,
      server?.requiresApproval,
      server?.pinning,
      server?.status.toolCount,
    ],
    ['local', 'stdio:local', 'Stdio', false, 'Warn', names.length],
  );
  assert.deepEqual((await app.inTenant('acme').mcpServers.list()).body, []);
  const params = { name: 'local' };
  for (const change of [
    home.mcpServers.save({ params, body: { endpoint: 'http://127.0.0.1:1/' } }),
    home.mcpServers.remove({ params }),
  ])
    assert.equal((await refusal(change)).code, 'validation-failed');
  assert.equal(
    (await refusal(home.mcpServers.save({ params: { name: 'other' }, body: { endpoint: 'stdio:local' } }))).code,
    'validation-failed',
  );
  assert.deepEqual((await home.mcpServers.get({ params })).body, server);
  const steps = (await home.mcpServers.check({ params })).body;
  assert.deepEqual(
    steps.map(({ step, outcome }) => [step, outcome]),
    [
      ['Name', 'Skipped'],
      ['Address', 'Skipped'],
      ['Connection', 'Passed'],
      ['Tls', 'Skipped'],
      ['Credential', 'Skipped'],
      ['Protocol', 'Passed'],
      ['Tools', 'Passed'],
    ],
  );
  await home.agents.create({
    body: {
      name: 'helper',
      model: { provider: 'demo', model: 'demo-1' },
      toolNames: names.map((name) => `local_${name}`),
    },
  });
  const output = async (message: string) => (await runJson(home, 'helper', message)).output ?? '';
  const { pid, env, greeting } = JSON.parse(await output('about')) as About;
  assert.deepEqual(env, ['ACP_MCP_PROCESS', 'GREETING', 'PATH']);
  assert.equal(greeting, 'hi Bearer s3cret-of-the-weather');
  assert.ok(!JSON.stringify(app.log).includes('s3cret-of-the-weather'));
  assert.ok(
    app.log.some(({ message, fields }) => message === 'An MCP server says' && fields['line'] === `started as ${pid}`),
  );
  const child = JSON.parse(await output('child')) as About;
  const orphan = JSON.parse(await output('orphan')) as About;
  assert.ok(lives(pid) && lives(child.pid) && lives(orphan.pid));
  await app.close();
  await gone('the program', pid);
  await gone('what it has started', child.pid);
  // What has left its group and has lost its parent is known by its environment alone.
  if (process.platform === 'linux') await gone('what nobody is the parent of', orphan.pid);
  else process.kill(orphan.pid);
});

test('MCP-17 MCP-19 a program of the host has the configured tenant and pinning', async (t) => {
  const local = { Command: program, Tenant: 'acme', Pinning: 'Block' };
  const app = await opened(t, local, {}, { Tenancy: { Enabled: true } });
  const acme = app.inTenant('acme');
  const params = { name: 'local' };
  const state = async () => (await acme.mcpServers.list()).body[0]?.status.state;
  await eventually('it is reached', async () => (await state()) === 'Connected' || null);
  assert.deepEqual((await app.client.mcpServers.list()).body, []);
  const offered = async (client: TestApp['client']) =>
    (await client.tools.list({})).body.filter(({ source }) => source === 'local').length;
  assert.equal((await acme.mcpServers.get({ params })).body.pinning, 'Block');
  assert.equal(await offered(acme), 0, 'nothing was approved yet');
  await acme.mcpServers.approve({ params, body: {} });
  assert.deepEqual([await offered(acme), await offered(app.client)], [names.length, 0]);
});

test('MCP-17 RUN-78 a program that dies in a call has answered nothing, is started again, and is not called twice', async (t) => {
  const app = await opened(t, { Command: program });
  await helped(app);
  const { pid } = await about(app);
  const { runId, frames } = await stream(app.client, 'helper', 'hang');
  for await (const { event } of frames) if (event === 'tool.invoking') process.kill(pid, 'SIGKILL');
  const [call] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.deepEqual([call?.succeeded, call?.error], [false, 'Tool failed: local did not answer']);
  const after = await about(app);
  assert.notEqual(after.pid, pid);
  assert.deepEqual(after.calls, ['about']);
});

test('MCP-17 OBS-24 the span of a call of a program names no address', async (t) => {
  const app = await opened(t, { Command: program }, { Observability: { SuccessSampleRatio: 1 } });
  await helped(app);
  const { runId } = await runJson(app.client, 'helper', 'about');
  const { spans } = (await app.client.runs.trace({ params: { runId } })).body;
  const { kind, attributes = {} } = spans.find(({ name }) => name === 'tools/call about') ?? {};
  assert.equal(kind, 'Client');
  assert.deepEqual(Object.keys(attributes).sort(), [
    'gen_ai.operation.name',
    'gen_ai.tool.name',
    'mcp.method.name',
    'mcp.protocol.version',
  ]);
});

test('MCP-17 a program that floods its output is ended, and works again', async (t) => {
  const app = await opened(t, { Command: program });
  await helped(app);
  for (const name of ['lines', 'line']) {
    const { pid } = await about(app);
    assert.equal(await said(app, name), 'Tool failed: local did not answer', name);
    await gone('the program', pid);
  }
  assert.notEqual((await about(app)).pid, 0);
});

test('MCP-13 a program that never answers, and one that does not start, are told apart from those that work', async (t) => {
  for (const Command of [['sleep', '600'], ['/nowhere/program']]) {
    const app = await opened(t, { Command }, { Mcp: { ConnectionTimeout: '1s' } });
    await reached(app, 'Unreachable');
    assert.equal((await refresh(app.client, 'local')).servers[0]?.state, 'Unreachable');
    const steps = (await app.client.mcpServers.check({ params: { name: 'local' } })).body;
    const failed = steps.find(({ outcome }) => outcome === 'Failed');
    assert.equal(failed?.step, 'Connection');
    assert.match(failed?.mend ?? '', /See in the log/);
    await app.close();
  }
});

test('MCP-9 a program that the configuration names no more is no server any more', async (t) => {
  const first = await opened(t, { Command: program });
  await reached(first, 'Connected');
  await first.close();
  const second = await openApp(t, 'in process', mcpSetup({ folder: first.folder }));
  await eventually('its record is gone', async () => (await second.client.mcpServers.list()).body.length === 0);
});

test('MCP-17 TOOL-3 the configuration says what a tool of a program does, over what the program says', async (t) => {
  const effects = { about: 'Read', hang: 'Destructive' };
  const first = await opened(t, { Command: program, Effects: effects });
  const shown = async (app: TestApp) =>
    Object.fromEntries(
      (await app.client.tools.list({})).body.flatMap(({ name, effect }) =>
        name.startsWith('local_') ? [[name.slice('local_'.length), effect]] : [],
      ),
    );
  await reached(first, 'Connected');
  const own = { child: 'External', line: 'External', lines: 'External', orphan: 'External' };
  assert.deepEqual(await shown(first), { ...own, ...effects });
  assert.deepEqual((await get(first.client, 'local')).effects, effects);
  await first.close();
  // Another configuration counts at the next start.
  const host = { McpStdio: { local: { Command: program, Effects: { about: 'Write' } } } };
  const second = await openApp(t, 'in process', mcpSetup({ script, folder: first.folder, host }));
  await eventually('the new effect', async () => (await shown(second))['about'] === 'Write' || null);
  assert.deepEqual(await shown(second), { ...own, about: 'Write', hang: 'External' });
  const wrong = opened(t, { Command: program, Effects: { about: 'Kind' } });
  await assert.rejects(wrong, (error: ConfigError) => /Effects:about/.test(error.report()));
});
