// A process of its own: it moves the clock ahead, and the ids of a process never go back.
import assert from 'node:assert/strict';
import type { RunFeedbackRequest } from '../../../src/features/scores/scores.schema.ts';
import { forEachService, type TestApp } from '../../support/app.ts';
import { refusal, runJson } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

const scored = async (app: TestApp, body: RunFeedbackRequest, runId: string, client = app.client) =>
  (await client.scores.save({ params: { runId }, body })).body;

const scoresOf = async (app: TestApp, runId: string) => (await app.client.scores.list({ params: { runId } })).body;

forEachService(
  'RUN-44 the same author scores the same target again: the row is updated, its id stays',
  async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    const first = await scored(app, { kind: 'Stars', value: 2, comment: 'meh' }, runId);
    assert.equal(first.name, 'overall');
    assert.equal(first.messageId, null);
    const between = await scored(app, { kind: 'Binary', value: 1, name: 'between' }, runId);
    const later = 60_000;
    await app.clock.jump(later);
    const again = await scored(app, { kind: 'Binary', value: 1, name: '', messageId: ' ' }, runId);
    assert.equal(again.id, first.id, 'a blank name and message are those of the first');
    assert.deepEqual([again.kind, again.value, again.comment], ['Binary', 1, null]);
    assert.ok(Date.parse(again.createdAt) - Date.parse(first.createdAt) >= later, 'its time is that of the update');
    assert.deepEqual(
      (await scoresOf(app, runId)).map(({ id }) => id),
      [first.id, between.id],
      'RUN-46 newest first, by the update',
    );
    const message = await scored(app, { kind: 'Binary', value: 0, messageId: 'm1' }, runId);
    const other = await scored(app, { kind: 'Numeric', value: 12.5, name: 'tone' }, runId);
    const list = await scoresOf(app, runId);
    assert.deepEqual(new Set(list.map(({ id }) => id)), new Set([first.id, between.id, message.id, other.id]));
    assert.deepEqual(
      list.map(({ createdAt }) => createdAt),
      list
        .map(({ createdAt }) => createdAt)
        .sort()
        .reverse(),
    );
  },
);

forEachService('RUN-44 RUN-45 each author has a score of their own; a key scores as api', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const { body: key } = await app.client.keys.create({
    body: { name: 'ci', role: 'Operator', scopes: ['RunsWrite', 'RunsRead'] },
  });
  const human = await scored(app, { kind: 'Stars', value: 5 }, runId);
  const byKey = await scored(app, { kind: 'Stars', value: 1 }, runId, await app.clientFor(key.plaintextKey));
  assert.notEqual(byKey.id, human.id);
  assert.deepEqual([human.source, human.author], ['human', null]);
  assert.equal(byKey.source, 'api');
  assert.notEqual(byKey.author, null);
});

forEachService('RUN-45 a value that does not fit its kind is refused by the name of its member', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const wrong: [RunFeedbackRequest, string][] = [
    [{ kind: 'Binary', value: 0.5 }, 'value'],
    [{ kind: 'Binary' }, 'value'],
    [{ kind: 'Stars', value: 0 }, 'value'],
    [{ kind: 'Stars', value: 4.5 }, 'value'],
    [{ kind: 'Numeric', value: 100.01 }, 'value'],
    [{ kind: 'Numeric', value: 3, textValue: 'x' }, 'textValue'],
    [{ kind: 'Categorical', value: 1, textValue: 'x' }, 'value'],
    [{ kind: 'Categorical', textValue: '' }, 'textValue'],
    [{ kind: 'Categorical', textValue: 'x'.repeat(129) }, 'textValue'],
  ];
  for (const [body, path] of wrong) {
    const problem = await refusal(app.client.scores.save({ params: { runId }, body }));
    assert.equal(problem.code, 'validation-failed', JSON.stringify(body));
    assert.deepEqual(
      problem.errors?.map((error) => error.path),
      [path],
      JSON.stringify(body),
    );
  }
  for (const body of [{ kind: 'Stars', value: 1, name: 'no spaces' }, { kind: 'Thumbs', value: 1 }, { value: 1 }])
    assert.equal(
      (await refusal(app.client.scores.save({ params: { runId }, body: body as RunFeedbackRequest }))).code,
      'validation-failed',
    );
  assert.deepEqual(await scoresOf(app, runId), [], 'nothing was written');
});

forEachService('RUN-46 deleting a score is audited without its comment, and a repeat is 404', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const { id: scoreId } = await scored(app, { kind: 'Stars', value: 2, comment: 'a secret opinion' }, runId);
  const other = (await runJson(app.client, 'helper', 'Hi')).runId;
  const params = { runId, scoreId };
  assert.equal(
    (await refusal(app.client.scores.remove({ params: { runId: other, scoreId } }))).code,
    'score-not-found',
  );
  assert.equal((await app.client.scores.remove({ params })).status, 204);
  assert.equal((await refusal(app.client.scores.remove({ params }))).code, 'score-not-found');
  assert.deepEqual(await scoresOf(app, runId), []);
  const { body: entries } = await app.client.audit.list({ query: { action: 'run-score.delete' } });
  assert.deepEqual(
    entries.map(({ entity, after }) => [entity, after]),
    [[`run-score:${scoreId}`, null]],
  );
  assert.doesNotMatch(entries[0]?.before ?? '', /secret opinion/);
});

forEachService('RUN-40 RUN-46 scores of an unknown run, or of another tenant, are 404', async (open) => {
  const app = await open({
    agents: [{ name: 'helper' }],
    host: { Tenancy: { Enabled: true, AllowHeaderResolution: true } },
  });
  const elsewhere = app.inTenant('other');
  await elsewhere.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  const { runId } = await runJson(elsewhere, 'helper', 'Hi');
  for (const id of [runId, unknownId]) {
    const params = { runId: id };
    const save = () => app.client.scores.save({ params, body: { kind: 'Stars', value: 1 } });
    for (const call of [
      save,
      () => app.client.scores.list({ params }),
      () => app.client.scores.remove({ params: { ...params, scoreId: unknownId } }),
    ])
      assert.equal((await refusal(call())).code, 'run-not-found');
  }
});

forEachService('RUN-44 a blank name is `overall`, and a blank message the whole run', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const ids = new Set<string>();
  for (const name of [undefined, null, '', ' ', ' \t\n ']) {
    const score = await scored(
      app,
      { kind: 'Stars', value: 2, messageId: '  ', ...(name === undefined ? {} : { name }) },
      runId,
    );
    assert.deepEqual([score.name, score.messageId], ['overall', null]);
    ids.add(score.id);
  }
  assert.equal(ids.size, 1);
  for (const name of ['a b', ' overall ', 'x'.repeat(65)])
    assert.equal(
      (await refusal(scored(app, { kind: 'Stars', value: 2, name }, runId))).code,
      'validation-failed',
      name,
    );
});
