import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { Judge, JudgedRun } from '../../../src/features/judges/index.ts';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { forEachDoor, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { dayMs, daysAgo, swept } from '../retention/retention-world.ts';
import { callsTools, enqueue, followToEnd, refusal, runJson, runStream, start, tool } from '../runs/run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';
const nothing = { scores: [], failures: [] };

/** A judge that gives every run the same answer, whatever it is: modules are not type-checked at run time. */
const says = (name: string, answer: unknown): Judge => ({ name, judge: () => answer as never });

const judged = async (client: Client, runId: string) => (await client.judges.score({ params: { runId } })).body;

const scoresOf = async (app: TestApp, runId: string) => (await app.client.scores.list({ params: { runId } })).body;

forEachDoor('EVAL-33 a judge gets input, output, tool names and tenant, and nothing else', async (open) => {
  const seen: JudgedRun[] = [];
  const tone: Judge = {
    name: 'tone',
    judge(run, signal) {
      assert.ok(signal instanceof AbortSignal);
      seen.push(structuredClone(run));
      // What one judge does to its copy is nothing to the next one.
      (run.toolNames as string[]).push('made-up');
      return { score: 80 };
    },
  };
  const app = await open({
    script: callsTools('look', 'add', 'look'),
    tools: [tool('add', async () => 'a secret result'), tool('look', async () => 'seen')],
    agents: [{ name: 'helper', toolNames: ['add', 'look'] }],
    module: { judges: [tone, { ...tone, name: 'tone-2' }] },
  });
  await runJson(app.client, 'helper', { message: 'An earlier turn', sessionId: 's-1' });
  const documents = [{ name: 'note.txt', content: 'A note.' }];
  const { runId, output } = await runJson(app.client, 'helper', { message: 'How loud?', sessionId: 's-1', documents });
  await judged(app.client, runId);
  const expected = { input: 'How loud?', output, toolNames: ['look', 'add'], tenantId: 'default' };
  assert.deepEqual(seen, [expected, expected]);
});

forEachDoor('EVAL-36 RUN-47 scores are rows of the judge, and scoring again updates them', async (open) => {
  let score = 71.5;
  const tone: Judge = {
    name: 'Tone',
    version: '2026-11',
    judge: async () => ({ score, reason: 'Kind.', metrics: { warmth: 90, 'words.long': 0 } }),
  };
  const app = await open({ agents: [{ name: 'helper' }], module: { judges: [tone] } });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  await app.client.scores.save({ params: { runId }, body: { kind: 'Numeric', value: 3, name: 'Tone' } });
  const first = await judged(app.client, runId);
  assert.deepEqual(
    first.scores.map(({ id: _id, createdAt: _at, ...rest }) => rest),
    [
      { name: 'Tone', value: 71.5, comment: 'Kind.' },
      { name: 'Tone.warmth', value: 90, comment: null },
      { name: 'Tone.words.long', value: 0, comment: null },
    ].map((row) => ({
      tenantId: 'default',
      runId,
      messageId: null,
      kind: 'Numeric',
      textValue: null,
      source: 'judge:Tone',
      author: 'judge:Tone',
      evaluatorVersion: '2026-11',
      ...row,
    })),
  );
  score = 12;
  const second = await judged(app.client, runId);
  const ids = ({ scores }: typeof first) => scores.map(({ id }) => id);
  assert.deepEqual(ids(second), ids(first));
  assert.equal(second.scores[0]?.value, 12);
  const stored = await scoresOf(app, runId);
  assert.deepEqual(stored.map(({ value }) => value).sort(), [0, 12, 3, 90], 'a person’s score of the same name stays');
});

forEachDoor('EVAL-34 EVAL-35 one judge’s failure stops no other, and stores nothing', async (open) => {
  class QuotaGone extends Error {}
  const signals: AbortSignal[] = [];
  const app = await open({
    agents: [{ name: 'helper' }],
    service: { OnlineEvaluation: { JudgeTimeout: '200ms' } },
    module: {
      judges: [
        {
          name: 'slow',
          judge: (_run, signal) =>
            new Promise((resolve) => {
              signals.push(signal);
              // Late: what it says then is dropped.
              signal.addEventListener('abort', () => resolve({ score: 1 }));
            }),
        },
        says('high', { score: 100.01 }),
        says('negative', { score: -1, metrics: { x: 1 } }),
        says('no-number', { score: Number.NaN }),
        says('metric', { score: 50, metrics: { x: 101 } }),
        says('shape', { score: '50' }),
        says('silent', undefined),
        says('named', { score: 50, metrics: { 'a b': 1 } }),
        {
          name: 'broken',
          judge() {
            throw new QuotaGone('key sk-123 of the run "Hi"');
          },
        },
        says('none', { score: null, metrics: { x: 5 }, reason: 'No opinion.' }),
        says('wordy', { score: 100, reason: `${'x'.repeat(3999)}\u{1f600}` }),
        says('last', { score: 0 }),
      ],
    },
  });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const { scores, failures } = await judged(app.client, runId);
  const failure = (judgeName: string, errorType: string, isRetryable = false) => ({
    judgeName,
    errorType,
    isRetryable,
  });
  assert.deepEqual(failures, [
    failure('slow', 'judge-timeout', true),
    failure('high', 'judge-score-out-of-range'),
    failure('negative', 'judge-score-out-of-range'),
    failure('no-number', 'judge-score-out-of-range'),
    failure('metric', 'judge-score-out-of-range'),
    failure('shape', 'judge-answer-invalid'),
    failure('silent', 'judge-answer-invalid'),
    failure('named', 'judge-answer-invalid'),
    failure('broken', 'QuotaGone', true),
  ]);
  assert.deepEqual(
    scores.map(({ name, value, comment }) => [name, value, comment]),
    [
      ['wordy', 100, 'x'.repeat(3999)],
      ['last', 0, null],
    ],
  );
  assert.equal(signals[0]?.aborted, true);
  assert.equal((await scoresOf(app, runId)).length, 2);
  assert.doesNotMatch(JSON.stringify(app.log), /sk-123/);
});

forEachDoor('EVAL-43 what cannot be judged is 200 with empty lists', async (open) => {
  let asked = 0;
  const judges: Judge[] = [
    {
      name: 'tone',
      judge() {
        asked += 1;
        return { score: 1 };
      },
    },
  ];
  const script = [
    { when: { message: 'fail' }, reply: { error: 'provider_error' } },
    { when: { message: 'blank' }, reply: { text: ' \n' } },
    { when: { message: 'wait' }, reply: { text: 'So far', stall: true } },
    { reply: { text: 'Hello.' } },
  ];
  const agents = [{ name: 'helper' }];
  const app = await open({ script, agents, module: { judges }, clock: testClock({ at: daysAgo(2) }) });
  const failed = await start(app.client, 'helper', { message: 'fail' }).then(async ({ headers, frames }) => {
    for await (const _frame of frames ?? []);
    return headers['x-run-id'] ?? '';
  });
  assert.deepEqual(await judged(app.client, failed), nothing, 'failed');
  const blank = await runJson(app.client, 'helper', 'blank');
  assert.deepEqual(await judged(app.client, blank.runId), nothing, 'no output');
  const running = await enqueue(app.client, 'helper', { message: 'wait' });
  assert.deepEqual(await judged(app.client, running), nothing, 'in progress');
  await app.client.runs.cancel({ params: { runId: running } });
  await followToEnd(app.client, running);
  assert.deepEqual(await judged(app.client, running), nothing, 'canceled');
  const erased = await runJson(app.client, 'helper', 'Hi');
  await app.clock.jump(2 * dayMs);
  await app.client.retention.save({ params: { target: 'RunEvents' }, body: { maxAgeDays: 1 } });
  await swept(app, 'RunEvents');
  assert.deepEqual(await judged(app.client, erased.runId), nothing, 'events removed by retention');
  assert.equal(asked, 0);

  const unrecorded = await open({ agents, module: { judges }, service: { RunRecording: { RecordRunInput: false } } });
  const { runId } = await runJson(unrecorded.client, 'helper', 'Hi');
  assert.deepEqual(await judged(unrecorded.client, runId), nothing, 'no recorded input');
  assert.equal(asked, 0);
  const without = await open({ agents });
  const unjudged = await runJson(without.client, 'helper', 'Hi');
  assert.deepEqual(await judged(without.client, unjudged.runId), nothing, 'no judge');
  assert.equal((await refusal(judged(without.client, unknownId))).code, 'run-not-found');
});

forEachDoor('EVAL-43 RUN-39 a run that the caller may not judge or read is an unknown one', async (open) => {
  const refused = new Set<string>();
  const asked: string[] = [];
  const runAuthorization = {
    async authorize({ action }: RunAuthorizationRequest) {
      asked.push(action);
      return { allowed: !refused.has(action) };
    },
  };
  const app = await open({
    agents: [{ name: 'helper' }],
    module: { runAuthorization, judges: [says('tone', { score: 1 })] },
  });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  for (const action of ['Judge', 'Read']) {
    refused.add(action);
    const problem = await refusal(judged(app.client, runId));
    assert.deepEqual([problem.status, problem.code], [404, 'run-not-found'], action);
    refused.clear();
  }
  assert.deepEqual((await app.client.scores.list({ params: { runId } })).body, []);
  asked.length = 0;
  assert.equal((await judged(app.client, runId)).scores.length, 1);
  assert.deepEqual(asked, ['Judge', 'Read']);
});

forEachDoor('JOB-43 no run is judged while its agent is stopped or the service drains', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], module: { judges: [says('tone', { score: 1 })] } });
  const { runId } = await runStream(app.client, 'helper', 'Hi');
  await app.client.emergency.stop({ body: { scope: 'Agent', agentName: 'helper' } });
  const stopped = await refusal(judged(app.client, runId));
  assert.deepEqual([stopped.status, stopped.code], [503, 'emergency-stopped']);
  await app.client.emergency.resume({ body: { scope: 'Agent', agentName: 'helper' } });
  assert.equal((await judged(app.client, runId)).scores.length, 1);
  await app.app.drain();
  const draining = await refusal(judged(app.client, runId));
  assert.deepEqual([draining.status, draining.code, draining.retryAfterMs], [503, 'draining', 5000]);
  assert.equal((await refusal(judged(app.client, unknownId))).code, 'run-not-found');
});

forEachDoor('EVAL-36 what was erased while a judge thought is not written about', async (open) => {
  let erase = async (): Promise<unknown> => undefined;
  const judge: Judge = {
    name: 'tone',
    async judge() {
      await erase();
      return { score: 5, reason: 'It said Hello.' };
    },
  };
  const dataSubjectResolver = { resolve: async () => ({ sessionIds: ['s'], userIds: [], ownerIds: [] }) };
  const app = await open({ agents: [{ name: 'helper' }], module: { judges: [judge], dataSubjectResolver } });
  const { runId } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  erase = () => app.client.dataSubjects.erase({ params: { id: 'ada' }, query: { dryRun: false } });
  assert.equal((await refusal(judged(app.client, runId))).code, 'run-not-found');
  assert.equal((await refusal(scoresOf(app, runId))).code, 'run-not-found');
  assert.doesNotMatch(await app.store.text(), /It said Hello\./);
});
