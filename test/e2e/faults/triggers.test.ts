import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { storedRows } from '../../support/store.ts';
import { everyJob, everyRun } from '../records.ts';
import { openSite, type ServiceProcess, type Site } from '../support.ts';
import { call } from '../wire.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const webhook = new Webhook(secret);
// Each round ends one process at a moment that nobody chose; a long run is made by raising this by hand.
const rounds = 2;
const senders = 8;

const settings = {
  TriggerSecrets: { crm: secret },
  Triggers: { PermitLimit: 1_000_000 },
  Scheduling: { RunWorker: false },
};

/** As any library of Standard Webhooks sends it; null: the process was gone before it answered. */
const send = async ({ url }: ServiceProcess, id: string): Promise<{ status: number; runId: string } | null> => {
  const body = JSON.stringify({ ticket: id });
  const at = new Date();
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': webhook.sign(id, at, body),
  };
  try {
    const answer = await call(`${url}/api/triggers/default/ticket`, { body, headers });
    return { status: answer.status, runId: answer.json<{ runId?: string }>().runId ?? '' };
  } catch {
    return null;
  }
};

describe('kill -9 while a trigger is called', () => {
  let site: Site;
  let service: ServiceProcess;
  /** Every id that was sent, with the run that an answer has named. */
  const sent = new Map<string, string | null>();

  before(async () => {
    site = openSite({ service: settings });
    service = await site.serve();
    const agent = { name: 'helper', model: { provider: 'demo', model: 'm' } };
    assert.equal((await call(`${service.url}/api/agents`, { body: agent })).status, 201);
    const body = { targetName: 'helper', secretConfigurationKey: 'Service:TriggerSecrets:crm' };
    const saved = await call(`${service.url}/api/triggers/ticket`, { method: 'PUT', body });
    assert.equal(saved.status, 200, saved.text);
    for (let round = 0; round < rounds; round += 1) {
      const { promise: dying, resolve: dead } = Promise.withResolvers<void>();
      const isDead = { yes: false };
      const killAfter = randomInt(20, 60);
      let count = 0;
      const sender = async (one: number): Promise<void> => {
        for (let number = 0; !isDead.yes; number += 1) {
          const id = `evt-${round}-${one}-${number}`;
          sent.set(id, null);
          const answer = await send(service, id);
          if (answer === null) break;
          assert.equal(answer.status, 202);
          sent.set(id, answer.runId);
          count += 1;
          if (count === killAfter) dead();
        }
      };
      const sending = Promise.all(Array.from({ length: senders }, (_, one) => sender(one)));
      await dying;
      const killed = service.kill();
      isDead.yes = true;
      await Promise.all([killed, sending]);
      service = await site.serve();
    }
  });
  after(() => site.close());

  test('TRIGGER-20 TRIGGER-22 what was answered is there, and nothing is there by half', async () => {
    const [runs, jobs] = [await everyRun(service), await everyJob(service)];
    const calls = await site.aside((storage) => storedRows(storage, 'calls of triggers'));
    const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).toSorted();
    assert.deepEqual(ids(jobs), ids(runs));
    assert.deepEqual(calls.map((row) => String(row['run_id'])).toSorted(), ids(runs), 'each id with its run');
    const reserved = new Map(calls.map((row) => [String(row['call_id']), String(row['run_id'])]));
    for (const [id, runId] of sent) if (runId !== null) assert.equal(reserved.get(id), runId, id);
  });

  test('TRIGGER-20 senders that repeat all of it start what is missing, and nothing twice', async () => {
    const known = await site.aside((storage) => storedRows(storage, 'calls of triggers'));
    const reserved = new Set(known.map((row) => String(row['call_id'])));
    for (const id of sent.keys()) assert.equal((await send(service, id))?.status, reserved.has(id) ? 409 : 202, id);
    assert.equal((await everyRun(service)).length, sent.size);
    await site.checkStore();
  });
});
