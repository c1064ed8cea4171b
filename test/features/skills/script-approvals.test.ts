import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import { forEachDurableService, type OpenApp, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { calls, openApprovals, toolTexts } from '../approvals/approval-world.ts';
import { followToEnd, runJson, typesOf } from '../runs/run-calls.ts';
import { save, skill } from './skill-bodies.ts';

const sessionId = 's-1';
const script = { name: 'go', extension: 'sh', content: 'cat; echo; cat note.txt\n' };
const pdf = skill('pdf', {
  resources: [{ name: 'note.txt', content: 'from a resource\n' }],
  scripts: [{ ...script, parametersSchema: '{"type":"object","properties":{"n":{"type":"integer"}}}' }],
});

const openScripts = async (open: OpenApp, module: object = {}): Promise<TestApp> => {
  const app = await openApprovals(open, {
    service: {
      Skills: {
        Scripts: {
          PlatformIsolationAcknowledged: true,
          AllowStoredScripts: true,
          Interpreters: { sh: '/bin/sh' },
        },
      },
    },
    host: { SkillScripts: { Register: true } },
    tools: [],
    module,
  });
  await save(app, pdf);
  const model = { provider: 'local', model: 'any' };
  await app.createAgent({ name: 'clerk', model, skillNames: ['pdf'] });
  return app;
};

const grant = async (app: TestApp): Promise<unknown> =>
  (await app.client.grants.create({ body: { skillName: 'pdf' } })).body;

const call = (args: object = { n: 1 }) =>
  calls(['run_skill_script', { skillName: 'pdf', scriptName: 'go', arguments: args }]);

const ask = (app: TestApp, args?: object) => runJson(app.client, 'clerk', { message: call(args), sessionId });

const decide = (app: TestApp, approvals: NonNullable<AgentRunRequest['approvals']>) =>
  runJson(app.client, 'clerk', { sessionId, approvals });

const scriptActions = async (app: TestApp): Promise<string[]> =>
  (await trail(app)).flatMap(({ action, after }) =>
    /^script\./.test(action) ? [`${action} ${after.gate ?? ''}`.trim()] : [],
  );

const invocationsOf = async (app: TestApp, runId: string) =>
  (await app.client.runs.tools({ params: { runId } })).body.map(({ toolName, source, succeeded, error }) => [
    toolName,
    source,
    succeeded,
    error,
  ]);

const output = 'exit_code: 0\nstdout:\n{"n":1}\nfrom a resource\nstderr:';

forEachDurableService(
  'SKILL-25 SCRIPT-10 SCRIPT-16 an approved script runs, with the arguments asked for',
  async (open) => {
    const app = await openScripts(open);
    await grant(app);
    const first = await ask(app);
    assert.equal(first.status, 'AwaitingApproval');
    const [request] = first.approvals;
    assert.deepEqual(
      [request?.toolName, request?.arguments],
      ['run_skill_script', { skillName: 'pdf', scriptName: 'go', arguments: { n: 1 } }],
    );
    assert.deepEqual(await scriptActions(app), [], 'nothing has started, and nothing was refused');
    assert.deepEqual(await invocationsOf(app, first.runId), []);
    const second = await decide(app, [{ requestId: request?.requestId ?? '', approved: true }]);
    assert.equal(second.status, 'Completed');
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), [output]);
    assert.deepEqual(await scriptActions(app), ['script.run']);
    assert.equal((await trail(app)).find(({ action }) => action === 'script.run')?.after.runId, second.runId);
    assert.deepEqual(await invocationsOf(app, second.runId), [['run_skill_script', 'skill:pdf', true, null]]);
  },
);

forEachDurableService('SKILL-25 a declined script does not run', async (open) => {
  const app = await openScripts(open);
  await grant(app);
  const { approvals } = await ask(app);
  await decide(app, [{ requestId: approvals[0]?.requestId ?? '', approved: false, reason: 'Not today.' }]);
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['Not approved: Not today.']);
  assert.deepEqual(await scriptActions(app), []);
});

forEachDurableService('SKILL-25 a standing rule or the policy of the host pre-approves a script', async (open) => {
  const ruled = await openScripts(open);
  await grant(ruled);
  await ruled.client.approvalRules.create({ body: { toolName: 'run_skill_script' } });
  assert.equal((await ask(ruled)).status, 'Completed');
  assert.deepEqual(toolTexts(ruled.simulator.lastRequest()), [output]);
  const free = await openScripts(open, { approvalPolicy: { decide: async () => 'NotRequired' } });
  await grant(free);
  assert.equal((await ask(free)).status, 'Completed');
  assert.deepEqual(await scriptActions(free), ['script.run']);
});

forEachDurableService('SCRIPT-12 a closed gate asks nobody; the run goes on with one text', async (open) => {
  const app = await openScripts(open);
  const refused = await ask(app);
  assert.equal(refused.status, 'Completed', 'there is no grant');
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['The script could not be run.']);
  const [invocation] = await invocationsOf(app, refused.runId);
  assert.deepEqual(invocation?.slice(0, 3), ['run_skill_script', 'skill:pdf', false]);
  assert.match(String(invocation?.[3]), /Gate "grant"/);
  const types = typesOf(await followToEnd(app.client, refused.runId));
  assert.ok(types.includes('tool.failed') && !types.includes('approval.requested'));
  await grant(app);
  assert.equal((await ask(app, { n: 'one' })).status, 'Completed', 'the arguments do not fit');
  assert.deepEqual(await scriptActions(app), ['script.denied grant', 'script.denied arguments']);
});

forEachDurableService(
  'SCRIPT-12 GRANT-7 a gate that closed after the approval was asked for stops the start',
  async (open) => {
    const app = await openScripts(open);
    await grant(app);
    const { approvals } = await ask(app);
    await app.client.grants.remove({ params: { skillName: 'pdf' } });
    const second = await decide(app, [{ requestId: approvals[0]?.requestId ?? '', approved: true }]);
    assert.equal(second.status, 'Completed');
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['The script could not be run.']);
    assert.deepEqual(await scriptActions(app), ['script.denied grant']);
  },
);
