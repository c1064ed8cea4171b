import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobDetailResponse } from '../../../src/features/jobs/jobs.schema.ts';
import { type EffectsServer, startEffectsServer } from '../../fleet/effects-server.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call } from '../wire.ts';

const kills = 4;
const count = 120;
const names = Array.from({ length: count }, (_, index) => `n${index}`);

/** Every third item does what must not be done twice, the others what may be. */
const effectOf = (name: string): 'destructive' | 'read' => (Number(name.slice(1)) % 3 === 0 ? 'destructive' : 'read');

const rule = (effect: 'destructive' | 'read') => ({
  when: { message: `/^${effect} (?<name>\\w+)/`, call: 1 },
  reply: { toolCalls: [{ name: effect, arguments: { name: '{{name}}' } }] },
});

describe('kill -9 in the middle of a batch', () => {
  const endedBefore = new Map<number, string | null>();
  let site: Site;
  let service: ServiceProcess;
  let toolFolder: string;
  let outside: EffectsServer;
  let detail: JobDetailResponse;

  const show = async (id: string): Promise<JobDetailResponse> =>
    (await call(`${service.url}/api/jobs/${id}`)).json<JobDetailResponse>();

  before(async () => {
    outside = await startEffectsServer();
    toolFolder = mkdtempSync(join(tmpdir(), 'acp-batches-'));
    outside.writeTools(toolFolder);
    site = openSite({
      script: [rule('destructive'), rule('read'), { reply: { text: 'Done.' } }],
      host: { Tools: [toolFolder] },
      service: {
        Scheduling: { MaxAttempts: kills + 1, PollInterval: '1s' },
        Egress: { AllowPrivateNetworkTargets: true },
      },
    });
    service = await site.serve();
    const agent = { name: 'worker', model: { provider: 'demo', model: 'm' }, toolNames: ['destructive', 'read'] };
    assert.equal((await call(`${service.url}/api/agents`, { body: agent })).status, 201);
    const payload = names.map((name) => `${effectOf(name)} ${name}`);
    const schedule = { handlerKey: 'acp.agent-batch', targetName: 'worker', payload };
    const saved = await call(`${service.url}/api/schedules/all`, { method: 'PUT', body: schedule });
    assert.equal(saved.status, 200, saved.text);
    const { id } = (await call(`${service.url}/api/schedules/all/trigger`, { method: 'POST' })).json<{ id: string }>();
    for (let kill = 1; kill <= kills; kill += 1) {
      const share = Math.floor((count * kill) / (kills + 2));
      const seen = await until(`${share} items have ended`, async () => {
        const { job, items } = await show(id);
        return job.doneItems + job.failedItems >= share && items;
      });
      for (const { seq, status, runId } of seen) if (status !== 'Pending') endedBefore.set(seq, runId);
      await service.kill();
      service = await site.serve();
    }
    detail = await until('the end of the batch', async () => {
      const answer = await show(id);
      return answer.job.completedAt !== null && answer;
    });
  });

  after(async () => {
    await site.close();
    outside.close();
    rmSync(toolFolder, { recursive: true, force: true });
  });

  const hitsOf = (name: string): number =>
    (outside.hits.get(`Destructive/${name}`) ?? 0) + (outside.hits.get(`Read/${name}`) ?? 0);

  test('JOB-32 no item with the effect Destructive is executed twice', () => {
    const twice = names.filter((name) => effectOf(name) === 'destructive' && hitsOf(name) > 1);
    assert.deepEqual(twice, []);
  });

  test('JOB-32 an item that had ended before a kill keeps its run', () => {
    assert.ok(endedBefore.size > 0);
    for (const { seq, runId } of detail.items)
      if (endedBefore.has(seq)) assert.equal(runId, endedBefore.get(seq), `item ${seq}`);
  });

  test('JOB-37 every item has ended, and the counters say how', (t) => {
    const { job, items } = detail;
    const failed = items.filter(({ status }) => status === 'Failed');
    t.diagnostic(`${failed.length} of ${count} items failed`);
    assert.deepEqual([job.status, job.attempt], ['Completed', kills + 1]);
    assert.deepEqual([job.doneItems, job.failedItems], [count - failed.length, failed.length]);
    for (const { seq, error } of failed) {
      assert.match(error ?? '', /^outcome-unknown: /);
      assert.equal(effectOf(`n${seq}`), 'destructive', 'what may be repeated is repeated');
    }
    for (const { seq, status } of items)
      if (status === 'Completed') assert.ok(hitsOf(`n${seq}`) >= 1, `item ${seq} has done its work`);
  });
});
