import assert from 'node:assert/strict';
import { forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { listRuns, refusal } from '../runs/run-calls.ts';
import { openTriggers, outcomeOf, saveTrigger } from '../triggers/trigger-world.ts';
import { save, show, trigger } from './schedule-world.ts';

const million = Array.from({ length: 1_000_000 }, () => 'x');
const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper' } as const;
const queueOnly = { Scheduling: { RunWorker: false } };
const said = 'has 1000000 elements, and at most 1000 are allowed';

/** Nothing was queued, and nobody was told of a save. */
const assertUntouched = async (app: TestApp, saves: number): Promise<void> => {
  assert.deepEqual((await app.client.jobs.list({ query: {} })).body, []);
  assert.equal((await trail(app)).filter(({ action }) => action === 'schedule.save').length, saves);
};

forEachService('JOB-12 a million elements are refused with the limit, and leave nothing behind', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], service: queueOnly });
  const unsaved = await refusal(save(app.client, 'large', { ...batch, payload: million }));
  assert.deepEqual([unsaved.status, unsaved.code], [400, 'validation-failed']);
  assert.deepEqual(unsaved.errors, [{ path: 'payload', message: said }]);
  assert.equal((await refusal(show(app.client, 'large'))).status, 404);
  await assertUntouched(app, 0);
  await save(app.client, 'large', { ...batch, payload: 'Hi' });
  const replaced = await refusal(save(app.client, 'large', { ...batch, payload: million }));
  const triggered = await refusal(trigger(app.client, 'large', million));
  for (const refused of [replaced, triggered])
    assert.deepEqual([refused.status, refused.errors], [400, [{ path: 'payload', message: said }]]);
  const kept = await show(app.client, 'large');
  assert.deepEqual([kept.payload, kept.lastRunAt], ['Hi', null]);
  await assertUntouched(app, 1);
});

overHttp('JOB-12 a payload of more bytes than a request may have is refused with their number', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], service: queueOnly });
  await save(app.client, 'large', { ...batch, payload: 'Hi' });
  const body = JSON.stringify({ ...batch, payload: million.map(() => ({ message: 'x'.repeat(8) })) });
  for (const [method, path, text] of [
    ['PUT', '/api/schedules/huge', body],
    ['POST', '/api/schedules/large/trigger', body],
  ] as const) {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(app.url + path, { method, headers, body: text });
    const problem = (await answer.json()) as { code: string; detail: string };
    assert.deepEqual([answer.status, problem.code], [413, 'payload-too-large']);
    assert.match(problem.detail, /16777216/);
  }
  assert.equal((await refusal(show(app.client, 'huge'))).status, 404);
  await assertUntouched(app, 1);
});

forEachService('TRIGGER-11 a million elements are no call of a trigger, and use up no id', async (open) => {
  const app = await openTriggers(open, { service: queueOnly });
  await saveTrigger(app);
  const body = JSON.stringify(million);
  assert.equal(await outcomeOf(app, { id: 'evt-1', body }), '413 body-too-large');
  assert.deepEqual(await listRuns(app.client), []);
  assert.equal(await outcomeOf(app, { id: 'evt-1', body: '["x"]' }), '202');
});
