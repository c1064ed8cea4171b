import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { idleKeys } from './other-process.ts';
import { followToEnd, Gate, listRuns, post, refusal, start, waitingSetup } from './run-calls.ts';

// Far enough back that no file that moves on from there meets the present.
const longAgo = Date.UTC(2020, 0, 1);

const once = (key: string, more: Record<string, string> = {}) => ({ headers: { 'idempotency-key': key, ...more } });

forEachService('RUN-18 a repeat gets the stored answer and starts nothing', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const first = await start(client, 'helper', 'Hi', once('k'));
  const second = await start(client, 'helper', 'Hi', once('k'));
  assert.equal(second.status, first.status);
  assert.deepEqual(second.body, first.body);
  assert.equal(first.headers['idempotency-replayed'], undefined);
  assert.equal(second.headers['idempotency-replayed'], 'true');
  assert.equal(second.headers['x-run-id'], first.headers['x-run-id']);
  assert.equal(second.headers['content-type'], first.headers['content-type']);
  assert.equal((await listRuns(client)).length, 1);
  const other = await start(client, 'helper', 'Hi', once('k2'));
  assert.notEqual(other.headers['x-run-id'], first.headers['x-run-id']);
});

forEachService('RUN-18 a queued run is accepted once', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const options = once('k', { prefer: 'respond-async' });
  const first = await start(client, 'helper', 'Hi', options);
  await followToEnd(client, first.headers['x-run-id'] ?? '');
  const second = await start(client, 'helper', 'Hi', options);
  assert.equal(second.status, 202);
  assert.deepEqual(second.body, first.body);
  for (const name of ['location', 'preference-applied', 'x-run-id'])
    assert.equal(second.headers[name], first.headers[name], name);
  assert.equal(second.headers['idempotency-replayed'], 'true');
  assert.equal((await listRuns(client)).length, 1);
});

forEachService('RUN-18 the same key with another request is refused', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }, { name: 'other' }] });
  await start(client, 'helper', 'Hi', once('k'));
  for (const call of [() => start(client, 'helper', 'Ho', once('k')), () => start(client, 'other', 'Hi', once('k'))]) {
    const problem = await refusal(call());
    assert.deepEqual([problem.status, problem.code], [422, 'idempotency-key-reused']);
  }
  assert.equal((await listRuns(client)).length, 1);
});

overHttp('RUN-18 the raw body counts, not what it means', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const headers = { 'idempotency-key': 'k' };
  const first = await post(app, '/api/agents/helper/run', '{"message":"Hi"}', headers);
  assert.equal(first.status, 200);
  const spaced = await post(app, '/api/agents/helper/run', '{ "message": "Hi" }', headers);
  assert.equal(spaced.status, 422);
  const again = await post(app, '/api/agents/helper/run', '{"message":"Hi"}', headers);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
  assert.equal(again.headers.get('content-type'), 'application/json');
  assert.equal(await again.text(), await first.text());
});

forEachService('RUN-18 while the first request is in progress a repeat is told so', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  const first = start(app.client, 'helper', 'wait', once('k'));
  await gate.reached;
  const problem = await refusal(start(app.client, 'helper', 'wait', once('k')));
  assert.deepEqual([problem.status, problem.code, problem.retryAfterMs], [409, 'idempotency-in-progress', 1000]);
  const reused = await refusal(start(app.client, 'helper', 'other', once('k')));
  assert.equal(reused.code, 'idempotency-key-reused');
  gate.open();
  const { body } = await first;
  assert.deepEqual((await start(app.client, 'helper', 'wait', once('k'))).body, body);
});

forEachService('RUN-18 of two requests at the same moment one runs', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const results = await Promise.allSettled([1, 2, 3, 4].map(() => start(client, 'helper', 'Hi', once('k'))));
  const answers = results.flatMap((result) =>
    result.status === 'fulfilled' ? [result.value.headers['x-run-id']] : [],
  );
  assert.equal(new Set(answers).size, 1);
  for (const result of results)
    if (result.status === 'rejected') assert.equal(result.reason.code, 'idempotency-in-progress');
  assert.equal((await listRuns(client)).length, 1);
});

forEachService('RUN-18 a key is 1 to MaxKeyLength characters', async (open) => {
  const { client } = await open({ service: { Idempotency: { MaxKeyLength: 8 } }, agents: [{ name: 'helper' }] });
  for (const key of ['', 'x'.repeat(9)]) {
    const problem = await refusal(start(client, 'helper', 'Hi', once(key)));
    assert.deepEqual([problem.status, problem.code], [400, 'idempotency-key-invalid']);
  }
  assert.equal((await start(client, 'helper', 'Hi', once('x'.repeat(8)))).status, 200);
  assert.equal((await listRuns(client)).length, 1);
});

forEachService('RUN-18 keys can be switched off, and then the header is refused, not ignored', async (open) => {
  const { client } = await open({ service: { Idempotency: { Enabled: false } }, agents: [{ name: 'helper' }] });
  const problem = await refusal(start(client, 'helper', 'Hi', once('k')));
  assert.deepEqual([problem.status, problem.code], [501, 'idempotency-disabled']);
  assert.deepEqual(await listRuns(client), []);
});

forEachService('RUN-19 an answer that is not a success frees the key', async (open) => {
  const app = await open({
    script: [{ when: { message: 'fail' }, reply: { error: 'provider_error' } }, { reply: { text: 'Hello.' } }],
    agents: [{ name: 'helper' }],
  });
  const refused = await refusal(start(app.client, 'nobody', 'Hi', once('k')));
  assert.equal(refused.code, 'agent-not-found');
  const failed = await refusal(start(app.client, 'helper', 'fail', once('k')));
  assert.equal(failed.code, 'provider-error');
  const answered = await start(app.client, 'helper', 'Hi', once('k'));
  assert.equal(answered.headers['idempotency-replayed'], undefined);
  assert.equal((await listRuns(app.client)).length, 2);
});

forEachDurableService('RUN-19 a mark that nobody renews lapses, and so does an answer after its day', async (open) => {
  const app = await open({ clock: testClock({ at: longAgo }), agents: [{ name: 'helper' }] });
  const runIdOf = async (): Promise<string | undefined> =>
    (await start(app.client, 'helper', 'Hi', once('k'))).headers['x-run-id'];
  await idleKeys(app.store.open(), app.clock).claim('default', null, 'k', 'that of another process');
  assert.equal((await refusal(start(app.client, 'helper', 'Hi', once('k')))).code, 'idempotency-key-reused');
  await app.clock.jump(60_001);
  const second = await runIdOf();
  assert.equal(await runIdOf(), second);
  await app.clock.jump(86_400_001);
  assert.notEqual(await runIdOf(), second);
});

forEachService('RUN-19 who repeats a request must be allowed to make it', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await start(app.client, 'helper', 'Hi', once('k'));
  const { body } = await app.client.keys.create({ body: { name: 'r', role: 'Reader', scopes: ['RunsRead'] } });
  const reader = await app.clientFor(body.plaintextKey);
  const problem = await refusal(start(reader, 'helper', 'Hi', once('k')));
  assert.deepEqual([problem.status, problem.code], [403, 'insufficient-role']);
});

overHttp('RUN-18 RUN-10 a client that lost its connection gets the answer by asking again', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  const gone = new AbortController();
  const first = start(app.client, 'helper', 'wait', { ...once('k'), signal: gone.signal });
  const lost = assert.rejects(first);
  await gate.reached;
  gone.abort();
  await lost;
  gate.open();
  const [run] = await listRuns(app.client);
  await followToEnd(app.client, run?.id ?? '');
  // The answer is stored just after the run has ended; until then the repeat is told that it is in progress.
  const again = await eventually('the answer is given again', () =>
    start(app.client, 'helper', 'wait', once('k')).catch((error: unknown) => {
      assert.equal((error as { readonly code?: string }).code, 'idempotency-in-progress');
      return null;
    }),
  );
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal(again.headers['x-run-id'], run?.id);
  assert.equal((await listRuns(app.client)).length, 1);
});

forEachService('RUN-19 RET-8 a stored policy says how long an answer is given again', async (open) => {
  const app = await open({ clock: testClock({ at: longAgo }), agents: [{ name: 'helper' }] });
  const params = { target: 'IdempotencyKeys' };
  const repeated = async (): Promise<boolean> =>
    (await start(app.client, 'helper', 'Hi', once('k'))).headers['idempotency-replayed'] === 'true';
  const age = (days: number) => app.clock.jump(days * 86_400_000);
  assert.equal(await repeated(), false);
  await age(0.9);
  assert.equal(await repeated(), true);
  await age(0.2);
  assert.equal(await repeated(), false, 'a day without a policy');
  await app.client.retention.save({ params, body: { maxAgeDays: 3 } });
  await age(2.9);
  assert.equal(await repeated(), true);
  await age(0.2);
  assert.equal(await repeated(), false);
  // One that is switched off, or counts rows alone, removes nothing by age.
  for (const body of [{ maxAgeDays: 3, enabled: false }, { maxRows: 10 }]) {
    await app.client.retention.save({ params, body });
    await age(40);
    assert.equal(await repeated(), true, JSON.stringify(body));
  }
  await app.client.retention.remove({ params });
  assert.equal(await repeated(), false);
});
