import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { forEachService, openApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { openA2A } from '../a2a/a2a-world.ts';
import { replayTest } from '../replays/replayed-file.ts';
import { followToEnd, getRun, refusal, runJson, runStream, start, stream } from '../runs/run-calls.ts';
import {
  type Asked,
  artifact,
  cardOf,
  childOf,
  legacyCardOf,
  openRawAgent,
  rawAgent,
  remoteSetup,
  sdkAgent,
  task,
  type Wire,
  writeFrames,
} from './remote-world.ts';

let remoteCard = '';
let remoteAsked = (): number => 0;
let closeRemote = async (): Promise<void> => undefined;
before(async () => {
  const partner = await openRawAgent(() => ({ task: task('COMPLETED', { artifacts: [artifact('from afar')] }) }));
  remoteCard = partner.cardUrl;
  remoteAsked = () => partner.asked.length;
  closeRemote = partner.close;
});
after(() => closeRemote());

interface Waiting {
  readonly status: string;
  readonly approvals: readonly { readonly requestId: string; readonly toolName: string }[];
}

for (const version of ['1.0', '0.3'] as const)
  for (const streaming of [true, false])
    test(`AGENT-46 an agent of the official SDK is called in version ${version}, ${streaming ? 'streamed' : 'looked at'}`, async (t) => {
      const partner = await sdkAgent(t, version, streaming);
      const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
      const { output, runId } = await runJson(app.client, 'boss', 'ask Hello');
      assert.equal(output, 'echo Hello');
      assert.equal(partner.heard.length, 1);
      const child = await childOf(app, runId);
      assert.deepEqual(
        [child?.agentName, child?.status, child?.depth, child?.usage, child?.cost, child?.remoteTask?.state],
        ['partner', 'Completed', 1, null, null, 'COMPLETED'],
      );
      const [listed] = (await app.client.remoteAgents.list({})).body;
      assert.deepEqual(
        [listed?.status.state, listed?.status.protocolVersion, listed?.status.agentName],
        ['Connected', version, 'Partner'],
      );

      // Canceled here, its task ends there.
      const { frames, runId: waiting } = await stream(app.client, 'boss', 'ask wait');
      void (async () => {
        for await (const _frame of frames);
      })();
      const canceled = await eventually('the task there', async () => {
        const run = await childOf(app, waiting);
        return run !== undefined && run.remoteTask?.taskId != null ? run : null;
      });
      await app.client.runs.cancel({ params: { runId: waiting } });
      await followToEnd(app.client, waiting);
      assert.equal((await getRun(app.client, canceled.id)).status, 'Canceled');
      const method = version === '1.0' ? 'CancelTask' : 'tasks/cancel';
      const asked = await eventually(
        'the cancel there',
        async () => partner.asked.find((message) => message.method === method) ?? null,
      );
      assert.equal(asked.params.id, canceled.remoteTask?.taskId);
    });

forEachService('AGENT-46 a call is a child run, a record with its source, and one of the budget', async (open, t) => {
  const partner = await rawAgent(t, ({ params }) => ({
    task: task('COMPLETED', { artifacts: [artifact(`You said ${params.message.parts[0].text}`)] }),
  }));
  const app = await open({
    ...remoteSetup(partner.cardUrl, { Description: 'Knows everything.' }),
    agents: [
      { name: 'boss', callableAgentNames: ['partner'] },
      { name: 'other', toolNames: ['call_partner'] },
    ],
  });
  const { events, runId } = await runStream(app.client, 'boss', 'ask this');
  const told = events.find(({ type }) => type === 'run.completed');
  assert.equal(told?.['output'], 'You said this');
  const started = events.find(({ type }) => type === 'child.started');
  const child = await getRun(app.client, started?.['childRunId']);
  assert.deepEqual(
    [child.parentRunId, child.rootRunId, child.kind, child.usage, child.remoteTask],
    [runId, runId, 'Agent', null, { agent: 'partner', taskId: 'task-1', contextId: 'context-1', state: 'COMPLETED' }],
  );
  assert.equal((await getRun(app.client, runId)).childRunCount, 1);
  const log = await followToEnd(app.client, child.id);
  assert.deepEqual(
    log.flatMap(({ type, customType, payload }) => (type === 'custom' ? [[customType, payload.state]] : [])),
    [['acp.remote-task', 'COMPLETED']],
  );
  const [record] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.deepEqual([record?.toolName, record?.source, record?.result], ['call_partner', 'partner', 'You said this']);
  assert.equal((await runJson(app.client, 'other', 'ask that')).output, 'You said that');

  const tool = (await app.client.tools.list({})).body.find(({ name }) => name === 'call_partner');
  assert.deepEqual(
    [tool?.kind, tool?.source, tool?.effect, tool?.requiresApproval],
    ['RemoteAgent', 'partner', 'External', false],
  );
  assert.match(tool?.description ?? '', /Knows everything\.$/);
  // A message has an id that is known to its call alone.
  const ids = partner.asked.map(({ params }) => params.message.messageId);
  assert.equal(new Set(ids).size, 2);
});

test('RUN-48 the limits of a tree count calls of remote agents', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED') }));
  const setup = remoteSetup(partner.cardUrl, {}, { service: { AgentGraph: { MaxDepth: 0 } } });
  const app = await openApp(t, 'in process', {
    ...setup,
    service: { ...setup.service, Egress: { AllowPrivateNetworkTargets: true } },
  });
  assert.match((await runJson(app.client, 'boss', 'ask this')).output ?? '', /too deep/);
  assert.equal(partner.asked.length, 0);
});

test('AGENT-46 a name that is no agent and no remote agent stays an error, and an agent here comes first', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('from afar')] }) }));
  const setup = remoteSetup(partner.cardUrl);
  const here = { when: { message: '/^from$/' }, reply: { text: 'from here' } };
  const app = await openApp(t, 'in process', { ...setup, script: [here, ...(setup.script ?? [])] });
  await assert.rejects(app.createAgent({ name: 'lost', callableAgentNames: ['nobody'] }), /no agent/);
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'from afar');
  await app.createAgent({ name: 'partner' });
  assert.equal((await runJson(app.client, 'boss', 'ask from')).output, 'from here');
  assert.equal(partner.asked.length, 1);
});

forEachService(
  'APPR-1 a remote agent is asked after a person has agreed, unless the host says otherwise',
  async (open, t) => {
    const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('agreed')] }) }));
    const app = await open(remoteSetup(partner.cardUrl, { RequiresApproval: true }));
    for (const [sessionId, approved] of [
      ['yes', true],
      ['no', false],
    ] as const) {
      const waits = await start(app.client, 'boss', { message: 'ask this', sessionId, stream: false });
      const { status, approvals } = waits.body as unknown as Waiting;
      assert.deepEqual([status, approvals[0]?.toolName], ['AwaitingApproval', 'call_partner']);
      assert.equal(partner.asked.length, approved ? 0 : 1);
      const answers = [{ requestId: approvals[0]?.requestId ?? '', approved }];
      const { output } = await runJson(app.client, 'boss', { sessionId, approvals: answers });
      assert.equal(output === 'agreed', approved);
    }
    assert.equal(partner.asked.length, 1);
  },
);

test('AGENT-46 agents of two services of this program call each other', async (t) => {
  const remote = await openA2A((setup) => openApp(t, 'http', setup), {});
  const cardUrl = `${remote.url}/a2a/helper/.well-known/agent-card.json`;
  const app = await openApp(t, 'in process', remoteSetup(cardUrl));
  const { output, runId } = await runJson(app.client, 'boss', 'ask Hello');
  assert.equal(output, 'Hello from the helper.');
  const child = await childOf(app, runId);
  const there = await getRun(remote.client, child?.remoteTask?.taskId ?? '');
  assert.deepEqual([there.status, there.agentName], ['Completed', 'helper']);
  assert.match((await runJson(app.client, 'boss', 'ask fail')).output ?? '', /^Tool failed: partner has failed$/);

  const { frames, runId: waiting } = await stream(app.client, 'boss', 'ask wait');
  void (async () => {
    for await (const _frame of frames);
  })();
  const taskId = await eventually(
    'the task there',
    async () => (await childOf(app, waiting))?.remoteTask?.taskId ?? null,
  );
  await app.client.runs.cancel({ params: { runId: waiting } });
  await eventually('its end there', async () =>
    (await getRun(remote.client, taskId)).status === 'Canceled' ? true : null,
  );
});

/** Methods in which a stream was followed that is cut twice, and what came of it. */
const cutTwice = async (t: TestContext, version: '1.0' | '0.3', second: (asked: Asked) => Wire | null) => {
  const isNew = version === '1.0';
  const state = (word: string) => ({ state: isNew ? `TASK_STATE_${word}` : word.toLowerCase() });
  const ids = { taskId: 'task-1', contextId: 'context-1' };
  const whole = (word: string, text: string) => ({
    ...(isNew ? {} : { kind: 'task' }),
    ...{ id: 'task-1', contextId: 'context-1', status: state(word) },
    artifacts: [{ artifactId: 'output', parts: [isNew ? { text } : { kind: 'text', text }] }],
  });
  const asTask = (task: object) => (isNew ? { task } : task);
  const piece = (text: string) => {
    const update = { ...ids, artifact: artifact(text), append: true };
    return isNew ? { artifactUpdate: update } : { kind: 'artifact-update', ...update };
  };
  const partner = await rawAgent(t, (asked) => {
    const { id, method, response } = asked;
    const isSubscription = method === 'SubscribeToTask' || method === 'tasks/resubscribe';
    if (method === 'GetTask' || method === 'tasks/get') return whole('WORKING', 'the wh');
    if (isSubscription && partner.asked.filter((one) => one.method === method).length > 1) return second(asked);
    writeFrames(response, id, [asTask(whole('WORKING', 'the')), piece(' lost')]);
    response.write('data: {"jsonrpc":"2.0"');
    setImmediate(() => response.destroy());
    return null;
  });
  const card = isNew ? cardOf : legacyCardOf;
  partner.card = card(`${partner.url}/a2a`, { capabilities: { streaming: true } });
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const { output } = await runJson(app.client, 'boss', 'ask this');
  return { output, methods: partner.asked.map(({ method }) => method) };
};

for (const version of ['1.0', '0.3'] as const)
  test(`AGENT-46 a stream that breaks off is subscribed to again, and its pieces are put together, in version ${version}`, async (t) => {
    const isNew = version === '1.0';
    const text = (words: string) => (isNew ? { text: words } : { kind: 'text', text: words });
    const ids = { taskId: 'task-1', contextId: 'context-1' };
    const { output, methods } = await cutTwice(t, version, ({ id, response }) => {
      const task = {
        ...(isNew ? {} : { kind: 'task' }),
        ...{ id: 'task-1', contextId: 'context-1' },
        status: { state: isNew ? 'TASK_STATE_WORKING' : 'working' },
        artifacts: [{ artifactId: 'output', parts: [text('the wh')] }],
      };
      const update = { ...ids, artifact: { artifactId: 'output', parts: [text('ole')] }, append: true };
      const status = { ...ids, status: { state: isNew ? 'TASK_STATE_COMPLETED' : 'completed' } };
      writeFrames(
        response,
        id,
        isNew
          ? [{ task }, { artifactUpdate: update }, { statusUpdate: status }]
          : [task, { kind: 'artifact-update', ...update }, { kind: 'status-update', ...status, final: true }],
      );
      response.end();
      return null;
    });
    assert.equal(output, 'the whole');
    assert.deepEqual(
      methods,
      isNew
        ? ['SendStreamingMessage', 'SubscribeToTask', 'GetTask', 'SubscribeToTask']
        : ['message/stream', 'tasks/resubscribe', 'tasks/get', 'tasks/resubscribe'],
    );
  });

test('AGENT-46 a stream that breaks off is gone on with by looking at its task where nobody may subscribe to it', async (t) => {
  let looks = 0;
  const partner = await rawAgent(t, ({ id, method, response }) => {
    if (method === 'GetTask') {
      looks += 1;
      return task(looks === 1 ? 'WORKING' : 'COMPLETED', { artifacts: [artifact('the whole')] });
    }
    if (method === 'SubscribeToTask') {
      const error = { code: -32_004, message: 'no' };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
      return null;
    }
    writeFrames(response, id, [
      { task: task('WORKING') },
      { artifactUpdate: { taskId: 'task-1', contextId: 'context-1', artifact: artifact('half'), append: false } },
    ]);
    response.write('data: {"jsonrpc":"2.0"');
    setImmediate(() => response.destroy());
    return null;
  });
  partner.card = { ...(partner.card as object), capabilities: { streaming: true } };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'the whole');
  assert.deepEqual(
    partner.asked.map(({ method }) => method),
    ['SendStreamingMessage', 'SubscribeToTask', 'GetTask', 'GetTask'],
  );
});

test('AGENT-46 a subscription that begins in the middle is no answer before the task was seen as a whole', async (t) => {
  const partner = await rawAgent(t, ({ id, method, response }) => {
    if (method === 'GetTask') return task('COMPLETED', { artifacts: [artifact('the whole')] });
    const ids = { taskId: 'task-1', contextId: 'context-1' };
    if (method === 'SubscribeToTask') {
      writeFrames(response, id, [
        { artifactUpdate: { ...ids, artifact: artifact('ole'), append: true } },
        { statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } },
      ]);
      response.end();
      return null;
    }
    writeFrames(response, id, [{ task: task('WORKING', { artifacts: [artifact('the')] }) }]);
    setImmediate(() => response.destroy());
    return null;
  });
  partner.card = { ...(partner.card as object), capabilities: { streaming: true } };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'the whole');
});

test('OBS-20 a call of a remote agent has a span and is measured, and counts for no model', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('said')] }) }));
  const setup = remoteSetup(
    partner.cardUrl,
    {},
    {
      host: { Metrics: { Path: '/metrics' } },
      service: { Observability: { SuccessSampleRatio: 1 }, Egress: { AllowPrivateNetworkTargets: true } },
    },
  );
  const app = await openApp(t, 'http', setup);
  const { runId } = await runJson(app.client, 'boss', 'ask this');
  await app.client.remoteAgents.list({});
  partner.card = { ...(partner.card as object), description: 'Another one.' };
  await app.client.remoteAgents.pin({ params: { name: 'partner' } });

  const child = await childOf(app, runId);
  assert.deepEqual([child?.modelProvider, child?.modelId], [null, null]);
  const started = (await followToEnd(app.client, child?.id ?? '')).find(({ type }) => type === 'run.started');
  assert.deepEqual([started?.['modelProvider'], started?.['modelId']], [null, null]);
  const { byModel, byAgent } = (await app.client.statistics.get({ query: {} })).body;
  assert.deepEqual(
    byModel.map(({ modelProvider, totalRuns }) => [modelProvider, totalRuns]),
    [['demo', 1]],
  );
  assert.ok(byAgent.length > 0);

  const { spans } = (await app.client.runs.trace({ params: { runId } })).body;
  const span = spans.find(({ name }) => name === 'a2a partner');
  const above = spans.find(({ id }) => id === span?.parentId);
  assert.deepEqual(
    [span?.kind, span?.status, span?.attributes['rpc.system'], span?.attributes['server.address']],
    ['Client', 'Unset', 'jsonrpc', '127.0.0.1'],
  );
  assert.deepEqual([above?.name, above?.attributes['gen_ai.agent.name']], ['acp.run', 'partner']);
  const sent = partner.received.find(({ method }) => method === 'POST');
  assert.match(String(sent?.headers['traceparent']), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.equal(String(sent?.headers['traceparent']).split('-')[2], span?.spanId);
  const series = (await (await fetch(`${app.url}/metrics`)).text())
    .split('\n')
    .filter((line) => /^acp_a2a_(client_duration_seconds_count|card_drift)/.test(line));
  assert.deepEqual(series.toSorted(), [
    'acp_a2a_card_drift_total{acp_a2a_agent="partner"} 1',
    'acp_a2a_client_duration_seconds_count{acp_a2a_agent="partner",rpc_method="SendMessage"} 1',
    'acp_a2a_client_duration_seconds_count{acp_a2a_agent="partner",rpc_method="card"} 2',
  ]);
});

test('TOOL-9 a call ends when its time has passed, and its task there is canceled', async (t) => {
  const partner = await rawAgent(t, ({ method }) =>
    method === 'CancelTask' ? task('CANCELED') : { task: task('WORKING') },
  );
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl, { Timeout: '300ms' }));
  const { output, runId } = await runJson(app.client, 'boss', 'ask this');
  assert.equal(output, 'Agent "partner" failed.');
  const child = await childOf(app, runId);
  assert.deepEqual([child?.status, child?.error?.type], ['Failed', 'child_deadline']);
  await eventually('the cancel', async () => partner.asked.some(({ method }) => method === 'CancelTask') || null);
});

replayTest('RUN-53 a run that called a remote agent replays as it was, and calls nobody', async (open, replays) => {
  const app = await open({
    ...remoteSetup(remoteCard),
    agents: [
      { name: 'boss', callableAgentNames: ['partner'] },
      { name: 'other', toolNames: ['call_partner'] },
      { name: 'chief', remoteAgents: [{ name: 'partner', cardUrl: remoteCard, requiresApproval: false }] },
    ],
  });
  for (const agent of ['boss', 'other', 'chief']) {
    const asked = remoteAsked();
    const { runId, output } = await runJson(app.client, agent, 'ask this');
    assert.deepEqual([output, remoteAsked()], ['from afar', asked + 1]);
    const again = (await app.client.replays.create({ params: { runId }, body: {} })).body;
    assert.deepEqual([again.status, again.output, remoteAsked()], ['Completed', 'from afar', asked + 1]);
    await replays.identical(app, runId);
    const child = (await childOf(app, runId))?.id ?? '';
    const refused = await refusal(app.client.replays.create({ params: { runId: child }, body: {} }));
    assert.equal(refused.code, 'replay-not-supported');
  }
});
