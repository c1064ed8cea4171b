/**
 * What remote tools cost: `node bench/mcp.ts [--servers 50] [--tools 40] [--calls 300]`. The start of a service and its
 * memory with stored servers are compared with those of one that has none, in turns; the check of an agent that names ten
 * of the tools with that of an agent that names none; and a run that calls a remote tool with a run that calls a tool of
 * code, less what the same server takes when it is called directly.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { tellGoals } from './goal-lines.ts';
import { residentBytes } from './process-usage.ts';
import { call, serve } from './served.ts';
import { median } from './statistics.ts';
import { temporaryFolder } from './workspace.ts';

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '50' },
    tools: { type: 'string', default: '40' },
    calls: { type: 'string', default: '300' },
    starts: { type: 'string', default: '5' },
  },
});
const servers = Number(values.servers);
const calls = Number(values.calls);
const starts = Number(values.starts);

const inputSchema = {
  type: 'object',
  properties: {
    city: { type: 'string', description: 'Name of a city, as people write it there' },
    days: { type: 'integer', minimum: 1, maximum: 14, description: 'For how many days' },
    unit: { type: 'string', enum: ['metric', 'imperial'] },
  },
  required: ['city'],
};
const tools = Array.from({ length: Number(values.tools) }, (_, index) => ({
  name: `tool_${index}`,
  description: `Tells what number ${index} of the service knows about a city, for some days from now on.`,
  inputSchema,
}));
const results: Readonly<Record<string, object>> = {
  'server/discover': {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'bench', version: '1' } },
    ttlMs: 0,
    cacheScope: 'private',
  },
  'tools/list': { tools },
  'tools/call': { content: [{ type: 'text', text: 'It rains.' }] },
};
const remote = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const { id, method } = JSON.parse(body) as { id: number; method: string };
  const result = { resultType: 'complete', ...results[method] };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve));
const endpoint = `http://127.0.0.1:${(remote.address() as AddressInfo).port}/`;

const parent = temporaryFolder();
const folderOf = (name: string): string => {
  const folder = join(parent, name);
  mkdirSync(join(folder, 'data'), { recursive: true });
  writeFileSync(
    join(folder, 'service.yaml'),
    `Host: { Url: "http://127.0.0.1:0", LogLevel: error, Modules: [./tool.mjs] }
Service:
  Egress: { AllowPrivateNetworkTargets: true }
  Providers: { Scripted: { demo: { File: ./script.yaml } } }
`,
  );
  writeFileSync(
    join(folder, 'tool.mjs'),
    `export default { name: 'bench', tools: [{ name: 'own', description: 'Tells the weather.',
  inputSchema: ${JSON.stringify(inputSchema)}, execute: () => 'It rains.' }] };
`,
  );
  const asks = (message: string, name: string) => ({
    when: { message, call: 1 },
    reply: { toolCalls: [{ name, arguments: { city: 'Ulm' } }] },
  });
  const rules = [asks('own', 'own'), asks('remote', 's0_tool_0'), { reply: { text: 'Done.' } }];
  writeFileSync(join(folder, 'script.yaml'), JSON.stringify({ rules }));
  return folder;
};
const without = folderOf('without');
const withServers = folderOf('with');
const model = { provider: 'demo', model: 'm' };
const ten = Array.from({ length: 10 }, (_, index) => `s${index * Math.floor(servers / 10)}_tool_${index}`);

const first = await serve(withServers);
for (let index = 0; index < servers; index += 1)
  await call(first.url, 'PUT', `/api/mcp-servers/s${index}`, { endpoint, requiresApproval: false });
await call(first.url, 'POST', '/api/mcp-servers/refresh');
await first.stop();

const started = async (folder: string) => {
  const begun = performance.now();
  const service = await serve(folder);
  const ms = performance.now() - begun;
  // Discovery is over by then.
  await pause(3000);
  const agent = { name: 'x', model, toolNames: folder === withServers ? ten : [] };
  const asked = performance.now();
  await call(service.url, 'POST', '/api/agents/validate', agent);
  const firstCheckMs = performance.now() - asked;
  await pause(1000);
  const bytes = residentBytes(service.pid);
  await service.stop();
  return { ms, bytes, firstCheckMs };
};
const plain: Awaited<ReturnType<typeof started>>[] = [];
const full: typeof plain = [];
for (let round = 0; round < starts; round += 1) {
  plain.push(await started(without));
  full.push(await started(withServers));
}
const of = (list: typeof plain, member: keyof (typeof plain)[number]): number =>
  median(list.map((entry) => entry[member]));

const service = await serve(withServers);
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const asked = performance.now();
  await work();
  return performance.now() - asked;
};
const validate = (toolNames: readonly string[]) =>
  call(service.url, 'POST', '/api/agents/validate', { name: 'x', model, toolNames });
await call(service.url, 'POST', '/api/agents', { name: 'helper', model, toolNames: ['own', 's0_tool_0'] });
const run = (message: string) => call(service.url, 'POST', '/api/agents/helper/run', { message, stream: false });
const directly = () =>
  call(endpoint, 'POST', '', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'tool_0' } });
const times = {
  none: [] as number[],
  ten: [] as number[],
  own: [] as number[],
  remote: [] as number[],
  direct: [] as number[],
};
for (let index = -50; index < calls; index += 1) {
  const round = {
    none: await timed(() => validate([])),
    ten: await timed(() => validate(ten)),
    own: await timed(() => run('own')),
    remote: await timed(() => run('remote')),
    direct: await timed(directly),
  };
  // The first ones warm up.
  if (index >= 0) for (const name of Object.keys(times) as (keyof typeof times)[]) times[name].push(round[name]);
}
await service.stop();
remote.closeAllConnections();
remote.close();
const p50 = Object.fromEntries(Object.entries(times).map(([name, list]) => [name, Number(median(list).toFixed(2))]));
console.log({
  servers,
  toolsEach: tools.length,
  'start, ms': { without: of(plain, 'ms'), with: of(full, 'ms') },
  'first check after the start, ms': { without: of(plain, 'firstCheckMs'), with: of(full, 'firstCheckMs') },
  'p50, ms': p50,
});
tellGoals([
  { name: 'added to the start', measured: of(full, 'ms') / of(plain, 'ms'), limit: 1.05, is: 'at most', unit: '×' },
  {
    name: 'check of an agent that names ten tools, beyond one that names none',
    measured: median(times.ten) - median(times.none),
    limit: 5,
    is: 'below',
    unit: 'ms',
  },
  {
    name: 'memory added',
    measured: (of(full, 'bytes') - of(plain, 'bytes')) / 1024 ** 2,
    limit: 30,
    is: 'below',
    unit: 'MiB',
  },
  {
    name: 'added to a call, over the same server called directly',
    measured: median(times.remote) - median(times.own) - median(times.direct),
    limit: 1.5,
    is: 'at most',
    unit: 'ms',
  },
]);
