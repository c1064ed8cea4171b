import assert from 'node:assert/strict';
import { environment } from '../../../src/core/environment.ts';
import { forEachService, forEachSharedService, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { listRuns } from '../runs/run-calls.ts';
import { openTriggers, outcomeOf, type SentCall, saveTrigger } from './trigger-world.ts';

const service = { Scheduling: { RunWorker: false }, Triggers: { PermitLimit: 1_000_000 } };

const senders = 200;
/** Of the same call; `ACP_SAME_CALLS` says how many in a run by hand. */
const sameCalls = (otherwise: number): number => Number(environment()['ACP_SAME_CALLS'] ?? otherwise);

const unanswered = '503 store-unavailable';
/** As senders do: a call that a store was too busy for is sent again. */
const answerOf = async (app: TestApp, call: SentCall): Promise<string> => {
  let outcome = unanswered;
  await eventually('a call is answered', async () => {
    outcome = await outcomeOf(app, call);
    return outcome !== unanswered;
  });
  return outcome;
};

/** Sends the same call so many times to these services, as many of it at once as there are senders, and counts the answers. */
const storm = async (
  apps: readonly TestApp[],
  count: number,
  call: SentCall,
): Promise<Readonly<Record<string, number>>> => {
  const outcomes: Record<string, number> = {};
  const sender = async (first: number): Promise<void> => {
    for (let number = first; number < count; number += senders) {
      const outcome = await answerOf(apps[number % apps.length] as TestApp, call);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: senders }, (_, first) => sender(first)));
  return outcomes;
};

forEachService('TRIGGER-20 of a call that comes hundreds of times at once one starts a run', async (open) => {
  const app = await openTriggers(open, { service });
  await saveTrigger(app);
  const count = sameCalls(500);
  assert.deepEqual(await storm([app], count, { id: 'evt-1' }), { '202': 1, '409 trigger-replayed': count - 1 });
  assert.equal((await listRuns(app.client)).length, 1);
});

forEachSharedService(
  'TRIGGER-20 of a call that two processes get thousands of times at once one starts a run',
  async (open) => {
    const app = await openTriggers(open, { service });
    await saveTrigger(app);
    const other = await openTriggers(open, { service, folder: app.folder, agents: [] });
    const count = sameCalls(2000);
    const outcomes = await storm([app, other], count, { id: 'evt-1' });
    assert.deepEqual(outcomes, { '202': 1, '409 trigger-replayed': count - 1 });
    assert.equal((await listRuns(app.client)).length, 1);
    assert.deepEqual([await app.store.count('jobs'), await app.store.count('calls of triggers')], [1, 1]);
  },
);

forEachSharedService(
  'TRIGGER-20 processes that get the same calls in the same moment start each of them once',
  async (open) => {
    const app = await openTriggers(open, { service });
    await saveTrigger(app);
    const other = await openTriggers(open, { service, folder: app.folder, agents: [] });
    const ids = Array.from({ length: 100 }, (_, index) => `evt-${index}`);
    const both = await Promise.all(ids.map((id) => Promise.all([outcomeOf(app, { id }), outcomeOf(other, { id })])));
    for (const [index, outcomes] of both.entries())
      assert.deepEqual(outcomes.toSorted(), ['202', '409 trigger-replayed'], `evt-${index}`);
    assert.equal(await app.store.count('runs'), 100);
  },
);

forEachService(
  'TRIGGER-20 while one of several equal calls cannot be queued, the next one takes its turn',
  async (open) => {
    const app = await openTriggers(open, { service });
    await saveTrigger(app);
    await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 0 } });
    const refused = await storm([app], 50, { id: 'evt-1' });
    assert.deepEqual(refused, { '429 quota-exceeded': 50 });
    await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 10 } });
    assert.deepEqual(await storm([app], 50, { id: 'evt-1' }), { '202': 1, '409 trigger-replayed': 49 });
  },
);
