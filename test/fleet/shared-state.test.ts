import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsTools, Gate, getRun, runJson, start, tool } from '../features/runs/run-calls.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { forEachHearing, openMembers, skip } from './members.ts';

const helper = { agents: [{ name: 'helper' }] };

/** The code with which a run is refused now; null: it is not. */
const refusedRun = async (client: Parameters<typeof start>[0], agent = 'helper'): Promise<string | null> =>
  start(client, agent, { message: 'Hi', stream: false }).then(
    () => null,
    (error: unknown) => (error as { problem?: { code?: string } }).problem?.code ?? String(error),
  );

forEachHearing('a stop is in force on every process, and ends what runs there', async (t, hearing) => {
  const gate = new Gate();
  const waits = tool(
    'wait',
    async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    },
    { effect: 'Read' },
  );
  const [here, there] = await openMembers(t, [helper, { tools: [waits], script: callsTools('wait') }], hearing);
  assert.ok(here !== undefined && there !== undefined);
  await there.createAgent({ name: 'clerk', toolNames: ['wait'] });
  const run = start(there.client, 'clerk', { message: 'Hi', stream: false }).then(
    () => 'completed',
    () => 'refused',
  );
  await gate.reached;
  const { body } = await here.client.emergency.stop({ body: { scope: 'Agent', agentName: 'clerk', reason: 'fire' } });
  assert.deepEqual(body.runs, [], 'nothing of it runs where it was asked for');
  assert.equal(await run, 'refused', 'the other process has canceled its run');
  assert.equal(await refusedRun(there.client, 'clerk'), 'emergency-stopped');
  assert.equal(await refusedRun(there.client), null, 'the others go on');
  const { body: listed } = await there.client.emergency.status({});
  assert.deepEqual(
    listed.map(({ id, reason }) => [id, reason]),
    [[body.stop.id, 'fire']],
  );
  await there.client.emergency.resume({ body: { scope: 'Agent', agentName: 'clerk' } });
  const { body: after } = await here.client.emergency.status({});
  assert.deepEqual(after, [], 'a stop can be ended at any process, and nobody lists it any more');
});

forEachHearing('what is changed at one process counts at the others', async (t, hearing) => {
  const [here, there] = await openMembers(t, [helper, {}], hearing);
  assert.ok(here !== undefined && there !== undefined);
  await runJson(there.client, 'helper', 'Hi');

  const { body: made } = await here.client.keys.create({
    body: { name: 'ci', role: 'Operator', scopes: ['RunsWrite', 'RunsRead'] },
  });
  const keyed = await there.clientFor(made.plaintextKey);
  await runJson(keyed, 'helper', 'Hi');
  await here.client.keys.remove({ params: { id: made.record.id } });
  await eventually('the key is refused', async () => (await refusal401(keyed)) === 401);

  await here.client.agents.save({
    params: { name: 'helper' },
    body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' }, instructions: 'Be brief.' },
  });
  await eventually('the new version runs', async () => {
    const { runId } = await runJson(there.client, 'helper', 'Hi');
    return (await getRun(there.client, runId)).agentVersion === 2;
  });

  const { body: rule } = await here.client.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
  await eventually('the rule counts', async () => (await refusedRun(there.client)) === 'quota-exceeded');
  await here.client.quotas.remove({ params: { id: rule.id } });
  await eventually('the rule is gone', async () => (await refusedRun(there.client)) === null);

  await here.client.egressPolicies.save({ params: { tenantId: 'default' }, body: { allowedProviders: [] } });
  await eventually('the provider is refused', async () => (await refusedRun(there.client)) !== null);
  const { body: policy } = await there.client.egressPolicies.get({ params: { tenantId: 'default' } });
  assert.deepEqual(policy.allowedProviders, []);
  await there.client.egressPolicies.remove({ params: { tenantId: 'default' } });
  await eventually('the provider is allowed', async () => (await refusedRun(here.client)) === null);
});

const refusal401 = async (client: Parameters<typeof start>[0]): Promise<number> =>
  start(client, 'helper', { message: 'Hi', stream: false }).then(
    () => 200,
    (error: unknown) => (error as { problem?: { status?: number } }).problem?.status ?? 0,
  );

forEachHearing(
  'an approval rule that one process has stored lets calls of runs at another pass',
  async (t, hearing) => {
    const pay = tool('pay', async () => 'paid', { effect: 'External', requiresApproval: true });
    const setup = { tools: [pay], script: callsTools('pay') };
    const [here, there] = await openMembers(t, [setup, setup], hearing);
    assert.ok(here !== undefined && there !== undefined);
    await here.createAgent({ name: 'clerk', toolNames: ['pay'] });
    let sessions = 0;
    const statusOf = async () => {
      sessions += 1;
      return (await runJson(there.client, 'clerk', { message: 'Hi', sessionId: `s-${sessions}` })).status;
    };
    assert.equal(await statusOf(), 'AwaitingApproval');
    await here.client.approvalRules.create({ body: { toolName: 'pay' } });
    await eventually('the rule counts', async () => (await statusOf()) === 'Completed');
  },
);

test('a process whose clock is off says so in readiness, in its diagnostics and in the log', { skip }, async (t) => {
  const host = { EnableDiagnosticsEndpoint: true };
  const clock = testClock();
  clock.setAhead(90_000);
  const [right, ahead] = await openMembers(t, [{ host }, { host, clock }]);
  assert.ok(right !== undefined && ahead !== undefined);
  await eventually('both hear each other', async () => (await right.app.health()).status === 'Healthy');
  assert.equal(
    ((await fetch(`${ahead.url}/health/ready`).then((answer) => answer.json())) as { status: string }).status,
    'Degraded',
  );
  const sharing = async (member: typeof right) => (await member.client.diagnostics.get({})).body.storeSharing;
  const [ofRight, ofAhead] = [await sharing(right), await sharing(ahead)];
  assert.ok(ofRight !== null && ofAhead !== null);
  assert.deepEqual([ofRight.clockOff, ofAhead.clockOff, ofAhead.staleState], [false, true, []]);
  assert.ok(Math.abs(ofAhead.clockOffsetMs - 90_000) < 10_000, `${ofAhead.clockOffsetMs}`);
  assert.ok(ahead.log.some(({ message }) => message.startsWith('The clock of this machine is not that of the store')));
});

test('a process that cannot hear the others says so, and does all else', { skip }, async (t) => {
  const [deaf] = await openMembers(t, [{ ...helper, host: { EnableDiagnosticsEndpoint: true } }], 'polling alone');
  assert.ok(deaf !== undefined);
  assert.equal((await deaf.app.health()).status, 'Degraded');
  assert.equal((await deaf.client.diagnostics.get({})).body.storeSharing?.hearsOthers, false);
  await eventually('it is told', () =>
    deaf.log.some(({ message }) => message.startsWith('Other processes of the store are not heard')),
  );
  assert.equal(await refusedRun(deaf.client), null);
});
