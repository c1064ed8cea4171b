import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { ask, calm, codeOf, jobsOf, runsOf, type Storm, saveAgent, send, together } from './storm.ts';

// Calls of a trigger.

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** Settings of the service: as many calls as a storm makes are not too many. */
export const arrivalSettings = {
  TriggerSecrets: { storm: secret },
  Triggers: { PermitLimit: 1_000_000 },
};

/** At the same time; further ones follow each as it is answered. */
const senders = 250;

const callsOf = ({ rounds }: Storm): number => (rounds === 1 ? 1000 : 10_000);

export const prepareArrivals = async (storm: Storm): Promise<void> => {
  await saveAgent(storm, 'clerk');
  const body = { targetName: 'clerk', secretConfigurationKey: 'Service:TriggerSecrets:storm' };
  await send(storm, 'PUT', '/api/triggers/arrival', body);
};

/** TRIGGER-20: the same signed call, to whatever process is next. */
export const callsStartOnce = async (storm: Storm): Promise<void> => {
  const count = callsOf(storm);
  for (let round = 0; round < storm.rounds; round += 1) {
    const id = `storm-${round}`;
    const body = `order of round ${round}`;
    const at = new Date();
    const headers = {
      'content-type': 'text/plain',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, at, body),
    };
    const before = await runsOf(storm, { agentName: 'clerk' });
    const outcomes: Record<string, number> = {};
    const accepted: string[] = [];
    await together(async (sender) => {
      for (let number = sender; number < count; number += senders) {
        const answer = await ask(storm, '/api/triggers/default/arrival', { method: 'POST', body, headers });
        const outcome = answer.status === 202 ? '202' : `${answer.status} ${codeOf(answer)}`;
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        if (answer.status === 202) accepted.push(answer.json<{ runId: string }>().runId);
      }
    }, senders);
    assert.deepEqual(outcomes, { '202': 1, '409 trigger-replayed': count - 1 });
    await calm(storm);
    const known = new Set(before.map((run) => run.id));
    const started = (await runsOf(storm, { agentName: 'clerk' })).filter((run) => !known.has(run.id));
    assert.deepEqual(
      started.map((run) => [run.id, run.status]),
      accepted.map((runId) => [runId, 'Completed']),
    );
    assert.equal((await jobsOf(storm)).filter((job) => job.id === accepted[0]).length, 1);
  }
};
