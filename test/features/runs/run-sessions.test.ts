import assert from 'node:assert/strict';
import type { Frame } from '../../../src/contract/operation.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import {
  type AgentSetup,
  forEachDurableService,
  forEachOwnedService,
  forEachService,
  type OpenApp,
  type TestApp,
} from '../../support/app.ts';
import type { Scenario, SimulatedRequest, WireName } from '../../support/providers/scenario.ts';
import { surfaceCases } from '../../support/providers/surface-cases.ts';
import {
  assertWholeLog,
  collect,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  tool,
  typesOf,
} from './run-calls.ts';

type ChatRequestMessage = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
};

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => (part as { text: string }).text).join('\n') : '';
};

/** The conversation of a chat completions request, one line a message. */
const conversation = (request: SimulatedRequest): string[] =>
  (request.body['messages'] as ChatRequestMessage[]).map((message) => {
    const calls = message.tool_calls?.map((call) => `${call.function.name}()`) ?? [];
    return [`${message.role}:`, textOf(message.content), ...calls].filter((part) => part !== '').join(' ');
  });

const lastUserText = (request: SimulatedRequest): string =>
  conversation(request)
    .findLast((line) => line.startsWith('user: '))
    ?.slice(6) ?? '';

/** Says what it was told; a message that begins with "wait" is answered after the tool `wait`. */
const respond = (request: SimulatedRequest): Scenario => {
  const said = lastUserText(request);
  const lastRole = conversation(request).at(-1)?.split(':')[0];
  if (said.startsWith('wait') && lastRole === 'user')
    return {
      answer: { text: ['Let me wait.'], toolCalls: [{ id: `c-${said}`, name: 'wait', arguments: '{}' }] },
    };
  return { answer: { text: [`You said ${said}.`] } };
};

const agent = (name: string, more: Partial<AgentSetup> = {}): AgentSetup => ({
  name,
  model: { provider: 'local', model: 'any' },
  toolNames: ['wait'],
  ...more,
});

const openSessions = (open: OpenApp, gates: readonly Gate[]): Promise<TestApp> => {
  let next = 0;
  return open({
    simulator: { respond },
    tools: [
      tool('wait', async (_args, { signal }) => {
        const gate = gates[next];
        next += 1;
        await gate?.pass(signal);
        return 'waited';
      }),
    ],
    agents: [agent('helper'), agent('other')],
  });
};

/** The session as it is stored: also while its first turn goes on. */
const sessionOf = (app: TestApp, id: string) => app.store.open().stores(sessionStore).get('default', id);

const storedMessages = async (app: TestApp, id: string) => {
  const store = app.store.open().stores(sessionStore);
  const session = await store.get('default', id);
  return (session === undefined ? [] : await store.messages(session)).map(
    ({ role, interrupted, contents }, sequence) => ({
      sequence,
      role,
      interrupted,
      text: contents.map((part) => (part.type === 'Text' ? part.text : part.type)).join(' '),
    }),
  );
};

/** Starts a run that waits inside its tool, holding its session. */
const hold = async (app: TestApp, gate: Gate, sessionId: string, message = 'wait') => {
  const started = await stream(app.client, 'helper', { message, sessionId });
  await gate.reached;
  return started;
};

const rest = async (frames: AsyncIterable<Frame>) => assertWholeLog(await collect(frames));

forEachService(
  'RUN-6 SESS-1 a session begins with its first run, and its history is what the model is sent',
  async (open) => {
    const app = await openSessions(open, []);
    const sessionId = 'order:42_a.B-1';
    await runJson(app.client, 'helper', { message: 'one', sessionId });
    await runJson(app.client, 'helper', { message: 'two', sessionId });
    assert.deepEqual(conversation(app.simulator.lastRequest()), ['user: one', 'assistant: You said one.', 'user: two']);
    await runJson(app.client, 'helper', { message: 'wait three', sessionId });
    await runJson(app.client, 'helper', { message: 'four', sessionId });
    assert.deepEqual(conversation(app.simulator.lastRequest()), [
      'user: one',
      'assistant: You said one.',
      'user: two',
      'assistant: You said two.',
      'user: wait three',
      'assistant: Let me wait. wait()',
      'tool: waited',
      'assistant: You said wait three.',
      'user: four',
    ]);
    await runJson(app.client, 'helper', 'alone');
    assert.deepEqual(
      conversation(app.simulator.lastRequest()),
      ['user: alone'],
      'without a session there is no history',
    );
    await runJson(app.client, 'helper', { message: 'other', sessionId: sessionId.toUpperCase() });
    assert.deepEqual(conversation(app.simulator.lastRequest()), ['user: other'], 'ids are compared exactly');
  },
);

forEachDurableService('SESS-3 SESS-5 each completed turn is one version more, its messages in order', async (open) => {
  const app = await openSessions(open, []);
  const first = await runJson(app.client, 'helper', { message: 'one', sessionId: 's' });
  assert.equal(first.sessionId, 's');
  const session = await sessionOf(app, 's');
  assert.deepEqual([session?.version, session?.message_count, session?.active_run_id], [1, 2, null]);
  await runJson(app.client, 'helper', { message: 'wait two', sessionId: 's' });
  assert.equal((await sessionOf(app, 's'))?.version, 2);
  assert.deepEqual(await storedMessages(app, 's'), [
    { sequence: 0, role: 'User', interrupted: false, text: 'one' },
    { sequence: 1, role: 'Assistant', interrupted: false, text: 'You said one.' },
    { sequence: 2, role: 'User', interrupted: false, text: 'wait two' },
    { sequence: 3, role: 'Assistant', interrupted: false, text: 'Let me wait. ToolCall' },
    { sequence: 4, role: 'Tool', interrupted: false, text: 'ToolResult' },
    { sequence: 5, role: 'Assistant', interrupted: false, text: 'You said wait two.' },
  ]);
});

forEachDurableService('SESS-3 a failed turn leaves the session as it was, and a first one no session', async (open) => {
  const app = await openSessions(open, []);
  const fault = { fault: { kind: 'status', status: 500 } } as const;
  app.simulator.enqueue(fault);
  await refusal(start(app.client, 'helper', { message: 'one', sessionId: 's', stream: false }));
  assert.equal(await sessionOf(app, 's'), undefined);
  await runJson(app.client, 'helper', { message: 'one', sessionId: 's' });
  app.simulator.enqueue(fault);
  await refusal(start(app.client, 'helper', { message: 'two', sessionId: 's', stream: false }));
  assert.equal((await sessionOf(app, 's'))?.version, 1);
  await runJson(app.client, 'helper', { message: 'two', sessionId: 's' });
  assert.deepEqual(conversation(app.simulator.lastRequest()), ['user: one', 'assistant: You said one.', 'user: two']);
});

forEachService(
  'SESS-2 RUN-6 a session belongs to the agent of its first run, also after that agent is gone',
  async (open) => {
    const app = await openSessions(open, []);
    await runJson(app.client, 'helper', { message: 'one', sessionId: 's' });
    await app.client.agents.remove({ params: { name: 'helper' } });
    for (const concurrency of ['Reject', 'Enqueue', 'Interrupt', 'Rollback'] as const) {
      const problem = await refusal(start(app.client, 'other', { message: 'two', sessionId: 's', concurrency }));
      assert.deepEqual([problem.status, problem.code], [409, 'session-agent-mismatch'], concurrency);
    }
    assert.equal((await listRuns(app.client)).length, 1);
  },
);

forEachDurableService('RUN-8 Reject: a second message is refused while the first is answered', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  const first = await hold(app, gate, 's');
  for (const body of [{}, { stream: false }, { concurrency: 'Reject' as const }]) {
    const problem = await refusal(start(app.client, 'helper', { message: 'two', sessionId: 's', ...body }));
    assert.deepEqual([problem.status, problem.code], [409, 'session-busy']);
  }
  assert.equal((await listRuns(app.client)).length, 1);
  await runJson(app.client, 'helper', { message: 'elsewhere', sessionId: 't' });
  gate.open();
  await rest(first.frames);
  await runJson(app.client, 'helper', { message: 'two', sessionId: 's' });
  assert.equal((await sessionOf(app, 's'))?.version, 2);
});

forEachService('RUN-2 a busy session is told before an agent that does not compile', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  await app.createAgent(agent('boss', { callableAgentNames: ['other'] }));
  const started = await stream(app.client, 'boss', { message: 'wait', sessionId: 's' });
  await gate.reached;
  await app.client.agents.remove({ params: { name: 'other' } });
  const busy = await refusal(start(app.client, 'boss', { message: 'two', sessionId: 's' }));
  assert.equal(busy.code, 'session-busy');
  assert.equal((await listRuns(app.client)).length, 1);
  gate.open();
  await rest(started.frames);
  const broken = await refusal(start(app.client, 'boss', { message: 'two', sessionId: 's' }));
  assert.equal(broken.code, 'agent-not-compilable');
});

forEachDurableService('RUN-8 Enqueue: runs wait and start in the order they came', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  const first = await hold(app, gate, 's');
  const waiting: { runId: string; frames: AsyncIterator<Frame> }[] = [];
  for (const message of ['two', 'three', 'four']) {
    const started = await stream(app.client, 'helper', { message, sessionId: 's', concurrency: 'Enqueue' });
    const frames = started.frames[Symbol.asyncIterator]();
    const [queued] = await readUntil(frames, 'run.queued');
    assert.equal(queued?.id, 0);
    assert.deepEqual(JSON.parse(queued?.data ?? '').position, waiting.length + 1);
    const run = await getRun(app.client, started.runId);
    assert.deepEqual([run.status, run.startedAt, run.sessionId], ['Queued', null, 's']);
    waiting.push({ runId: started.runId, frames });
  }
  gate.open();
  await rest(first.frames);
  for (const { runId, frames } of waiting) {
    for (let next = await frames.next(); next.done !== true; next = await frames.next());
    assert.deepEqual(typesOf(await followToEnd(app.client, runId)).slice(0, 2), ['run.queued', 'run.started']);
  }
  assert.deepEqual(
    (await storedMessages(app, 's')).flatMap((message) => (message.role === 'User' ? [message.text] : [])),
    ['wait', 'two', 'three', 'four'],
  );
});

forEachService('RUN-8 Enqueue on a free session starts at once, without run.queued', async (open) => {
  const app = await openSessions(open, []);
  const { frames } = await stream(app.client, 'helper', { message: 'one', sessionId: 's', concurrency: 'Enqueue' });
  assert.equal((await rest(frames))[0]?.type, 'run.started');
});

forEachDurableService(
  'RUN-8 at most 16 runs wait for a session, and a cancelled one gives up its place',
  async (open) => {
    const gate = new Gate();
    const app = await openSessions(open, [gate]);
    const first = await hold(app, gate, 's');
    const body = { message: 'next', sessionId: 's', concurrency: 'Enqueue' } as const;
    const waiting: { runId: string; iterator: AsyncIterator<Frame> }[] = [];
    for (let place = 1; place <= 16; place += 1) {
      const started = await stream(app.client, 'helper', body);
      const frames = started.frames[Symbol.asyncIterator]();
      await readUntil(frames, 'run.queued');
      waiting.push({ runId: started.runId, iterator: frames });
    }
    const full = await refusal(start(app.client, 'helper', body));
    assert.deepEqual([full.status, full.code], [409, 'session-queue-full']);
    const dropped = waiting.splice(4, 1)[0];
    await app.client.runs.cancel({ params: { runId: dropped?.runId ?? '' } });
    assert.deepEqual(typesOf(await followToEnd(app.client, dropped?.runId ?? '')), ['run.queued', 'run.canceled']);
    const last = await stream(app.client, 'helper', body);
    gate.open();
    await rest(first.frames);
    for (const { iterator } of waiting)
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next());
    await rest(last.frames);
    assert.equal((await sessionOf(app, 's'))?.version, 17);
  },
);

forEachDurableService('RUN-8 SESS-3 Interrupt: the running turn ends, what it wrote stays', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  const first = await hold(app, gate, 's');
  const second = await stream(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Interrupt' });
  const ended = (await rest(first.frames)).at(-1);
  assert.deepEqual([ended?.type, ended?.['cause']], ['run.canceled', 'Interrupted']);
  await rest(second.frames);
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(0, 2), [
    'user: wait',
    'assistant: Let me wait. wait()',
  ]);
  const kept = await storedMessages(app, 's');
  assert.deepEqual(kept.map(({ role, interrupted }) => [role, interrupted]).slice(0, 2), [
    ['User', false],
    ['Assistant', true],
  ]);
  assert.equal((await getRun(app.client, first.runId)).status, 'Canceled');
});

forEachDurableService(
  'RUN-8 Rollback: the running turn ends, and the history is as if it had never been',
  async (open) => {
    const gate = new Gate();
    const app = await openSessions(open, [gate]);
    await runJson(app.client, 'helper', { message: 'one', sessionId: 's' });
    const first = await hold(app, gate, 's');
    const second = await stream(app.client, 'helper', { message: 'three', sessionId: 's', concurrency: 'Rollback' });
    const ended = (await rest(first.frames)).at(-1);
    assert.deepEqual([ended?.type, ended?.['cause']], ['run.canceled', 'RolledBack']);
    await rest(second.frames);
    assert.deepEqual(conversation(app.simulator.lastRequest()), [
      'user: one',
      'assistant: You said one.',
      'user: three',
    ]);
    assert.equal((await sessionOf(app, 's'))?.version, 2);
  },
);

forEachDurableService('RUN-8 Interrupt goes before those that wait', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  const first = await hold(app, gate, 's');
  const waiting = await stream(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
  const urgent = await stream(app.client, 'helper', { message: 'now', sessionId: 's', concurrency: 'Interrupt' });
  await Promise.all([rest(first.frames), rest(urgent.frames), rest(waiting.frames)]);
  assert.deepEqual(
    (await storedMessages(app, 's')).flatMap((message) => (message.role === 'User' ? [message.text] : [])),
    ['wait', 'now', 'two'],
  );
});

forEachDurableService(
  'SESS-6 calls that a cancel left open are answered as not executed in the next turn',
  async (open) => {
    const gate = new Gate();
    const app = await openSessions(open, [gate]);
    app.simulator.enqueue({
      answer: {
        toolCalls: [
          { id: 'c1', name: 'wait', arguments: '{}' },
          { id: 'c2', name: 'wait', arguments: '{}' },
        ],
      },
    });
    const first = await hold(app, gate, 's', 'both');
    await app.client.runs.cancel({ params: { runId: first.runId } });
    await rest(first.frames);
    const before = await storedMessages(app, 's');
    await runJson(app.client, 'helper', { message: 'go on', sessionId: 's' });
    const messages = app.simulator.lastRequest().body['messages'] as ChatRequestMessage[];
    const called = messages.flatMap((message) => message.tool_calls?.map((call) => call.id) ?? []);
    const answers = messages.filter((message) => message.role === 'tool');
    assert.deepEqual(called, ['c1', 'c2']);
    assert.deepEqual(answers.map((message) => message.tool_call_id).sort(), ['c1', 'c2']);
    assert.match(textOf(answers.find((message) => message.tool_call_id === 'c2')?.content), /not executed/);
    assert.deepEqual(
      (await storedMessages(app, 's')).slice(0, before.length),
      before,
      'stored messages stay as they were',
    );
  },
);

forEachDurableService('SESS-3 a cancelled answer is kept as far as it came, marked as interrupted', async (open) => {
  const app = await openSessions(open, []);
  app.simulator.enqueue({ answer: { text: ['Once upon', ' a time', ' never'] }, fault: { kind: 'stall', after: 3 } });
  const first = await stream(app.client, 'helper', { message: 'tell', sessionId: 's' });
  const frames = first.frames[Symbol.asyncIterator]();
  await readUntil(frames, 'message.delta');
  await app.client.runs.cancel({ params: { runId: first.runId } });
  for (let next = await frames.next(); next.done !== true; next = await frames.next());
  const [user, partial, ...more] = await storedMessages(app, 's');
  assert.deepEqual(more, []);
  assert.equal(user?.text, 'tell');
  assert.equal(partial?.interrupted, true);
  assert.ok('Once upon a time never'.startsWith(partial?.text ?? '-') && partial?.text !== '', partial?.text);
  await runJson(app.client, 'helper', { message: 'go on', sessionId: 's' });
  assert.deepEqual(conversation(app.simulator.lastRequest()), [
    'user: tell',
    `assistant: ${partial?.text}`,
    'user: go on',
  ]);
});

forEachDurableService(
  'SESS-21 a session that changed meanwhile ends the run with a conflict and is not touched',
  async (open) => {
    const gates = [new Gate(), new Gate()] as const;
    const app = await openSessions(open, gates);
    const other = app.store.open();
    const sessions = other.stores(sessionStore);
    /** Another process saves a turn in the place of the one that goes on. */
    const steal = async () => {
      const row = await sessions.get('default', 's');
      assert.ok(row !== undefined && row.active_run_id !== null);
      await other.write(sessions.saveTurn(row, row.active_run_id, [], null, 1));
    };
    const streamed = await hold(app, gates[0], 's');
    await steal();
    gates[0].open();
    const frames = await collect(streamed.frames);
    const events = assertWholeLog(frames);
    assert.equal(events.at(-1)?.type, 'run.failed');
    assert.equal(events.at(-1)?.['error'].type, 'session_conflict');
    assert.deepEqual(
      frames.filter((frame) => frame.id === undefined).map((frame) => frame.event),
      ['error'],
    );
    assert.deepEqual(
      assertWholeLog(await collect((await app.client.runs.events({ params: { runId: streamed.runId } })).frames)),
      events,
    );
    assert.equal((await getRun(app.client, streamed.runId)).error?.class, 'Infrastructure');
    const answered = start(app.client, 'helper', { message: 'wait', sessionId: 's', stream: false });
    await Promise.race([gates[1].reached, answered]);
    await steal();
    gates[1].open();
    const problem = await refusal(answered);
    assert.deepEqual([problem.status, problem.code, problem.errorType], [409, 'session-conflict', 'session_conflict']);
    assert.deepEqual(await storedMessages(app, 's'), []);
  },
);

forEachDurableService(
  'RUN-8 a run that executes elsewhere can be neither interrupted nor rolled back',
  async (open) => {
    const app = await openSessions(open, []);
    await runJson(app.client, 'helper', { message: 'one', sessionId: 's' });
    const other = app.store.open();
    const sessions = other.stores(sessionStore);
    await other.write([sessions.lock('default', 's', 'elsewhere', Date.now(), 9e15)]);
    for (const [concurrency, code] of [
      ['Reject', 'session-busy'],
      ['Interrupt', 'run-not-on-this-instance'],
      ['Rollback', 'run-not-on-this-instance'],
    ] as const) {
      const problem = await refusal(start(app.client, 'helper', { message: 'two', sessionId: 's', concurrency }));
      assert.deepEqual([problem.status, problem.code], [409, code]);
    }
    assert.equal((await listRuns(app.client)).length, 1);
    await sessions.renew(['elsewhere'], 1);
    await runJson(app.client, 'helper', { message: 'two', sessionId: 's' });
  },
);

// Where processes share a store it waits for the session instead: session-line.test.ts.
forEachOwnedService('SESS-21 a waiting run whose session was taken meanwhile ends with a conflict', async (open) => {
  const gate = new Gate();
  const app = await openSessions(open, [gate]);
  const first = await hold(app, gate, 's');
  const waiting = await stream(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
  const other = app.store.open();
  // The lock has lapsed for a process whose clock is ahead.
  await other.write([other.stores(sessionStore).lock('default', 's', 'elsewhere', 8e15, 9e15)]);
  gate.open();
  assert.equal((await rest(first.frames)).at(-1)?.['error'].type, 'session_conflict');
  const events = await rest(waiting.frames);
  assert.deepEqual(typesOf(events), ['run.queued', 'run.failed']);
  assert.deepEqual([events[1]?.['error'].class, events[1]?.['error'].type], ['Infrastructure', 'session_conflict']);
});

type Block = Readonly<Record<string, unknown>>;

const blocksOf = (request: SimulatedRequest, member: string): readonly Block[] => request.body[member] as Block[];

/** What a request says of calls and results, in its order: `call:name`, `result`, and the roles of plain messages. */
const turnsOf: Readonly<Record<WireName, (request: SimulatedRequest) => string[]>> = {
  chat: (request) =>
    blocksOf(request, 'messages').flatMap(({ role, tool_calls: calls }) =>
      calls === undefined
        ? [role === 'tool' ? 'result' : String(role)]
        : (calls as { function: { name: string } }[]).map((call) => `call:${call.function.name}`),
    ),
  azure: (request) => turnsOf.chat(request),
  // Nothing is said in turns.
  embeddings: () => [],
  responses: (request) =>
    blocksOf(request, 'input').map(({ type, role, name }) => {
      if (type === 'function_call') return `call:${String(name)}`;
      return type === 'function_call_output' ? 'result' : String(role);
    }),
  anthropic: (request) =>
    blocksOf(request, 'messages').flatMap(({ role, content }) =>
      (content as Block[]).map(({ type, name }) => {
        if (type === 'tool_use') return `call:${String(name)}`;
        return type === 'tool_result' ? 'result' : String(role);
      }),
    ),
  gemini: (request) =>
    blocksOf(request, 'contents').flatMap(({ role, parts }) =>
      (parts as { functionCall?: { name: string }; functionResponse?: unknown }[]).map((part) => {
        if (part.functionCall !== undefined) return `call:${part.functionCall.name}`;
        return part.functionResponse === undefined ? String(role) : 'result';
      }),
    ),
};

for (const surface of surfaceCases)
  forEachService(`SESS-6 a cancelled turn with tools leaves a history that ${surface.provider} takes`, async (open) => {
    const gate = new Gate();
    const app = await open({
      simulator: {},
      tools: [
        tool('quick', async () => 'quick result'),
        tool('wait', async (_args, { signal }) => {
          await gate.pass(signal);
          return 'waited';
        }),
      ],
      agents: [
        {
          name: 'helper',
          model: { provider: surface.provider, model: surface.model },
          toolNames: ['quick', 'wait'],
        },
      ],
    });
    const calls = ['quick', 'wait', 'quick'].map((name, index) => ({ id: `c${index}`, name, arguments: '{}' }));
    app.simulator.enqueue({ answer: { toolCalls: calls } });
    const first = await hold(app, gate, 's', 'Go');
    await app.client.runs.cancel({ params: { runId: first.runId } });
    await rest(first.frames);
    const next = await runJson(app.client, 'helper', { message: 'Go on', sessionId: 's' });
    assert.equal(next.output, 'Hello from the simulator.');
    assert.deepEqual(turnsOf[surface.wire](app.simulator.lastRequest()), [
      'user',
      'call:quick',
      'call:wait',
      'call:quick',
      'result',
      'result',
      'result',
      'user',
    ]);
    const sent = JSON.stringify(app.simulator.lastRequest().body);
    const places = ['quick result', 'canceled with its run', 'not executed'].map((words) => sent.indexOf(words));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
      'results stand in the order of the calls',
    );
    assert.ok(!places.includes(-1), sent);
  });
