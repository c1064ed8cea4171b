import assert from 'node:assert/strict';
import { forEachDoor, overHttp } from '../../support/app.ts';
import type { Scenario, VendorFault } from '../../support/providers/scenario.ts';
import { surfaceCases } from '../../support/providers/surface-cases.ts';
import {
  assertWholeLog,
  eventsOf,
  getRun,
  listRuns,
  post,
  readEvents,
  refusal,
  runStream,
  start,
  tool,
  typesOf,
} from './run-calls.ts';

// What a provider says about its own failure must never leave the log of the service.
const secret = 'internal-host-17.example sk-live-abcdef';

const status = (code: number, more: { vendor?: VendorFault; headers?: Record<string, string> } = {}): Scenario => ({
  fault: { kind: 'status', status: code, ...more },
});

interface Row {
  readonly what: string;
  readonly scenario: Scenario;
  readonly status: number;
  readonly code: string;
  readonly errorClass: string;
  readonly errorType: string;
}

const row = (what: string, scenario: Scenario, answer: readonly [number, string, string, string]): Row => ({
  what,
  scenario,
  status: answer[0],
  code: answer[1],
  errorClass: answer[2],
  errorType: answer[3],
});

const providerError = [502, 'provider-error', 'ProviderError', 'provider_error'] as const;
const unavailable = [502, 'provider-unavailable', 'ProviderUnavailable', 'provider_unavailable'] as const;

const table: readonly Row[] = [
  row('500', status(500), providerError),
  row('503', status(503, { vendor: 'overloaded' }), providerError),
  row('400', status(400, { vendor: 'bad-request' }), providerError),
  row('401', status(401, { vendor: 'bad-key' }), providerError),
  row('429', status(429, { vendor: 'rate-limit' }), [
    502,
    'provider-rate-limited',
    'RateLimited',
    'provider_rate_limited',
  ]),
  row('a prompt that is too long', status(400, { vendor: 'context' }), [
    400,
    'context-window-exceeded',
    'ProviderError',
    'context_overflow',
  ]),
  row('a cut connection', { fault: { kind: 'cut', after: 0 } }, unavailable),
  row('a malformed answer', { fault: { kind: 'malformed', after: 0, frame: '<html>' } }, providerError),
];

for (const surface of surfaceCases)
  forEachDoor(`RUN-20 RUN-73 each provider error has its status, class and type: ${surface.provider}`, async (open) => {
    const { client, simulator } = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: surface.provider, model: surface.model } }],
    });
    for (const expected of table) {
      simulator.enqueue(expected.scenario);
      const problem = await refusal(start(client, 'helper', { message: 'Hi', stream: false }));
      const found = [problem.status, problem.code, problem.errorType];
      assert.deepEqual(found, [expected.status, expected.code, expected.errorType], expected.what);
      const [run] = await listRuns(client, { take: 1 });
      assert.equal(run?.status, 'Failed');
      assert.deepEqual([run.error?.class, run.error?.type], [expected.errorClass, expected.errorType], expected.what);
      assert.equal(run.error?.message, problem.detail);
      const log = assertWholeLog(await readEvents(client, run.id));
      assert.deepEqual(log.at(-1)?.['error'], run.error);
    }
  });

forEachDoor('RUN-20 GUARD-24 every class of a scripted failure answers as the table says', async (open) => {
  const { client } = await open({
    script: [
      ...['provider_timeout', 'content_filtered', 'circuit_open', 'provider_credential_unresolved'].map((type) => ({
        when: { message: type },
        reply: { error: type },
      })),
    ],
    agents: [{ name: 'helper' }],
  });
  const answers: Readonly<Record<string, readonly [number, string, string]>> = {
    provider_timeout: [502, 'provider-timeout', 'Timeout'],
    content_filtered: [422, 'content-filtered', 'ContentFiltered'],
    circuit_open: [502, 'provider-unavailable', 'ProviderUnavailable'],
    provider_credential_unresolved: [502, 'provider-error', 'ProviderError'],
  };
  for (const [type, [answerStatus, code, errorClass]] of Object.entries(answers)) {
    const problem = await refusal(start(client, 'helper', { message: type, stream: false }));
    assert.deepEqual([problem.status, problem.code, problem.errorType], [answerStatus, code, type]);
    assert.equal((await listRuns(client, { take: 1, errorType: type }))[0]?.error?.class, errorClass);
  }
});

forEachDoor('RUN-20 a provider that stalls is given up after its time', async (open) => {
  const { client, simulator } = await open({
    simulator: {},
    service: { Providers: { Compatible: { local: { Timeout: '50ms' } } } },
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  simulator.enqueue(
    { fault: { kind: 'stall', after: 0 } },
    { answer: { text: ['He'] }, fault: { kind: 'stall', after: 2 } },
  );
  const problem = await refusal(start(client, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([problem.status, problem.code, problem.errorType], [502, 'provider-timeout', 'provider_timeout']);
  const { events } = await runStream(client, 'helper', 'Hi');
  assert.equal(events.at(-1)?.['error'].class, 'Timeout');
});

overHttp('RUN-21 the time that a provider names is passed on, in the body and as Retry-After', async (open) => {
  const app = await open({
    simulator: {},
    script: [{ reply: { error: { type: 'provider_rate_limited', retryAfter: '2s' } } }],
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }, { name: 'scripted' }],
  });
  app.simulator.enqueue(status(429, { vendor: 'rate-limit', headers: { 'retry-after': '7' } }), status(500));
  const limited = await post(app, '/api/agents/helper/run', { message: 'Hi', stream: false });
  assert.equal(limited.headers.get('retry-after'), '7');
  assert.equal(((await limited.json()) as { retryAfterMs: number }).retryAfterMs, 7000);
  const failed = await post(app, '/api/agents/helper/run', { message: 'Hi', stream: false });
  assert.equal(failed.headers.get('retry-after'), null);
  assert.equal('retryAfterMs' in ((await failed.json()) as object), false);
  const scripted = await post(app, '/api/agents/scripted/run', { message: 'Hi', stream: false });
  assert.equal(scripted.headers.get('retry-after'), '2');
});

forEachDoor('RUN-26 a failure after the status line is an error frame, then the terminal frame', async (open) => {
  const { client, simulator } = await open({
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  simulator.enqueue({ answer: { text: ['Hel', 'lo'] }, fault: { kind: 'cut', after: 2 } });
  const { frames, events, runId } = await runStream(client, 'helper', 'Hi');
  const error = frames.filter((frame) => frame.id === undefined);
  assert.equal(error.length, 1);
  assert.equal(error[0]?.event, 'error');
  assert.deepEqual(Object.keys(JSON.parse(error[0]?.data ?? '')), ['code', 'errorType', 'message']);
  assert.equal(JSON.parse(error[0]?.data ?? '').code, 'provider-unavailable');
  assert.equal(frames.at(-1)?.event, 'run.failed');
  assert.equal(frames.at(-2)?.event, 'error');
  assert.ok(typesOf(events).includes('message.delta'));
  assert.deepEqual(eventsOf(await readEvents(client, runId)), events, 'the error frame is not in the log');
});

forEachDoor('RUN-71 no text of a provider leaves the log of the service', async (open) => {
  const app = await open({
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  const faults: Scenario[] = [
    { fault: { kind: 'status', status: 500, body: JSON.stringify({ error: { message: secret, type: 'x' } }) } },
    { fault: { kind: 'status', status: 400, body: secret } },
    { fault: { kind: 'malformed', after: 0, frame: `data: ${secret}\n\n` } },
  ];
  for (const fault of faults) {
    app.simulator.enqueue(fault, fault);
    const problem = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    const { frames, runId } = await runStream(app.client, 'helper', 'Hi');
    const run = await getRun(app.client, runId);
    for (const text of [problem, frames, run, await app.store.text()].map((value) => JSON.stringify(value)))
      for (const word of secret.split(' ')) assert.ok(!text.includes(word), text);
    assert.match(run.error?.message ?? '', /"local"/, 'the provider is named');
  }
  const logged = app.log.filter((line) =>
    String((line.fields['error'] as Error | undefined)?.message).includes('17.example'),
  );
  assert.ok(logged.length > 0, 'the text is in the log');
  assert.ok(logged.every((line) => typeof line.fields['requestId'] === 'string'));
});

const refusedWith = (error: object, code = 400): Scenario => ({
  fault: { kind: 'status', status: code, body: JSON.stringify({ error }) },
});

forEachDoor('RUN-71 what a provider calls the refusal is told in identifiers, with the request', async (open) => {
  const app = await open({
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-4.1' } }],
  });
  const error = {
    message: secret,
    type: 'invalid_request_error',
    code: 'model_not_found',
    param: 'messages.0.content',
  };
  app.simulator.enqueue(refusedWith(error), refusedWith(error));
  const problem = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  const names = { code: 'model_not_found', type: 'invalid_request_error', param: 'messages.0.content' };
  const requestId = problem.provider?.requestId ?? '';
  assert.deepEqual(problem.provider, { ...names, requestId });
  const [run] = await listRuns(app.client, { take: 1 });
  assert.deepEqual(run?.error?.provider, problem.provider);
  const logged = app.log.find(({ fields }) => fields['requestId'] === requestId && fields['error'] instanceof Error);
  assert.match(String(logged?.fields['error']), /17\.example/, 'the log has the rest under the request');
  const { events, runId } = await runStream(app.client, 'helper', 'Hi');
  const told = events.at(-1)?.['error'] as { provider?: { requestId: string } };
  assert.deepEqual(told.provider, { ...names, requestId: told.provider?.requestId });
  assert.deepEqual((await getRun(app.client, runId)).error, told);
});

forEachDoor('RUN-71 what is no identifier, or holds the credential, is left out', async (open) => {
  const app = await open({
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-4.1' } }],
  });
  const long = 'x'.repeat(65);
  const cases: readonly [error: object, expected: readonly (string | null)[] | null][] = [
    [{ message: 'no', type: 'two words', code: 'ok_1', param: long }, ['ok_1', null, null]],
    [{ message: 'no', type: 'a\u0000b', code: 7, param: { a: 1 } }, null],
    [{ message: 'no', type: '<b>', code: '', param: 'grüß' }, null],
    [{ message: 'no', type: 'fine', code: 'sk-test-0123456789', param: 'x.sk-test-0123456789' }, [null, 'fine', null]],
    [{ message: 'no' }, null],
  ];
  for (const [error, expected] of cases) {
    app.simulator.enqueue(refusedWith(error));
    const problem = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    const [run] = await listRuns(app.client, { take: 1 });
    const { code, type, param } = problem.provider ?? {};
    assert.deepEqual(expected === null ? problem.provider : [code, type, param], expected ?? undefined);
    assert.deepEqual(run?.error?.provider, problem.provider);
    assert.equal(expected === null, !('provider' in (run?.error ?? {})));
  }
});

forEachDoor('RUN-72 failures of one kind share a fingerprint', async (open) => {
  const { client, simulator } = await open({
    simulator: {},
    agents: [
      { name: 'one', model: { provider: 'local', model: 'any' } },
      { name: 'two', model: { provider: 'local', model: 'other' } },
    ],
  });
  const printOf = async (agent: string, scenario: Scenario): Promise<string | null | undefined> => {
    simulator.enqueue(scenario);
    const { runId } = await runStream(client, agent, 'Hi');
    return (await getRun(client, runId)).error?.fingerprint;
  };
  const first = await printOf('one', status(500));
  assert.match(first ?? '', /^[0-9a-f]{16}$/);
  assert.equal(await printOf('two', status(502)), first, 'numbers do not tell failures apart');
  assert.notEqual(await printOf('one', status(429)), first);
});

forEachDoor('RUN-71 RUN-73 an error of the service itself is internal, and says nothing of its cause', async (open) => {
  const app = await open({
    tools: [tool('look', async () => 'x')],
    script: [{ reply: { toolCalls: [{ name: 'look', arguments: {} }] } }],
    agents: [{ name: 'helper', toolNames: ['look'] }],
    authorizer: {
      // Not a module's fault alone: whatever it throws must stay inside.
      authorize: () => Promise.reject(new Error(secret)),
    },
    service: { Tools: { MaxIterations: 1 } },
  });
  const { frames } = await runStream(app.client, 'helper', 'Hi');
  assert.ok(!JSON.stringify(frames).includes('sk-live'));
  assert.match(eventsOf(frames).find((event) => event.type === 'tool.failed')?.['error'], /not allowed/);
});

const spoken = ['One', ' two', ' three'];

for (const surface of surfaceCases)
  forEachDoor(`RUN-26 wherever ${surface.provider} dies the stream ends in order`, async (open) => {
    const app = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: surface.provider, model: surface.model } }],
    });
    const ends: string[] = [];
    for (const kind of ['cut', 'end', 'malformed'] as const)
      for (let after = 0; after <= 6; after += 1) {
        app.simulator.enqueue({ answer: { text: spoken }, fault: { kind, after } });
        const { frames, events, runId } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
        const end = events.at(-1);
        ends.push(end?.type ?? '');
        if (end?.type === 'run.failed') assert.equal(frames.at(-2)?.event, 'error', `${kind} after ${after}`);
        const run = await getRun(app.client, runId);
        assert.equal(run.status, end?.type === 'run.failed' ? 'Failed' : 'Completed', `${kind} after ${after}`);
        const texts = events.filter((event) => event.type === 'message.delta').map((event) => event['text']);
        assert.ok('One two three'.startsWith(texts.join('')), texts.join(''));
      }
    assert.ok(ends.filter((type) => type === 'run.failed').length >= 12);
    app.simulator.enqueue({ answer: { text: ['Fine.'] } });
    const next = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    assert.equal(next.events.at(-1)?.['output'], 'Fine.', 'the session is as usable as before');
  });
