import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, type Frame, parseFrames, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { rule } from './rule.ts';
import { assertWhole, cancel, ended, getRun, last, logOf, namesOf, only, open } from './run-calls.ts';

rule('RUN-20', 'a completed run answers everything at once', async (api) => {
  const agent = await api.agent({ model: { provider: 'demo', model: 'priced' } });
  const answer = await api.run(agent, 'price');
  assert.equal(answer.status, 200);
  const { runId, durationMs, usage, cost, ...rest } = answer.body;
  assert.equal(answer.headers.get('x-run-id'), runId);
  assert.ok(Number.isInteger(durationMs) && durationMs >= 0);
  assert.deepEqual(rest, {
    status: 'Completed',
    agentName: agent,
    agentVersion: 1,
    sessionId: null,
    modelProvider: 'demo',
    modelId: 'priced',
    output: 'Sold.',
    structuredOutput: null,
    finishReason: 'Stop',
    approvals: [],
    clientToolCalls: [],
  });
  const record = await getRun(api, runId);
  assert.deepEqual([record.usage, record.cost], [usage, cost]);
});

const failures: readonly [message: string, status: number, code: string, errorClass: string, type: string][] = [
  ['fail', 502, 'provider-error', 'ProviderError', 'provider_error'],
  ['fail late', 502, 'provider-error', 'ProviderError', 'provider_error'],
  ['fail unavailable', 502, 'provider-unavailable', 'ProviderUnavailable', 'provider_unavailable'],
  ['fail limited', 502, 'provider-rate-limited', 'RateLimited', 'provider_rate_limited'],
  ['fail timeout', 502, 'provider-timeout', 'Timeout', 'provider_timeout'],
  ['fail overflow', 400, 'context-window-exceeded', 'ProviderError', 'context_overflow'],
  ['fail filtered', 422, 'content-filtered', 'ContentFiltered', 'content_filtered'],
  ['break again', 502, 'tool-failed', 'ToolError', 'tool_error'],
  ['slow again', 502, 'tool-timeout', 'ToolTimeout', 'tool_timeout'],
];

rule(
  'RUN-20 RUN-26 RUN-71 RUN-72 RUN-73 TOOL-16',
  'each failure has its status, class and type, and no foreign text',
  async (api) => {
    const agent = await api.agent({ toolNames: ['broken', 'slow'] });
    for (const [message, status, code, errorClass, type] of failures) {
      const answer = await api.run(agent, message);
      const problem = assertProblem(answer, status, code);
      assert.equal(problem.errorType, type, message);
      const { error, status: state } = await getRun(api, answer.headers.get('x-run-id') ?? '');
      assert.deepEqual([state, error.class, error.type], ['Failed', errorClass, type], message);
      assert.match(error.fingerprint, /^[0-9a-f]{16}$/);
      assert.doesNotMatch(answer.text + error.message, /secret of the tool/);
      const streamed = await open(api, agent, { message });
      const frames = await streamed.rest();
      assertWhole(frames);
      const [errorFrame, end] = frames.slice(-2);
      assert.deepEqual([errorFrame?.event, errorFrame?.id, end?.event], ['error', null, 'run.failed'], message);
      assert.deepEqual([errorFrame?.data.code, errorFrame?.data.errorType], [code, type]);
      assert.equal(typeof errorFrame?.data.message, 'string');
      assert.equal(end?.data.error.type, type);
      assert.equal(end?.data.error.fingerprint, error.fingerprint);
      assert.ok(!namesOf(await logOf(api, streamed.runId)).includes('error'));
    }
  },
);

rule('RUN-21', 'a time that the provider gave is passed on', async (api) => {
  const answer = await api.run(await api.agent(), 'fail limited');
  assert.equal(assertProblem(answer, 502, 'provider-rate-limited').retryAfterMs, 2000);
  assert.equal(answer.headers.get('retry-after'), '2');
  const other = await api.run(await api.agent(), 'fail');
  assert.deepEqual([other.body.retryAfterMs, other.headers.get('retry-after')], [undefined, null]);
});

rule('RUN-22 RUN-24', 'the stream and the log are the same frames, from any place on', async (api) => {
  const agent = await api.agent({ toolNames: ['add'] });
  const run = await open(api, agent, { message: 'call add {"a":1,"b":2}' });
  const frames = await run.rest();
  assertWhole(frames);
  assert.deepEqual(
    namesOf(frames).filter((name) => name !== 'message.delta'),
    [
      'run.started',
      'message.completed',
      'usage.updated',
      'tool.invoking',
      'tool.invoked',
      'message.completed',
      'usage.updated',
      'run.completed',
    ].filter((name) => namesOf(frames).includes(name)),
  );
  for (const { data } of frames) {
    assert.equal(data.runId, run.runId);
    assert.match(data.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  assert.deepEqual(await logOf(api, run.runId), frames);
  const from = (id: string | number) =>
    api.frames('GET', `/api/runs/${run.runId}/events`, undefined, { headers: { 'last-event-id': String(id) } });
  for (const id of [0, 1, frames.length - 2]) assert.deepEqual(await from(id), frames.slice(id + 1));
  for (const id of [frames.length - 1, 999_999]) assert.deepEqual(await from(id), []);
  for (const id of ['-1', 'x', '1.5']) {
    const answer = await api.get(`/api/runs/${run.runId}/events`, { headers: { 'last-event-id': id } });
    assertProblem(answer, 400, 'validation-failed');
  }
  assert.equal((await getRun(api, run.runId)).eventCount, frames.length);
});

rule(
  'RUN-22 RUN-24 RUN-25',
  'many readers follow a run that goes on, and one that comes back misses nothing',
  async (api) => {
    const agent = await api.agent();
    const run = await open(api, agent, { message: 'chunks' });
    const readers = Array.from({ length: 5 }, () => logOf(api, run.runId));
    const part = await api.fetch('GET', `/api/runs/${run.runId}/events`);
    let text = '';
    const seen = (): Frame[] => parseFrames(text.slice(0, text.lastIndexOf('\n\n') + 2));
    for await (const bytes of part.body ?? []) {
      text += Buffer.from(bytes).toString();
      if (seen().length >= 2) break;
    }
    const first = seen();
    assert.ok(first.length >= 2, text);
    const rest = await api.frames('GET', `/api/runs/${run.runId}/events`, undefined, {
      headers: { 'last-event-id': String(first.at(-1)?.id) },
    });
    const whole = await run.rest();
    assert.deepEqual([...first, ...rest], whole);
    for (const log of await Promise.all(readers)) assert.deepEqual(log, whole);
  },
);

rule('RUN-23', 'the events operation is a stream with its own headers', async (api) => {
  const { body } = await api.run(await api.agent(), 'Hi');
  const answer = await api.get(`/api/runs/${body.runId}/events`);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/);
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('x-accel-buffering'), 'no');
  assert.match(answer.text, /^id: 0\nevent: run\.started\ndata: \{[^\n]*\}\n\n/);
  const unknown = await api.get('/api/runs/01890000-0000-7000-8000-000000000000/events');
  assertProblem(unknown, 404, 'run-not-found');
});

const members: Readonly<Record<string, readonly string[]>> = {
  'run.started': [
    'agentName',
    'agentVersion',
    'attempt',
    'continuedFromRunId',
    'isStreaming',
    'kind',
    'modelId',
    'modelProvider',
    'parentRunId',
    'replayOfRunId',
    'sessionId',
  ],
  'message.delta': ['messageId', 'text'],
  'message.completed': ['finishReason', 'messageId', 'text'],
  'tool.invoking': ['arguments', 'source', 'toolCallId', 'toolName'],
  'tool.invoked': ['durationMs', 'result', 'toolCallId', 'toolName', 'usage'],
  'tool.failed': ['authorizationDenied', 'durationMs', 'error', 'timedOut', 'toolCallId', 'toolName'],
  'tool.output-truncated': ['omittedBytes', 'originalBytes', 'toolCallId', 'toolName'],
  'child.started': ['agentName', 'childRunId', 'depth', 'toolCallId'],
  'child.completed': ['agentName', 'childRunId', 'durationMs', 'status', 'usage'],
  'usage.updated': ['cost', 'treeUsage', 'usage'],
  custom: ['customType', 'payload'],
  'run.completed': ['cost', 'durationMs', 'finishReason', 'output', 'structuredOutput', 'usage'],
  'run.failed': ['cost', 'durationMs', 'error', 'usage'],
  'run.canceled': ['canceledBy', 'cause', 'cost', 'durationMs', 'usage'],
};

/** A tenant with a child that other agents can call. */
const family = async (all: Api): Promise<{ api: Api; agent: string }> => {
  const api = all.inTenant(unique('tenant'));
  await api.post('/api/agents', { name: 'conformance.child', model: { provider: 'demo', model: 'demo-1' } });
  return { api, agent: await api.agent({ callableAgentNames: ['conformance.child'], toolNames: ['add'] }) };
};

rule('RUN-27 RUN-29', 'each event has the members that the vocabulary gives it', async (all) => {
  const { api, agent } = await family(all);
  const tools = await api.agent({ toolNames: ['report', 'long', 'broken', 'slow'] });
  const logs: Frame[][] = [];
  for (const message of ['call report', 'call long', 'call broken', 'fail'])
    logs.push(await (await open(api, tools, { message })).rest());
  logs.push(await (await open(api, agent, { message: 'call the child: say yes' })).rest());
  const waiting = await open(api, agent, { message: 'wait' });
  await cancel(api, waiting.runId);
  logs.push(await waiting.rest());
  const frames = logs.flat().filter(({ id }) => id !== null);
  for (const [name, expected] of Object.entries(members)) {
    const found = frames.find(({ event }) => event === name);
    const { runId, sequence, type, timestamp, truncated, ...rest } = found?.data ?? {};
    assert.deepEqual(Object.keys(rest).sort(), expected, name);
  }
  const custom = frames.find(({ event }) => event === 'custom')?.data;
  assert.deepEqual([custom.customType, custom.payload], ['conformance.note', { n: 1 }]);
});

rule('RUN-27', 'long payloads are cut in the log, message text is not', async (api) => {
  const agent = await api.agent({ toolNames: ['echo'] });
  const text = 'x'.repeat(9000);
  const run = await open(api, agent, { message: `call echo ${JSON.stringify({ text })}` });
  const frames = await run.rest();
  for (const [name, member] of [
    ['tool.invoking', 'arguments'],
    ['tool.invoked', 'result'],
  ] as const) {
    const event = only(frames, name);
    assert.equal(event.truncated, true, name);
    assert.ok(JSON.stringify(event[member]).length < 8300, name);
  }
  assert.equal(last(frames).data.output, `Result: ${text}`);
  const [record] = (await api.get(`/api/runs/${run.runId}/tools`)).body;
  assert.deepEqual([record.truncated, record.result.length], [true, 8192]);
});

rule(
  'RUN-41 RUN-42 RUN-9',
  'cancel asks, the run ends and keeps what it wrote, and the session is free',
  async (api) => {
    const agent = await api.agent();
    const sessionId = unique('session');
    const run = await open(api, agent, { message: 'wait', sessionId });
    const asked = await cancel(api, run.runId);
    assert.equal(asked.status, 202, asked.text);
    assert.equal(asked.body.id, run.runId);
    const end = last(await run.rest());
    assert.deepEqual([end.event, end.data.cause], ['run.canceled', 'Requested']);
    const record = await getRun(api, run.runId);
    assert.deepEqual([record.status, record.error.class, record.error.type], ['Canceled', 'Canceled', 'canceled']);
    assertProblem(await cancel(api, run.runId), 409, 'run-finished');
    assertProblem(await cancel(api, '01890000-0000-7000-8000-000000000000'), 404, 'run-not-found');
    assert.equal((await api.run(agent, { message: 'Hi', sessionId })).status, 200);
  },
);

rule(
  'RUN-43 AGENT-46 AGENT-47',
  'children end with their root; a child that is cancelled is a tool error',
  async (all) => {
    const { api, agent } = await family(all);
    const childOf = (runId: string): Promise<string> =>
      eventually('the child is there', async () => (await api.get(`/api/runs?parentRunId=${runId}`)).body[0]?.id);
    const root = await open(api, agent, { message: 'call the child: wait' });
    const child = await childOf(root.runId);
    await cancel(api, root.runId);
    const rootEnd = last(await root.rest());
    const childEnd = last(await logOf(api, child));
    assert.deepEqual([rootEnd.data.cause, childEnd.data.cause], ['Requested', 'ParentCanceled']);

    const kept = await open(api, agent, { message: 'call the child: wait' });
    await cancel(api, await childOf(kept.runId));
    const frames = await kept.rest();
    assert.equal(last(frames).event, 'run.completed');
    assert.equal(only(frames, 'child.completed').status, 'Canceled');
    assert.equal(only(frames, 'tool.failed').authorizationDenied, false);
    const failed = await open(api, agent, { message: 'call the child: fail' });
    const failedFrames = await failed.rest();
    assert.equal(last(failedFrames).event, 'run.completed');
    assert.doesNotMatch(only(failedFrames, 'tool.failed').error, /provider/i);
  },
);

rule('RUN-37 RUN-38 AGENT-46', 'a called agent is a child run; the tree has its usage and cost', async (all) => {
  const { api, agent } = await family(all);
  const sessionId = unique('session');
  const { body } = await api.run(agent, { message: 'call the child: Hi', sessionId });
  assert.equal(body.output, 'Result: Hello.');
  const tree = (await api.get(`/api/runs/${body.runId}/tree`)).body;
  const [root, child] = tree;
  assert.equal(tree.length, 2);
  assert.deepEqual((await api.get(`/api/runs/${child.id}/tree`)).body, tree);
  assert.deepEqual([root.parentRunId, root.rootRunId, root.depth, root.childRunCount], [null, null, 0, 1]);
  assert.deepEqual(
    [child.agentName, child.parentRunId, child.rootRunId, child.depth, child.sessionId, child.tenantId],
    ['conformance.child', root.id, root.id, 1, null, root.tenantId],
  );
  assert.deepEqual(
    [child.usage.inputTokens, child.usage.cachedInputTokens, child.usage.reasoningTokens],
    [10, 4, null],
  );
  assert.equal(root.treeUsage.inputTokens, root.usage.inputTokens + 10);
  assert.equal(root.treeCost.runsWithUnknownPricing, 2);
  assertProblem(await api.get('/api/runs/01890000-0000-7000-8000-000000000000/tree'), 404, 'run-not-found');
  const uncounted = (await api.run(agent, 'uncounted')).body;
  assert.ok(uncounted.usage === null || Object.values(uncounted.usage).every((count) => count === null));
});

rule('RUN-61 RUN-62', 'the cost is made of the prices that count, cached input at its own', async (api) => {
  const agent = await api.agent({ model: { provider: 'demo', model: 'priced' } });
  const { cost } = (await api.run(agent, 'price')).body;
  assert.deepEqual(cost, {
    inputCost: 0.006,
    inputPricePerMillionTokens: 10,
    outputCost: 0.00202,
    outputPricePerMillionTokens: 20,
    cachedInputCost: 0.0004,
    cachedInputPricePerMillionTokens: 1,
    totalCost: 0.00842,
    currency: 'EUR',
    source: 'Configuration',
  });
  const unknown = (await api.run(await api.agent(), 'price')).body.cost;
  assert.deepEqual([unknown.totalCost, unknown.source], [null, 'Unknown']);
});

rule(
  'RUN-63 RUN-64 AGENT-24',
  'fallbacks are tried in order after faults, not after refusals or the first output',
  async (api) => {
    const model = { provider: 'demo', model: 'demo-1' };
    const agent = await api.agent({
      model: {
        ...model,
        fallbacks: [
          { provider: 'demo', model: 'demo-2' },
          { provider: 'demo', model: 'rescue' },
        ],
      },
      toolNames: ['add'],
    });
    for (const message of ['fail', 'fail unavailable', 'fail limited', 'fail timeout']) {
      const run = await open(api, agent, { message });
      const frames = await run.rest();
      assert.deepEqual([last(frames).event, last(frames).data.output], ['run.completed', 'Rescued.'], message);
      const used = frames.filter(({ event }) => event === 'model.fallback-used').map(({ data }) => data);
      assert.deepEqual(
        used.map(({ fromModel, toModel }: Body) => [fromModel, toModel]),
        [
          ['demo-1', 'demo-2'],
          ['demo-2', 'rescue'],
        ],
      );
      assert.equal((await getRun(api, run.runId)).modelId, 'rescue');
    }
    assertProblem(await api.run(agent, 'fail filtered'), 422, 'content-filtered');
    assertProblem(await api.run(agent, 'fail overflow'), 400, 'context-window-exceeded');
    const late = await (await open(api, agent, { message: 'fail late' })).rest();
    assert.deepEqual([last(late).event, namesOf(late).includes('model.fallback-used')], ['run.failed', false]);
    const repeated = await (await open(api, agent, { message: 'call add then fail' })).rest();
    assert.equal(last(repeated).event, 'run.completed');
    assert.equal(namesOf(repeated).filter((name) => name === 'tool.invoked').length, 1);
    const none = await api.agent({ model: { ...model, fallbacks: [{ provider: 'demo', model: 'demo-2' }] } });
    const failed = await api.run(none, 'fail unavailable');
    assertProblem(failed, 502, 'provider-unavailable');
  },
);

const limits = {
  'Service:AgentGraph:MaxDepth': '1',
  'Service:AgentGraph:MaxTotalRuns': '1',
  'Service:AgentGraph:MaxTotalTokens': '200',
  'Service:Preflight:Enabled': 'true',
};

rule(
  'RUN-48 AGENT-47',
  'depth and count refuse the new child alone, as a tool error without a run',
  async (all) => {
    const { api, agent } = await family(all);
    const name = 'conformance_child';
    const above = await api.post('/api/agents', {
      name,
      model: { provider: 'demo', model: 'demo-1' },
      callableAgentNames: ['conformance.child'],
    });
    assert.equal(above.status, 201, above.text);
    const top = await api.agent({ callableAgentNames: [name] });
    const deep = await api.run(top, 'call the child: call the child: uncounted');
    assert.equal(deep.status, 200, deep.text);
    assert.equal((await api.get(`/api/runs?rootRunId=${deep.body.runId}`)).body.length, 2);
    const many = await open(api, agent, { message: 'call the child twice: uncounted' });
    const frames = await many.rest();
    assert.equal(last(frames).event, 'run.completed');
    assert.equal(namesOf(frames).filter((event) => event === 'tool.failed').length, 1);
    assert.equal((await api.get(`/api/runs?rootRunId=${many.runId}`)).body.length, 2);
  },
  { settings: limits },
);

rule(
  'RUN-49',
  'the run that meets the token limit of its tree fails with budget_exceeded',
  async (api) => {
    const agent = await api.agent({ toolNames: ['add'] });
    const answer = await api.run(agent, `again ${'and again '.repeat(30)}`);
    assertProblem(answer, 422, 'run-budget-exceeded');
    const run = await ended(api, answer.headers.get('x-run-id') ?? '');
    assert.deepEqual([run.error.class, run.error.type], ['QuotaExceeded', 'budget_exceeded']);
  },
  { settings: limits },
);

rule(
  'RUN-67 AGENT-52',
  'a prompt beyond the window is refused before the run; an unknown window never is',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    const instructions = 'Many words of the instructions. '.repeat(60);
    const agent = await api.agent({ model: { provider: 'catalog', model: 'small' }, instructions });
    const problem = assertProblem(await api.run(agent, 'Hi'), 400, 'context-window-exceeded');
    assert.equal(problem.allowedTokens, 160);
    assert.ok(problem.estimatedTokens > 160);
    assert.deepEqual((await api.get('/api/runs')).body, []);
    const open = await api.agent({ instructions });
    assert.equal((await api.run(open, 'uncounted')).status, 200);
  },
  { settings: limits },
);
