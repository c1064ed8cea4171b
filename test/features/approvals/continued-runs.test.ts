import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { followToEnd, getRun, runJson } from '../runs/run-calls.ts';
import { receiver, save as saveWebhook, webhookSetup } from '../webhooks/webhook-world.ts';
import { calls, decide, openApprovals, queueWaiting } from './approval-world.ts';

const ids = async (
  client: Client,
  query: NonNullable<NonNullable<Parameters<Client['runs']['list']>[0]>['query']>,
): Promise<string[]> => (await client.runs.list({ query })).body.map(({ id }) => id);

forEachService(
  'APPR-9 a run whose calls were answered keeps its status and names the run that went on',
  async (open) => {
    const app = await openApprovals(open);
    const { client } = app;
    const asked = await runJson(client, 'helper', { message: calls(['pay']), sessionId: 's-1' });
    const waits = await runJson(client, 'helper', { message: calls(['pay']), sessionId: 's-2' });
    const before = await getRun(client, asked.runId);
    assert.deepEqual([before.status, before.continuedBy], ['AwaitingApproval', null]);
    assert.deepEqual(await ids(client, { status: 'Continued' }), []);

    const approvals = asked.approvals.map(({ requestId }) => ({ requestId, approved: true }));
    const answered = await runJson(client, 'helper', { sessionId: 's-1', approvals });
    assert.deepEqual(await getRun(client, asked.runId), { ...before, continuedBy: answered.runId });
    assert.equal((await getRun(client, answered.runId)).continuedBy, null);
    assert.deepEqual(await ids(client, { status: 'Continued' }), [asked.runId]);
    assert.deepEqual(await ids(client, { continued: true }), [asked.runId]);
    assert.deepEqual(await ids(client, { status: 'AwaitingApproval', continued: false }), [waits.runId]);
    assert.deepEqual(
      await ids(client, { status: 'AwaitingApproval' }),
      [waits.runId, asked.runId],
      'the status is that of the contract',
    );
    assert.deepEqual(await ids(client, { continued: false, agentName: 'helper' }), [answered.runId, waits.runId]);
    const listed = (await client.runs.list({ query: { sessionId: 's-1' } })).body;
    assert.deepEqual(
      listed.map(({ id, continuedBy }) => [id, continuedBy]),
      [
        [answered.runId, null],
        [asked.runId, answered.runId],
      ],
    );
  },
);

forEachService('APPR-31 a run that waits in the mailbox is continued once every call is decided', async (open) => {
  const app = await openApprovals(open);
  const { runId, rows } = await queueWaiting(app, 's-1', ['pay'], ['wipe']);
  await decide(app.client, rows[0]?.id ?? '', true);
  assert.equal((await getRun(app.client, runId)).continuedBy, null, 'the other call still waits');
  const { continuationRunId } = await decide(app.client, rows[1]?.id ?? '', false);
  assert.equal((await getRun(app.client, runId)).continuedBy, continuationRunId);
  await followToEnd(app.client, continuationRunId ?? '');
});

forEachService('APPR-16 a run that a plain message has overtaken was not continued by it', async (open) => {
  const { client } = await openApprovals(open);
  const asked = await runJson(client, 'helper', { message: calls(['pay']), sessionId: 's-1' });
  await runJson(client, 'helper', { message: 'Hi', sessionId: 's-1' });
  assert.equal((await getRun(client, asked.runId)).continuedBy, null);
});

forEachDurableService(
  'JOB-34 attempts of runs, continuations, deliveries and other jobs go by settings of their own',
  async (open, t) => {
    const app = await openApprovals(open, {
      ...webhookSetup(
        { RetryDelays: ['1h', '2h'] },
        { service: { AsyncRun: { MaxAttempts: 5 }, Scheduling: { MaxAttempts: 7 } } },
      ),
      agents: [],
    });
    const maxAttempts = async (id: string) => (await app.client.jobs.get({ params: { id } })).body.job.maxAttempts;
    const server = await receiver(t);
    await saveWebhook(app.client, server.url, { events: ['run.completed'] });
    const { runId, rows } = await queueWaiting(app, 's', ['pay', { amount: 5 }]);
    const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
    await followToEnd(app.client, continuationRunId ?? '');
    const { jobId } = (await app.client.retention.run({ query: {} })).body;
    assert.deepEqual(
      [await maxAttempts(runId), await maxAttempts(continuationRunId ?? ''), await maxAttempts(jobId)],
      [5, 5, 7],
    );
    const query = { handlerKey: 'acp.webhook-delivery' };
    const deliveries = await eventually('the delivery', async () => {
      const jobs = (await app.client.jobs.list({ query })).body;
      return jobs.length > 0 ? jobs : null;
    });
    assert.deepEqual(
      deliveries.map((job) => job.maxAttempts),
      [3],
    );
  },
);
