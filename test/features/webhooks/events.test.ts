import assert from 'node:assert/strict';
import { forEachDurableService, forEachSharedService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, openApprovals } from '../approvals/approval-world.ts';
import { priced, saveQuota } from '../quotas/quota-calls.ts';
import { enqueue, getRun, listRuns, refusal, runJson, runStream, start } from '../runs/run-calls.ts';
import { jobsOf, save as saveSchedule } from '../schedules/schedule-world.ts';
import { crmSecret, deliveriesOf, get, messages, newest, receiver, save, webhookSetup } from './webhook-world.ts';

const local = { AllowInsecureHttp: true, AllowPrivateNetworkTargets: true };

forEachDurableService(
  'WEBHOOK-14 without a subscription to the kind nothing is stored and nothing is sent',
  async (open, t) => {
    const app = await open(webhookSetup());
    const server = await receiver(t);
    await runJson(app.client, 'helper', 'Hi');
    assert.equal(await app.store.count('deliveries'), 0);
    await save(app.client, server.url, { name: 'other-kind', events: ['run.failed'] });
    await save(app.client, server.url, { name: 'disabled', enabled: false });
    await save(app.inTenant('other'), server.url, { secretConfigurationKey: 'Service:WebhookSecrets:other:crm' });
    await runJson(app.client, 'helper', 'Hi');
    assert.equal(await app.store.count('deliveries'), 0);
    assert.deepEqual((await app.client.jobs.list({ query: { handlerKey: 'acp.webhook-delivery' } })).body, []);
    await save(app.client, server.url, { name: 'a' });
    await save(app.client, server.url, { name: 'b' });
    await runJson(app.client, 'helper', 'Hi');
    assert.equal(await app.store.count('deliveries'), 2, 'one for each subscription');
    const [one, other] = await messages(server, 2);
    assert.notEqual(one?.id, other?.id);
    assert.deepEqual(one?.data, other?.data);
  },
);

forEachDurableService(
  'WEBHOOK-16 WEBHOOK-19 the end of a run is told as a summary, without what was said',
  async (open, t) => {
    const app = await open(
      webhookSetup(
        {},
        {
          ...priced,
          script: [{ reply: { text: 'A very secret answer.', usage: { inputTokens: 20, outputTokens: 10 } } }],
        },
      ),
    );
    const server = await receiver(t);
    await save(app.client, server.url);
    const { runId } = await runJson(app.client, 'helper', { message: 'A very secret question.', sessionId: 's-1' });
    const [done] = await messages(server, 1);
    const record = (await getRun(app.client, runId)) as unknown as Record<string, unknown>;
    assert.equal(done?.type, 'run.completed');
    assert.deepEqual(done.data, {
      tenantId: 'default',
      runId,
      kind: 'Agent',
      agentName: 'helper',
      workflowName: null,
      agentVersion: 1,
      sessionId: 's-1',
      status: 'Completed',
      modelProvider: 'demo',
      modelId: 'demo-1',
      startedAt: record['startedAt'],
      completedAt: record['completedAt'],
      durationMs: Date.parse(String(record['completedAt'])) - Date.parse(String(record['startedAt'])),
      inputTokens: 20,
      outputTokens: 10,
      cost: 0.00004,
      currency: 'EUR',
      errorClass: null,
      errorType: null,
    });
    assert.equal(done.timestamp, record['completedAt']);
    assert.ok(!server.received.some(({ body }) => body.includes('secret')));
  },
);

forEachDurableService(
  'WEBHOOK-16 a failed run is told with its class, never with a text from outside',
  async (open, t) => {
    const app = await open(
      webhookSetup(
        {},
        {
          simulator: { respond: () => ({ fault: { kind: 'status', status: 400, body: 'a text of the provider' } }) },
          agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
        },
      ),
    );
    const server = await receiver(t);
    await save(app.client, server.url);
    await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    const [failed] = await messages(server, 1);
    assert.equal(failed?.type, 'run.failed');
    assert.deepEqual(
      [failed.data['status'], typeof failed.data['errorClass'], typeof failed.data['errorType']],
      ['Failed', 'string', 'string'],
    );
    assert.ok(!server.received.some(({ body }) => body.includes('a text of the provider')));
  },
);

forEachDurableService('WEBHOOK-16 runs below a root publish nothing, whether they end well or not', async (open, t) => {
  const ask = (name: string) => ({ toolCalls: [{ name: `call_${name}`, arguments: { message: 'Go' } }] });
  const at = (name: string) => ({ provider: 'demo', model: name });
  const app = await open(
    webhookSetup(
      {},
      {
        script: [
          { when: { model: 'bad' }, reply: { error: 'provider_error' } },
          { when: { tool: 'call_bad' }, reply: { text: 'Done.' } },
          { when: { tool: 'call_good' }, reply: ask('bad') },
          { when: { model: 'root' }, reply: ask('good') },
          { reply: { text: 'Good.' } },
        ],
        agents: [
          { name: 'good' },
          { name: 'bad', model: at('bad') },
          { name: 'root', model: at('root'), callableAgentNames: ['good', 'bad'] },
        ],
      },
    ),
  );
  const server = await receiver(t);
  await save(app.client, server.url, { events: ['run.completed', 'run.failed', 'run.canceled'] });
  const { runId } = await runJson(app.client, 'root', 'Hi');
  const children = (await listRuns(app.client, { includeChildren: true })).filter(({ id }) => id !== runId);
  assert.deepEqual(children.map(({ status }) => status).toSorted(), ['Completed', 'Failed']);
  const published = (await deliveriesOf(app.client)).map(({ eventType }) => eventType);
  assert.deepEqual(published, ['run.completed']);
  assert.equal((await messages(server, 1))[0]?.data['runId'], runId);
});

forEachDurableService('WEBHOOK-16 a queued run that is canceled before it begins is told, too', async (open, t) => {
  const app = await open(webhookSetup({}, { service: { Scheduling: { RunWorker: false } } }));
  const server = await receiver(t);
  await save(app.client, server.url);
  const runId = await enqueue(app.client, 'helper', 'Hi');
  await app.client.jobs.cancel({ params: { id: runId } });
  const [pending] = await deliveriesOf(app.client);
  assert.deepEqual([pending?.eventType, pending?.status], ['run.canceled', 'Pending']);
  await app.close();
  const next = await open(webhookSetup({}, { folder: app.folder, agents: [] }));
  const [canceled] = await messages(server, 1);
  assert.deepEqual(
    [canceled?.type, canceled?.data['runId'], canceled?.data['status'], canceled?.data['durationMs']],
    ['run.canceled', runId, 'Canceled', 0],
  );
  await newest(next.client, 'it was delivered', ({ status }) => status === 'Delivered');
});

forEachDurableService(
  'WEBHOOK-15 a run that cannot be stored with its deliveries is stored later with them',
  async (open, t) => {
    const app = await open(webhookSetup());
    const server = await receiver(t);
    await save(app.client, server.url);
    const giveBack = await app.store.refuse('deliveries');
    // What the store refuses once more is lost: a second must not pass here before it is given back.
    app.clock.stand();
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    assert.equal(await app.store.count('deliveries'), 0);
    assert.notEqual((await app.store.stored('runs'))[0]?.['status'], 'Completed', 'neither is there without the other');
    await giveBack();
    await app.clock.advance(60_000);
    await eventually(
      'the run has its end',
      async () => (await app.store.stored('runs'))[0]?.['status'] === 'Completed',
    );
    const [told] = await messages(server, 1);
    assert.deepEqual([told?.type, told?.data['runId']], ['run.completed', runId]);
  },
);

forEachDurableService(
  'WEBHOOK-18 APPR-10 a run that stops on an approval publishes what it waits for, however it was started',
  async (open, t) => {
    const app = await openApprovals(open, {
      service: { Egress: { AllowPrivateNetworkTargets: true }, Webhooks: local, WebhookSecrets: { crm: crmSecret } },
    });
    const server = await receiver(t);
    await save(app.client, server.url, { events: ['approval.pending', 'run.completed', 'run.failed', 'run.canceled'] });
    const body = (sessionId: string) => ({ message: calls(['pay', { amount: 12 }]), sessionId });
    const starts: readonly [inBand: boolean, sessionId: string, start: () => Promise<string>][] = [
      [false, 's-1', () => enqueue(app.client, 'helper', body('s-1'))],
      [true, 's-2', async () => (await runJson(app.client, 'helper', body('s-2'))).runId],
      [true, 's-3', async () => (await runStream(app.client, 'helper', body('s-3'))).runId],
    ];
    for (const [index, [inBand, sessionId, start]] of starts.entries()) {
      const runId = await start();
      const told = (await messages(server, index + 1))[index];
      const [approval] = (await app.client.approvals.list({ query: {} })).body;
      assert.equal(told?.type, 'approval.pending');
      assert.deepEqual(told.data, {
        tenantId: 'default',
        approvalId: approval?.id,
        requestId: approval?.requestId,
        runId,
        sessionId,
        agentName: 'helper',
        toolName: 'pay',
        inBand,
        expiresAt: approval?.expiresAt,
      });
      assert.equal((await deliveriesOf(app.client)).length, index + 1, 'and by nothing else');
    }
  },
);

forEachDurableService(
  'WEBHOOK-17 jobs of the service itself are told to nobody, so a delivery makes no delivery',
  async (open, t) => {
    const app = await open(webhookSetup());
    const server = await receiver(t);
    await save(app.client, server.url, { events: ['job.completed', 'job.failed', 'run.completed'] });
    const runId = await enqueue(app.client, 'helper', 'Hi');
    const [told] = await messages(server, 1);
    assert.deepEqual([told?.type, told?.data['runId']], ['run.completed', runId]);
    await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
    await eventually('both jobs have ended', async () => {
      const { body } = await app.client.jobs.list({ query: {} });
      return body.length === 2 && body.every(({ completedAt }) => completedAt !== null);
    });
    assert.equal((await deliveriesOf(app.client)).length, 1);
  },
);

forEachDurableService(
  'WEBHOOK-15 WEBHOOK-17 the end of a job that schedules can start is told with it',
  async (open, t) => {
    const app = await open(webhookSetup());
    const server = await receiver(t);
    await save(app.client, server.url, { events: ['job.completed', 'job.failed'] });
    await app.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 9 } });
    const { jobId } = (await app.client.retention.run({ query: { target: 'Jobs' } })).body;
    const [told] = await messages(server, 1);
    assert.equal(told?.type, 'job.completed');
    assert.deepEqual(told.data, {
      tenantId: 'default',
      jobId,
      handlerKey: 'acp.retention',
      lane: 'default',
      targetName: 'Jobs',
      scheduleId: null,
      status: 'Completed',
      totalItems: 0,
      doneItems: 0,
      failedItems: 0,
      attempt: 1,
      errorCode: null,
    });
  },
);

forEachDurableService(
  'WEBHOOK-17 a job that a schedule makes and that has failed before anybody worked on it is told, too',
  async (open, t) => {
    const app = await open(webhookSetup());
    const server = await receiver(t);
    await save(app.client, server.url, { events: ['job.completed', 'job.failed'] });
    const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper' } as const;
    const { id: scheduleId } = await saveSchedule(app.client, 'nightly', {
      ...batch,
      payload: ['a', 'b', 'c'],
      cron: '* * * * *',
    });
    await app.close();
    const fewer = { service: { Scheduling: { MaxItemsPerJob: 2 } } };
    const next = await open(webhookSetup({}, { ...fewer, folder: app.folder, agents: [] }));
    await next.clock.advance(60_000);
    const [told] = await messages(server, 1);
    assert.equal(told?.type, 'job.failed');
    // On a slow machine a minute went by while nobody served, too.
    const job = (await jobsOf(next.client, scheduleId)).find(({ id }) => id === told.data['jobId']);
    assert.equal(job?.status, 'Failed');
    assert.equal(told.timestamp, job.completedAt);
    assert.deepEqual(told.data, {
      tenantId: 'default',
      jobId: job.id,
      ...batch,
      lane: 'default',
      scheduleId,
      status: 'Failed',
      totalItems: 0,
      doneItems: 0,
      failedItems: 0,
      attempt: 0,
      errorCode: 'payload-invalid',
    });
  },
);

forEachDurableService('QUOTA-27 a threshold that a counter crosses is told once', async (open, t) => {
  const app = await open(webhookSetup({}, { ...priced, clock: testClock({ at: Date.UTC(2026, 4, 14, 12) }) }));
  const server = await receiver(t);
  await save(app.client, server.url, { events: ['quota.threshold'] });
  const rule = await saveQuota(app.client, { agentName: 'helper', period: 'Daily', maxRuns: 5 });
  for (let run = 0; run < 5; run += 1) await runJson(app.client, 'helper', 'Hi');
  await app.clock.advance(1000);
  // Signed at a time that is long over.
  const told = await eventually('both have arrived', () => (server.received.length === 2 ? server.received : null));
  assert.deepEqual(
    told.map(({ body }) => JSON.parse(body).data).sort((a, b) => a['thresholdPercent'] - b['thresholdPercent']),
    [80, 100].map((thresholdPercent) => ({
      tenantId: 'default',
      noticeId: `${rule.id}:Runs:5:2026-05-14:${thresholdPercent}`,
      quotaId: rule.id,
      agentName: 'helper',
      metric: 'Runs',
      period: 'Daily',
      thresholdPercent,
      limit: 5,
      used: thresholdPercent === 80 ? 4 : 5,
      resetsAt: '2026-05-15T00:00:00.000Z',
    })),
  );
  await app.close();
  const next = await open(webhookSetup({}, { folder: app.folder, agents: [] }));
  assert.equal((await deliveriesOf(next.client)).length, 2, 'not again by the next start');
});

forEachDurableService('JOB-19 events of a time without a queue are sent once there is one', async (open, t) => {
  const app = await open(webhookSetup({}, { service: { Scheduling: { Enabled: false } } }));
  const server = await receiver(t);
  await save(app.client, server.url);
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(
    (await deliveriesOf(app.client)).map(({ status }) => status),
    ['Pending'],
  );
  await app.close();
  assert.equal(server.received.length, 0);
  await open(webhookSetup({}, { folder: app.folder, agents: [] }));
  await messages(server, 1);
});

forEachSharedService(
  'WEBHOOK-14 what one process has saved is told by the others, and stopped for all',
  async (open, t) => {
    const here = await open(webhookSetup({}, { service: { Scheduling: { RunWorker: false } } }));
    const there = await open(webhookSetup({}, { folder: here.folder, agents: [] }));
    const server = await receiver(t);
    await save(here.client, server.url);
    await eventually('the other process tells', async () => {
      await runJson(there.client, 'helper', 'Hi');
      return server.received.length > 0;
    });
    await save(there.client, server.url, { enabled: false });
    await eventually('this one tells no more', async () => {
      const before = (await deliveriesOf(here.client, { take: 200 })).length;
      await runJson(here.client, 'helper', 'Hi');
      return (await deliveriesOf(here.client, { take: 200 })).length === before;
    });
    assert.equal((await get(here.client)).enabled, false);
  },
);
