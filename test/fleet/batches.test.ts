import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JobDetailResponse } from '../../src/features/jobs/jobs.schema.ts';
import { call } from '../e2e/wire.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { startEffectsServer } from './effects-server.ts';
import { skip } from './members.ts';

const count = 60;
const names = Array.from({ length: count }, (_, index) => `n${index}`);
const toolOf = (name: string): 'destructive' | 'read' => (Number(name.slice(1)) % 3 === 0 ? 'destructive' : 'read');

const rule = (tool: string) => ({
  when: { message: `/^${tool} (?<name>\\w+)/`, call: 1 },
  reply: { toolCalls: [{ name: tool, arguments: { name: '{{name}}' } }] },
});

test('JOB-30 JOB-31 JOB-32 a batch goes on when its process is killed, and when it stands still and wakes up', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-fleet-'));
  const outside = await startEffectsServer();
  outside.writeTools(folder);
  const fleet = await openFleet({
    processes: 3,
    host: { Tools: [folder], EnableDiagnosticsEndpoint: true },
    service: {
      // As short as can be: nobody takes the job over before.
      Scheduling: { PollInterval: '1s', LeaseDuration: '10s', MaxAttempts: 5 },
      Egress: { AllowPrivateNetworkTargets: true },
    },
    script: [rule('destructive'), rule('read'), { reply: { text: 'Done.' } }],
  });
  t.after(async () => {
    await fleet.close();
    outside.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const agent = { name: 'worker', model: { provider: 'demo', model: 'm' }, toolNames: ['destructive', 'read'] };
  assert.equal((await call(`${fleet.url}/api/agents`, { body: agent })).status, 201);
  const payload = names.map((name) => `${toolOf(name)} ${name}`);
  const schedule = { handlerKey: 'acp.agent-batch', targetName: 'worker', payload };
  const saved = await call(`${fleet.url}/api/schedules/all`, { method: 'PUT', body: schedule });
  assert.equal(saved.status, 200, saved.text);
  const { id } = (await call(`${fleet.url}/api/schedules/all/trigger`, { method: 'POST' })).json<{ id: string }>();

  const show = async (): Promise<JobDetailResponse> =>
    (await call(`${fleet.url}/api/jobs/${id}`)).json<JobDetailResponse>();
  const endedRuns = new Map<number, string | null>();
  /** The process that has the job, once so many items have ended. */
  const ownerAfter = async (share: number) => {
    const { job, items } = await eventually(
      `${share} items have ended`,
      async () => {
        const answer = await show();
        return answer.job.doneItems + answer.job.failedItems >= share && answer.job.status === 'Running' && answer;
      },
      processMs,
    );
    for (const { seq, status, runId } of items) if (status !== 'Pending') endedRuns.set(seq, runId);
    const pid = Number((job.leaseOwner ?? '').split(':').at(-2));
    return fleet.members.find((member) => member.pid === pid) ?? assert.fail(`nobody is ${job.leaseOwner}`);
  };
  await fleet.end(await ownerAfter(10), 'kill');
  const second = await ownerAfter(30);
  fleet.pause(second);
  const { job, items } = await eventually(
    'the end of the batch',
    async () => {
      const answer = await show();
      return answer.job.completedAt !== null && answer;
    },
    processMs,
  );
  fleet.resume(second);
  await eventually(
    'the process that stood still has nothing left to do',
    async () =>
      (await call(`${second.url}/api/diagnostics`)).json<{ worker?: { activeJobs: number } }>().worker?.activeJobs ===
      0,
    processMs,
  );

  const failed = items.filter(({ status }) => status === 'Failed');
  t.diagnostic(`${failed.length} of ${count} items failed, ${job.attempt} attempts`);
  assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Completed', count - failed.length, failed.length]);
  for (const { seq, error } of failed) {
    assert.match(error ?? '', /^outcome-unknown: /);
    assert.equal(toolOf(`n${seq}`), 'destructive', 'what may be repeated is repeated');
  }
  for (const { seq, runId } of items) if (endedRuns.has(seq)) assert.equal(runId, endedRuns.get(seq), `item ${seq}`);
  for (const name of names.filter((one) => toolOf(one) === 'destructive'))
    assert.ok((outside.hits.get(`Destructive/${name}`) ?? 0) <= 1, `${name} was done twice`);
  assert.deepEqual((await show()).items, items, 'whoever woke up has changed nothing');
});
