import assert from 'node:assert/strict';
import { type AppSetup, forEachDoor, type OpenApp, type TestApp } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { conversation, lastOf, says } from './chat-requests.ts';
import {
  enqueue,
  eventsOf,
  followToEnd,
  getRun,
  type LoggedEvent,
  listRuns,
  readEvents,
  refusal,
  runJson,
  runStream,
} from './run-calls.ts';

const schema = {
  type: 'object',
  properties: { total: { type: 'number' } },
  required: ['total'],
  additionalProperties: false,
};

const isRepair = (request: SimulatedRequest): boolean => lastOf(request, 'user').startsWith('Your answer was not');

/** Answers with the user's words; a repair is answered with the text after "then". */
const respond = (request: SimulatedRequest): Scenario => {
  const users = conversation(request).filter((line) => line.startsWith('user: '));
  const [first = '', ...fixes] = (users[0]?.slice(6) ?? '').split(' then ');
  return says(isRepair(request) ? (fixes[users.length - 2] ?? first) : first);
};

const openStructured = (
  open: OpenApp,
  structured: Record<string, unknown>,
  responseFormat: Record<string, unknown> = { kind: 'JsonSchema', schema, schemaName: 'invoice' },
  more: Partial<AppSetup> = {},
): Promise<TestApp> =>
  open({
    simulator: { respond },
    service: { StructuredResponse: structured },
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any', responseFormat } }],
    ...more,
  });

const eventsOfLastRun = async (app: TestApp): Promise<LoggedEvent[]> => {
  const [run] = await listRuns(app.client, {});
  return eventsOf(await readEvents(app.client, run?.id ?? ''));
};

const ofType = (events: readonly LoggedEvent[], type: string) => events.filter((event) => event.type === type);

forEachDoor('RUN-68 an answer that fits its schema is the structured output', async (open) => {
  const app = await openStructured(open, { Enabled: true });
  const { structuredOutput, output } = await runJson(app.client, 'helper', '{"total":3}');
  assert.deepEqual(structuredOutput, { total: 3 });
  assert.equal(output, '{"total":3}');
});

forEachDoor('RUN-68 RUN-20 a rejected answer fails the run, and no event shows its text', async (open) => {
  const app = await openStructured(open, { Enabled: true });
  for (const [answer, reason] of [
    ['secret words', 'NotJson'],
    ['{"secret":1}', 'SchemaMismatch'],
    ['{"total":"secret"}', 'SchemaMismatch'],
  ] as const) {
    const problem = await refusal(runJson(app.client, 'helper', answer));
    assert.equal(problem.status, 502);
    assert.equal(problem.code, 'structured-response-invalid');
    assert.equal(problem.errorType, 'structured_response_invalid');
    const events = await eventsOfLastRun(app);
    const [rejected] = ofType(events, 'structured-response.rejected');
    assert.deepEqual(
      { ...rejected, sequence: 0, timestamp: '', runId: '' },
      {
        runId: '',
        sequence: 0,
        timestamp: '',
        type: 'structured-response.rejected',
        reason,
        kind: 'JsonSchema',
        schemaName: 'invoice',
        provider: 'local',
        model: 'any',
        repairSuppressedBy: null,
      },
    );
    const [run] = await listRuns(app.client, {});
    const record = await getRun(app.client, run?.id ?? '');
    assert.equal(record.error?.class, 'StructuredResponseInvalid');
    assert.ok(!JSON.stringify([rejected, record, problem]).includes('secret'));
  }
});

forEachDoor('RUN-68 Json must parse; switched off, nothing is checked', async (open) => {
  const json = await openStructured(open, { Enabled: true }, { kind: 'Json' });
  assert.deepEqual((await runJson(json.client, 'helper', '{"any":1}')).structuredOutput, { any: 1 });
  assert.equal((await refusal(runJson(json.client, 'helper', '{"any":'))).code, 'structured-response-invalid');
  const off = await openStructured(open, { Enabled: false });
  assert.equal((await runJson(off.client, 'helper', 'words')).structuredOutput, null);
});

forEachDoor('RUN-69 repairs are further calls of the same run, at its cost', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 2 });
  const answer = await runJson(app.client, 'helper', 'words then {"total":"x"} then {"total":7}');
  assert.deepEqual(answer.structuredOutput, { total: 7 });
  assert.equal(answer.finishReason, 'Stop');
  const events = await eventsOfLastRun(app);
  assert.deepEqual(
    ofType(events, 'structured-response.repair-attempted').map(({ attempt, maxAttempts }) => [attempt, maxAttempts]),
    [
      [1, 2],
      [2, 2],
    ],
  );
  assert.equal(ofType(events, 'usage.updated').length, 3);
  assert.match(lastOf(app.simulator.lastRequest(), 'user'), /^Your answer was not accepted:\n- total must be number/);
});

forEachDoor('AGENT-26 a repair never comes from the response cache', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 1 });
  const model = { provider: 'local', model: 'any', responseFormat: { kind: 'Json' }, responseCache: { enabled: true } };
  await app.createAgent({ name: 'cached', model });
  for (const requests of [2, 3]) {
    await runJson(app.client, 'cached', 'words then {}');
    assert.equal(app.simulator.requests.length, requests);
  }
});

forEachDoor('RUN-69 when every attempt is used up, the run fails', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 1 });
  assert.equal(
    (await refusal(runJson(app.client, 'helper', 'a then b then {"total":1}'))).code,
    'structured-response-invalid',
  );
  const events = await eventsOfLastRun(app);
  assert.equal(ofType(events, 'structured-response.rejected').length, 2);
  assert.equal(ofType(events, 'structured-response.repair-attempted').length, 1);
});

forEachDoor('RUN-69 no repair in a stream or with a session, and the event says so', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 2 });
  const { events } = await runStream(app.client, 'helper', 'words then {"total":1}');
  assert.deepEqual(
    ofType(events, 'structured-response.rejected').map((event) => event['repairSuppressedBy']),
    ['Streaming'],
  );
  assert.equal(events.at(-1)?.['error'].type, 'structured_response_invalid');
  const body = { message: 'words then {"total":1}', sessionId: 's' };
  assert.equal((await refusal(runJson(app.client, 'helper', body))).code, 'structured-response-invalid');
  const [rejected] = ofType(await eventsOfLastRun(app), 'structured-response.rejected');
  assert.equal(rejected?.['repairSuppressedBy'], 'Session');
  assert.equal(app.simulator.requests.length, 2);
  assert.equal((await refusal(app.client.sessions.get({ params: { sessionId: 's' } }))).status, 404);
});

forEachDoor("RUN-68 a module's validator has the last word, and what it throws rejects", async (open) => {
  const seen: unknown[] = [];
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 1 }, undefined, {
    module: {
      structuredResponseValidators: {
        helper: (answer: unknown, context: { readonly agentName: string }) => {
          seen.push([answer, context.agentName]);
          if ((answer as { total: number }).total < 0) throw new Error('total must not be negative');
        },
      },
    },
  });
  assert.deepEqual((await runJson(app.client, 'helper', '{"total":-1} then {"total":1}')).structuredOutput, {
    total: 1,
  });
  assert.match(lastOf(app.simulator.lastRequest(), 'user'), /total must not be negative/);
  assert.deepEqual(seen, [
    [{ total: -1 }, 'helper'],
    [{ total: 1 }, 'helper'],
  ]);
  const [rejected] = ofType(await eventsOfLastRun(app), 'structured-response.rejected');
  assert.equal(rejected?.['reason'], 'ValidatorRejected');
});

forEachDoor('RUN-69 the answer of a queued run is repaired, for nobody has read its stream', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 2 });
  const runId = await enqueue(app.client, 'helper', { message: 'words then {"total":"x"} then {"total":7}' });
  const events = await followToEnd(app.client, runId);
  const end = events.at(-1);
  assert.deepEqual([end?.type, end?.['structuredOutput']], ['run.completed', { total: 7 }]);
  assert.deepEqual(
    ofType(events, 'structured-response.rejected').map((event) => event['repairSuppressedBy']),
    [null, null],
  );
  assert.ok(ofType(events, 'message.delta').length > 0, 'who follows the run sees its answer as it comes');
  assert.equal(ofType(events, 'run.started')[0]?.['isStreaming'], false);
  assert.equal((await getRun(app.client, runId)).isStreaming, false);
});

forEachDoor('RUN-69 a queued run with a session is not repaired either', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 2 });
  const runId = await enqueue(app.client, 'helper', { message: 'words then {"total":1}', sessionId: 's' });
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(
    ofType(events, 'structured-response.rejected').map((event) => event['repairSuppressedBy']),
    ['Session'],
  );
  assert.equal(events.at(-1)?.['error'].type, 'structured_response_invalid');
});

forEachDoor('RUN-69 AGENT-46 a called agent is repaired, also where its caller streams', async (open) => {
  const app = await openStructured(open, { Enabled: true, MaxRepairAttempts: 1 }, undefined, {
    simulator: {
      respond: (request) => {
        if (lastOf(request, 'user') === 'ask')
          return conversation(request).some((line) => line.startsWith('tool: '))
            ? says('done')
            : {
                answer: {
                  toolCalls: [{ id: 'c1', name: 'call_helper', arguments: '{"message":"words then {\\"total\\":3}"}' }],
                },
              };
        return respond(request);
      },
    },
  });
  await app.createAgent({
    name: 'boss',
    model: { provider: 'local', model: 'any' },
    callableAgentNames: ['helper'],
  });
  const { runId, events } = await runStream(app.client, 'boss', 'ask');
  assert.equal(events.at(-1)?.type, 'run.completed');
  const child = ofType(events, 'child.completed')[0];
  assert.equal(child?.['status'], 'Completed');
  const told = eventsOf(await readEvents(app.client, child?.['childRunId']));
  assert.equal(ofType(told, 'structured-response.repair-attempted').length, 1);
  assert.equal((await getRun(app.client, runId)).isStreaming, true);
});
