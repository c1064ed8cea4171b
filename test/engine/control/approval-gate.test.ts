import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ApprovalCall, ApprovalPolicyAnswer } from '../../../src/engine/control/approval-gate.ts';
import { createApprovalGate, type GateAnswer } from '../../../src/engine/control/approval-gate.ts';

const call: ApprovalCall = {
  tenantId: 't',
  agentName: 'helper',
  runId: 'r',
  sessionId: 's',
  userId: null,
  toolName: 'pay',
  arguments: {},
};

/** A gate with this policy, beside a standing rule that would let every call run. */
const gateOf = (t: TestContext, decide: () => Promise<ApprovalPolicyAnswer>) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const warnings: string[] = [];
  const gate = createApprovalGate({
    policy: { decide },
    presenters: new Map(),
    matchingRule: async () => ({ id: 'rule-1' }),
    log: { warn: (_fields, message) => void warnings.push(message) },
  });
  return { gate, warnings };
};

const ask: GateAnswer = { kind: 'ask' };

test('APPR-3 a policy that has not answered after 5 s counts as Required', async (t) => {
  const answer = Promise.withResolvers<ApprovalPolicyAnswer>();
  const { gate, warnings } = gateOf(t, () => answer.promise);
  const decided = gate.decide(call, false, new AbortController().signal);
  await Promise.resolve();
  t.mock.timers.tick(5000);
  assert.deepEqual(await decided, ask);
  answer.resolve('NotRequired');
  assert.equal(warnings.length, 1);
});

test('APPR-3 a policy that answers a moment before 5 s is heard', async (t) => {
  const answer = Promise.withResolvers<ApprovalPolicyAnswer>();
  const { gate, warnings } = gateOf(t, () => answer.promise);
  const decided = gate.decide(call, true, new AbortController().signal);
  await Promise.resolve();
  t.mock.timers.tick(4999);
  answer.resolve('NotRequired');
  assert.deepEqual(await decided, { kind: 'run', by: 'policy', ruleId: null });
  assert.deepEqual(warnings, []);
});

test('APPR-3 a policy that throws counts as Required, whatever the rules say', async (t) => {
  for (const decide of [
    async (): Promise<ApprovalPolicyAnswer> => {
      throw new Error('No answer.');
    },
    (): Promise<ApprovalPolicyAnswer> => {
      throw new Error('Not even a promise.');
    },
  ]) {
    const { gate, warnings } = gateOf(t, decide);
    assert.deepEqual(await gate.decide(call, true, new AbortController().signal), ask);
    assert.equal(warnings.length, 1);
    t.mock.timers.reset();
  }
});

test('APPR-3 the end of the run ends the wait for the policy', async (t) => {
  const { gate, warnings } = gateOf(t, () => new Promise(() => undefined));
  const ending = new AbortController();
  const decided = gate.decide(call, true, ending.signal);
  ending.abort();
  assert.deepEqual(await decided, ask);
  assert.deepEqual(warnings, []);
});

test('APPR-3 rules that cannot be read ask', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const gate = createApprovalGate({
    policy: null,
    presenters: new Map(),
    matchingRule: async () => {
      throw new Error('No store.');
    },
    log: { warn: () => undefined },
  });
  assert.deepEqual(await gate.decide(call, true, new AbortController().signal), ask);
  const unmarked: GateAnswer = { kind: 'run', by: null, ruleId: null };
  assert.deepEqual(await gate.decide(call, false, new AbortController().signal), unmarked);
});
