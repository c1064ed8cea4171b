import assert from 'node:assert/strict';
import { forEachDurableService, type OpenApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  assertWholeLog,
  collect,
  Gate,
  getRun,
  listRuns,
  refusal,
  runJson,
  start,
  stream,
  waitingSetup,
} from './run-calls.ts';

const sessionId = 's-1';
const inLine = { sessionId, concurrency: 'Enqueue' as const };
const model = { provider: 'demo', model: 'demo-1' };

/** A run that holds the session until the gate is opened. */
const openBusy = async (open: OpenApp, more: object = {}) => {
  const gate = new Gate();
  const app = await open({ ...waitingSetup(gate), ...more });
  const { frames } = await stream(app.client, 'helper', { message: 'wait', sessionId });
  const holding = collect(frames);
  await gate.reached;
  return { app, gate, holding };
};

forEachDurableService(
  'AGENT-7 RUN-8 a run in line takes the version that is current when its turn comes',
  async (open) => {
    const { app, gate, holding } = await openBusy(open);
    const { runId, frames } = await stream(app.client, 'helper', { message: 'next', ...inLine });
    const queued = await getRun(app.client, runId);
    assert.deepEqual([queued.status, queued.agentVersion, queued.modelId], ['Queued', null, null]);
    const body = { name: 'helper', model: { ...model, model: 'demo-2' }, toolNames: ['wait'], expectedVersion: 1 };
    await app.client.agents.save({ params: { name: 'helper' }, body });
    gate.open();
    const [before] = assertWholeLog(await holding);
    assert.equal(before?.['agentVersion'], 1, 'the run in progress keeps its own');
    const [, started] = assertWholeLog(await collect(frames));
    assert.deepEqual([started?.['agentVersion'], started?.['modelId']], [2, 'demo-2']);
    const run = await getRun(app.client, runId);
    assert.deepEqual([run.status, run.agentVersion, run.modelId], ['Completed', 2, 'demo-2']);
  },
);

forEachDurableService(
  'AGENT-7 RUN-20 an agent that was removed meanwhile fails the run in line, and frees the session',
  async (open) => {
    const { app, gate, holding } = await openBusy(open);
    const answer = refusal(start(app.client, 'helper', { message: 'next', stream: false, ...inLine }));
    await eventually('a run in line', async () => (await listRuns(app.client, { status: 'Queued' })).length > 0);
    await app.client.agents.remove({ params: { name: 'helper' } });
    gate.open();
    await holding;
    const problem = await answer;
    assert.deepEqual(
      [problem.status, problem.code, problem.errorType],
      [400, 'agent-not-compilable', 'agent_not_found'],
    );
    await app.createAgent({ name: 'helper' });
    assert.equal((await runJson(app.client, 'helper', { message: 'again', sessionId })).status, 'Completed');
  },
);

forEachDurableService('RUN-2 a run that is to wait is refused at once where it cannot start', async (open) => {
  const { app, gate, holding } = await openBusy(open, {
    service: { Preflight: { Enabled: true } },
  });
  const unknown = await refusal(start(app.client, 'helper', { message: 'x', ...inLine, parameters: { no: 'such' } }));
  assert.equal(unknown.status, 400);
  assert.equal((await refusal(start(app.client, 'nobody', { message: 'x', ...inLine }))).status, 404);
  const named = { message: 'x', ...inLine, attachmentIds: ['0190b6a2-0000-7000-8000-000000000000'] };
  assert.equal((await refusal(start(app.client, 'helper', named))).code, 'attachment-not-found');
  gate.open();
  await holding;
});
