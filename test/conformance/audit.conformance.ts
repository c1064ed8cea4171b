import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/core/documents/canonical-json.ts';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';

const trail = async (api: Api, query = ''): Promise<Body[]> => {
  const answer = await api.get(`/api/audit${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** A tenant of its own: what other tests change is in another trail. */
const tenant = (api: Api): Api => api.inTenant(unique('audit'));

rule('AUDIT-1 AUDIT-2 AUDIT-4', 'a tenant reads its own trail, newest first, page by page', async (api) => {
  const [own, other] = [tenant(api), tenant(api)];
  const names = [await own.agent(), await own.agent(), await own.agent()];
  await other.agent();
  const entries = await trail(own);
  assert.deepEqual(
    entries.map(({ entity }) => entity),
    names.map((name) => `agent:${name}`).reverse(),
  );
  assert.equal((await trail(own, '?limit=0')).length, 1);
  assert.equal((await trail(own, '?limit=-5')).length, 1);
  assert.equal((await trail(own, '?limit=99999')).length, 3);
  assertProblem(await own.get('/api/audit?limit=two'), 400, 'validation-failed');
  assert.deepEqual(await trail(own, `?limit=1&beforeId=${entries[0].id}`), [entries[1]]);
  const [foreign] = await trail(other);
  assertProblem(await own.get(`/api/audit?beforeId=${foreign.id}`), 400, 'validation-failed');
});

rule('AUDIT-3', 'filters are joined, match exactly, and a time span has a beginning before its end', async (api) => {
  const own = tenant(api);
  const name = await own.agent();
  await own.agent();
  await own.del(`/api/agents/${name}`);
  const [last] = await trail(own, `?action=agent.delete&entity=agent:${name}`);
  assert.equal(last.entity, `agent:${name}`);
  assert.deepEqual(await trail(own, `?action=Agent.Delete`), []);
  assert.deepEqual(await trail(own, `?entity=agent`), []);
  const actors = await trail(own, `?actor=${encodeURIComponent(last.actor ?? 'nobody')}`);
  assert.equal(actors.length, last.actor === null ? 0 : 3);
  assert.ok((await trail(own, `?after=${last.createdAt}`)).some(({ id }) => id === last.id));
  assert.ok(!(await trail(own, `?before=${last.createdAt}`)).some(({ id }) => id === last.id));
  const same = `?after=${last.createdAt}&before=${last.createdAt}`;
  assertProblem(await own.get(`/api/audit${same}`), 400, 'validation-failed');
  assertProblem(await own.get('/api/audit?after=yesterday'), 400, 'validation-failed');
});

rule('AUDIT-5 AUDIT-6', 'the history of one entity is asked for by its whole key', async (api) => {
  const own = tenant(api);
  const name = await own.agent();
  const answer = await own.get(`/api/audit/${encodeURIComponent(`agent:${name}`)}`);
  assert.deepEqual(
    answer.body.map(({ action }: Body) => action),
    ['agent.create'],
  );
  assert.deepEqual((await own.get(`/api/audit/agent:${name.slice(0, -1)}`)).body, []);
  assert.deepEqual((await own.get('/api/audit/knowledge:a%2Fb')).body, []);
  assertProblem(await own.get('/api/audit/agent'), 400, 'validation-failed');
  assert.equal((await own.get('/api/audit/verify')).body.status, 'Valid');
  assert.equal((await trail(own)).length, 1, 'reading leaves no entry');
});

rule('AUDIT-7 AUDIT-8 AUDIT-9 AUDIT-12', 'what took effect is told with both states, and nothing else', async (api) => {
  const own = tenant(api);
  const name = await own.agent();
  const model = { provider: 'demo', model: 'demo-1' };
  await own.put(`/api/agents/${name}`, { name, model, description: 'second' });
  assert.equal((await own.put(`/api/agents/${name}`, { name, model, toolNames: ['no-such-tool'] })).status, 400);
  await own.run(name, 'Hi');
  await own.del(`/api/agents/${name}`);
  const entries = (await trail(own)).reverse();
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['agent.create', 'agent.update', 'agent.delete'],
  );
  const [created, updated, deleted] = entries;
  assert.deepEqual([created.before, deleted.after], [null, null]);
  assert.equal(JSON.parse(updated.before).version, 1);
  assert.equal(JSON.parse(updated.after).description, 'second');
});

rule('AUDIT-14 AUDIT-15 AUDIT-16 AUDIT-17', 'secrets are masked in what is stored', async (api) => {
  const own = tenant(api);
  const settings = { 'demo.accessToken': 'hush', 'demo.maxTokens': 5 };
  const name = await own.agent({ model: { provider: 'demo', model: 'demo-1', providerSettings: settings } });
  const [entry] = await trail(own, `?entity=agent:${name}`);
  assert.deepEqual(JSON.parse(entry.after).model.providerSettings, { 'demo.accessToken': '***', 'demo.maxTokens': 5 });
});

rule(
  'AUDIT-13 AUDIT-23 AUDIT-24 AUDIT-26 AUDIT-28 AUDIT-29',
  'anybody can check the chain from what is read, and verify agrees',
  async (api) => {
    const own = tenant(api);
    assert.deepEqual((await own.get('/api/audit/verify')).body, {
      status: 'Valid',
      entriesChecked: 0,
      firstFailingEntryId: null,
    });
    for (let count = 0; count < 4; count += 1) await own.agent();
    const entries = (await trail(own)).reverse();
    let previous: Body = null;
    for (const { hash, ...fields } of entries) {
      assert.equal(fields.previousHash, previous?.hash ?? null);
      assert.equal(createHash('sha256').update(canonicalJson(fields)).digest('hex'), hash);
      assert.ok(previous === null || (fields.id > previous.id && fields.createdAt >= previous.createdAt));
      previous = { hash, ...fields };
    }
    const whole = (await own.get('/api/audit/verify')).body;
    assert.deepEqual(whole, { status: 'Valid', entriesChecked: 4, firstFailingEntryId: null });
    const part = (await own.get(`/api/audit/verify?after=${entries[2].createdAt}`)).body;
    assert.equal(part.status, 'Valid');
    assert.ok(part.entriesChecked >= 2);
    assertProblem(
      await own.get(`/api/audit/verify?after=2026-01-02T00:00:00Z&before=2026-01-01T00:00:00Z`),
      400,
      'validation-failed',
    );
  },
);

rule('AUDIT-30', 'no operation changes or removes an entry', async (api) => {
  const own = tenant(api);
  const name = await own.agent();
  for (const method of ['PUT', 'POST', 'DELETE'])
    assertProblem(await own.call(method, `/api/audit/agent:${name}`), 405, 'method-not-allowed');
});

rule('SESS-13', 'deleting a session leaves no entry', async (api) => {
  const own = tenant(api);
  const [agent, sessionId] = [await own.agent(), unique('session')];
  await own.run(agent, { message: 'Hi', sessionId });
  assert.equal((await own.del(`/api/sessions/${sessionId}`)).status, 204);
  assert.deepEqual(
    (await trail(own)).map(({ action }) => action),
    ['agent.create'],
  );
});

rule('AUDIT-22 AUDIT-23', 'a module writes its own actions, and none of the service', async (all) => {
  const own = tenant(all);
  const agent = await own.agent({ toolNames: ['note'] });
  const note = async (action: string) => (await own.run(agent, `call note ${JSON.stringify({ action })}`)).body.output;
  assert.equal(await note('conformance.note'), 'written');
  for (const action of ['agent.update', 'Note', 'a b']) assert.match(await note(action), /action/);
  const [entry, ...others] = await trail(own, '?entity=conformance:1');
  assert.deepEqual([entry.action, entry.actor, others], ['conformance.note', 'module:conformance', []]);
  assert.match(entry.hash, /^[0-9a-f]{64}$/);
});
