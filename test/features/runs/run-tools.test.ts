import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Frame } from '../../../src/contract/operation.ts';
import type { ToolAuthorizer } from '../../../src/engine/tools/tool.ts';
import { ToolError } from '../../../src/engine/tools/tool.ts';
import { turnStore } from '../../../src/features/runs/run-turns.store.ts';
import { forEachDoor, type TestApp } from '../../support/app.ts';
import type { SimulatedToolCall } from '../../support/providers/scenario.ts';
import {
  assertWholeLog,
  callsTools,
  collect,
  Gate,
  type LoggedEvent,
  refusal,
  runJson,
  runStream,
  start,
  stream,
  tool,
  typesOf,
} from './run-calls.ts';

const local = { provider: 'local', model: 'any' };

const ofType = (events: readonly LoggedEvent[], type: string) => events.filter((event) => event.type === type);

/** What the model got for its calls in its last request, in order. */
const resultsOf = (app: TestApp): string[] =>
  (app.simulator.lastRequest().body['messages'] as { role: string; content: string }[])
    .filter((message) => message.role === 'tool')
    .map((message) => message.content);

const asksFor = (...calls: SimulatedToolCall[]) => ({ answer: { toolCalls: calls } });
const call = (id: string, name: string, args: unknown = {}): SimulatedToolCall => ({
  id,
  name,
  arguments: typeof args === 'string' ? args : JSON.stringify(args),
});

const named = (name: string) => ({ name: 'helper', model: local, toolNames: [name] });

const ledgerOf = (app: TestApp, runId: string) => app.store.open().stores(turnStore).ledger(runId);

forEachDoor(
  'TOOL-27 a call stands in the ledger as Pending before it is made, and is settled after it',
  async (open) => {
    const seen: unknown[] = [];
    const keys: string[] = [];
    const app: TestApp = await open({
      tools: [
        tool(
          'pay',
          async (_args, context) => {
            const ledger = await ledgerOf(app, context.runId);
            seen.push(ledger.map(({ state, tool_name: name }) => [state, name]));
            keys.push(context.idempotencyKey);
            assert.equal(ledger[0]?.idempotency_key, context.idempotencyKey);
            return 'paid';
          },
          {
            effect: 'External',
            inputSchema: { type: 'object', properties: { amount: { type: 'number' }, to: { type: 'string' } } },
          },
        ),
      ],
      simulator: {},
      agents: [named('pay')],
    });
    app.simulator.enqueue(asksFor(call('c1', 'pay', '{"to": "Ada",  "amount": 5}')));
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    assert.deepEqual(seen, [[['Pending', 'pay']]]);
    assert.match(keys[0] ?? '', /^[0-9a-f]{40}$/);
    const name = createHash('sha256').update(`${runId}\n1\n0\npay\n{"amount":5,"to":"Ada"}`).digest('hex').slice(0, 40);
    assert.equal(keys[0], name, 'the key follows from run, turn, tool and arguments alone');
    const { body: settled } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual(
      settled.map((record) => [record.succeeded, record.arguments]),
      [[true, '{"amount":5,"to":"Ada"}']],
      'arguments are canonical JSON',
    );
    assert.deepEqual(
      (await ledgerOf(app, runId)).map(({ state }) => state),
      ['Settled'],
    );
    const order = typesOf(events).filter((type) => type.startsWith('tool.'));
    assert.deepEqual(order, ['tool.invoking', 'tool.invoked']);
  },
);

forEachDoor('TOOL-27 equal calls of one turn, and of two turns, have keys of their own', async (open) => {
  const keys: string[] = [];
  const app = await open({
    tools: [
      tool('pay', async (_args, context) => {
        keys.push(context.idempotencyKey);
        return 'paid';
      }),
    ],
    simulator: {},
    agents: [named('pay')],
  });
  app.simulator.enqueue(asksFor(call('c1', 'pay'), call('c2', 'pay')), asksFor(call('c3', 'pay')));
  await runJson(app.client, 'helper', 'Hi');
  assert.equal(new Set(keys).size, 3);
});

forEachDoor('TOOL-21 AGENT-27 the calls of one turn run one after another in the order of the model', async (open) => {
  const order: string[] = [];
  const step = (name: string) =>
    tool(name, async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
      return name;
    });
  const app = await open({
    tools: [step('first'), step('second')],
    simulator: {},
    agents: [{ name: 'helper', model: local, toolNames: ['first', 'second'] }],
  });
  app.simulator.enqueue(asksFor(call('c1', 'second'), call('c2', 'first')));
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(order, ['second begins', 'second ends', 'first begins', 'first ends']);
  assert.deepEqual(resultsOf(app), ['second', 'first']);
});

forEachDoor(
  'TOOL-21 AGENT-27 in parallel they settle as they end, and go back in the order of the model',
  async (open) => {
    const gates = { one: new Gate(), two: new Gate() };
    const app = await open({
      tools: (['one', 'two'] as const).map((name) =>
        tool(name, async (_args, { signal }) => {
          await gates[name].pass(signal);
          return name;
        }),
      ),
      simulator: {},
      agents: [{ name: 'helper', model: { ...local, allowConcurrentToolCalls: true }, toolNames: ['one', 'two'] }],
    });
    app.simulator.enqueue(asksFor(call('c1', 'one'), call('c2', 'two')));
    const { runId, frames } = await stream(app.client, 'helper', 'Hi');
    await Promise.all([gates.one.reached, gates.two.reached]);
    gates.two.open();
    const iterator = frames[Symbol.asyncIterator]();
    const seen: Frame[] = [];
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      seen.push(next.value);
      if (next.value.event === 'tool.invoked') gates.one.open();
    }
    const events = assertWholeLog(seen);
    assert.deepEqual(
      ofType(events, 'tool.invoking').map((event) => event['toolName']),
      ['one', 'two'],
    );
    assert.deepEqual(
      ofType(events, 'tool.invoked').map((event) => event['toolName']),
      ['two', 'one'],
    );
    assert.deepEqual(resultsOf(app), ['one', 'two']);
    const { body } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual(
      body.map((record) => record.toolName),
      ['two', 'one'],
      'TOOL-24 in the order of settling',
    );
  },
);

forEachDoor('TOOL-24 every settled call has one record, and a refused one too', async (open) => {
  const app = await open({
    tools: [
      tool('count', async (_args, { reportUsage }) => {
        reportUsage({ unit: 'pages', quantity: 3, cost: null, currency: null, isEstimated: true });
        return { n: 3 };
      }),
    ],
    simulator: {},
    agents: [named('count')],
  });
  app.simulator.enqueue(
    asksFor(
      call('c1', 'count'),
      call('c2', 'count', { surplus: 1 }),
      call('c3', 'unknown'),
      call('c4', 'count', '{"a":'),
    ),
  );
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    body.map((record) => [record.toolCallId, record.toolName, record.succeeded, record.result, record.error]),
    [
      ['c1', 'count', true, '{"n":3}', null],
      ['c2', 'count', false, null, 'The arguments do not fit: surplus is not a known argument.'],
      ['c3', 'unknown', false, null, 'There is no tool with the name "unknown".'],
      ['c4', 'count', false, null, 'The arguments are not valid JSON.'],
    ],
  );
  assert.deepEqual(body[0]?.usage, { unit: 'pages', quantity: 3, cost: null, currency: null, isEstimated: true });
  assert.deepEqual(ofType(events, 'tool.invoked')[0]?.['usage'], body[0]?.usage, 'TOOL-23');
  for (const record of body) {
    assert.equal(record.runId, runId);
    assert.ok((record.durationMs ?? -1) >= 0);
    assert.deepEqual([record.source, record.timedOut, record.authorizationDenied], [null, false, false]);
  }
  assert.deepEqual(
    ofType(events, 'tool.failed').map((event) => [event['toolCallId'], event['error']]),
    body.slice(1).map((record) => [record.toolCallId, record.error]),
  );
  assert.deepEqual(resultsOf(app), ['{"n":3}', ...body.slice(1).map((record) => record.error)]);
});

forEachDoor(
  'TOOL-15 the text of a body that throws stays in the log; a chosen message goes to the model',
  async (open) => {
    const app = await open({
      tools: [
        tool('broken', async () => {
          throw new RangeError('password=hunter2');
        }),
        tool('polite', async () => {
          throw new ToolError('The city is not known.');
        }),
      ],
      simulator: {},
      agents: [{ name: 'helper', model: local, toolNames: ['broken', 'polite'] }],
    });
    app.simulator.enqueue(asksFor(call('c1', 'broken'), call('c2', 'polite')));
    const { frames } = await runStream(app.client, 'helper', 'Hi');
    assert.deepEqual(resultsOf(app), ['Tool failed with RangeError.', 'The city is not known.']);
    assert.ok(!JSON.stringify([frames, await app.store.text()]).includes('hunter2'));
    const logged = app.log.find((line) =>
      String((line.fields['err'] as Error | undefined)?.message).includes('hunter2'),
    );
    assert.equal(typeof logged?.fields['requestId'], 'string');
  },
);

forEachDoor(
  'TOOL-14 a tool that takes too long is given up, its signal aborted and its result dropped',
  async (open) => {
    const late = Promise.withResolvers<string>();
    const aborted = Promise.withResolvers<unknown>();
    const app = await open({
      tools: [
        tool(
          'slow',
          (_args, { signal }) => {
            signal.addEventListener('abort', () => aborted.resolve(signal.reason), { once: true });
            return late.promise;
          },
          { timeoutMs: 20 },
        ),
      ],
      simulator: {},
      agents: [named('slow')],
    });
    app.simulator.enqueue(asksFor(call('c1', 'slow')));
    const { runId, events } = await runStream(app.client, 'helper', 'Hi');
    assert.equal(((await aborted.promise) as Error).name, 'TimeoutError');
    late.resolve('too late');
    assert.deepEqual(resultsOf(app), ['The tool did not answer within 20 ms.']);
    assert.equal(ofType(events, 'tool.failed')[0]?.['timedOut'], true);
    const [record] = (await app.client.runs.tools({ params: { runId } })).body;
    assert.deepEqual([record?.timedOut, record?.succeeded, record?.result], [true, false, null]);
    assert.equal(events.at(-1)?.type, 'run.completed');
  },
);

forEachDoor('TOOL-16 as many failures in a row as are tolerated, and one more, end the run', async (open) => {
  const fails = tool('fails', async () => {
    throw new Error('no');
  });
  const works = tool('works', async () => 'fine');
  const stalls = tool('stalls', () => new Promise<string>(() => undefined), { timeoutMs: 5 });
  const app = await open({
    tools: [fails, works, stalls],
    simulator: {},
    service: { Tools: { MaxConsecutiveErrors: 1 } },
    agents: [{ name: 'helper', model: local, toolNames: ['fails', 'works', 'stalls'] }],
  });
  const turns = async (...names: string[]) => {
    for (const name of names) app.simulator.enqueue(asksFor(call(`c-${name}`, name)));
    const result = await runStream(app.client, 'helper', 'Hi');
    return result.events.at(-1) as LoggedEvent;
  };
  assert.equal((await turns('fails', 'works', 'fails', 'works')).type, 'run.completed', 'a success resets the count');
  const failed = await turns('fails', 'unknown');
  assert.deepEqual([failed['error'].class, failed['error'].type], ['ToolError', 'tool_error']);
  assert.match(failed['error'].message, /^Tool "unknown" failed, as the last of 2 failed calls in a row\.$/);
  const timedOut = await turns('fails', 'stalls');
  assert.deepEqual([timedOut['error'].class, timedOut['error'].type], ['ToolTimeout', 'tool_timeout']);
  app.simulator.enqueue(asksFor(call('a', 'fails')), asksFor(call('b', 'fails')));
  const problem = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([problem.status, problem.code, problem.errorType], [502, 'tool-failed', 'tool_error'], 'RUN-20');
  app.simulator.enqueue(asksFor(call('a', 'fails')), asksFor(call('b', 'stalls')));
  const slow = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([slow.status, slow.code], [502, 'tool-timeout']);
});

forEachDoor('TOOL-17 after the last round the model answers without tools', async (open) => {
  const app = await open({
    tools: [tool('look', async () => 'seen')],
    simulator: {},
    service: { Tools: { MaxIterations: 2 } },
    agents: [named('look')],
  });
  app.simulator.enqueue(asksFor(call('c1', 'look')), asksFor(call('c2', 'look')), {
    answer: { text: ['As far as I know.'], toolCalls: [call('c3', 'look')] },
  });
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  assert.equal(app.simulator.requests.length, 3);
  assert.equal(app.simulator.lastRequest().body['tool_choice'], 'none');
  const end = events.at(-1);
  assert.deepEqual(
    [end?.type, end?.['output'], end?.['finishReason']],
    ['run.completed', 'As far as I know.', 'Iterations'],
  );
  assert.equal((await app.client.runs.tools({ params: { runId } })).body.length, 2);
  const answer = await runJson(app.client, 'helper', 'Hi');
  assert.equal(answer.finishReason, 'Stop');
});

forEachDoor('TOOL-18 TOOL-19 a result is canonical text, cut to its limit for the model', async (open) => {
  const app = await open({
    tools: [
      tool('text', async () => 'as it is'),
      tool('nothing', async () => null),
      tool('json', async () => ({ b: 1, a: [true] })),
      tool('long', async () => 'é'.repeat(500), { maxOutputBytes: 100 }),
    ],
    simulator: {},
    agents: [{ name: 'helper', model: local, toolNames: ['text', 'nothing', 'json', 'long'] }],
  });
  app.simulator.enqueue(asksFor(call('1', 'text'), call('2', 'nothing'), call('3', 'json'), call('4', 'long')));
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  const [text, nothing, json, long = ''] = resultsOf(app);
  assert.deepEqual([text, nothing, json], ['as it is', 'null', '{"b":1,"a":[true]}']);
  assert.ok(Buffer.byteLength(long) <= 100);
  const envelope = JSON.parse(long) as { truncated: boolean; omittedBytes: number; content: string };
  assert.equal(envelope.truncated, true);
  assert.equal(envelope.omittedBytes + Buffer.byteLength(envelope.content), 1000);
  const cut = ofType(events, 'tool.output-truncated');
  assert.deepEqual(
    cut.map((event) => [event['toolName'], event['originalBytes'], event['omittedBytes']]),
    [['long', 1000, envelope.omittedBytes]],
  );
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    body.map((record) => record.result),
    [text, nothing, json, long],
    'the same text is stored',
  );
});

forEachDoor('TOOL-12 without a handler a permission decides: the shared token has all, a key none', async (open) => {
  const token = 'shared-token-0123456789';
  const app = await open({
    tools: [
      tool('open', async () => 'open'),
      tool('guarded', async () => 'secret', { requiredPermission: 'vault.read' }),
    ],
    simulator: {},
    host: { AuthToken: token },
    token,
    agents: [{ name: 'helper', model: local, toolNames: ['open', 'guarded'] }],
    service: { Tools: { MaxConsecutiveErrors: 0 } },
  });
  const { body } = await app.client.keys.create({
    body: { name: 'k', role: 'Admin', scopes: ['RunsRead', 'RunsWrite'] },
  });
  const both = asksFor(call('1', 'open'), call('2', 'guarded'));
  app.simulator.enqueue(both);
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(resultsOf(app), ['open', 'secret']);
  app.simulator.enqueue(both);
  const { runId, events } = await runStream(await app.clientFor(body.plaintextKey), 'helper', 'Hi');
  assert.deepEqual(resultsOf(app), ['open', 'This call needs the permission vault.read.']);
  assert.equal(events.at(-1)?.type, 'run.completed', 'TOOL-16 a denial is no failure');
  assert.equal(ofType(events, 'tool.failed')[0]?.['authorizationDenied'], true);
  const record = (await app.client.runs.tools({ params: { runId } })).body[1];
  assert.deepEqual([record?.authorizationDenied, record?.succeeded], [true, false]);
});

forEachDoor(
  'TOOL-11 TOOL-12 a handler decides before anything else and gives its reason to the model',
  async (open) => {
    const asked: unknown[] = [];
    const authorizer: ToolAuthorizer = {
      async authorize({ tool: { name }, arguments: args, context }) {
        asked.push([name, args, context.agentName, context.sessionId]);
        return name === 'look' ? { allowed: true } : { allowed: false, reason: 'Not on a Sunday.' };
      },
    };
    const app = await open({
      tools: [tool('look', async () => 'seen'), tool('touch', async () => assert.fail('was not allowed'))],
      authorizer,
      simulator: {},
      agents: [{ name: 'helper', model: local, toolNames: ['look', 'touch'] }],
    });
    app.simulator.enqueue(asksFor(call('1', 'look'), call('2', 'touch', { wrong: true })));
    await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    assert.deepEqual(resultsOf(app), ['seen', 'Not on a Sunday.'], 'the arguments were not even looked at');
    assert.deepEqual(asked, [
      ['look', {}, 'helper', 's'],
      ['touch', { wrong: true }, 'helper', 's'],
    ]);
  },
);

forEachDoor('RUN-29 a tool adds events of its own to the log', async (open) => {
  const errors: string[] = [];
  const app = await open({
    tools: [
      tool('work', async (_args, { emit }) => {
        emit('acme.progress', { percent: 50 });
        for (const type of ['acp.quota', 'With Space', '', 'x'.repeat(129)])
          try {
            emit(type, null);
          } catch (error) {
            errors.push((error as Error).name);
          }
        return 'done';
      }),
    ],
    script: callsTools('work'),
    agents: [{ name: 'helper', toolNames: ['work'] }],
  });
  const { events } = await runStream(app.client, 'helper', 'Hi');
  const custom = ofType(events, 'custom');
  assert.deepEqual(
    custom.map((event) => [event['customType'], event['payload']]),
    [['acme.progress', { percent: 50 }]],
  );
  assert.deepEqual(errors, ['TypeError', 'TypeError', 'TypeError', 'TypeError']);
  const types = typesOf(events);
  assert.ok(
    types.indexOf('tool.invoking') < types.indexOf('custom') && types.indexOf('custom') < types.indexOf('tool.invoked'),
  );
});

forEachDoor('TOOL-11 the body knows its run, session and user', async (open) => {
  let context: Record<string, unknown> = {};
  const app = await open({
    tools: [
      tool('work', async (_args, { tenantId, agentName, runId, rootRunId, sessionId, userId, toolCallId }) => {
        context = { tenantId, agentName, runId, rootRunId, sessionId, userId, toolCallId };
        return 'done';
      }),
    ],
    script: callsTools('work'),
    agents: [{ name: 'helper', toolNames: ['work'] }],
  });
  const { runId } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.deepEqual(context, {
    tenantId: 'default',
    agentName: 'helper',
    runId,
    rootRunId: runId,
    sessionId: 's',
    userId: null,
    toolCallId: 'call_1_0',
  });
});

forEachDoor('RUN-64 TOOL-27 a fallback repeats the model call, not the tools that are done', async (open) => {
  const keys: string[] = [];
  const app = await open({
    tools: [
      tool('pay', async (_args, context) => {
        keys.push(context.idempotencyKey);
        return 'paid';
      }),
    ],
    simulator: {},
    agents: [
      {
        name: 'helper',
        model: { ...local, fallbacks: [{ provider: 'openai', model: 'gpt-other' }] },
        toolNames: ['pay'],
      },
    ],
  });
  app.simulator.enqueue(asksFor(call('c1', 'pay')), { fault: { kind: 'status', status: 503 } });
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal(ofType(events, 'model.fallback-used').length, 1);
  assert.equal(keys.length, 1);
  assert.deepEqual(resultsOf(app), ['paid']);
});

forEachDoor('TOOL-13 a validator of the tool has the last word on the arguments', async (open) => {
  const app = await open({
    tools: [
      tool('book', async () => 'booked', {
        inputSchema: { type: 'object', properties: { day: { type: 'integer', minimum: 1 } }, required: ['day'] },
        validate: (args) => ((args as { day: number }).day > 31 ? ['day is not in any month'] : []),
      }),
    ],
    simulator: {},
    agents: [named('book')],
  });
  app.simulator.enqueue(
    asksFor(
      call('1', 'book', {}),
      call('2', 'book', { day: 0 }),
      call('3', 'book', { day: 40 }),
      call('4', 'book', []),
    ),
  );
  await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  app.simulator.enqueue(asksFor(call('3', 'book', { day: 40 })), asksFor(call('4', 'book', { day: 7 })));
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(resultsOf(app), ['The arguments do not fit: day is not in any month.', 'booked']);
});

forEachDoor('TOOL-22 parallel calls are all told when the run is cancelled', async (open) => {
  const gates = { one: new Gate(), two: new Gate() };
  const ended: string[] = [];
  const app = await open({
    tools: (['one', 'two'] as const).map((name) =>
      tool(name, async (_args, { signal }) => {
        await gates[name].pass(signal).catch(() => ended.push(name));
        return name;
      }),
    ),
    simulator: {},
    agents: [{ name: 'helper', model: { ...local, allowConcurrentToolCalls: true }, toolNames: ['one', 'two'] }],
  });
  app.simulator.enqueue(asksFor(call('c1', 'one'), call('c2', 'two')));
  const { runId, frames } = await stream(app.client, 'helper', 'Hi');
  await Promise.all([gates.one.reached, gates.two.reached]);
  await app.client.runs.cancel({ params: { runId } });
  const events = assertWholeLog(await collect(frames));
  assert.equal(ofType(events, 'tool.failed').length, 2);
  assert.deepEqual(ended.toSorted(), ['one', 'two']);
  assert.equal(events.at(-1)?.type, 'run.canceled');
});
