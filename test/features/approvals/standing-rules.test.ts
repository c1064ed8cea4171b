import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { forEachService } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { auditOf, calls, openApprovals } from './approval-world.ts';

type RuleBody = Parameters<Client['approvalRules']['create']>[0]['body'];
type Condition = NonNullable<RuleBody['argumentConditions']>[number];

const listed = async (client: Client, query: { agentName?: string; toolName?: string } = {}) =>
  (await client.approvalRules.list({ query })).body;

forEachService('RULE-5 RULE-7 a condition of another shape is 400 and names it', async (open) => {
  const app = await openApprovals(open);
  const wrong: readonly (readonly [Condition['operator'], unknown])[] = [
    ['Equals', null],
    ['Equals', ['a']],
    ['NotEquals', { a: 1 }],
    ['GreaterThan', '5'],
    ['GreaterThanOrEqual', true],
    ['LessThan', null],
    ['LessThanOrEqual', [1]],
    ['In', 'a'],
    ['In', []],
    ['In', ['a', 1]],
    ['In', [true]],
    ['In', [null]],
    ['NotIn', [1, 'a']],
    ['NotIn', Array.from({ length: 101 }, (_, index) => index)],
    ['Equals', 'a'.repeat(16_385)],
    ['In', ['b', 'a'.repeat(16_385)]],
  ];
  const good: Condition = { path: 'amount', operator: 'LessThan', value: 5 };
  for (const [operator, value] of wrong) {
    const argumentConditions = [good, { path: 'amount', operator, value } as Condition];
    const problem = await refusal(app.client.approvalRules.create({ body: { toolName: 'pay', argumentConditions } }));
    assert.deepEqual(
      [problem.status, problem.errors?.map(({ path }) => path)],
      [400, ['argumentConditions[1].value']],
      `${operator} ${JSON.stringify(value).slice(0, 40)}`,
    );
  }
  for (const path of ['a..b', '.a', 'a.', '1.2.3.4.5.6.7.8.9']) {
    const body = { toolName: 'pay', argumentConditions: [{ ...good, path }] };
    assert.equal((await refusal(app.client.approvalRules.create({ body }))).status, 400, path);
  }
  assert.deepEqual(await listed(app.client), []);
  const most = Array.from({ length: 100 }, (_, index) => index);
  const fits: Condition[] = [
    { path: 'a.b.c.d.e.f.g.h', operator: 'In', value: most },
    { path: 'a', operator: 'NotIn', value: ['x'.repeat(16_384)] },
    { path: 'a', operator: 'Equals', value: false },
  ];
  const { status } = await app.client.approvalRules.create({ body: { toolName: 'pay', argumentConditions: fits } });
  assert.equal(status, 201);
});

forEachService('RULE-1 RULE-2 RULE-10 a rule that matches the same is not stored twice', async (open) => {
  const app = await openApprovals(open);
  const create = (body: RuleBody) => app.client.approvalRules.create({ body });
  const one: Condition = { path: 'amount', operator: 'LessThan', value: 5 };
  const two: Condition = { path: 'to', operator: 'In', value: ['a', 'b'] };
  const first = await create({ toolName: 'pay', argumentConditions: [one, two] });
  assert.equal(first.status, 201);
  const same: readonly RuleBody[] = [
    { toolName: 'pay', argumentConditions: [one, two] },
    { toolName: 'pay', argumentConditions: [two, one] },
    { toolName: 'pay', argumentConditions: [one, two, one], agentName: '' },
  ];
  for (const body of same) {
    const again = await create(body);
    assert.deepEqual([again.status, again.body], [200, first.body], JSON.stringify(body));
  }
  const others: readonly RuleBody[] = [
    { toolName: 'pay' },
    { toolName: 'pay', argumentConditions: [one] },
    { toolName: 'pay', argumentConditions: [one, { ...two, value: ['b', 'a'] }] },
    { toolName: 'Pay', argumentConditions: [one, two] },
    { toolName: 'pay', argumentConditions: [one, two], agentName: 'helper' },
    { toolName: 'not-there-yet', agentName: 'nor-this' },
  ];
  const ids = [first.body.id];
  for (const body of others) {
    const { status, body: made } = await create(body);
    assert.equal(status, 201, JSON.stringify(body));
    ids.unshift(made.id);
  }
  const idsOf = async (query: Parameters<typeof listed>[1]) => (await listed(app.client, query)).map(({ id }) => id);
  assert.deepEqual(await idsOf({}), ids, 'newest first');
  assert.deepEqual(await idsOf({ agentName: 'helper' }), [ids[1]]);
  assert.equal((await idsOf({ agentName: '' })).length, 5, 'an empty name selects the rules for all agents');
  assert.deepEqual(await idsOf({ toolName: 'pay', agentName: 'Helper' }), []);
  assert.equal((await auditOf(app, 'approval-rule.create')).length, ids.length, 'what was there already is no change');
});

forEachService('RULE-3 RULE-8 RULE-9 one match is enough, and without the rule is asked again', async (open) => {
  const app = await openApprovals(open);
  let turn = 0;
  const pay = async (amount: number) => {
    turn += 1;
    return (await runJson(app.client, 'helper', { message: calls(['pay', { amount }]), sessionId: `s-${turn}` }))
      .status;
  };
  const create = async (value: number) =>
    (
      await app.client.approvalRules.create({
        body: { toolName: 'pay', argumentConditions: [{ path: 'amount', operator: 'LessThan', value }] },
      })
    ).body;
  const small = await create(5);
  const large = await create(50);
  assert.equal(await pay(20), 'Completed', 'a rule that does not match forbids nothing');
  const remove = (ruleId: string) => app.client.approvalRules.remove({ params: { ruleId } });
  await remove(large.id);
  assert.equal(await pay(20), 'AwaitingApproval');
  assert.equal(await pay(4), 'Completed');
  assert.equal((await refusal(remove(large.id))).status, 404);
  await remove(small.id);
  assert.equal(await pay(4), 'AwaitingApproval');
  assert.deepEqual(
    app.done.map(({ arguments: args }) => args),
    [{ amount: 20 }, { amount: 4 }],
  );
});
