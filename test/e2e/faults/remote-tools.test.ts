import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rawServer, tool } from '../../features/mcp-servers/mcp-world.ts';
import { everyRun, isIdle, ledger } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

const calls = (name: string) => ({
  when: { message: `/^${name} (?<city>\\w+)/`, call: 1 },
  reply: { toolCalls: [{ name, arguments: { city: '{{city}}' } }] },
});

test('RUN-78 MCP-17 calls of remote tools and kill -9: none with effects is made twice, and approvals go on', async (t) => {
  const made: string[] = [];
  let isHeld = true;
  const remote = await rawServer(t, ({ method, params }) => {
    if (method === 'tools/list')
      return {
        resultType: 'complete',
        tools: [
          tool('erase', { annotations: { destructiveHint: true } }),
          tool('order'),
          tool('look', { annotations: { readOnlyHint: true } }),
        ],
      };
    if (method !== 'tools/call') return null;
    made.push(`${params['name']} ${params['arguments'].city}`);
    return isHeld ? { raw: () => undefined } : { content: [{ type: 'text', text: 'done' }] };
  });
  const site = openSite({
    script: [
      ...['free_erase', 'free_order', 'free_look', 'asked_erase'].map(calls),
      {
        when: { message: '/^found (?<city>\\w+)/', call: 1 },
        reply: {
          toolCalls: [{ name: 'tools_call', arguments: { name: 'free_erase', arguments: { city: '{{city}}' } } }],
        },
      },
      { reply: { text: '{{last}}' } },
    ],
    service: {
      AsyncRun: { MaxAttempts: 4 },
      Scheduling: { MaxConcurrentJobs: 8, PollInterval: '1s' },
      RunReconciliation: { Enabled: true },
      RunContinuation: { Enabled: true, MaxAttempts: 3 },
      Egress: { AllowPrivateNetworkTargets: true },
    },
  });
  t.after(() => site.close());
  let service: ServiceProcess = await site.serve();
  for (const [name, requiresApproval] of [
    ['free', false],
    ['asked', true],
  ] as const) {
    const saved = await call(`${service.url}/api/mcp-servers/${name}`, {
      method: 'PUT',
      body: { endpoint: remote.endpoint, requiresApproval },
    });
    assert.equal(saved.status, 200, saved.text);
  }
  assert.equal((await call(`${service.url}/api/mcp-servers/refresh`, { method: 'POST' })).status, 200);
  const toolNames = ['free_erase', 'free_order', 'free_look', 'asked_erase'];
  const body = { name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames };
  assert.equal((await call(`${service.url}/api/agents`, { body })).status, 201);
  const finder = { ...body, name: 'finder', toolDiscovery: 'search' };
  assert.equal((await call(`${service.url}/api/agents`, { body: finder })).status, 201);
  const queue = async (message: string, agent = 'shop'): Promise<void> => {
    const answer = await call(`${service.url}/api/agents/${agent}/run`, {
      body: { message, sessionId: message.replace(' ', '-') },
      headers: { prefer: 'respond-async' },
    });
    assert.equal(answer.status, 202, answer.text);
  };
  for (const message of ['free_erase Ulm', 'free_order Rom', 'free_look Bonn']) await queue(message);
  await queue('found Oslo', 'finder');
  await queue('asked_erase Kiel');
  await queue('asked_erase Jena');
  const pending = async () =>
    (await call(`${service.url}/api/approvals/pending`)).json<
      { readonly id: string; readonly sessionId: string; readonly toolCall?: unknown }[]
    >();
  await until(
    'calls that are out and approvals that are asked for',
    async () => made.length === 4 && (await pending()).length === 2,
  );
  assert.deepEqual(made.toSorted(), ['erase Oslo', 'erase Ulm', 'look Bonn', 'order Rom']);

  await service.kill();
  isHeld = false;
  service = await site.serve();
  await until('the end of what was under way', () => isIdle(service));
  // What only reads is asked again, which shows that the runs went on.
  assert.deepEqual(made.toSorted(), ['erase Oslo', 'erase Ulm', 'look Bonn', 'look Bonn', 'order Rom']);
  const states = async () => {
    const rows = await ledger(site, await everyRun(service));
    return rows.map((row) => `${row.tool_name} ${row.state}`).sort();
  };
  assert.deepEqual(
    (await states()).filter((state) => !state.includes('look')),
    ['free_erase Unknown', 'free_erase Unknown', 'free_order Unknown'],
  );

  const asked = await pending();
  assert.deepEqual(asked.map(({ sessionId }) => sessionId).toSorted(), ['asked_erase-Jena', 'asked_erase-Kiel']);
  for (const { id, sessionId } of asked) {
    const decided = await call(`${service.url}/api/approvals/${id}/decide`, {
      body: { approved: sessionId === 'asked_erase-Kiel' },
    });
    assert.ok(decided.status < 300, decided.text);
  }
  await until('the end of what was decided', () => isIdle(service));
  assert.deepEqual(
    made.filter((name) => /Kiel|Jena/.test(name)),
    ['erase Kiel'],
  );
  assert.ok((await states()).includes('asked_erase Settled'));
});

test('MCP-38 RUN-78 a question and kill -9: it can be answered afterwards, and its call is not made again once it was repeated', async (t) => {
  const made: string[] = [];
  let isHeld = true;
  const remote = await rawServer(t, ({ method, params }) => {
    if (method === 'tools/list')
      return { resultType: 'complete', tools: [tool('erase', { annotations: { destructiveHint: true } })] };
    if (method !== 'tools/call') return null;
    const { inputResponses, requestState } = params;
    made.push(`${params['arguments'].city} ${JSON.stringify(inputResponses ?? null)} ${requestState ?? ''}`);
    if (inputResponses !== undefined)
      return isHeld ? { raw: () => undefined } : { content: [{ type: 'text', text: 'done' }] };
    const sure = { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: { type: 'object' } } };
    return {
      resultType: 'input_required',
      inputRequests: { sure },
      requestState: `state of ${params['arguments'].city}`,
    };
  });
  const site = openSite({
    script: [
      { when: { tool: 'free_erase' }, reply: { text: '{{last}}' } },
      calls('free_erase'),
      { reply: { text: 'Fine.' } },
    ],
    service: {
      RunReconciliation: { Enabled: true },
      RunContinuation: { Enabled: true, MaxAttempts: 3 },
      Scheduling: { PollInterval: '1s' },
      Egress: { AllowPrivateNetworkTargets: true },
    },
  });
  t.after(() => site.close());
  let service: ServiceProcess = await site.serve();
  const saved = await call(`${service.url}/api/mcp-servers/free`, {
    method: 'PUT',
    body: { endpoint: remote.endpoint, requiresApproval: false },
  });
  assert.equal(saved.status, 200, saved.text);
  assert.equal((await call(`${service.url}/api/mcp-servers/refresh`, { method: 'POST' })).status, 200);
  const agent = { name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames: ['free_erase'] };
  assert.equal((await call(`${service.url}/api/agents`, { body: agent })).status, 201);
  const run = (body: object) => call(`${service.url}/api/agents/shop/run`, { body: { stream: false, ...body } });
  const ask = async (city: string): Promise<string> => {
    const asked = await run({ message: `free_erase ${city}`, sessionId: city });
    const { status, clientToolCalls } = asked.json<{ status: string; clientToolCalls: { callId: string }[] }>();
    assert.equal(status, 'AwaitingInput', asked.text);
    return clientToolCalls[0]?.callId ?? '';
  };
  const answer = (city: string, callId: string) =>
    run({ sessionId: city, toolResults: [{ callId, result: '{"action":"accept","content":{}}' }] });
  const before = await ask('Ulm');
  const during = await ask('Rom');
  const answered = answer('Rom', during).catch(() => null);
  await until('the repeated call is out', async () => made.length === 3);
  await service.kill();
  await answered;
  isHeld = false;
  service = await site.serve();
  await until('the end of what was under way', () => isIdle(service));
  const yes = '{"sure":{"action":"accept","content":{}}}';
  assert.deepEqual(made, ['Ulm null ', 'Rom null ', `Rom ${yes} state of Rom`]);
  assert.equal((await answer('Ulm', before)).json<{ output: string }>().output, 'done');
  assert.deepEqual(made.slice(3), [`Ulm ${yes} state of Ulm`]);
  // The answer of the lost call was used up, and nobody makes it once more.
  assert.equal((await answer('Rom', during)).status, 409);
  const next = await run({ message: 'And?', sessionId: 'Rom' });
  assert.equal(next.status, 200, next.text);
  assert.equal(made.length, 4);
});
