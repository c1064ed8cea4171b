import assert from 'node:assert/strict';
import { type AppSetup, forEachService } from '../../support/app.ts';
import { enqueue, followToEnd, Gate, refusal, runJson, start, waitingSetup } from '../runs/run-calls.ts';
import { daily, saveQuota } from './quota-calls.ts';

/** `wait` goes on until the gate opens, other messages are answered at once; `usage` of both, where it is given. */
const beside = (gate: Gate, usage?: 'none' | object, more: AppSetup = {}) => {
  const { script, ...setup } = waitingSetup(gate);
  const told = usage === undefined ? {} : { usage };
  return { ...setup, script: script.map((rule) => ({ ...rule, reply: { ...rule.reply, ...told } })), ...more };
};

const prices = { Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: 1, Output: 2 } } } };
const thirty = { inputTokens: 20, outputTokens: 10 };

forEachService('QUOTA-14 runs that report nothing hold nothing of a limit of tokens', async (open) => {
  const gate = new Gate();
  const { client } = await open(beside(gate, 'none'));
  await saveQuota(client, { period: 'Daily', maxTokens: 1000 });
  await runJson(client, 'helper', 'Hi');
  const long = runJson(client, 'helper', 'wait');
  await gate.reached;
  const others = await Promise.all(Array.from({ length: 8 }, () => runJson(client, 'helper', 'Hi')));
  assert.ok(others.every(({ status }) => status === 'Completed'));
  await followToEnd(client, await enqueue(client, 'helper', 'Hi'));
  gate.open();
  await long;
  assert.deepEqual([(await daily(client))?.runs, (await daily(client))?.tokens], [11, 0]);
});

for (const strict of [false, true])
  forEachService(`QUOTA-14 runs without a price hold nothing of a limit of cost, strict ${strict}`, async (open) => {
    const gate = new Gate();
    const { client } = await open(beside(gate, thirty, { service: { Quotas: { Strict: strict } } }));
    await saveQuota(client, { period: 'Daily', maxCost: 0.000001 });
    const long = runJson(client, 'helper', 'wait');
    await gate.reached;
    const others = await Promise.all(Array.from({ length: 8 }, () => runJson(client, 'helper', 'Hi')));
    assert.ok(others.every(({ status }) => status === 'Completed'));
    gate.open();
    await long;
    assert.deepEqual([(await daily(client))?.runs, (await daily(client))?.cost], [9, 0]);
  });

forEachService('QUOTA-19 at nothing of a limit nobody is refused, whoever else is in progress', async (open) => {
  const gate = new Gate();
  const { client } = await open(beside(gate, thirty));
  await saveQuota(client, { period: 'Daily', maxTokens: 1000 });
  const long = runJson(client, 'helper', 'wait');
  await gate.reached;
  // What runs use is known to nobody, and the only one that could tell does not end.
  await followToEnd(client, await enqueue(client, 'helper', 'Hi'));
  gate.open();
  await long;
});

forEachService(
  'QUOTA-13 but what runs of the scope have used before is held, with a price or without',
  async (open) => {
    const gate = new Gate();
    const agents = [
      { name: 'helper', toolNames: ['wait'] },
      { name: 'free', model: { provider: 'demo', model: 'free-1' } },
    ];
    const { client } = await open(beside(gate, thirty, { service: prices, agents }));
    await runJson(client, 'helper', 'Hi');
    const { cost = 0 } = (await daily(client)) ?? {};
    assert.ok(cost > 0);
    await saveQuota(client, { period: 'Daily', maxCost: cost * 1.5 });
    const long = runJson(client, 'helper', 'wait');
    await gate.reached;
    const problem = await refusal(enqueue(client, 'helper', 'Hi'));
    assert.match(problem.detail, /^Runs in progress may use up the rest of the daily cost quota/);
    // One that cannot cost anything has nothing to wait for.
    await runJson(client, 'free', 'Hi');
    await saveQuota(client, { agentName: 'free', period: 'Daily', maxTokens: 31 });
    gate.open();
    await long;
    const last = await refusal(start(client, 'helper', 'Hi'));
    assert.equal(last.quotaMetric, 'Cost');
  },
);
