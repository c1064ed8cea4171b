import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { getRun, listRuns, refusal, runJson, runStream, start } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

/** A handler that notes what it is asked and obeys `decide`, which a test may change. */
const recording = (decide: (request: RunAuthorizationRequest) => unknown) => {
  const asked: RunAuthorizationRequest[] = [];
  const policy = { decide };
  const runAuthorization = {
    async authorize(request: RunAuthorizationRequest) {
      asked.push(request);
      return (await policy.decide(request)) as { allowed: boolean };
    },
  };
  return { asked, policy, module: { runAuthorization } };
};

const allowAll = () => ({ allowed: true });
const denyAll = () => ({ allowed: false });

const oneRun = (client: Client, runId: string): Readonly<Record<string, () => Promise<unknown>>> => ({
  get: () => client.runs.get({ params: { runId } }),
  tree: () => client.runs.tree({ params: { runId } }),
  tools: () => client.runs.tools({ params: { runId } }),
  events: () => client.runs.events({ params: { runId } }),
  cancel: () => client.runs.cancel({ params: { runId } }),
});

forEachDurableService('RUN-39 a refused start is 403 and leaves no row', async (open) => {
  const { asked, module, policy } = recording(denyAll);
  const app = await open({ agents: [{ name: 'helper' }], module });
  const before = await app.store.counts();
  for (const options of [{}, { headers: { prefer: 'respond-async' } }, { headers: { 'idempotency-key': 'k' } }]) {
    const problem = await refusal(start(app.client, 'helper', { message: 'Hi', sessionId: 's' }, options));
    assert.deepEqual([problem.status, problem.code], [403, 'run-not-allowed']);
  }
  const unknown = await refusal(start(app.client, 'nobody', { message: 'Hi', sessionId: 's' }));
  assert.equal(unknown.code, 'run-not-allowed', 'a refusal does not tell whether the agent exists');
  assert.deepEqual(await app.store.counts(), before);
  assert.deepEqual(asked[0], {
    action: 'Start',
    resource: 'Run',
    id: null,
    tenantId: 'default',
    agentName: 'helper',
    sessionId: 's',
    runId: null,
    userId: null,
    principal: asked[0]?.principal,
  });
  assert.match(JSON.stringify(asked[0]?.principal), /"role":"Admin"/);
  policy.decide = allowAll;
  assert.equal((await runJson(app.client, 'helper', 'Hi')).status, 'Completed');
});

forEachDurableService(
  'RUN-39 a stored answer of an idempotency key is for callers that may start the run',
  async (open) => {
    const { module, policy } = recording(allowAll);
    const { client } = await open({ agents: [{ name: 'helper' }], module });
    const keyed = { headers: { 'idempotency-key': 'once' } };
    await start(client, 'helper', 'Hi', keyed);
    policy.decide = denyAll;
    assert.equal((await refusal(start(client, 'helper', 'Hi', keyed))).code, 'run-not-allowed');
  },
);

forEachDurableService('RUN-39 a refused list is 403 as a whole, never a shorter one', async (open) => {
  const { module, policy, asked } = recording(allowAll);
  const { client } = await open({ agents: [{ name: 'helper' }], module });
  await runJson(client, 'helper', 'Hi');
  policy.decide = ({ action }) => ({ allowed: action !== 'Read' });
  assert.equal((await listRuns(client)).length, 1, 'the runs of a list are not asked about one by one');
  policy.decide = denyAll;
  const problem = await refusal(client.runs.list({ query: { agentName: 'helper' } }));
  assert.deepEqual([problem.status, problem.code], [403, 'run-not-allowed']);
  assert.deepEqual([asked.at(-1)?.action, asked.at(-1)?.agentName], ['List', 'helper']);
});

forEachDurableService('RUN-39 a refused run is answered as one that does not exist', async (open) => {
  const { module, policy, asked } = recording(allowAll);
  const { client } = await open({ agents: [{ name: 'helper' }], module });
  const { runId } = await runJson(client, 'helper', { message: 'Hi', sessionId: 's' });
  const unknown = oneRun(client, unknownId);
  policy.decide = denyAll;
  for (const [name, call] of Object.entries(oneRun(client, runId))) {
    const refused = await refusal(call());
    const missing = await refusal((unknown[name] as () => Promise<unknown>)());
    assert.equal(refused.status, 404, name);
    const plain = ({ instance: _i, requestId: _r, ...rest }: typeof refused) =>
      JSON.stringify(rest).replaceAll(runId, '{id}').replaceAll(unknownId, '{id}');
    assert.equal(plain(refused), plain(missing), `${name}: not told apart`);
  }
  assert.deepEqual(
    asked.slice(-5).map(({ action, id, agentName, sessionId }) => [action, id, agentName, sessionId]),
    ['Read', 'Read', 'Read', 'Read', 'Cancel'].map((action) => [action, runId, 'helper', 's']),
  );
  policy.decide = ({ action }) => ({ allowed: action === 'Read' });
  assert.equal((await getRun(client, runId)).id, runId);
  assert.equal((await refusal(client.runs.cancel({ params: { runId } }))).code, 'run-not-found');
});

forEachDurableService('RUN-39 a tree needs the root that it shows', async (open) => {
  const { module, policy } = recording(allowAll);
  const { client } = await open({
    script: [
      { when: { tool: 'call_child' }, reply: { text: 'Done.' } },
      {
        when: { message: 'delegate' },
        reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'one' } }] },
      },
      { reply: { text: 'Yes.' } },
    ],
    agents: [{ name: 'child' }, { name: 'boss', callableAgentNames: ['child'] }],
    module,
  });
  await runJson(client, 'boss', 'delegate');
  const [child] = await listRuns(client, { includeChildren: true, agentName: 'child' });
  policy.decide = ({ agentName }) => ({ allowed: agentName !== 'boss' });
  const runId = child?.id ?? '';
  assert.equal((await getRun(client, runId)).id, runId);
  assert.equal((await refusal(client.runs.tree({ params: { runId } }))).code, 'run-not-found');
  policy.decide = allowAll;
  const tree = await client.runs.tree({ params: { runId } });
  assert.equal((tree.body as unknown[]).length, 2);
});

forEachDurableService('RUN-39 a handler that throws, or answers anything but allowed, refuses', async (open) => {
  const { module, policy } = recording(() => {
    throw new Error('the directory is down');
  });
  const { client, log } = await open({ agents: [{ name: 'helper' }], module });
  assert.equal((await refusal(start(client, 'helper', 'Hi'))).code, 'run-not-allowed');
  assert.ok(log.some(({ level, message }) => level === 'warn' && message.includes('run authorization handler')));
  for (const answer of [undefined, null, true, 'yes', {}, { allowed: 'true' }, { allowed: 1 }]) {
    policy.decide = () => answer;
    assert.equal((await refusal(listRuns(client))).code, 'run-not-allowed', JSON.stringify(answer));
  }
});

forEachDurableService('RUN-39 a run that started is not asked about again', async (open) => {
  const { module, asked } = recording(allowAll);
  const { client } = await open({ agents: [{ name: 'helper' }], module });
  const { events } = await runStream(client, 'helper', 'Hi');
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.deepEqual(
    asked.map(({ action }) => action),
    ['Start'],
  );
});
