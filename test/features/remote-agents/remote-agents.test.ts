import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { forEachService, openApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { openA2A } from '../a2a/a2a-world.ts';
import { replayTest } from '../replays/replayed-file.ts';
import { followToEnd, getRun, refusal, runJson, runStream, start, stream } from '../runs/run-calls.ts';
import { artifact, childOf, openRawAgent, rawAgent, remoteSetup, sdkAgent, task, writeFrames } from './remote-world.ts';

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

test('AGENT-46 a stream that breaks off is gone on with by looking at its task', async (t) => {
  let looks = 0;
  const partner = await rawAgent(t, ({ id, method, response }) => {
    if (method === 'GetTask') {
      looks += 1;
      return task(looks === 1 ? 'WORKING' : 'COMPLETED', { artifacts: [artifact('the whole')] });
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
    ['SendStreamingMessage', 'GetTask', 'GetTask'],
  );
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
    ],
  });
  for (const agent of ['boss', 'other']) {
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
