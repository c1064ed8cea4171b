import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from '../../../src/core/ids.ts';
import { type AppSetup, forEachDurableService, type OpenApp, openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { opensRun } from '../runs/other-process.ts';
import { getRun, runJson } from '../runs/run-calls.ts';
import {
  type Asked,
  artifact,
  cardOf,
  childOf,
  rawAgent,
  remoteSetup,
  task,
  type Wire,
  writeFrames,
} from './remote-world.ts';

const rpcError = ({ id, response }: Asked, code: number): null => {
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } }));
  return null;
};

test('AGENT-46 what is kept of a task hides nothing and is short, and the id of its message is nowhere', async (t) => {
  const ids = { id: `t\u202e${'x'.repeat(300)}`, contextId: `c\u0007${'y'.repeat(300)}` };
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { ...ids, artifacts: [artifact('done')] }) }));
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const { runId } = await runJson(app.client, 'boss', 'ask this');
  const { remoteTask } = (await childOf(app, runId)) ?? {};
  for (const [kept, begin] of [
    [remoteTask?.taskId, 't\\u{202e}x'],
    [remoteTask?.contextId, 'c\\u{0007}y'],
  ] as const)
    assert.deepEqual([kept?.length, kept?.startsWith(begin)], [256, true], String(kept));
  const { messageId } = partner.asked[0].params.message;
  assert.match(messageId, /^[0-9a-f]{32}$/);
  assert.ok(!(await app.store.text()).includes(messageId));
});

test('AGENT-46 of a card that offers both versions the newer one is spoken, wherever it stands', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('done')] }) }));
  const at = (path: string, protocolVersion: string) => ({
    url: `${partner.url}${path}`,
    ...{ protocolBinding: 'JSONRPC', protocolVersion },
  });
  partner.card = cardOf('', { supportedInterfaces: [at('/old', '0.3'), at('/new', '1.0')] });
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'done');
  const sent = partner.received.filter(({ method }) => method === 'POST');
  assert.deepEqual(
    sent.map(({ url, headers }) => [url, headers['a2a-version']]),
    [['/new', '1.0']],
  );
});

test('AGENT-46 a look that fails for what may pass is made again, and one that is refused is not', async (t) => {
  let looks: readonly ((asked: Asked) => Wire)[] = [];
  const status = (code: number) => (asked: Asked) => {
    asked.response.writeHead(code).end();
    return null;
  };
  const broken = ({ response }: Asked): null => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{');
    return null;
  };
  const partner = await rawAgent(t, (asked) => {
    if (asked.method !== 'GetTask') return { task: task('WORKING') };
    const [look, ...others] = looks;
    looks = others;
    return look === undefined ? task('COMPLETED', { artifacts: [artifact('done')] }) : look(asked);
  });
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  for (const [given, said] of [
    [[status(429), broken], 'done'],
    [[status(503)], 'done'],
    [[status(404)], 'Tool failed: partner answered 404'],
    [[(asked: Asked) => rpcError(asked, -32_001)], 'Tool failed: partner answered -32001'],
  ] as const) {
    looks = given;
    assert.equal((await runJson(app.client, 'boss', 'ask this')).output, said);
  }
});

test('AGENT-46 what a stream says of another task is not of this one', async (t) => {
  const partner = await rawAgent(t, (asked) => {
    if (asked.method === 'GetTask') return task('COMPLETED', { artifacts: [artifact('the whole')] });
    if (asked.method === 'SubscribeToTask') return rpcError(asked, -32_004);
    const other = { taskId: 'task-2', contextId: 'context-1' };
    writeFrames(asked.response, asked.id, [
      { task: task('WORKING') },
      { artifactUpdate: { ...other, artifact: artifact('of another'), append: false } },
      { statusUpdate: { ...other, status: { state: 'TASK_STATE_COMPLETED' } } },
    ]);
    asked.response.end();
    return null;
  });
  partner.card = cardOf(`${partner.url}/a2a`, { capabilities: { streaming: true } });
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const { output, runId } = await runJson(app.client, 'boss', 'ask this');
  assert.equal(output, 'the whole');
  assert.equal((await childOf(app, runId))?.remoteTask?.taskId, 'task-1');
});

test('AGENT-46 an emergency stop of a remote agent, by its name, keeps its calls back', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('done')] }) }));
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  await app.client.agents.create({
    body: {
      name: 'chief',
      model: { provider: 'demo', model: 'demo-1' },
      remoteAgents: [{ name: 'partner', cardUrl: partner.cardUrl, requiresApproval: false }],
    },
  });
  const stop = { scope: 'Agent', agentName: 'partner' } as const;
  await app.client.emergency.stop({ body: stop });
  for (const agent of ['boss', 'chief']) {
    const { output, runId } = await runJson(app.client, agent, 'ask this');
    assert.deepEqual([output, (await childOf(app, runId))?.error?.type], ['Agent "partner" failed.', 'emergency_stop']);
  }
  assert.equal(partner.asked.length, 0);
  await app.client.emergency.resume({ body: stop });
  for (const agent of ['boss', 'chief']) assert.equal((await runJson(app.client, agent, 'ask this')).output, 'done');
});

const reconciling = {
  RunReconciliation: { Enabled: true, OrphanThreshold: '30s', ScanInterval: '10s', HeartbeatInterval: '10s' },
};

/** A service that finds the run of a process that is gone, whose task is in progress there. */
const afterLoss = async (
  open: OpenApp,
  cardUrl: string,
  { partner = {}, service = {}, before = async () => undefined }: LossSetup,
): Promise<readonly [TestApp, string]> => {
  const setup = remoteSetup(cardUrl, { Effect: 'Destructive', ...partner });
  const first = await open(setup);
  await before(first);
  const id = newId();
  const remoteTask = JSON.stringify({ agent: 'partner', taskId: 'lost', contextId: null, state: 'WORKING' });
  await opensRun(first.store.open(), id, { agentName: 'partner', remoteTask });
  await first.close();
  const { folder, clock } = first;
  const second = await open({
    ...setup,
    agents: [],
    folder,
    clock,
    service: { ...setup.service, ...reconciling, ...service },
  });
  return [second, id];
};

interface LossSetup {
  readonly partner?: Readonly<Record<string, unknown>>;
  readonly service?: NonNullable<AppSetup['service']>;
  readonly before?: (app: TestApp) => Promise<unknown>;
}

const closed = ({ client, clock }: TestApp, id: string) =>
  eventually('the end of the run', async () => {
    await clock.advance(10_000);
    return (await getRun(client, id)).status === 'Failed' || null;
  });

forEachDurableService(
  'RUN-78 MCP-19 the task of a lost run is canceled under the pin of then: not where the card is another one',
  async (open, t) => {
    const partner = await rawAgent(t, ({ method, params }) =>
      task(method === 'CancelTask' ? 'CANCELED' : 'WORKING', { id: params.id }),
    );
    const card = partner.card as Readonly<Record<string, unknown>>;
    const [app, id] = await afterLoss(open, partner.cardUrl, {
      partner: { Pinning: 'Block' },
      async before({ client }) {
        await client.remoteAgents.approve({ params: { name: 'partner' }, body: {} });
        partner.card = { ...card, version: '8' };
      },
    });
    await closed(app, id);
    const attempts = async () =>
      (await app.client.jobs.list({ query: { handlerKey: 'acp.remote-task-cancel' } })).body[0]?.attempt ?? 0;
    await eventually('two attempts', async () => {
      await app.clock.advance(10_000);
      return (await attempts()) >= 2 || null;
    });
    assert.deepEqual(partner.asked, []);
    partner.card = card;
    await eventually('the end of the task', async () => {
      await app.clock.advance(60_000);
      return (await getRun(app.client, id)).remoteTask?.state === 'CANCELED' || null;
    });
  },
);

forEachDurableService('RUN-78 a lost call of effect Read does not cancel its task', async (open, t) => {
  const partner = await rawAgent(t, ({ params }) => task('WORKING', { id: params.id }));
  const [app, id] = await afterLoss(open, partner.cardUrl, { partner: { Effect: 'Read' } });
  await closed(app, id);
  const { body } = await app.client.jobs.list({ query: { handlerKey: 'acp.remote-task-cancel' } });
  assert.deepEqual([body, partner.asked], [[], []]);
  const tool = (await app.client.tools.list({})).body.find(({ name }) => name === 'call_partner');
  assert.equal(tool?.effect, 'Read');
});

forEachDurableService(
  'RUN-78 a task that cannot be canceled at the moment is tried again, and one that is refused otherwise is not',
  async (open, t) => {
    for (const code of [-32_002, -32_603]) {
      let cancels = 0;
      const partner = await rawAgent(t, (asked) => {
        if (asked.method === 'GetTask') return task('WORKING', { id: asked.params.id });
        cancels += 1;
        return cancels === 1 ? rpcError(asked, code) : task('CANCELED', { id: asked.params.id });
      });
      const [app, id] = await afterLoss(open, partner.cardUrl, {});
      await closed(app, id);
      const job = await eventually('the end of the job', async () => {
        await app.clock.advance(60_000);
        const [one] = (await app.client.jobs.list({ query: { handlerKey: 'acp.remote-task-cancel' } })).body;
        return one?.status === 'Completed' || one?.status === 'Failed' ? one : null;
      });
      const passes = code === -32_002;
      assert.deepEqual([job.status, cancels], passes ? ['Completed', 2] : ['Failed', 1]);
      assert.equal((await getRun(app.client, id)).remoteTask?.state, passes ? 'CANCELED' : 'WORKING');
    }
  },
);

forEachDurableService(
  'RUN-78 where no jobs are made a lost task is told once, whatever comes of it',
  async (open, t) => {
    for (const isAway of [false, true]) {
      let cancels = 0;
      const partner = await rawAgent(t, ({ method, params, response }) => {
        if (method === 'GetTask') return task('WORKING', { id: params.id });
        cancels += 1;
        if (!isAway) return task('CANCELED', { id: params.id });
        response.writeHead(503).end();
        return null;
      });
      const [app, id] = await afterLoss(open, partner.cardUrl, { service: { Scheduling: { Enabled: false } } });
      await closed(app, id);
      await eventually('the cancel', async () => cancels > 0 || null);
      const state = async () => (await getRun(app.client, id)).remoteTask?.state;
      if (!isAway) await eventually('what became of it', async () => (await state()) === 'CANCELED' || null);
      await app.clock.advance(600_000);
      assert.deepEqual([cancels, await state()], [1, isAway ? 'WORKING' : 'CANCELED']);
      assert.deepEqual((await app.client.jobs.list({ query: { handlerKey: 'acp.remote-task-cancel' } })).body, []);
    }
  },
);
