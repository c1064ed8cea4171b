import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artifact, rawAgent, task } from '../../features/remote-agents/remote-world.ts';
import { everyRun, isIdle, ledger } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

test('RUN-78 AGENT-46 calls of remote agents and kill -9: none with effects is sent twice, and others as the same message', async (t) => {
  const sent: { readonly text: string; readonly messageId: string }[] = [];
  let isHeld = true;
  const remote = await rawAgent(t, ({ method, params }) => {
    if (method === 'GetTask') return task('WORKING');
    const { messageId, parts } = params.message;
    sent.push({ text: parts[0].text, messageId });
    return { task: isHeld ? task('WORKING') : task('COMPLETED', { artifacts: [artifact('done')] }) };
  });
  const agents = { pays: 'Destructive', talks: 'External', notes: 'Write' };
  const site = openSite({
    script: [
      ...Object.keys(agents).map((name) => ({
        when: { message: `/^${name} (?<city>\\w+)/`, call: 1 },
        reply: { toolCalls: [{ name: `call_${name}`, arguments: { message: `${name} {{city}}` } }] },
      })),
      { reply: { text: '{{last}}' } },
    ],
    service: {
      AsyncRun: { MaxAttempts: 4 },
      Scheduling: { MaxConcurrentJobs: 8, PollInterval: '1s' },
      RunReconciliation: { Enabled: true },
      RunContinuation: { Enabled: true, MaxAttempts: 3 },
      Egress: { AllowPrivateNetworkTargets: true },
    },
    host: {
      RemoteAgents: Object.fromEntries(
        Object.entries(agents).map(([name, Effect]) => [
          name,
          { CardUrl: remote.cardUrl, RequiresApproval: false, Effect },
        ]),
      ),
    },
  });
  t.after(() => site.close());
  let service: ServiceProcess = await site.serve();
  const body = { name: 'boss', model: { provider: 'demo', model: 'm' }, callableAgentNames: Object.keys(agents) };
  assert.equal((await call(`${service.url}/api/agents`, { body })).status, 201);
  for (const name of Object.keys(agents)) {
    const answer = await call(`${service.url}/api/agents/boss/run`, {
      body: { message: `${name} Ulm`, sessionId: name },
      headers: { prefer: 'respond-async' },
    });
    assert.equal(answer.status, 202, answer.text);
  }
  await until('calls that are out', async () => sent.length === 3);

  await service.kill();
  isHeld = false;
  service = await site.serve();
  await until('the end of what was under way', () => isIdle(service));
  const texts = sent.map(({ text }) => text).toSorted();
  assert.deepEqual(texts, ['notes Ulm', 'notes Ulm', 'pays Ulm', 'talks Ulm']);
  const ids = sent.filter(({ text }) => text === 'notes Ulm').map(({ messageId }) => messageId);
  assert.equal(ids[0], ids[1], 'the agent there can tell that it is the same message');
  assert.equal(new Set(sent.map(({ messageId }) => messageId)).size, 3);
  const rows = await ledger(site, await everyRun(service));
  assert.deepEqual(
    rows
      .map((row) => `${row.tool_name} ${row.state}`)
      .filter((text) => !text.includes('notes'))
      .sort(),
    ['call_pays Unknown', 'call_talks Unknown'],
  );
});
