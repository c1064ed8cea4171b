import assert from 'node:assert/strict';
import { subjectTargets } from '../../../src/features/data-subjects/data-subjects.schema.ts';
import type { DataSubjectResolver } from '../../../src/features/data-subjects/index.ts';
import {
  type AppSetup,
  forEachDurableService,
  forEachService,
  type OpenApp,
  overHttp,
  type TestApp,
} from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { callsTools, listRuns, refusal, runJson, stream, tool } from '../runs/run-calls.ts';

const byName: DataSubjectResolver = {
  async resolve({ id }) {
    if (id === 'broken') throw new Error('The directory is away');
    return id === 'nobody' ? null : { userIds: [id], sessionIds: [`of-${id}`], ownerIds: [] };
  },
};

const openWorld = async (open: OpenApp, setup: AppSetup = {}): Promise<TestApp> => {
  let labels: Record<string, string> | null = null;
  let userId: string | null = null;
  const attributionResolver = { resolve: async () => ({ userId, labels }) };
  const agents = [{ name: 'helper' }];
  const app = await open({ agents, module: { dataSubjectResolver: byName, attributionResolver }, ...setup });
  for (const person of ['zoraida', 'bob']) {
    labels = { person };
    const sessionId = `of-${person}`;
    const { runId } = await runJson(app.client, 'helper', { message: `I am ${person}`, sessionId });
    await app.client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
    await app.client.attachments.upload({ query: { sessionId }, file: textFile(`notes of ${person}`) });
    // A run outside of a session, known by its user alone.
    [labels, userId] = [null, person];
    await runJson(app.client, 'helper', 'Hello');
    userId = null;
  }
  return app;
};

const textFile = (text: string) => ({
  name: 'notes.txt',
  bytes: (async function* () {
    yield Buffer.from(text);
  })(),
});

const exported = async ({ client }: TestApp, id: string) => {
  const { bytes } = await client.dataSubjects.export({ params: { id } });
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes ?? []) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString()) as Record<string, Record<string, unknown>[]>;
};

const erase = async ({ client }: TestApp, id: string, dryRun?: boolean) =>
  (await client.dataSubjects.erase({ params: { id }, query: dryRun === undefined ? {} : { dryRun } })).body;

/** The trail says that something was done, and nothing else in the store says of whom. */
const assertForgotten = async (app: TestApp, person: string): Promise<void> => {
  const times = (text: string): number => text.split(person).length - 1;
  const entries = (await app.client.audit.list({ query: { limit: 500 } })).body;
  assert.ok(times(JSON.stringify(entries)) > 0);
  assert.equal(times(await app.store.text()), times(JSON.stringify(entries)), 'the store still knows the person');
};

const contents = async (app: TestApp): Promise<number> => (await app.store.contents()).length;

forEachDurableService('SUBJ-3 SUBJ-6 SUBJ-7 SUBJ-10 SUBJ-11 a person is exported, erased, and gone', async (open) => {
  const app = await openWorld(open);
  const document = await exported(app, 'zoraida');
  assert.deepEqual(Object.keys(document), ['subjectId', 'exportedAt', ...subjectTargets]);
  const length = (target: string) => document[target]?.length;
  assert.deepEqual(['sessions', 'runs', 'runInputs', 'runScores', 'attachments'].map(length), [1, 2, 2, 1, 1]);
  assert.deepEqual(['conversations', 'voiceSessions'].map(length), [0, 0]);
  assert.match(JSON.stringify(document['sessions']), /I am zoraida/);
  assert.equal(document['runEvents']?.at(-1)?.['type'], 'run.completed');
  assert.ok(!JSON.stringify(document).includes('bob'));
  assert.equal(document['attachments']?.[0]?.['bytes'], undefined);

  const preview = await erase(app, 'zoraida');
  const counts = Object.fromEntries(subjectTargets.map((target) => [target, document[target]?.length]));
  assert.deepEqual(preview, { dryRun: true, rowsByTarget: counts });
  assert.deepEqual(await erase(app, 'zoraida', false), { dryRun: false, rowsByTarget: counts });

  const left = await exported(app, 'zoraida');
  for (const target of subjectTargets) assert.deepEqual(left[target], [], target);
  assert.equal(await contents(app), 1);
  assert.deepEqual(
    (await app.client.sessions.list({})).body.map(({ id }) => id),
    ['of-bob'],
  );
  await assertForgotten(app, 'zoraida');
  const again = await erase(app, 'zoraida', false);
  assert.ok(Object.values(again.rowsByTarget).every((rows) => rows === 0));
  const entries = (await trail(app)).filter(({ entity }) => entity === 'data-subject:zoraida');
  assert.deepEqual(
    entries.map(({ action, after }) => [action, after.rowsByTarget.runs]),
    [
      ['data-subject.export', 2],
      ['data-subject.erase', 2],
      ['data-subject.export', 0],
      ['data-subject.erase', 0],
    ],
  );
});

forEachDurableService('SUBJ-7 the bytes of a file outside of a session go at once, and no others', async (open) => {
  let userId = '';
  const app = await open({
    script: callsTools('draw'),
    agents: [{ name: 'helper', toolNames: ['draw'] }],
    tools: [
      tool('draw', async (_args, { saveAttachment }) => {
        await saveAttachment(Buffer.from(`notes of ${userId}`), 'notes.txt');
        // The same bytes of two people are stored once, and stay while one of them has them.
        await saveAttachment(Buffer.from('what both have'), 'both.txt');
        return 'drawn';
      }),
    ],
    module: { dataSubjectResolver: byName, attributionResolver: { resolve: async () => ({ userId }) } },
  });
  for (userId of ['zoraida', 'bob']) await runJson(app.client, 'helper', 'Draw');
  assert.equal(await contents(app), 3);
  assert.equal((await erase(app, 'zoraida', false)).rowsByTarget['attachments'], 2);
  assert.equal(await contents(app), 2);
  assert.equal((await erase(app, 'bob', false)).rowsByTarget['attachments'], 2);
  assert.equal(await contents(app), 0);
});

forEachDurableService('SUBJ-7 the runs below those of a person go with them, however deep', async (open) => {
  const calling = (name: string) => ({
    toolCalls: [{ name: `call_${name}`, arguments: { message: 'Secret of zoraida' } }],
  });
  const app = await open({
    script: [
      { when: { tool: 'call_middle' }, reply: { text: 'Done.' } },
      { when: { tool: 'call_leaf' }, reply: { text: 'Done.' } },
      { when: { model: 'top' }, reply: calling('middle') },
      { when: { model: 'middle' }, reply: calling('leaf') },
      { reply: { text: 'Secret of zoraida' } },
    ],
    agents: [
      { name: 'leaf' },
      { name: 'middle', model: { provider: 'demo', model: 'middle' }, callableAgentNames: ['leaf'] },
      { name: 'helper', model: { provider: 'demo', model: 'top' }, callableAgentNames: ['middle'] },
    ],
    module: { dataSubjectResolver: byName },
  });
  for (const person of ['zoraida', 'bob'])
    await runJson(app.client, 'helper', { message: 'Go', sessionId: `of-${person}` });
  const runs = async () => (await listRuns(app.client, { includeChildren: true })).toReversed();
  const before = await runs();
  // Only the root is known by its session.
  assert.deepEqual(
    before.map(({ sessionId }) => sessionId),
    ['of-zoraida', null, null, 'of-bob', null, null],
  );
  assert.equal((await exported(app, 'zoraida'))['runs']?.length, 3);
  const { rowsByTarget } = await erase(app, 'zoraida', false);
  assert.deepEqual([rowsByTarget['runs'], rowsByTarget['toolInvocations']], [3, 2]);
  assert.deepEqual(
    (await runs()).map(({ sessionId }) => sessionId),
    ['of-bob', null, null],
  );
  const text = await app.store.text();
  assert.deepEqual(
    before.map(({ id }) => text.includes(id)),
    [false, false, false, true, true, true],
  );
});

forEachDurableService(
  'SUBJ-6 SUBJ-7 SUBJ-10 answers that are kept to be given again go with their runs',
  async (open) => {
    const cached = { name: 'helper', model: { provider: 'local', model: 'any', responseCache: { enabled: true } } };
    const app = await open({
      simulator: {},
      agents: [cached],
      module: { dataSubjectResolver: byName },
    });
    for (const person of ['zoraida', 'bob']) {
      app.simulator.enqueue({ answer: { text: [`Dear ${person}.`], usage: { input: 3, output: 2 } } });
      await app.client.runs.start({
        params: { name: 'helper' },
        body: { message: `I am ${person}`, sessionId: `of-${person}` },
        query: {},
        headers: { 'idempotency-key': `key-${person.length}` },
      });
    }
    const other = app.inTenant('other');
    await other.agents.create({ body: cached });
    await runJson(other, 'helper', 'Hi');
    await erase(app, 'zoraida');
    assert.equal(await app.store.count('kept answers'), 3, 'a preview deletes nothing');
    await erase(app, 'zoraida', false);
    assert.ok(!(await app.store.text()).includes('key-7'));
    assert.ok((await app.store.text()).includes('"key-3"'));
    assert.equal(await app.store.count('kept answers'), 1);
    const requests = app.simulator.requests.length;
    await runJson(other, 'helper', 'Hi');
    assert.equal(app.simulator.requests.length, requests, 'that of the other tenant');
  },
);

forEachDurableService('SUBJ-6 AUDIT-18 without its audit entry nothing is erased or exported', async (open) => {
  const app = await openWorld(open);
  await app.store.refuse('audit entries');
  const before = await erase(app, 'bob');
  for (const call of [
    () => app.client.dataSubjects.erase({ params: { id: 'bob' }, query: { dryRun: false } }),
    () => app.client.dataSubjects.export({ params: { id: 'bob' } }),
  ])
    assert.equal((await refusal(call())).code, 'audit-unavailable');
  assert.deepEqual(await erase(app, 'bob'), before);
  assert.equal(await contents(app), 2);
});

forEachService('SUBJ-1 SUBJ-2 SUBJ-8 who cannot be told, or is busy, is left alone', async (open) => {
  const app = await openWorld(open, {
    script: [{ when: { message: 'wait' }, reply: { text: 'So far', stall: true } }, { reply: { text: 'Hello.' } }],
  });
  assert.equal((await refusal(erase(app, 'broken'))).code, 'data-subject-resolver-failed');
  const nobody = await erase(app, 'nobody', false);
  assert.ok(Object.values(nobody.rowsByTarget).every((rows) => rows === 0));
  const { runId } = await stream(app.client, 'helper', { message: 'wait', sessionId: 'of-zoraida' });
  const busy = await refusal(erase(app, 'zoraida', false));
  assert.deepEqual([busy.status, busy.code, busy.runIds], [409, 'data-subject-active', [runId]]);
  assert.equal((await erase(app, 'zoraida')).rowsByTarget['runs'], 3);
  const without = await open({});
  for (const call of [() => erase(without, 'zoraida'), () => exported(without, 'zoraida')])
    assert.equal((await refusal(call())).code, 'data-subject-resolver-missing');
});

overHttp('SUBJ-4 SUBJ-5 an export is a file, and only a plain false deletes', async (open) => {
  const app = await openWorld(open);
  const answer = await fetch(`${app.url}/api/data-subjects/zoraida/export`);
  assert.equal(answer.headers.get('content-disposition'), 'attachment; filename="data-subject.json"');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  await answer.text();
  for (const dryRun of ['no', '0', '', 'False'])
    assert.equal(
      (await fetch(`${app.url}/api/data-subjects/zoraida?dryRun=${dryRun}`, { method: 'DELETE' })).status,
      400,
      dryRun,
    );
  assert.equal((await erase(app, 'zoraida')).rowsByTarget['sessions'], 1);
});
