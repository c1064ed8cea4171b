import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newId } from '../../../src/core/ids.ts';
import { forEachDurableService, openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { opensRun } from '../runs/other-process.ts';
import { getRun, runJson } from '../runs/run-calls.ts';
import { artifact, cardOf, rawAgent, remoteSetup, sdkAgent, task, writeFrames } from './remote-world.ts';

for (const version of ['1.0', '0.3'] as const)
  test(`AGENT-46 a stream of the official server that breaks off is subscribed to again, in version ${version}`, async (t) => {
    const partner = await sdkAgent(t, version, true);
    const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
    assert.equal((await runJson(app.client, 'boss', 'ask cut')).output, 'echo cut');
    const methods = partner.asked.map(({ method }) => method);
    assert.deepEqual(
      methods.slice(0, 2),
      version === '1.0' ? ['SendStreamingMessage', 'SubscribeToTask'] : ['message/stream', 'tasks/resubscribe'],
    );
    assert.equal(partner.heard.length, 1, 'the message went out once');
  });

test('AGENT-46 a stream that falls silent is left once its task is known, and its task is looked at; one that has yet to begin is waited for', async (t) => {
  const partner = await rawAgent(t, ({ id, method, params, response }) => {
    if (method === 'GetTask') return task('COMPLETED', { artifacts: [artifact('the whole')] });
    const isSlow = params.message?.parts[0].text === 'slow';
    const first = isSlow ? [] : [{ task: task('WORKING') }];
    writeFrames(response, id, first);
    response.flushHeaders();
    // Longer than the bound of silence, and shorter than the whole call may take.
    if (isSlow)
      setTimeout(() => {
        const said = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'at last' }] };
        response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { message: said } })}\n\n`);
      }, 900);
    return null;
  });
  partner.card = cardOf(`${partner.url}/a2a`, { capabilities: { streaming: true } });
  const service = { Mcp: { ConnectionTimeout: '300ms' }, Egress: { AllowPrivateNetworkTargets: true } };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl, { Timeout: '60s' }, { service }));
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'the whole');
  assert.deepEqual(
    partner.asked.map(({ method }) => method),
    ['SendStreamingMessage', 'SubscribeToTask', 'GetTask'],
  );
  assert.equal((await runJson(app.client, 'boss', 'ask slow')).output, 'at last');
  assert.deepEqual(
    partner.asked.slice(3).map(({ method }) => method),
    ['SendStreamingMessage'],
  );
});

/** Runs of a process that is gone, each with the task that it had told of. */
const lostRuns = async (app: TestApp, states: Readonly<Record<string, string>>) => {
  const storage = app.store.open();
  const ids: Record<string, string> = {};
  for (const [taskId, state] of Object.entries(states)) {
    const id = newId();
    ids[taskId] = id;
    const remoteTask = JSON.stringify({ agent: 'partner', taskId, contextId: null, state });
    await opensRun(storage, id, { agentName: 'partner', remoteTask });
  }
  return ids;
};

const rpcError = (code: number) => ({ jsonrpc: '2.0', id: 1, error: { code, message: 'no' } });

forEachDurableService(
  'RUN-78 AGENT-46 the task of a lost run is canceled until its agent has heard of it, over restarts, and never once it is over',
  async (open, t) => {
    let isAway = true;
    const canceled: string[] = [];
    const states: Record<string, string> = { open: 'WORKING', 'just over': 'COMPLETED' };
    const partner = await rawAgent(t, ({ method, params, response }) => {
      const { id } = params;
      if (isAway || id === 'gone' || (id === 'never' && method === 'CancelTask')) {
        if (isAway) response.writeHead(503).end();
        else
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify(rpcError(id === 'gone' ? -32_001 : -32_603)));
        return null;
      }
      if (method === 'CancelTask') {
        canceled.push(id);
        states[id] = 'CANCELED';
      }
      return method === 'CancelTask' || method === 'GetTask' ? task(states[id] ?? 'WORKING', { id }) : null;
    });
    const setup = remoteSetup(partner.cardUrl, { Effect: 'Destructive' });
    const first = await open(setup);
    const ids = await lostRuns(first, {
      open: 'WORKING',
      'just over': 'WORKING',
      known: 'COMPLETED',
      gone: 'WORKING',
      never: 'WORKING',
    });
    await first.close();

    const jobs = async ({ client }: TestApp) =>
      (await client.jobs.list({ query: { handlerKey: 'acp.remote-task-cancel', take: 100 } })).body;
    const again = {
      ...setup,
      agents: [],
      folder: first.folder,
      service: {
        ...setup.service,
        RunReconciliation: { Enabled: true, OrphanThreshold: '30s', ScanInterval: '10s', HeartbeatInterval: '10s' },
      },
    };
    const second = await open(again);
    const attempted = await eventually('a first attempt of each', async () => {
      await second.clock.advance(10_000);
      const all = await jobs(second);
      return all.length > 0 && all.every(({ attempt, status }) => attempt > 0 && status === 'Pending') ? all : null;
    });
    assert.equal(attempted.length, 4, 'a task that was known to be over is not asked for');
    assert.ok(attempted.every(({ payload, targetName }) => payload === null && targetName === 'partner'));
    const { error } = await getRun(second.client, ids['open'] ?? '');
    assert.match(error?.message ?? '', /The agent that it had asked is told to cancel its task\.$/);
    assert.doesNotMatch((await getRun(second.client, ids['known'] ?? '')).error?.message ?? '', /agent/);
    await second.close();
    assert.deepEqual(canceled, []);

    isAway = false;
    const third = await open({ ...again, clock: second.clock });
    const ended = await eventually('the end of each', async () => {
      await third.clock.advance(60_000);
      const all = await jobs(third);
      return all.every(({ status }) => status === 'Completed' || status === 'Failed') ? all : null;
    });
    assert.deepEqual(canceled, ['open'], 'once, and not what had ended meanwhile');
    assert.deepEqual(ended.map(({ status, errorCode }) => [status, errorCode]).toSorted(), [
      ['Completed', null],
      ['Completed', null],
      ['Completed', null],
      ['Failed', 'remote-task-open'],
    ]);
    const kept = async (taskId: string) => (await getRun(third.client, ids[taskId] ?? '')).remoteTask?.state;
    assert.deepEqual(await Promise.all(['open', 'just over', 'known', 'gone', 'never'].map(kept)), [
      'CANCELED',
      'COMPLETED',
      'COMPLETED',
      'WORKING',
      'WORKING',
    ]);
  },
);
