import assert from 'node:assert/strict';
import type { Answer } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { microUnits, type Use } from '../load.ts';
import { atGate } from './gate.ts';
import { codeOf, read, run, runsOf, type Storm, saveAgent, send, together } from './storm.ts';

// What is bounded, counted and paid for.

/** Of a million tokens, so that a token costs so many micro-units. */
export const prices = { Input: 3, Output: 15 };
export const thresholds = [50, 80, 100];
const maxRuns = 97;
const mostOutput = 5000;
// Enough for one such call with what its question may be at most, and not for two.
const lastTokens = 8000;
// It is chance which of both is used up first.
const budgetOf = ({ rounds }: Storm): Omit<Use, 'runs'> => ({ tokens: 6_000 * rounds, cost: 84_000 * rounds });

/** Rules are known everywhere after five seconds; what needs one is asked for later. */
export const prepareUse = async (storm: Storm): Promise<void> => {
  const { tokens, cost } = budgetOf(storm);
  await saveAgent(storm, 'saver', { model: { provider: 'openai', model: 'm', maxOutputTokens: 300 } });
  const budget = { maxTokens: tokens, maxCost: cost / 1e6 };
  await send(storm, 'PUT', '/api/quotas', { agentName: 'saver', period: 'Monthly', ...budget });
  for (let round = 0; round < storm.rounds; round += 1) {
    await saveAgent(storm, `counted-${round}`);
    await send(storm, 'PUT', '/api/quotas', { agentName: `counted-${round}`, period: 'Monthly', maxRuns });
    await saveAgent(storm, `lone-${round}`);
    await send(storm, 'PUT', '/api/quotas', { agentName: `lone-${round}`, period: 'Monthly', maxRuns: 1 });
    await saveAgent(storm, `greedy-${round}`, {
      model: { provider: 'openai', model: 'm', maxOutputTokens: mostOutput },
    });
    await send(storm, 'PUT', '/api/quotas', { agentName: `greedy-${round}`, period: 'Monthly', maxTokens: lastTokens });
  }
};

/** Every process asks for the same last place, and for the same last tokens. */
const askedAtOnce = async (storm: Storm, agent: string, kind: 'places' | 'calls'): Promise<readonly Answer[]> => {
  const when = `new.agent_name = '${agent}' and new.is_admission = ${kind === 'places' ? 1 : 0}`;
  const gate = { table: 'quota_holds', on: 'insert', when, waiting: storm.fleet.members.length } as const;
  const answers = await atGate(storm, gate, () => together(() => run(storm, agent, { message: 'greedy' })));
  for (const answer of answers) if (answer.status !== 200) assert.equal(codeOf(answer), 'quota-exceeded', answer.text);
  return answers.filter(({ status }) => status === 200);
};

/** Each client asks again and again until it is refused by the limit; how many were answered, by the client. */
const untilRefused = async (storm: Storm, agent: string): Promise<number> => {
  const client = async (answered: number): Promise<number> => {
    const answer = await run(storm, agent, { message: 'Hi' });
    if (codeOf(answer) === 'quota-exceeded') return answered;
    assert.equal(answer.status, 200, answer.text);
    return client(answered + 1);
  };
  return (await together(() => client(0))).reduce((sum, count) => sum + count, 0);
};

const counterAt = async (url: string, agent: string): Promise<Use> => {
  const answer = await fetch(`${url}/api/quotas/usage?agentName=${agent}&period=Monthly`);
  const { usage } = (await answer.json()) as { usage: readonly Use[] };
  const [{ runs, tokens, cost } = { runs: 0, tokens: 0, cost: 0 }] = usage;
  return { runs, tokens, cost: microUnits(cost) };
};

const sumOf = (runs: Awaited<ReturnType<typeof runsOf>>): Use => ({
  // A run that goes on with another one is not admitted again.
  runs: runs.filter(({ continuedFromRunId }) => continuedFromRunId === null).length,
  tokens: runs.reduce((sum, { usage }) => sum + (usage?.totalTokens ?? 0), 0),
  cost: runs.reduce((sum, { cost }) => sum + microUnits(cost?.totalCost ?? 0), 0),
});

/** Every process, the runs and the statistics say the same; what it is. */
const agreedUse = async (storm: Storm, agent: string): Promise<Use> => {
  const summed = sumOf(await runsOf(storm, agent === '' ? {} : { agentName: agent }));
  // What a run has used is booked soon after its answer.
  for (const { url } of storm.fleet.members)
    await eventually(
      `the counter of ${agent} in ${url} is the sum of its runs`,
      async () => {
        const counted = await counterAt(url, agent);
        assert.ok(counted.runs <= summed.runs && counted.tokens <= summed.tokens && counted.cost <= summed.cost);
        return JSON.stringify(counted) === JSON.stringify(summed);
      },
      processMs,
    );
  const query = agent === '' ? '' : `?agentName=${agent}`;
  const told = await read<{ totalTokens: number; totalCost: number | null }>(storm, `/api/stats${query}`);
  assert.deepEqual(
    { tokens: told.totalTokens, cost: microUnits(told.totalCost ?? 0) },
    { tokens: summed.tokens, cost: summed.cost },
  );
  return summed;
};

/** QUOTA-13, strict. */
export const spendingIsBounded = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const agent = `greedy-${round}`;
    const served = await askedAtOnce(storm, agent, 'calls');
    const { tokens } = await agreedUse(storm, agent);
    assert.ok(served.length > 0 && tokens > mostOutput && tokens <= lastTokens, `${tokens} tokens`);
  }
  const { length: before } = storm.provider.calls;
  await untilRefused(storm, 'saver');
  const calls = storm.provider.calls.slice(before);
  const paid = {
    tokens: calls.reduce((sum, { input, output }) => sum + input + output, 0),
    cost: calls.reduce((sum, { input, output }) => sum + input * prices.Input + output * prices.Output, 0),
  };
  const budget = budgetOf(storm);
  assert.ok(paid.tokens <= budget.tokens && paid.cost <= budget.cost, JSON.stringify(paid));
  assert.ok(paid.tokens > budget.tokens / 2 && paid.cost > budget.cost / 2, JSON.stringify(paid));
  const { tokens, cost } = await agreedUse(storm, 'saver');
  assert.deepEqual({ tokens, cost }, paid);
};

/** Notices of thresholds that processes have told, by their ids. */
const noticesOf = ({ fleet }: Storm): ReadonlyMap<string, number> => {
  const told = new Map<string, number>();
  for (const { log } of fleet.members)
    for (const { message, noticeId } of log())
      if (message === 'A quota threshold was crossed')
        told.set(String(noticeId), (told.get(String(noticeId)) ?? 0) + 1);
  return told;
};

export const runsAreBounded = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    assert.equal((await askedAtOnce(storm, `lone-${round}`, 'places')).length, 1);
    assert.equal((await agreedUse(storm, `lone-${round}`)).runs, 1);
    const agent = `counted-${round}`;
    assert.equal(await untilRefused(storm, agent), maxRuns);
    assert.equal((await agreedUse(storm, agent)).runs, maxRuns);
    const rules = await read<readonly { id: string; agentName: string | null }[]>(storm, '/api/quotas');
    const id = rules.find(({ agentName }) => agentName === agent)?.id ?? assert.fail('the rule is there');
    const ofRule = () => [...noticesOf(storm)].filter(([notice]) => notice.startsWith(id));
    await eventually('each threshold is told', () => ofRule().length === thresholds.length, processMs);
    assert.deepEqual(
      ofRule()
        .map(([notice]) => Number(notice.split(':').at(-1)))
        .sort((a, b) => a - b),
      thresholds,
    );
  }
};

/** What all storms together have left. */
export const booksAgree = async (storm: Storm): Promise<void> => {
  await agreedUse(storm, '');
  const { usage } = await read<{ usage: readonly (Use & { agentName: string; period: string })[] }>(
    storm,
    '/api/quotas/usage?period=Monthly',
  );
  const tenant = usage.find(({ agentName }) => agentName === '') ?? assert.fail('the tenant has used something');
  const agents = usage.filter(({ agentName }) => agentName !== '');
  for (const metric of ['runs', 'tokens'] as const)
    assert.equal(
      agents.reduce((sum, row) => sum + row[metric], 0),
      tenant[metric],
      metric,
    );
  assert.equal(
    agents.reduce((sum, { cost }) => sum + microUnits(cost), 0),
    microUnits(tenant.cost),
  );
  const verified = await read<{ matches: boolean }>(storm, '/api/quotas/verification');
  assert.ok(verified.matches, JSON.stringify(verified));
  const audit = await read<{ status: string }>(storm, '/api/audit/verify');
  assert.equal(audit.status, 'Valid');
  for (const [notice, count] of noticesOf(storm)) assert.equal(count, 1, `the notice ${notice} is told once`);
};
