import assert from 'node:assert/strict';
import { test } from 'node:test';
import { artifact, rawAgent, task } from '../../features/remote-agents/remote-world.ts';
import { everyRun, isIdle, ledger } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

test('RUN-78 AGENT-46 calls of remote agents and kill -9: none with effects is sent twice, and others as the same message', async (t) => {
  const sent: { readonly text: string; readonly messageId: string }[] = [];
  let isHeld = true;
  const canceled: string[] = [];
  const remote = await rawAgent(t, ({ method, params }) => {
    if (method === 'GetTask') return task('WORKING', { id: params.id });
    if (method === 'CancelTask') {
      canceled.push(params.id);
      return task('CANCELED', { id: params.id });
    }
    const { messageId, parts } = params.message;
    const [{ text }] = parts;
    sent.push({ text, messageId });
    const more = { id: `task of ${text}` };
    return { task: isHeld ? task('WORKING', more) : task('COMPLETED', { ...more, artifacts: [artifact('done')] }) };
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
  const children = async () =>
    (await everyRun(service)).filter(({ agentName }) => agentName !== 'boss') as unknown as {
      readonly agentName: string;
      readonly error: { readonly message: string } | null;
      readonly remoteTask: { readonly taskId: string | null; readonly state: string | null };
    }[];
  await until('calls that are out', async () => {
    const known = (await children()).filter(({ remoteTask }) => remoteTask.taskId !== null);
    return sent.length === 3 && known.length === 3;
  });

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

  // What nobody waits for any more is canceled; a call that is made again finds its task as it is.
  await until('the cancels', async () => {
    const states = (await children()).map(({ remoteTask }) => remoteTask.state);
    return states.filter((state) => state === 'CANCELED').length === 2;
  });
  assert.deepEqual(canceled.toSorted(), ['task of pays Ulm', 'task of talks Ulm']);
  const ends = (await children()).map(({ agentName, error, remoteTask }) => [
    agentName,
    remoteTask.state,
    error?.message.split('. ')[1] ?? null,
  ]);
  const told = 'The agent that it had asked is told to cancel its task.';
  assert.deepEqual(ends.toSorted(), [
    ['notes', 'COMPLETED', null],
    ['notes', 'WORKING', 'The task of the agent that it had asked goes on there.'],
    ['pays', 'CANCELED', told],
    ['talks', 'CANCELED', told],
  ]);
});
