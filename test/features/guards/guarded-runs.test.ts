import assert from 'node:assert/strict';
import { forEachDoor, forEachServiceInFile, overHttp } from '../../support/app.ts';
import {
  enqueue,
  eventsOf,
  followToEnd,
  getRun,
  listRuns,
  post,
  readEvents,
  refusal,
  runJson,
  runStream,
  start,
  typesOf,
} from '../runs/run-calls.ts';
import {
  asksFor,
  assertNowhere,
  audited,
  call,
  findings,
  local,
  mail,
  ofType,
  pattern,
  recordingGuard,
  says,
  secret,
  sent,
  storeFile,
  texts,
} from './guard-world.ts';

const helper = { name: 'helper', model: local };
const guarded = { ContentGuard: { Pattern: pattern } };
const placeholder = '[content_blocked]';

forEachServiceInFile(
  'GUARD-17 GUARD-18 GUARD-20 RUN-70 a blocked message is 422, a failed run without tokens, and nowhere',
  async (open) => {
    const app = await open({ simulator: {}, service: guarded, agents: [helper] });
    const body = {
      message: `Tell me about ${secret}.`,
      documents: [{ name: `${secret}.txt`, content: 'harmless' }],
    };
    const problem = await refusal(runJson(app.client, 'helper', body));
    assert.equal(problem.status, 422);
    assert.deepEqual(
      [problem.code, problem.title, problem.detail, problem.errorType, problem.guardName, problem.ruleName],
      [
        'content-blocked',
        'Content blocked',
        'The content was blocked by a guard.',
        'content_blocked',
        'pattern',
        'denied-term:0',
      ],
    );
    assert.equal(app.simulator.requests.length, 0);
    const [row] = await listRuns(app.client);
    assert.ok(row !== undefined);
    assert.deepEqual([row.status, row.error?.class, row.error?.type], ['Failed', 'ContentBlocked', 'content_blocked']);
    assert.deepEqual([row.usage, row.cost], [null, null]);
    const events = await followToEnd(app.client, row.id);
    assert.deepEqual(typesOf(events), ['run.started', 'document.attached', 'content.blocked', 'run.failed']);
    assert.deepEqual(findings(events), [['content.blocked', 'UserMessage', 'pattern', 'denied-term:0']]);
    const { body: input } = await app.client.runs.input({ params: { runId: row.id } });
    assert.deepEqual(
      input.messages.flatMap(({ contents }) => contents),
      [
        { type: 'Document', name: placeholder, text: placeholder },
        { type: 'Text', text: placeholder },
      ],
      'what stands beside the blocked text was not inspected and is not kept either',
    );
    assert.deepEqual(
      await audited(app),
      [[`run:${row.id}`, { source: 'UserMessage', guardName: 'pattern', ruleName: 'denied-term:0' }]],
      'GUARD-23',
    );
    await assertNowhere(app, secret);
    assert.ok(!storeFile(app).toLowerCase().includes(secret.toLowerCase()));
  },
);

overHttp('GUARD-18 the answer to a blocked run names it', async (open) => {
  const app = await open({ simulator: {}, service: guarded, agents: [helper] });
  const answer = await post(app, '/api/agents/helper/run', { message: secret, stream: false });
  const problem = (await answer.json()) as Record<string, unknown>;
  const runId = answer.headers.get('x-run-id') ?? '';
  assert.equal(answer.status, 422);
  assert.equal((await getRun(app.client, runId)).error?.type, 'content_blocked');
  const { requestId: _id, ...rest } = problem;
  assert.deepEqual(rest, {
    type: 'urn:acp:problem:content-blocked',
    title: 'Content blocked',
    status: 422,
    detail: 'The content was blocked by a guard.',
    instance: '/api/agents/helper/run',
    code: 'content-blocked',
    errorType: 'content_blocked',
    guardName: 'pattern',
    ruleName: 'denied-term:0',
  });
});

overHttp('GUARD-32 a masked part becomes the configured replacement', async (open) => {
  const guard = { Pattern: { ...pattern, MaskReplacement: '***' } };
  const app = await open({ simulator: {}, service: { ContentGuard: guard }, agents: [helper] });
  app.simulator.enqueue(says(`I wrote to ${mail}.`));
  assert.equal((await runJson(app.client, 'helper', `Write to ${mail}!`)).output, 'I wrote to ***.');
  assert.match(sent(app), /Write to \*\*\*!/);
});

forEachDoor('GUARD-14 SESS-9 a mask is all that model, history, input, events and answer have', async (open) => {
  const app = await open({ simulator: {}, service: guarded, agents: [helper] });
  app.simulator.enqueue(says('I wrote to ', 'jo@exam', 'ple.com.'));
  const { runId, events } = await runStream(app.client, 'helper', {
    message: `Write to ${mail}!`,
    documents: [{ name: 'list of jo@example.com', content: `${mail} and 192.0.2.7` }],
    sessionId: 's',
  });
  assert.deepEqual(findings(events), [
    ['content.masked', 'UserMessage', 'pattern', 'pii:Email'],
    ['content.masked', 'Document', 'pattern', 'pii:Email'],
    ['content.masked', 'Document', 'pattern', 'pii:IpAddress'],
    ['content.masked', 'Document', 'pattern', 'pii:Email'],
    ['content.masked', 'ModelOutput', 'pattern', 'pii:Email'],
  ]);
  assert.equal(events.at(-1)?.['output'], 'I wrote to [redacted].');
  assert.equal(
    ofType(events, 'message.delta')
      .map((event) => event['text'])
      .join(''),
    'I wrote to [redacted].',
    'GUARD-25',
  );
  assert.equal(ofType(events, 'message.completed')[0]?.['text'], 'I wrote to [redacted].');
  assert.match(sent(app), /Write to \[redacted\]!/);
  assert.ok(!sent(app).includes(mail));
  const { body: history } = await app.client.sessions.get({ params: { sessionId: 's' } });
  assert.match(JSON.stringify(history), /Write to \[redacted\]!.*I wrote to \[redacted\]\./s, 'SESS-9');
  assert.deepEqual(eventsOf(await readEvents(app.client, runId)), events);
  assert.deepEqual(await audited(app), [], 'GUARD-23 masks are not audited');
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-25 GUARD-19 a blocked answer that was held back reached nobody', async (open) => {
  const app = await open({ simulator: {}, service: guarded, agents: [helper] });
  app.simulator.enqueue({
    answer: { reasoning: ['Hm.'], text: ['It is about Pro', 'ject Ze', 'us.'], usage: { input: 3, output: 2 } },
  });
  const { runId, frames, events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.deepEqual(typesOf(events), [
    'run.started',
    'message.completed',
    'usage.updated',
    'content.blocked',
    'run.failed',
  ]);
  const error = frames.find((frame) => frame.event === 'error');
  assert.equal(error?.id, undefined);
  assert.deepEqual(JSON.parse(error?.data ?? '{}'), {
    code: 'content-blocked',
    errorType: 'content_blocked',
    message: 'The content was blocked by a guard.',
  });
  assert.equal(frames.at(-2), error, 'just before the terminal event');
  assert.equal(ofType(events, 'message.completed')[0]?.['text'], placeholder);
  assert.notEqual((await getRun(app.client, runId)).usage, null, 'the call was made and counts');
  await assertNowhere(app, secret);
  assert.equal(JSON.stringify(frames).toLowerCase().includes('zeus'), false);
});

forEachDoor('GUARD-26 without buffering deltas go out at once and are recorded without text', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      ContentGuard: { BufferStreamingOutput: false, Pattern: pattern },
      RunRecording: { RecordMessageDeltas: true },
    },
    agents: [helper],
  });
  const deltasOf = (events: Parameters<typeof ofType>[0]) =>
    ofType(events, 'message.delta').map((event) => event['text'] as string | null);
  app.simulator.enqueue(says('Mail jo@exam', 'ple.com'), says(`About ${secret}`));
  const masked = await runStream(app.client, 'helper', 'Hi');
  assert.equal(deltasOf(masked.events).join(''), `Mail ${mail}`, 'what was sent cannot be taken back');
  assert.equal(ofType(masked.events, 'message.completed')[0]?.['text'], 'Mail [redacted]');
  assert.equal(masked.events.at(-1)?.['output'], 'Mail [redacted]');
  assert.deepEqual(findings(masked.events), [['content.masked', 'ModelOutput', 'pattern', 'pii:Email']]);
  const blocked = await runStream(app.client, 'helper', 'Hi');
  assert.equal(deltasOf(blocked.events).join(''), `About ${secret}`);
  assert.equal(ofType(blocked.events, 'message.completed')[0]?.['text'], placeholder);
  assert.equal(blocked.frames.at(-2)?.event, 'error');
  for (const { runId } of [masked, blocked])
    assert.deepEqual(new Set(deltasOf(eventsOf(await readEvents(app.client, runId)))), new Set([null]));
  await assertNowhere(app, secret);
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-28 reasoning is inspected and held back as the text is', async (open) => {
  const app = await open({
    simulator: {},
    service: { ...guarded, RunRecording: { RecordReasoningDeltas: true } },
    agents: [{ name: 'helper', model: { provider: 'anthropic', model: 'claude-sonnet-4-5' } }],
  });
  app.simulator.enqueue({ answer: { reasoning: ['Ask jo@exam', 'ple.com'], text: ['Hello.'] } });
  const { events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.equal(
    ofType(events, 'reasoning.delta')
      .map((event) => event['text'])
      .join(''),
    'Ask [redacted]',
  );
  assert.equal(events.at(-1)?.['output'], 'Hello.');
  await assertNowhere(app, mail);
  app.simulator.enqueue(says('Again.'));
  await runJson(app.client, 'helper', { message: 'Go on', sessionId: 's' });
  assert.ok(!sent(app).includes('thinking'), 'the signature is that of the original, which is gone');
  app.simulator.enqueue({ answer: { reasoning: [`Not ${secret}`], text: ['Hello.'] } });
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'content-blocked');
  await assertNowhere(app, secret);
});

forEachDoor(
  'GUARD-21 GUARD-7 a blocked turn leaves the history as it was; earlier turns are not inspected again',
  async (open) => {
    const recorder = recordingGuard();
    const app = await open({
      simulator: {},
      service: guarded,
      module: { guards: [recorder.guard] },
      agents: [helper],
    });
    app.simulator.enqueue(says('Hello Ada.'), says(`No: ${secret}.`), says('Fine.'));
    await runJson(app.client, 'helper', { message: 'I am Ada', sessionId: 's' });
    const stored = async () => (await app.client.sessions.get({ params: { sessionId: 's' } })).body.messages;
    const before = await stored();
    assert.equal((await refusal(runJson(app.client, 'helper', { message: 'And?', sessionId: 's' }))).status, 422);
    assert.equal((await refusal(runJson(app.client, 'helper', { message: secret, sessionId: 's' }))).status, 422);
    assert.deepEqual(await stored(), before);
    await runJson(app.client, 'helper', { message: 'So?', sessionId: 's' });
    assert.ok(!sent(app).includes('And?'));
    assert.deepEqual(texts(recorder.seen), [
      ['UserMessage', 'I am Ada'],
      ['ModelOutput', 'Hello Ada.'],
      ['UserMessage', 'And?'],
      ['ModelOutput', `No: ${secret}.`],
      ['UserMessage', secret],
      ['UserMessage', 'So?'],
      ['ModelOutput', 'Fine.'],
    ]);
    assert.equal((await audited(app)).length, 2);
  },
);

forEachDoor('GUARD-22 a 422 frees the idempotency key', async (open) => {
  const app = await open({ simulator: {}, service: guarded, agents: [helper] });
  app.simulator.enqueue(says(secret), says('Hello.'));
  const headers = { 'idempotency-key': 'k-1' };
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi', { headers }))).status, 422);
  const again = await runJson(app.client, 'helper', 'Hi', { headers });
  assert.equal(again.output, 'Hello.');
  assert.equal(again.headers['idempotency-replayed'], undefined);
  assert.equal((await runJson(app.client, 'helper', 'Hi', { headers })).headers['idempotency-replayed'], 'true');
});

forEachDoor('GUARD-17 a block asks no fallback and does not retry a queued run', async (open) => {
  const app = await open({
    simulator: {},
    service: { ...guarded, AsyncRun: { MaxAttempts: 3 } },
    agents: [{ name: 'helper', model: { ...local, fallbacks: [{ provider: 'openai', model: 'gpt-4.1' }] } }],
  });
  app.simulator.enqueue(says(secret));
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'content-blocked');
  const runId = await enqueue(app.client, 'helper', `About ${secret}`);
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(findings(events), [['content.blocked', 'UserMessage', 'pattern', 'denied-term:0']]);
  assert.equal((await getRun(app.client, runId)).status, 'Failed');
  assert.equal(app.simulator.requests.length, 1);
  await app.close();
  await assertNowhere(app, secret);
});

forEachDoor('GUARD-5 GUARD-6 a direction that is off passes as it is', async (open) => {
  const recorder = recordingGuard();
  const app = await open({
    simulator: {},
    service: { ContentGuard: { InspectInput: false } },
    module: { guards: [recorder.guard] },
    agents: [helper],
  });
  app.simulator.enqueue(says('Hello.'));
  await runJson(app.client, 'helper', { message: 'Hi', documents: [{ name: 'd', content: 'x' }] });
  assert.deepEqual(texts(recorder.seen), [['ModelOutput', 'Hello.']]);
});

forEachDoor('GUARD-5 GUARD-8 values for placeholders are the caller’s text, the definition’s are not', async (open) => {
  const recorder = recordingGuard(({ text }) =>
    text === 'Bob' ? { decision: 'Mask', text: 'X', rules: ['name'] } : { decision: 'Allow' },
  );
  const app = await open({
    simulator: {},
    module: { guards: [recorder.guard] },
    agents: [
      {
        ...helper,
        instructions: 'You help {{who}} with {{what}}.',
        parameters: [
          { name: 'who', kind: 'Text', defaultValue: 'Ada' },
          { name: 'what', kind: 'Text', defaultValue: 'sums' },
        ],
      },
    ],
  });
  app.simulator.enqueue(says('Hello.'));
  await runJson(app.client, 'helper', { message: 'Hi', parameters: { who: 'Bob' } });
  assert.match(sent(app), /You help X with sums\./);
  assert.deepEqual(texts(recorder.seen), [
    ['UserMessage', 'Hi'],
    ['UserMessage', 'Bob'],
    ['ModelOutput', 'Hello.'],
  ]);
  await assertNowhere(app, 'Bob');
});

forEachDoor('GUARD-29 RUN-68 a structured answer is judged as the client gets it', async (open) => {
  const schema = { type: 'object', properties: { to: { type: 'string', maxLength: 12 } } };
  const app = await open({
    simulator: {},
    service: { ...guarded, StructuredResponse: { Enabled: true, MaxRepairAttempts: 1 } },
    agents: [{ name: 'helper', model: { ...local, responseFormat: { kind: 'JsonSchema', schema, schemaName: 'n' } } }],
  });
  app.simulator.enqueue(says(`{"to":"${mail}"}`));
  const answer = await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual([answer.output, answer.structuredOutput], ['{"to":"[redacted]"}', { to: '[redacted]' }]);
  app.simulator.enqueue(says('{"to":"a name that is too long"}'), says('{"to":"\\u0050roject Zeus"}'));
  const problem = await refusal(runJson(app.client, 'helper', 'Hi'));
  assert.equal(problem.code, 'content-blocked', 'a repair is inspected, and so is what escapes stand for');
  await assertNowhere(app, secret);
  await assertNowhere(app, mail);
});

forEachDoor(
  'AGENT-26 the response cache has no answer that a guard has changed, and a hit is inspected',
  async (open) => {
    const cached = { ...local, responseCache: { enabled: true } };
    const app = await open({ simulator: {}, service: guarded, agents: [{ name: 'helper', model: cached }] });
    app.simulator.enqueue(says(`Ask ${mail}`), says(`Ask ${mail}`), says('Fine.'));
    for (let times = 0; times < 2; times += 1)
      assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Ask [redacted]');
    assert.equal(app.simulator.requests.length, 2);
    for (let times = 0; times < 2; times += 1)
      assert.equal((await runJson(app.client, 'helper', 'Hello')).output, 'Fine.');
    assert.equal(app.simulator.requests.length, 3, 'an answer that nobody changed is kept');
    await assertNowhere(app, mail);
    const { folder } = app;
    await app.close();
    const stricter = await open({
      folder,
      simulator: {},
      service: { ContentGuard: { Pattern: { DeniedTerms: ['fine'] } } },
    });
    assert.equal((await refusal(runJson(stricter.client, 'helper', 'Hello'))).code, 'content-blocked');
  },
);

forEachDoor('RUN-54 a replay is inspected by the guards of today', async (open) => {
  const app = await open({ simulator: {}, agents: [helper] });
  app.simulator.enqueue(says('Hello.'));
  const { runId } = await runJson(app.client, 'helper', `Write to ${mail}`);
  const { folder } = app;
  await app.close();
  const guardedApp = await open({ folder, simulator: {}, service: guarded });
  guardedApp.simulator.enqueue(says('Hello.'));
  await guardedApp.client.replays.create({ params: { runId }, body: { toolMode: 'LiveTools' } });
  assert.match(sent(guardedApp), /Write to \[redacted\]/);
});

forEachDoor(
  'GUARD-15 a guard that throws, answers nonsense or comes late blocks, and its text is not logged',
  async (open) => {
    const answers: Record<string, () => unknown> = {
      throws: () => {
        throw new RangeError(`cannot read ${secret}`);
      },
      nothing: () => undefined,
      unknown: () => ({ decision: 'Pass' }),
      'no rules': () => ({ decision: 'Mask', text: 'x', rules: [] }),
      'no rule': () => ({ decision: 'Block', rule: '' }),
      late: () => new Promise(() => undefined),
    };
    const app = await open({
      simulator: {},
      service: { ContentGuard: { GuardTimeout: '50ms' } },
      module: {
        guards: [
          {
            name: 'Odd.1',
            inspect: ({ text }) => (answers[text.split(':')[0] ?? ''] ?? (() => ({ decision: 'Allow' })))() as never,
          },
        ],
      },
      agents: [helper],
    });
    for (const name of Object.keys(answers)) {
      const problem = await refusal(runJson(app.client, 'helper', `${name}: ${secret}`));
      assert.deepEqual(
        [problem.code, problem.guardName, problem.ruleName],
        ['content-blocked', 'Odd.1', 'guard-error'],
        name,
      );
    }
    const failures = app.log.filter(({ message }) => message.startsWith('A content guard failed'));
    assert.equal(failures.length, 6);
    assert.equal(failures.at(-1)?.fields['timeoutMs'], 50, 'the guard that is late is waited for as configured');
    await assertNowhere(app, secret);
    assert.equal(app.simulator.requests.length, 0);
  },
);

forEachDoor(
  'GUARD-12 GUARD-13 guards are asked in their order, each with the text as the former left it',
  async (open) => {
    const first = recordingGuard(() => ({ decision: 'Mask', text: `mail ${mail}`, rules: ['a', 'b', 'a'] }), 'first');
    const second = recordingGuard(
      ({ text }) => (text.includes('stop') ? { decision: 'Block', rule: 'stop' } : { decision: 'Allow' }),
      'second',
    );
    const app = await open({
      simulator: {},
      service: { ContentGuard: { InspectOutput: false, Pattern: pattern } },
      module: { guards: [first.guard, second.guard] },
      agents: [helper],
    });
    app.simulator.enqueue(says('Hello.'));
    const { events, runId } = await runStream(app.client, 'helper', { message: 'stop', sessionId: 's' });
    assert.deepEqual(texts(second.seen), [['UserMessage', `mail ${mail}`]]);
    assert.deepEqual(findings(events), [
      ['content.masked', 'UserMessage', 'first', 'a'],
      ['content.masked', 'UserMessage', 'first', 'b'],
      ['content.masked', 'UserMessage', 'pattern', 'pii:Email'],
    ]);
    assert.match(sent(app), /mail \[redacted\]/);
    const [given] = first.seen;
    assert.ok(given !== undefined);
    const { text: _text, ...rest } = given;
    assert.deepEqual(rest, {
      source: 'UserMessage',
      tenantId: 'default',
      agentName: 'helper',
      runId,
      sessionId: 's',
      userId: null,
      toolName: null,
      toolSource: null,
      mediaType: null,
    });
  },
);

forEachDoor('GUARD-3 without a guard nothing is inspected or held back, whatever the other keys say', async (open) => {
  const app = await open({
    simulator: {},
    service: { ContentGuard: { InspectInput: true, InspectOutput: true, BufferStreamingOutput: true } },
    agents: [helper],
  });
  app.simulator.enqueue(says('It is ', secret));
  const { events } = await runStream(app.client, 'helper', secret);
  assert.equal(events.at(-1)?.['output'], `It is ${secret}`);
  assert.equal(ofType(events, 'message.delta')[0]?.['text'], 'It is ', 'the first part came before the second');
});

forEachDoor('GUARD-27 no tool runs on behalf of a blocked message', async (open) => {
  let calls = 0;
  const app = await open({
    simulator: {},
    service: guarded,
    tools: [
      {
        name: 'act',
        description: 'Acts',
        inputSchema: { type: 'object' },
        execute: async () => {
          calls += 1;
          return 'done';
        },
      },
    ],
    agents: [{ ...helper, toolNames: ['act'] }],
  });
  app.simulator.enqueue({ answer: { text: [`First ${secret}.`], toolCalls: [call('act')] } });
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'content-blocked');
  app.simulator.enqueue(asksFor(call('act', { note: secret })));
  const reply = await refusal(runJson(app.client, 'helper', 'Hi'));
  assert.equal(reply.code, 'content-blocked', 'GUARD-9 the arguments count as well');
  app.simulator.enqueue(asksFor(call('act', { [secret]: 1 })));
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'content-blocked', 'and their names');
  app.simulator.enqueue(asksFor(call('act', '{"note":"Project \\u005aeus"')));
  assert.equal(
    (await refusal(runJson(app.client, 'helper', 'Hi'))).code,
    'content-blocked',
    'also when they are no JSON',
  );
  assert.equal(calls, 0);
  await assertNowhere(app, secret);
  const started = await start(app.client, 'helper', 'Hi');
  assert.equal(started.status, 200);
});

forEachDoor('GUARD-14 the trace of a run has a span for each decision, without the text', async (open) => {
  const app = await open({
    simulator: {},
    service: { ...guarded, Observability: { SuccessSampleRatio: 1, RecordSensitiveData: true } },
    agents: [helper],
  });
  app.simulator.enqueue(says('Fine.'));
  const { runId } = await runJson(app.client, 'helper', `Write to ${mail}`);
  const { body } = await app.client.runs.trace({ params: { runId } });
  const spans = JSON.stringify(body);
  assert.equal(spans.match(/"acp\.guard"/g)?.length, 2);
  assert.match(spans, /"acp\.guard\.decision":"Mask"/);
  assert.match(spans, /"acp\.guard\.decision":"Allow"/);
  // The answer's below its model call; what the run starts with belongs to no call.
  const nameOf = (id: unknown) => body.spans.find((span) => span.id === id)?.name;
  const above = body.spans.filter(({ name }) => name === 'acp.guard').map(({ parentId }) => nameOf(parentId));
  assert.deepEqual(above, ['acp.run', 'acp.model.call']);
  await assertNowhere(app, mail);
});
