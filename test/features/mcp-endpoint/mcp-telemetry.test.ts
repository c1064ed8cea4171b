import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { openReceiver, spansOf, withEnvironment } from '../../support/telemetry/otlp-receiver.ts';
import { attributes, hex, number, text } from '../../support/telemetry/protobuf.ts';
import { callsTool, connected, mcpSetup, rawServer, refresh, tool, withTools } from '../mcp-servers/mcp-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { heldTool, holdingScript, openMcp, resultOf, stateless, tasksCapability } from './mcp-world.ts';

/** What a scraper reads of MCP, but for how long things took: by name and attributes, those that are not empty. */
const scraped = async ({ url }: TestApp): Promise<Record<string, number>> => {
  const body = await (await fetch(`${url}/metrics`)).text();
  return Object.fromEntries(
    body
      .split('\n')
      .filter((line) => /^acp_mcp_/.test(line) && !/_(?:bucket|sum)\{/.test(line))
      .map((line) => {
        const at = line.lastIndexOf(' ');
        return [line.slice(0, at).replaceAll(/,?\w+=""/g, ''), Number(line.slice(at + 1))];
      }),
  );
};
const metrics = { Metrics: { Path: '/metrics' } };

overHttp(
  'MCP-19 OBS-22 looks, calls, tools and changes of servers are counted by server and outcome',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look'), tool('book')]));
    const app = await open(mcpSetup({ host: metrics, script: callsTool('weather_look') }));
    await connected(app.client, server.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    await runJson(app.client, 'helper', 'Hi');
    server.answer(
      withTools([tool('look', { description: 'A' }), tool('book', { description: 'B' })], {
        raw: (response) => response.writeHead(500).end(),
      }),
    );
    await refresh(app.client);
    await runJson(app.client, 'helper', 'Hi');
    assert.equal((await scraped(app))['acp_mcp_tools{acp_mcp_server="weather"}'], 2);
    server.answer(() => ({ raw: (response) => response.writeHead(503).end() }));
    await refresh(app.client);
    const weather = 'acp_mcp_server="weather"';
    assert.deepEqual(await scraped(app), {
      [`acp_mcp_tools{${weather}}`]: 0,
      [`acp_mcp_tool_drift_total{${weather}}`]: 2,
      [`acp_mcp_client_refresh_total{${weather},acp_mcp_state="Connected"}`]: 2,
      [`acp_mcp_client_refresh_total{${weather},acp_mcp_state="Unreachable"}`]: 1,
      [`acp_mcp_client_duration_seconds_count{${weather},mcp_method_name="tools/list"}`]: 2,
      [`acp_mcp_client_duration_seconds_count{${weather},mcp_method_name="tools/list",error_type="503"}`]: 1,
      [`acp_mcp_client_duration_seconds_count{${weather},mcp_method_name="tools/call"}`]: 1,
      [`acp_mcp_client_duration_seconds_count{${weather},mcp_method_name="tools/call",error_type="500"}`]: 1,
    });
  },
);

overHttp(
  'MCP-47 MCP-54 OBS-22 calls of the endpoint are counted by methods that the protocol has, and tasks while they work',
  async (open) => {
    const held = heldTool();
    const app = await openMcp(open, {
      agents: [{ name: 'helper', toolNames: ['hold'] }],
      tools: [held.tool],
      script: holdingScript,
      host: { ...metrics, McpServer: { Agents: ['helper'], Tasks: { InlineWait: '0s' } } },
    });
    const call = (name: string) =>
      stateless(app, 'tools/call', { name, arguments: { message: 'wait' } }, { capabilities: tasksCapability });
    resultOf(await call('helper'));
    resultOf(await call('helper'));
    await call('words-of-a-caller');
    await stateless(app, 'words/of-a-caller');
    const working = 'acp_mcp_server_tasks{acp_mcp_task_status="working"}';
    const counted = await scraped(app);
    assert.deepEqual(counted, {
      [working]: 2,
      'acp_mcp_server_duration_seconds_count{mcp_method_name="tools/call"}': 2,
      'acp_mcp_server_duration_seconds_count{mcp_method_name="tools/call",error_type="-32602"}': 1,
      'acp_mcp_server_duration_seconds_count{mcp_method_name="unknown",error_type="-32601"}': 1,
    });
    held.letGo();
    await eventually('none works any more', async () => (await scraped(app))[working] === 0);
  },
);

overHttp(
  'OBS-24 MCP-35 the trace that a caller names in its message goes through the run to the server of its tool',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await openMcp(open, mcpSetup({ agents: [], script: callsTool('weather_look') }));
    await connected(app.client, server.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    const [trace, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
    const tracestate = 'congo=t61rcWkgMzE';
    const meta = { traceparent: `00-${trace}-${parent}-01`, tracestate };
    const headers = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, tracestate: 'of=headers' };
    resultOf(await stateless(app, 'tools/call', { name: 'helper', arguments: { message: 'Hi' } }, { meta, headers }));
    await stateless(app, 'words/of-a-caller', {}, { meta });
    await app.close();
    const spans = spansOf(received).filter((span) => hex(span, 1) === trace);
    const named = (name: string) =>
      spans.find((span) => text(span, 5) === name) ??
      assert.fail(`${name} of ${spans.map((span) => text(span, 5)).join()}`);
    const [outer, inner] = [named('tools/call helper'), named('execute_tool look')];
    // Kinds: server and client.
    assert.deepEqual([hex(outer, 4), number(outer, 6), number(inner, 6)], [parent, 2, 3]);
    const told = attributes(outer, 9);
    assert.deepEqual(
      ['mcp.method.name', 'mcp.protocol.version', 'gen_ai.operation.name', 'gen_ai.tool.name'].map(
        (name) => told[name],
      ),
      ['tools/call', '2026-07-28', 'execute_tool', 'helper'],
    );
    const own = attributes(inner, 9);
    assert.deepEqual(
      ['mcp.method.name', 'gen_ai.tool.name', 'server.address', 'server.port'].map((name) => own[name]),
      ['tools/call', 'look', '127.0.0.1', server.port],
    );
    assert.equal(attributes(named('unknown'), 9)['error.type'], '-32601');
    const call = server.asked.find(({ method }) => method === 'tools/call');
    assert.equal(call?.params['_meta'].traceparent, `00-${trace}-${hex(inner, 2)}-01`);
    assert.deepEqual([call?.params['_meta'].tracestate, text(inner, 3)], [tracestate, tracestate]);
  },
);

overHttp('OBS-24 MCP-35 each request to a server has a span, below whoever asks', async (open, t) => {
  const { url, received } = await openReceiver(t);
  withEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
  const notes = { uri: 'notes://all', name: 'all' };
  const server = await rawServer(t, ({ method, params }) => {
    if (method === 'server/discover')
      return { supportedVersions: ['2026-07-28'], capabilities: { tools: {}, prompts: {}, resources: {} } };
    if (method === 'tools/list') return { tools: [tool('look')] };
    if (method === 'prompts/list') return { prompts: [{ name: 'greet' }] };
    if (method === 'prompts/get') return { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }] };
    if (method === 'resources/list') return { resources: [notes, { uri: 'notes://gone', name: 'gone' }] };
    return params['uri'] === notes.uri ? { contents: [{ uri: notes.uri, text: 'Take an umbrella' }] } : null;
  });
  const app = await open(mcpSetup({ script: [{ reply: { text: 'Hi.' } }] }));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  const [trace, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const ask = async (method: string, path: string, body?: object): Promise<number> => {
    const answer = await fetch(`${app.url}/api/${path}`, {
      method,
      headers: { 'content-type': 'application/json', traceparent: `00-${trace}-${parent}-01`, tracestate: 'a=b' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const read = (uri: string) => `mcp-servers/weather/resources/read?uri=${encodeURIComponent(uri)}`;
  assert.equal(await ask('POST', 'mcp-servers/weather/prompts/greet', {}), 200);
  assert.equal(await ask('GET', read(notes.uri)), 200);
  assert.equal(await ask('GET', read('notes://gone')), 502);
  await app.createAgent({ name: 'reader', mcpResourceUris: ['weather:notes://all'] });
  assert.equal(await ask('POST', 'agents/reader/run', { message: 'Hi', stream: false }), 200);
  await app.close();

  const spans = spansOf(received);
  const ofServer = spans.filter((span) => /^(?:tools|prompts|resources)\//.test(text(span, 5)));
  const nameOf = (id: string) => text(spans.find((span) => hex(span, 2) === id) ?? new Map(), 5);
  const seen = ofServer.map((span) => {
    const told = attributes(span, 9);
    return [
      ...[hex(span, 1) === trace, nameOf(hex(span, 4)), text(span, 5), number(span, 6)],
      ...['mcp.method.name', 'mcp.protocol.version', 'mcp.resource.uri', 'error.type'].map((name) => told[name]),
    ];
  });
  const version = '2026-07-28';
  // In a trace of its own.
  const refreshing = 'POST /api/mcp-servers/refresh';
  const span = (above: string, name: string, uri?: string, errorType?: string) => [
    ...[above !== refreshing, above, name, 3, name, version, uri, errorType],
  ];
  const prompt = 'POST /api/mcp-servers/{name}/prompts/{prompt}';
  const resource = 'GET /api/mcp-servers/{name}/resources/read';
  assert.deepEqual(
    seen.sort(),
    [
      span(refreshing, 'tools/list'),
      span(prompt, 'prompts/list'),
      span(prompt, 'prompts/get'),
      span(resource, 'resources/list'),
      span(resource, 'resources/read', notes.uri),
      span(resource, 'resources/list'),
      span(resource, 'resources/read', 'notes://gone', '-32601'),
      span('invoke_agent reader', 'resources/list'),
      span('invoke_agent reader', 'resources/read', notes.uri),
    ].sort(),
  );
  const told = attributes(ofServer[0] ?? new Map(), 9);
  assert.deepEqual([told['server.address'], told['server.port']], ['127.0.0.1', server.port]);
  for (const { method, params } of server.asked) {
    const { traceparent, tracestate } = params['_meta'];
    if (method === 'server/discover') continue;
    const own = ofServer.find((one) => hex(one, 2) === String(traceparent).split('-')[2]);
    assert.equal(text(own ?? new Map(), 5), method, `${method} ${traceparent}`);
    assert.equal(tracestate, method === 'tools/list' ? undefined : 'a=b');
  }
});
