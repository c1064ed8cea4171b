import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type TestContext, test } from 'node:test';
import { createProgram } from '../../../src/providers/mcp/stdio/program.ts';
import { type AppSetup, openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson, stream } from '../runs/run-calls.ts';
import { get, mcpSetup, save } from './mcp-world.ts';

const names = ['about', 'ask', 'hang'];
const script = names.flatMap((name) => [
  { when: { tool: `local_${name}` }, reply: { text: '{{last}}' } },
  { when: { message: name }, reply: { toolCalls: [{ name: `local_${name}`, arguments: {} }] } },
]);

/** A program that tells what it was told, and asks its client for what nobody gives. */
const program = `
  const heard = [], tools = ${JSON.stringify(names.map((name) => ({ name, inputSchema: { type: 'object' } })))};
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
  const serverInfo = { name: 'local', version: '1' };
  const initialized = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  let asking = null;
  for (let n = 0; n < Number(process.env.LINES ?? 0); n += 1) process.stderr.write(n + ' ' + 'x'.repeat(1100) + '\\n');
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params, error } = JSON.parse(line);
    if (id === 'q') return say({ id: asking, result: text(error) });
    if (method === 'tools/call') heard.push([params.name, id]);
    else if (method === 'notifications/cancelled') heard.push([method, params.requestId]);
    if (method === 'initialize') say({ id, result: initialized });
    else if (method === 'tools/list') say({ id, result: { tools } });
    else if (method !== 'tools/call') id !== undefined && say({ id, error: { code: -32601, message: 'no' } });
    else if (params.name === 'about') say({ id, result: text({ pid: process.pid, cwd: process.cwd(), heard }) });
    else if (params.name === 'ask') say({ id: 'q', method: 'roots/list' }, (asking = id));
  });
`;
const Command = [process.execPath, '-e', program];

const opened = async (t: TestContext, local: object = {}, more: AppSetup = {}): Promise<TestApp> => {
  const host = { McpStdio: { local: { Command, RequiresApproval: false, ...local } } };
  const app = await openApp(t, 'in process', mcpSetup({ script, ...more, host }));
  await eventually('it is reached', async () => {
    const found = await get(app.client, 'local').catch(() => null);
    return found?.status.state === 'Connected' || null;
  });
  await app.createAgent({ name: 'helper', toolNames: names.map((name) => `local_${name}`) });
  return app;
};

interface About {
  readonly pid: number;
  readonly cwd: string;
  readonly heard: readonly (readonly [string, unknown])[];
}
const said = async (app: TestApp, name: string): Promise<string> =>
  (await runJson(app.client, 'helper', name)).output ?? '';
const about = async (app: TestApp): Promise<About> => JSON.parse(await said(app, 'about')) as About;

test('MCP-17 a program that has ended while nobody used it is started when it is next asked, and no call is lost', async (t) => {
  const app = await opened(t);
  const { pid } = await about(app);
  process.kill(pid, 'SIGKILL');
  await eventually(
    'its end is known',
    () =>
      app.log.some(({ message, fields }) => message === 'An MCP server has ended' && fields['signal'] === 'SIGKILL') ||
      null,
  );
  const after = await about(app);
  assert.notEqual(after.pid, pid);
  assert.deepEqual(
    after.heard.map(([name]) => name),
    ['about'],
  );
});

test('MCP-37 MCP-41 a program that asks is refused, and hears of a call that nobody waits for', async (t) => {
  const cwd = realpathSync(tmpdir());
  const app = await opened(t, { WorkingDirectory: cwd });
  assert.equal((JSON.parse(await said(app, 'ask')) as { readonly code: number }).code, -32601);
  const { runId } = await stream(app.client, 'helper', 'hang');
  const hung = await eventually('the call is out', async () => {
    const call = (await about(app)).heard.find(([name]) => name === 'hang');
    return call ?? null;
  });
  await app.client.runs.cancel({ params: { runId } });
  const told = await eventually('it is told', async () => {
    const { heard } = await about(app);
    return heard.find(([name]) => name === 'notifications/cancelled') ?? null;
  });
  assert.equal(told[1], hung[1]);
  assert.equal((await about(app)).cwd, cwd);
});

test('MCP-17 of what a program writes beside the protocol 200 lines of 1000 characters are logged for each start', async (t) => {
  const app = await opened(t, { Environment: { LINES: '205' } });
  const lines = () =>
    app.log.flatMap(({ message, fields }) => (message === 'An MCP server says' ? [String(fields['line'])] : []));
  const ends = () => app.log.filter(({ message }) => /says further is not logged/.test(message)).length;
  await eventually('all that is logged of it', () => ends() === 1 || null);
  const { pid } = await about(app);
  assert.equal(lines().length, 200);
  assert.deepEqual([lines()[0]?.length, lines().at(-1)?.split(' ')[0]], [1000, '199']);
  process.kill(pid, 'SIGKILL');
  await eventually('its end is known', () => app.log.some(({ message }) => /has ended/.test(message)) || null);
  await about(app);
  await eventually('another start has as many', () => ends() === 2 || null);
  assert.equal(lines().length, 400);
});

test('MCP-17 a server of the API keeps its name, and the log says that the program is not started', async (t) => {
  const first = await openApp(t, 'in process', mcpSetup());
  const { id } = await save(first.client, 'http://127.0.0.1:1/', { name: 'local' });
  await first.close();
  const host = { McpStdio: { local: { Command }, other: { Command } } };
  const second = await openApp(t, 'in process', mcpSetup({ folder: first.folder, host }));
  await eventually('the other one is reached', async () => {
    const other = await get(second.client, 'other').catch(() => null);
    return other?.status.state === 'Connected' || null;
  });
  const kept = await get(second.client, 'local');
  assert.deepEqual([kept.id, kept.endpoint, kept.transport], [id, 'http://127.0.0.1:1/', 'StreamableHttp']);
  const told = second.log.filter(({ message }) => /Host:McpStdio is not started/.test(message));
  assert.deepEqual(
    told.map(({ level, fields }) => [level, fields['server']]),
    [['error', 'local']],
  );
});

test('MCP-17 a program that has lived for a minute is started again at once', async (t) => {
  let now = 1;
  t.mock.method(performance, 'now', () => now);
  const waits = t.mock.method(globalThis, 'setTimeout');
  const settings = { name: 'local', command: ['sleep', '600'], environment: {}, workingDirectory: null };
  const log = { info: () => undefined, warn: () => undefined };
  const one = createProgram(settings, { log, path: process.env['PATH'], maxLineBytes: 1024 });
  t.after(() => one.stop());
  const pauses = async (livedMs: number): Promise<number> => {
    (await one.channel()).close();
    now += livedMs;
    const before = waits.mock.callCount();
    await one.channel();
    return waits.mock.calls.slice(before).filter(({ arguments: args }) => args[1] === 500 || args[1] === 1000).length;
  };
  assert.equal(await pauses(60_000), 0);
  assert.equal(await pauses(59_999), 1);
});
