import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { everyRun, unfinishedRuns } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { type Answer, call } from '../wire.ts';

const restarts = 3;
const clients = 6;

/** One tool call with an effect outside, and an answer that names it. */
const script = [
  {
    when: { message: '/order (?<order>\\w+)/', call: 1 },
    reply: {
      text: 'One moment.',
      chunkSize: 4,
      delay: '3ms',
      toolCalls: [{ name: 'ship', arguments: { order: '{{order}}' } }],
    },
  },
  { reply: { text: 'Shipped.' } },
];

type Mode = 'queued' | 'json' | 'stream';
const modes: readonly Mode[] = ['queued', 'json', 'stream'];

interface Order {
  readonly name: string;
  readonly mode: Mode;
  /** Of the answer that accepted it. */
  runId: string;
}

test('JOB-43 RUN-14 restarts under load: what was accepted ends once, and what was refused left nothing', async (t) => {
  const hits = new Map<string, number>();
  const shop = createServer((request, response) => {
    const name = request.url?.slice(1) ?? '';
    hits.set(name, (hits.get(name) ?? 0) + 1);
    setTimeout(() => response.setHeader('content-type', 'text/plain').end('ok'), 15);
  });
  await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
  const tools = mkdtempSync(join(tmpdir(), 'acp-restart-'));
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/{{order}}`;
  writeFileSync(
    join(tools, 'ship.yaml'),
    stringify({
      name: 'ship',
      description: 'Ships an order.',
      inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      effect: 'External',
      request: { method: 'POST', url },
    }),
  );
  const site = openSite({
    script,
    host: { Tools: [tools] },
    service: {
      Scheduling: { MaxConcurrentJobs: 4, PollInterval: '1s' },
      Egress: { AllowPrivateNetworkTargets: true },
    },
  });
  t.after(async () => {
    await site.close();
    shop.close();
    rmSync(tools, { recursive: true, force: true });
  });
  let service: ServiceProcess = await site.serve();
  const agent = { name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames: ['ship'] };
  assert.equal((await call(`${service.url}/api/agents`, { body: agent })).status, 201);

  const accepted: Order[] = [];
  const refused: string[] = [];
  let placed = 0;
  let over = false;

  const place = async (): Promise<void> => {
    placed += 1;
    const name = `n${placed}`;
    const mode = modes[placed % modes.length] ?? 'json';
    let answer: Answer;
    try {
      answer = await call(`${service.url}/api/agents/shop/run`, {
        body: { message: `order ${name}`, ...(mode === 'json' ? { stream: false } : {}) },
        headers: mode === 'queued' ? { prefer: 'respond-async' } : {},
      });
    } catch {
      // Between two processes nobody listens: the order never arrived.
      refused.push(name);
      return void (await pause(20));
    }
    if (answer.status === 503) {
      assert.equal(answer.json()['code'], 'draining', answer.text);
      refused.push(name);
      return void (await pause(20));
    }
    assert.ok([200, 202].includes(answer.status), answer.text);
    accepted.push({ name, mode, runId: String(answer.headers['x-run-id']) });
  };

  const load = Array.from({ length: clients }, async () => {
    while (!over) await place();
  });
  try {
    for (let round = 0; round < restarts; round += 1) {
      const before = accepted.length;
      await until('more orders', () => accepted.length >= before + 3 * clients);
      const ended = await service.stop();
      assert.deepEqual([ended.code, ended.signal], [0, null], ended.stderr);
      service = await site.serve();
    }
  } finally {
    over = true;
  }
  await Promise.all(load);
  await until('the end of every run', async () => (await unfinishedRuns(service)).length === 0);

  const runs = new Map((await everyRun(service)).map((run) => [run.id, run]));
  for (const { name, mode, runId } of accepted) {
    assert.equal(runs.get(runId)?.status, 'Completed', `${mode} ${name}: ${runs.get(runId)?.error?.type}`);
    assert.equal(hits.get(name), 1, `${mode} ${name} was shipped once`);
  }
  assert.equal(runs.size, accepted.length, 'no run without an answer that accepted it');
  for (const name of refused) assert.equal(hits.get(name), undefined, `${name} was refused`);
  for (const mode of modes)
    assert.ok(
      accepted.some((order) => order.mode === mode),
      `${mode} runs were accepted`,
    );
  assert.ok(refused.length > 0, 'clients met the restarts');
  assert.equal((await service.stop()).code, 0);
  await site.checkStore();
});
