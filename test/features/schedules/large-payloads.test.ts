import assert from 'node:assert/strict';
import { forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { listRuns, refusal } from '../runs/run-calls.ts';
import { openTriggers, outcomeOf, saveTrigger } from '../triggers/trigger-world.ts';
import { save, show, trigger } from './schedule-world.ts';

const million = Array.from({ length: 1_000_000 }, () => 'x');
const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper' } as const;
const queueOnly = { Scheduling: { RunWorker: false } };

/** Nothing was queued, and nobody was told of a save. */
const assertUntouched = async (app: TestApp, saves: number): Promise<void> => {
  assert.deepEqual((await app.client.jobs.list({ query: {} })).body, []);
  assert.equal((await trail(app)).filter(({ action }) => action === 'schedule.save').length, saves);
};

forEachService('JOB-12 a million elements are refused with the limit, and leave nothing behind', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], service: queueOnly });
  // Over HTTP a body of more values is not even parsed; whatever is, is refused by its member.
  for (const [count, path] of [
    [1_000_000, app.transport === 'http' ? null : 'payload'],
    // As many as a body of this size may hold.
    [app.transport === 'http' ? 90_000 : 900_000, 'payload'],
  ] as const) {
    const payload = million.slice(0, count);
    const assertRefused = async (call: Promise<unknown>): Promise<void> => {
      const { status, code, errors, detail } = await refusal(call);
      assert.deepEqual([status, code], [400, 'validation-failed']);
      if (path === null) assert.match(detail ?? '', /has more than \d+ (values|members, lists and objects)/);
      else assert.deepEqual(errors, [{ path, message: `has ${count} elements, and at most 1000 are allowed` }]);
    };
    const name = `large-${count}`;
    await assertRefused(save(app.client, name, { ...batch, payload }));
    assert.equal((await refusal(show(app.client, name))).status, 404);
    await save(app.client, name, { ...batch, payload: 'Hi' });
    await assertRefused(save(app.client, name, { ...batch, payload }));
    await assertRefused(trigger(app.client, name, payload));
    const kept = await show(app.client, name);
    assert.deepEqual([kept.payload, kept.lastRunAt], ['Hi', null]);
  }
  await assertUntouched(app, 2);
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
