import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { mostCost } from '../../../src/features/quotas/quota-room.rules.ts';
import { type AppSetup, forEachDurableService, openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { collect, enqueue, followToEnd, Gate, getRun, refusal, runJson, stream, tool } from '../runs/run-calls.ts';
import { daily, saveQuota, verify } from './quota-calls.ts';

const capped = { model: { provider: 'demo', model: 'demo-1', maxOutputTokens: 500 } };
const usage = { inputTokens: 2500, outputTokens: 500 };
/** `helper` uses 3000 tokens, calls its tool, and then 3000 more; `small` uses 30. */
const script = [
  { when: { message: '/^small/' }, reply: { text: 'Yes.', usage: { inputTokens: 20, outputTokens: 10 } } },
  { when: { call: 1 }, reply: { text: 'I look.', toolCalls: [{ name: 'work', arguments: {} }], usage } },
  { reply: { text: 'Done.', usage } },
];
const agents = [
  { name: 'helper', toolNames: ['work'], ...capped },
  { name: 'small', ...capped },
];
const strict = { Quotas: { Strict: true } };
const maxTokens = 5000;

/** Of how much runs use something is known, so that more than one is admitted at a time. */
const prepared = async ({ client }: Pick<TestApp, 'client'>): Promise<void> => {
  await runJson(client, 'small', 'small');
};

const shaky = (): AppSetup => ({
  service: {
    ...strict,
    AsyncRun: { MaxAttempts: 2 },
    Scheduling: { PollInterval: '1s' },
    Tools: { MaxConsecutiveErrors: 0 },
  },
  tools: [
    tool('work', async () => {
      throw new Error('no');
    }),
  ],
  script,
});

const requeued = async (app: TestApp): Promise<string> => {
  await prepared(app);
  await saveQuota(app.client, { period: 'Daily', maxTokens });
  const runId = await enqueue(app.client, 'helper', 'Hi');
  await eventually('the job is back in line', async () => {
    const { status, attempt } = (await app.client.jobs.get({ params: { id: runId } })).body.job;
    return status === 'Pending' && attempt === 1;
  });
  return runId;
};

test('QUOTA-13 strict: what an attempt has used counts until the run is over, also after a restart', async (t) => {
  const app = await openApp(t, 'in process', { ...shaky(), agents });
  const runId = await requeued(app);
  const refused = await refusal(runJson(app.client, 'small', 'small'));
  assert.equal(refused.code, 'quota-exceeded');
  await app.close();
  const again = await openApp(t, 'in process', { ...shaky(), folder: app.folder });
  assert.equal((await refusal(runJson(again.client, 'small', 'small'))).code, 'quota-exceeded');
  await again.store.open().stores(jobStore).due(runId, again.clock.now());
  const events = await followToEnd(again.client, runId);
  assert.equal(events.at(-1)?.['error'].type, 'quota_exceeded');
  assert.ok(((await daily(again.client))?.tokens ?? 0) <= maxTokens);
  assert.equal((await verify(again.client)).matches, true);
});

test('QUOTA-13 strict: what an attempt has used is free again when its run is canceled in line', async (t) => {
  const app = await openApp(t, 'in process', { ...shaky(), agents });
  const runId = await requeued(app);
  await app.client.runs.cancel({ params: { runId } });
  assert.equal((await getRun(app.client, runId)).status, 'Canceled');
  await runJson(app.client, 'small', 'small');
});

forEachDurableService(
  'QUOTA-13 strict: a rule that is saved meanwhile binds what runs in progress go on to use',
  async (open) => {
    const gate = new Gate();
    const tools = [
      tool('work', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'done';
      }),
    ];
    const app = await open({ service: strict, tools, script, agents });
    await prepared(app);
    const { frames, runId } = await stream(app.client, 'helper', 'Hi');
    await gate.reached;
    await saveQuota(app.client, { period: 'Daily', maxTokens });
    gate.open();
    await collect(frames);
    assert.equal((await getRun(app.client, runId)).error?.type, 'quota_exceeded');
    assert.ok(((await daily(app.client))?.tokens ?? 0) <= maxTokens);
  },
);

forEachDurableService('QUOTA-13 strict: a rule of another agent refuses nobody a setting', async (open) => {
  const gate = new Gate();
  const tools = [
    tool('work', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'done';
    }),
  ];
  const wide = { model: { ...capped.model, providerSettings: { 'demo.n': 2 } } };
  const app = await open({
    service: strict,
    tools,
    script,
    agents: [{ name: 'helper', toolNames: ['work'], ...wide }, { name: 'small' }],
  });
  const { frames, runId } = await stream(app.client, 'helper', 'Hi');
  await gate.reached;
  await saveQuota(app.client, { agentName: 'small', period: 'Daily', maxTokens });
  gate.open();
  await collect(frames);
  assert.equal((await getRun(app.client, runId)).status, 'Completed');
});

test('QUOTA-13 strict: an answer without end that has no price leaves room for others', () => {
  const prices = { input: 1_000_000, output: 0, cachedInput: null, source: 'Configuration' } as const;
  const spent = { tokens: 0, costMicros: 0 };
  const free = { tenantId: 't', runId: 'r', spent, inputTokens: 100, outputTokens: null, prices };
  const call = { ...free, root: { id: 'r', agentName: 'a', day: null }, signal: new AbortController().signal };
  assert.ok(Number.isFinite(mostCost(call, Number.POSITIVE_INFINITY)));
});
