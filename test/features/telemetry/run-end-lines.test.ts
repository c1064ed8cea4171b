import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { createLogger } from '../../../src/core/logger.ts';
import { logRunEnd } from '../../../src/engine/record/run-end-log.ts';
import { RunFailure } from '../../../src/engine/run-failure.ts';
import { forEachDurableService, overHttp, type TestApp } from '../../support/app.ts';
import { accept, openTraces, planner, settled } from '../external-runs/traces-world.ts';
import { enqueue, listRuns, refusal, runJson, runStream, start, tool } from '../runs/run-calls.ts';

/** Lines about the ends of runs. */
const ends = ({ log }: Pick<TestApp, 'log'>): Readonly<Record<string, unknown>>[] =>
  log.flatMap(({ level, fields }) => ('durationMs' in fields && 'cost' in fields ? [{ level, ...fields }] : []));

const model = (name: string) => ({ provider: 'demo', model: name });

forEachDurableService(
  'OBS-27 each end of a run is one line at Information with agent, status, duration, tokens, cost and error code',
  async (open) => {
    const app = await open({
      service: { Pricing: { Currency: 'EUR', demo: { one: { Input: 100, Output: 200 } } } },
      script: [
        { when: { message: 'break' }, reply: { error: { type: 'provider_error', httpStatus: 500 } } },
        { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'Done.' } },
        { when: { model: 'boss' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'Hi' } }] } },
        { when: { message: 'pay' }, reply: { toolCalls: [{ name: 'pay', arguments: {} }] } },
        { reply: { text: 'Hello.', usage: { inputTokens: 1000, outputTokens: 500 } } },
      ],
      tools: [tool('pay', async () => 'Paid.', { requiresApproval: true })],
      agents: [
        { name: 'helper', model: model('one'), toolNames: ['pay'] },
        { name: 'child', model: model('child') },
        { name: 'boss', model: model('boss'), callableAgentNames: ['child'] },
      ],
    });
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    const [completed] = ends(app);
    const { durationMs, requestId, traceId, ...members } = completed ?? assert.fail('no line');
    assert.deepEqual(members, {
      ...{ level: 'info', runId, tenantId: 'default', agent: 'helper', status: 'Completed' },
      ...{ inputTokens: 1000, outputTokens: 500, cost: 0.2 },
    });
    assert.equal(typeof durationMs, 'number');
    assert.match(`${String(requestId)} ${String(traceId)}`, /^[0-9a-f-]{36} [0-9a-f]{32}$/);

    const before = app.log.length;
    await refusal(start(app.client, 'helper', { message: 'break', stream: false }));
    await runStream(app.client, 'helper', 'break');
    const failed = app.log.slice(before);
    assert.deepEqual(
      failed.map(({ level, message, fields }) => [
        level,
        message,
        fields['agent'],
        fields['errorCode'],
        fields['errorType'],
      ]),
      Array(2).fill(['info', 'A run failed', 'helper', 'provider-error', 'provider_error']),
      'nothing else tells of the same failure',
    );

    await runStream(app.client, 'boss', 'Go');
    const [boss] = await listRuns(app.client, { take: 1 });
    const tree = ends(app).slice(-2);
    assert.deepEqual(
      tree.map(({ agent, status, parentRunId }) => [agent, status, parentRunId]),
      [
        ['child', 'Completed', boss?.id],
        ['boss', 'Completed', undefined],
      ],
    );

    await runStream(app.client, 'helper', { message: 'pay', sessionId: 's' });
    assert.equal(ends(app).at(-1)?.['status'], 'AwaitingApproval');
  },
);

forEachDurableService(
  'OBS-27 a run that never executed has its line as well: one that was canceled in its queue',
  async (open) => {
    const app = await open({
      service: { Scheduling: { RunWorker: false } },
      script: [{ reply: { text: 'Hello.' } }],
      agents: [{ name: 'helper', model: model('one') }],
    });
    const runId = await enqueue(app.client, 'helper', 'Hi');
    assert.deepEqual(ends(app), []);
    await app.client.runs.cancel({ params: { runId } });
    assert.deepEqual(ends(app), [
      {
        ...{ level: 'info', runId, tenantId: 'default', agent: 'helper', status: 'Canceled', durationMs: 0 },
        ...{ inputTokens: null, outputTokens: null, cost: null, errorCode: 'run-canceled', errorType: 'canceled' },
      },
    ]);
  },
);

overHttp('OBS-27 a run that another program has executed has its line once it is stored', async (open) => {
  const app = await openTraces(open);
  await accept(app, planner(app.clock.now() - 2000).all);
  const [run] = await settled(app, 1);
  const lines = ends(app);
  assert.deepEqual(
    lines.map(({ agent, kind, status, parentRunId }) => [agent, kind, status, parentRunId]),
    [
      ['planner', 'External', 'Completed', undefined],
      ['booker', 'External', 'Failed', run?.id],
    ],
  );
  assert.deepEqual([lines[0]?.['runId'], lines[0]?.['inputTokens']], [run?.id, run?.usage?.inputTokens]);
});

test('OBS-27 the words of a line say how the run ended, or what it waits for', () => {
  const said: string[] = [];
  const log = { info: (_fields: object, message: string) => void said.push(message) };
  const end = { runId: 'r', tenantId: 't', agent: 'a', durationMs: 1, inputTokens: 1, outputTokens: 1, cost: 1 };
  for (const status of ['Completed', 'Failed', 'Canceled', 'AwaitingApproval', 'AwaitingInput'])
    logRunEnd(log as never, { ...end, status, error: null });
  assert.deepEqual(said, [
    'A run completed',
    'A run failed',
    'A run was canceled',
    'A run waits for approvals',
    'A run waits for results of its client',
  ]);
});

test('a fault of the service has its stack once; what others report has none', () => {
  const written: string[] = [];
  const log = createLogger('info', { write: (line: string) => void written.push(line) });
  const bug = new TypeError('x is undefined');
  log.error({ error: bug }, 'A run failed because of an internal error');
  log.error({ error: new AcpError('internal', 'The service failed.', { cause: bug }) }, 'The request failed');
  log.error({ err: new AcpError('internal', 'Another one.') }, 'The request failed');
  class ForeignError extends Error {
    override readonly name = 'ForeignError';
  }
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  for (const error of [
    new ForeignError('Bad key'),
    away,
    new TypeError('fetch failed', { cause: away }),
    new AcpError('provider-error', 'It failed.', { cause: new ForeignError('Bad key') }),
    new AggregateError([away], 'all failed', { cause: away }),
  ])
    log.warn({ error }, 'A model provider failed');
  const stacks = written.map((line) => line.split('"stack"').length - 1);
  assert.deepEqual(stacks, [1, 0, 1, 0, 0, 0, 0, 0]);
  assert.match(written[1] ?? '', /The service failed\.: x is undefined/);
  assert.match(written[6] ?? '', /It failed\.: Bad key/);
  const other = new TypeError('y is undefined');
  for (const [error, stack] of [
    // Where a cause was logged with its error it is not logged again.
    [new AcpError('internal', 'The service failed.', { cause: other }), 1],
    [other, 0],
    [Object.assign(new TypeError('The "path" argument'), { code: 'ERR_INVALID_ARG_TYPE' }), 1],
    [new RunFailure('Unknown', 'internal', 'The run failed.'), 1],
    // A class of its own that has no name of its own.
    [new (class Quota extends Error {})('All used'), 0],
    [new RunFailure('RateLimited', 'provider_rate_limited', 'The run failed.'), 0],
  ] as const) {
    log.error({ error }, 'It failed');
    assert.equal((written.at(-1) ?? '').split('"stack"').length - 1, stack, error.message);
  }
  const circle = new Error('a', { cause: away });
  Object.assign(away, { cause: circle });
  log.warn({ error: circle }, 'It leads in a circle');
  assert.match(written.at(-1) ?? '', /It leads in a circle/);
});
