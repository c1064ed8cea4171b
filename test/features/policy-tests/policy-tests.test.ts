// A process of its own: it finds runs by the time in their ids, which files that move the clock ahead take along.
import assert from 'node:assert/strict';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { newId } from '../../../src/core/ids.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { forEachDoor } from '../../support/app.ts';
import { calls, decide, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { priced } from '../quotas/quota-calls.ts';
import { swept } from '../retention/retention-world.ts';
import { opensRun } from '../runs/other-process.ts';
import { followToEnd, listRuns, readEvents, refusal, runJson, tool } from '../runs/run-calls.ts';
import { otherTenant, policyTest, tenantHost } from './policy-world.ts';

const secret = 'Project Zeus';
const mail = 'jo@example.com';
const sendMail = tool('send', async () => `delivered to ${mail}`, {
  inputSchema: { type: 'object', properties: { zeus: { type: 'string' } } },
});
const guarded = {
  tools: [sendMail],
  agents: [{ name: 'helper', toolNames: ['send'] }],
  script: [
    { when: { tool: 'send' }, reply: { text: 'Sent.' } },
    { when: { message: 'mail' }, reply: { toolCalls: [{ name: 'send', arguments: { zeus: `to ${mail}` } }] } },
    { when: { message: 'tell' }, reply: { text: `It is called ${secret}.` } },
    { reply: { text: 'Hello.' } },
  ],
};

forEachDoor('policy test: a guard names run, place and rule of what it would have stopped', async (open) => {
  const app = await open(guarded);
  const asked = await runJson(app.client, 'helper', `What is project  ZEUS?`);
  const told = await runJson(app.client, 'helper', 'tell');
  const mailed = await runJson(app.client, 'helper', 'mail');
  await runJson(app.client, 'helper', 'Hi');
  const guard = { DeniedTerms: ['nothing of that', secret, 'zeus-'], MaskedPii: ['Email' as const] };
  const report = await policyTest(app.client, { guard });
  assert.deepEqual([report.kind, report.runsExamined, report.matches, report.notEvaluated], ['Guard', 4, 3, []]);
  assert.deepEqual([report.guard?.runsBlocked, report.guard?.runsMasked], [2, 1]);
  assert.deepEqual(
    report.guard?.findings.map(({ runId, action, rule, source, toolName }) => [runId, action, rule, source, toolName]),
    [
      [asked.runId, 'Block', 'denied-term:1', 'UserMessage', null],
      [told.runId, 'Block', 'denied-term:1', 'ModelOutput', null],
      [mailed.runId, 'Mask', 'pii:Email', 'ModelOutput', 'send'],
      [mailed.runId, 'Mask', 'pii:Email', 'ToolResult', 'send'],
    ],
  );
  assert.deepEqual(report.guard?.byRule[0], { rule: 'denied-term:1', action: 'Block', runs: 2, texts: 2 });
  const text = JSON.stringify(report).toLowerCase();
  for (const hidden of [secret.toLowerCase(), mail]) assert.ok(!text.includes(hidden), 'the report has no such text');
  // A name that the tool itself declares was made up by no model.
  assert.equal((await policyTest(app.client, { guard: { DeniedTerms: ['zeus'] } })).guard?.runsBlocked, 2);
});

forEachDoor('policy test: lists are cut at take, and say what was left out', async (open) => {
  const app = await open(guarded);
  for (const _turn of [1, 2, 3]) await runJson(app.client, 'helper', 'tell');
  const { guard, matches } = await policyTest(app.client, { guard: { DeniedTerms: [secret] }, take: 1 });
  assert.deepEqual([matches, guard?.findings.length, guard?.findingsOmitted], [3, 1, 2]);
});

forEachDoor('policy test: what is not recorded, or gone, is counted as not looked at', async (open) => {
  const app = await open({
    ...guarded,
    service: { RunRecording: { RecordToolPayloads: false } },
  });
  const gone = await runJson(app.client, 'helper', secret);
  const mailed = await runJson(app.client, 'helper', 'mail');
  const { retention } = app.client;
  await retention.save({ params: { target: 'RunInputs' }, body: { maxRows: 1 } });
  const { length: maxRows } = await readEvents(app.client, mailed.runId);
  await retention.save({ params: { target: 'RunEvents' }, body: { maxRows } });
  await swept(app);
  const report = await policyTest(app.client, { guard: { DeniedTerms: [secret] } });
  assert.equal(report.matches, 0);
  assert.deepEqual(
    report.notEvaluated.map(({ part, reason, count }) => [part, reason, count]),
    [
      ['Input', 'NotStored', 1],
      ['Events', 'NotStored', 1],
      ['ToolArguments', 'NotStored', 1],
      ['ToolResult', 'NotStored', 1],
    ],
  );
  assert.deepEqual(report.notEvaluated[0]?.sampleRunIds, [gone.runId]);
});

forEachDoor('policy test: sealed content is opened, and what no key opens any more is counted', async (open) => {
  const atRest = { ActiveKeyId: 'a', Keys: { a: Buffer.alloc(32, 1).toString('base64') } };
  const app = await open({ ...guarded, service: { AtRest: atRest } });
  const plain = await runJson(app.client, 'helper', secret);
  await runJson(app.client, 'helper', secret);
  await runJson(app.client, 'helper', 'mail');
  assert.ok((await app.store.text()).includes('acp:sealed:') && !(await app.store.text()).includes(secret));
  const guard = { DeniedTerms: [secret], MaskedPii: ['Email' as const] };
  const report = await policyTest(app.client, { guard });
  assert.deepEqual([report.guard?.runsBlocked, report.guard?.runsMasked, report.notEvaluated], [2, 1, []]);
  // Written by a process that had another key of this name.
  const cipher = createContentCipher('a', { a: Buffer.alloc(32, 2).toString('base64') });
  const other = app.store.open(cipher);
  const sealed = newId();
  const { messages } = (await app.client.runs.input({ params: { runId: plain.runId } })).body;
  await opensRun(other, sealed, { createdAt: Date.now(), startedAt: Date.now(), input: messages as never });
  const runs = other.stores(runStore);
  const row = (await runs.get('default', sealed)) ?? assert.fail('the run is stored');
  await runs.closeFrom(row, 'Running', { status: 'Completed', completed_at: Date.now() });
  const gap = await policyTest(app.client, { guard });
  assert.deepEqual([gap.runsExamined, gap.guard?.runsBlocked], [4, 2]);
  assert.deepEqual([gap.notEvaluated[0]?.part, gap.notEvaluated[0]?.sampleRunIds], ['Input', [sealed]]);
  const unreadable = await refusal(app.client.runs.input({ params: { runId: sealed } }));
  assert.equal(unreadable.code, 'decryption-failed', 'it is stored');
});

const under100 = { path: 'amount', operator: 'LessThan' as const, value: 100 };

forEachDoor('policy test: a rule says which calls would have run unasked, and which would have asked', async (open) => {
  const app = await openApprovals(open);
  const large = await queueWaiting(app, 's-2', ['pay', { amount: 500 }]);
  const small = await queueWaiting(app, 's-1', ['pay', { amount: 5 }]);
  const { continuationRunId } = await decide(app.client, small.rows[0]?.id ?? '', true);
  if (continuationRunId !== null) await followToEnd(app.client, continuationRunId);
  const looked = await runJson(app.client, 'helper', calls(['look']));
  const report = await policyTest(app.client, {
    rule: { rules: [{ toolName: 'wipe' }, { toolName: 'pay', argumentConditions: [under100] }] },
  });
  const { rule } = report;
  assert.deepEqual(
    [rule?.callsExamined, rule?.wouldApprove, rule?.wouldAsk, rule?.stillAsked, rule?.unchanged],
    [3, 1, 0, 1, 1],
    'an approved call is judged once',
  );
  assert.deepEqual(
    rule?.calls.map(({ runId, toolName, verdict, ruleIndex }) => [runId, toolName, verdict, ruleIndex]),
    [[small.runId, 'pay', 'WouldApprove', 1]],
  );
  const asks = await policyTest(app.client, { rule: { requireApproval: ['look'] } });
  assert.deepEqual(
    asks.rule?.calls.map(({ runId, toolName, verdict }) => [runId, toolName, verdict]),
    [[looked.runId, 'look', 'WouldAsk']],
  );
  const kept = await policyTest(app.client, { rule: { requireApproval: ['look'], rules: [{ toolName: 'look' }] } });
  assert.equal(kept.matches, 0, 'a rule of the document approves it again');
  assert.deepEqual(report.notEvaluated, []);
  const others = (await listRuns(app.client)).filter(({ id }) => id !== large.runId);
  const logs = await Promise.all(others.map(({ id }) => readEvents(app.client, id)));
  await app.client.retention.save({ params: { target: 'RunEvents' }, body: { maxRows: logs.flat().length } });
  await swept(app);
  const gap = await policyTest(app.client, { rule: { rules: [{ toolName: 'pay' }] } });
  assert.deepEqual(
    gap.notEvaluated.map(({ part, sampleRunIds }) => [part, sampleRunIds]),
    [['Events', [large.runId]]],
  );
});

forEachDoor('policy test: without the stored rules, what they approved would ask', async (open) => {
  const app = await openApprovals(open);
  await app.client.approvalRules.create({ body: { toolName: 'pay', argumentConditions: [under100] } });
  const paid = await runJson(app.client, 'helper', { message: calls(['pay', { amount: 5 }]), sessionId: 's-1' });
  const rules = [{ toolName: 'pay', argumentConditions: [{ ...under100, value: 3 }] }];
  assert.equal((await policyTest(app.client, { rule: { rules } })).matches, 0, 'the stored rule is still there');
  const report = await policyTest(app.client, { rule: { rules, replaceStored: true } });
  assert.deepEqual(
    report.rule?.calls.map(({ runId, verdict }) => [runId, verdict]),
    [[paid.runId, 'WouldAsk']],
  );
});

forEachDoor('policy test: a quota refuses in the order of the starts, by its own rules', async (open) => {
  const app = await open({ ...priced, service: { ...priced.service, Quotas: { TimeZone: 'Asia/Kathmandu' } } });
  const ids: string[] = [];
  for (const agent of ['helper', 'helper', 'other', 'helper']) ids.push((await runJson(app.client, agent, 'Hi')).runId);
  const runs = await policyTest(app.client, { quota: [{ agentName: 'helper', period: 'Daily', maxRuns: 2 }] });
  assert.deepEqual([runs.runsExamined, runs.matches, runs.quota?.timeZone], [4, 1, 'Asia/Kathmandu']);
  assert.deepEqual(
    runs.quota?.refusals.map(({ runId, outcome, quotaAgentName, metric, limit, used }) => [
      runId,
      outcome,
      quotaAgentName,
      metric,
      limit,
      used,
    ]),
    [[ids[3], 'Refused', 'helper', 'Runs', 2, 2]],
  );
  assert.deepEqual(
    runs.quota?.thresholds.map(({ percent, runId }) => [percent, runId]),
    [
      [80, ids[1]],
      [100, ids[1]],
    ],
  );
  const cost = await policyTest(app.client, { quota: [{ period: 'Monthly', maxCost: 0.00005 }] });
  assert.deepEqual(
    cost.quota?.refusals.map(({ runId, metric, limit, used }) => [runId, metric, limit, used]),
    [
      [ids[2], 'Cost', 0.00005, 0.00008],
      [ids[3], 'Cost', 0.00005, 0.00008],
    ],
    'the run that passes the limit still runs, and refused ones use nothing',
  );
  assert.deepEqual((await app.client.quotas.list({})).body, [], 'nothing was saved');
});

forEachDoor(
  'policy test: a price table says what recorded usage would cost, and which models it forgets',
  async (open) => {
    const app = await open({
      ...priced,
      agents: [{ name: 'helper' }, { name: 'other', model: { provider: 'demo', model: 'demo-2' } }],
    });
    const first = await runJson(app.client, 'helper', 'Hi');
    await runJson(app.client, 'helper', 'Hi');
    const bare = await runJson(app.client, 'other', 'Hi');
    const report = await policyTest(app.client, { price: { demo: { 'demo-1': { Input: 2, Output: 4 } } }, take: 1 });
    assert.deepEqual([report.runsExamined, report.matches], [3, 3]);
    const { price } = report;
    assert.deepEqual(
      [price?.currency, price?.runsCompared, price?.oldCost, price?.newCost, price?.runsChanged],
      ['EUR', 2, 0.00008, 0.00016, 2],
    );
    assert.deepEqual(price?.byModel, [
      {
        modelProvider: 'demo',
        modelId: 'demo-1',
        source: 'Configuration',
        runs: 2,
        oldCost: 0.00008,
        newCost: 0.00016,
      },
    ]);
    assert.deepEqual(price?.byAgent, [{ agentName: 'helper', runs: 2, oldCost: 0.00008, newCost: 0.00016 }]);
    assert.deepEqual([price?.changes.length, price?.changesOmitted, price?.changes[0]?.runId], [1, 1, first.runId]);
    assert.deepEqual(
      price?.withoutPrice.map(({ runId, modelId }) => [runId, modelId]),
      [[bare.runId, 'demo-2']],
    );
    const fresh = await policyTest(app.client, { price: { demo: { 'demo-2': { Output: 1, Input: 0 } } } });
    assert.deepEqual([fresh.price?.runsNewlyPriced, fresh.price?.newlyPricedCost], [1, 0.00001]);
  },
);

forEachDoor('policy test: another tenant sees nothing, whatever it asks', async (open) => {
  const app = await open({ ...guarded, ...tenantHost('shared-token-of-these-tests') });
  await runJson(app.client, 'helper', secret);
  await runJson(app.client, 'helper', 'mail');
  const other = await otherTenant(app);
  const bodies = [
    { guard: { DeniedTerms: [secret] } },
    { rule: { requireApproval: ['send'] } },
    { quota: [{ period: 'Daily' as const, maxRuns: 0 }] },
    { price: { demo: { 'demo-1': { Input: 1 } } } },
  ];
  for (const body of bodies) {
    assert.ok((await policyTest(app.client, body)).runsExamined === 2);
    const { runsExamined, matches, notEvaluated } = await policyTest(other, body);
    assert.deepEqual([runsExamined, matches, notEvaluated], [0, 0, []]);
  }
});

forEachDoor('policy test: a window without runs is an empty report', async (open) => {
  const app = await open(guarded);
  await runJson(app.client, 'helper', secret);
  const window = { since: '2020-01-01T00:00:00Z', until: '2020-02-01T00:00:00Z' };
  const report = await policyTest(app.client, { guard: { DeniedTerms: [secret] }, ...window });
  assert.deepEqual([report.runsExamined, report.matches, report.since], [0, 0, '2020-01-01T00:00:00.000Z']);
  assert.deepEqual(report.guard?.findings, []);
});

forEachDoor('policy test: a document that is not valid is refused, and its field named', async (open) => {
  const { client } = await open({});
  const condition = { path: 'a..b', operator: 'Equals', value: 1 };
  const refused: [body: object, path: string][] = [
    [{}, ''],
    [{ guard: { DeniedTerms: ['x'] }, price: { demo: {} } }, 'price'],
    [{ guard: {} }, 'guard'],
    [{ guard: { DeniedTerms: ['x', ' \u200b '] } }, 'guard.DeniedTerms[1]'],
    [{ guard: { MaskedPii: ['Names'] } }, 'guard.MaskedPii[0]'],
    [{ guard: { deniedTerms: ['x'] } }, 'guard.deniedTerms'],
    [{ rule: {} }, 'rule'],
    [
      { rule: { rules: [{ toolName: 'a', argumentConditions: [condition] }] } },
      'rule.rules[0].argumentConditions[0].path',
    ],
    [{ quota: [{ period: 'Daily' }] }, 'quota[0]'],
    [{ quota: [{ period: 'Daily', maxCost: 0.1234567 }] }, 'quota[0].maxCost'],
    [
      {
        quota: [
          { period: 'Daily', maxRuns: 1 },
          { period: 'Daily', maxTokens: 1 },
        ],
      },
      'quota[1]',
    ],
    [{ price: {} }, 'price'],
    [{ price: { demo: { 'demo-1': { CachedInput: 1 } } } }, 'price.demo.demo-1'],
    [{ price: { demo: { 'demo-1': { Input: -1 } } } }, 'price.demo.demo-1.Input'],
    [{ guard: { DeniedTerms: ['x'] }, since: '2030-01-01T00:00:00Z', until: '2020-01-01T00:00:00Z' }, 'since'],
  ];
  for (const [body, path] of refused) {
    const problem = await refusal(client.policyTests.run({ body: body as never }));
    assert.deepEqual([problem.status, problem.code], [400, 'validation-failed'], JSON.stringify(body));
    assert.ok(
      problem.errors?.some((error) => error.path === path),
      `${path}: ${JSON.stringify(problem.errors)}`,
    );
  }
});
