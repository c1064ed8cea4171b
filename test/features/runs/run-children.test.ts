import assert from 'node:assert/strict';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { type AgentSetup, forEachDurableService, overHttp } from '../../support/app.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import {
  assertWholeLog,
  callsTools,
  collect,
  eventsOf,
  followToEnd,
  Gate,
  getRun,
  type LoggedEvent,
  listRuns,
  readEvents,
  runJson,
  runStream,
  stream,
  tool,
  typesOf,
} from './run-calls.ts';

const call = (name: string, message = 'Please help') => ({ name, arguments: { message } });

/** `boss` asks `child` and repeats what comes back; `child` says yes. */
const asks = [
  { when: { model: 'boss-1', tool: 'call_child' }, reply: { text: 'It said: {{last}}' } },
  { when: { model: 'boss-1' }, reply: { toolCalls: [call('call_child')] } },
  { when: { model: 'child-1' }, reply: { text: 'Yes.' } },
];

const model = (name: string) => ({ provider: 'demo', model: `${name}-1` });
const child: AgentSetup = { name: 'child', model: model('child') };
const boss: AgentSetup = { name: 'boss', model: model('boss'), callableAgentNames: ['child'] };

const find = (events: readonly LoggedEvent[], type: string): LoggedEvent => {
  const event = events.find((candidate) => candidate.type === type);
  return event ?? assert.fail(`no ${type} among ${typesOf(events).join(', ')}`);
};

forEachDurableService('AGENT-46 a callable agent is a tool whose call is a run of its own', async (open) => {
  const { client } = await open({ script: asks, agents: [child, boss] });
  const { runId, events } = await runStream(client, 'boss', { message: 'Go', sessionId: 's', culture: 'de' });
  assert.equal(events.at(-1)?.['output'], 'It said: Yes.');
  assert.deepEqual(
    typesOf(events).filter((type) => type.startsWith('child.') || type.startsWith('tool.')),
    ['tool.invoking', 'child.started', 'child.completed', 'tool.invoked'],
  );
  const started = find(events, 'child.started');
  const invoking = find(events, 'tool.invoking');
  assert.deepEqual(
    [started['agentName'], started['depth'], started['toolCallId']],
    ['child', 1, invoking['toolCallId']],
  );
  const completed = find(events, 'child.completed');
  assert.equal(completed['status'], 'Completed');
  const run = await getRun(client, started['childRunId']);
  assert.deepEqual(completed['usage'], run.usage);
  assert.deepEqual(
    [run.agentName, run.status, run.parentRunId, run.rootRunId, run.depth, run.sessionId, run.tenantId],
    ['child', 'Completed', runId, runId, 1, null, 'default'],
  );
  const log = await followToEnd(client, run.id);
  assert.equal(log[0]?.['parentRunId'], runId);
  assert.equal((await getRun(client, runId)).childRunCount, 1);
  const [record] = (await client.runs.tools({ params: { runId } })).body;
  assert.deepEqual([record?.toolName, record?.result, record?.succeeded], ['call_child', 'Yes.', true]);
});

forEachDurableService('AGENT-46 the tool of an agent has a name that every provider takes', async (open) => {
  const app = await open({
    simulator: {},
    agents: [
      { ...child, name: 'my.child' },
      { name: 'boss', model: { provider: 'local', model: 'any' }, callableAgentNames: ['my.child'] },
    ],
  });
  await runJson(app.client, 'boss', 'Go');
  const tools = app.simulator.lastRequest().body['tools'] as { function: { name: string; parameters: unknown } }[];
  assert.deepEqual(
    tools.map((entry) => entry.function.name),
    ['call_my_child'],
  );
});

forEachDurableService('AGENT-46 RUN-36 a child run has the attribution of its caller', async (open) => {
  const app = await open({ script: asks, agents: [child, boss] });
  const { body } = await app.client.keys.create({
    body: { name: 'batch', role: 'Operator', scopes: ['RunsRead', 'RunsWrite'] },
  });
  const { runId } = await runJson(await app.clientFor(body.plaintextKey), 'boss', 'Go');
  const [run] = await listRuns(app.client, { parentRunId: runId });
  assert.deepEqual(run?.labels, { apiKey: 'batch' });
  assert.deepEqual((await listRuns(app.client, { label: 'apiKey:batch', includeChildren: true })).length, 2);
});

forEachDurableService('AGENT-47 a failed child is a tool error, and its text stays in its own run', async (open) => {
  const { client } = await open({
    script: [...asks.slice(0, 2), { when: { model: 'child-1' }, reply: { error: 'content_filtered' } }],
    agents: [child, boss],
  });
  const { runId, events } = await runStream(client, 'boss', 'Go');
  assert.equal(find(events, 'child.completed')['status'], 'Failed');
  assert.equal(find(events, 'tool.failed')['error'], 'Agent "child" failed.');
  assert.equal(events.at(-1)?.['output'], 'It said: Agent "child" failed.');
  const [run] = await listRuns(client, { parentRunId: runId });
  assert.equal(run?.error?.type, 'content_filtered');
});

forEachDurableService(
  'AGENT-47 an agent that is gone, or needs parameters, is a tool error without a run',
  async (open) => {
    const gate = new Gate();
    const app = await open({
      tools: [
        tool('wait', async () => {
          await gate.pass();
          return 'waited';
        }),
      ],
      script: [
        { when: { model: 'boss-1', tool: 'wait' }, reply: { toolCalls: [call('call_child'), call('call_picky')] } },
        { when: { model: 'boss-1', tool: 'call_picky' }, reply: { text: 'Over.' } },
        { when: { model: 'boss-1' }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
      ],
      agents: [
        child,
        { name: 'picky', parameters: [{ name: 'city', kind: 'Text', required: true }] },
        { ...boss, callableAgentNames: ['child', 'picky'], toolNames: ['wait'] },
      ],
    });
    const { runId, frames } = await stream(app.client, 'boss', 'Go');
    await gate.reached;
    await app.client.agents.remove({ params: { name: 'child' } });
    gate.open();
    const events = assertWholeLog(await collect(frames));
    assert.deepEqual(
      events.filter((event) => event.type === 'tool.failed').map((event) => event['error']),
      ['Agent "child" cannot be called now.', 'Agent "picky" needs parameters and cannot be called by another agent.'],
    );
    assert.equal(events.at(-1)?.['output'], 'Over.');
    assert.deepEqual(await listRuns(app.client, { parentRunId: runId }), []);
  },
);

forEachDurableService('RUN-48 the depth of a tree is limited, and a refused call leaves no run', async (open) => {
  const chain = ['a', 'b', 'c'];
  const { client } = await open({
    script: [
      { when: { tool: 'call_b' }, reply: { text: 'b: {{last}}' } },
      { when: { tool: 'call_c' }, reply: { text: 'c: {{last}}' } },
      { when: { model: 'a-1' }, reply: { toolCalls: [call('call_b')] } },
      { when: { model: 'b-1' }, reply: { toolCalls: [call('call_c')] } },
      { reply: { text: 'end' } },
    ],
    service: { AgentGraph: { MaxDepth: 1 } },
    agents: chain
      .map((name, index) => ({ name, model: model(name), callableAgentNames: chain.slice(index + 1, index + 2) }))
      .toReversed(),
  });
  const { runId, events } = await runStream(client, 'a', 'Go');
  assert.equal(events.at(-1)?.['output'], 'b: c: The call is too deep: agents may call each other 1 levels deep.');
  assert.deepEqual(
    (await listRuns(client, { rootRunId: runId })).map((run) => run.agentName),
    ['b', 'a'],
  );
});

forEachDurableService('RUN-48 a depth of 0 allows no child', async (open) => {
  const { client } = await open({ script: asks, service: { AgentGraph: { MaxDepth: 0 } }, agents: [child, boss] });
  const { runId, events } = await runStream(client, 'boss', 'Go');
  assert.match(find(events, 'tool.failed')['error'], /too deep/);
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal((await listRuns(client, { rootRunId: runId })).length, 1);
});

for (const [limit, expected] of [
  [2, 2],
  [0, 3],
] as const)
  forEachDurableService(`RUN-48 the runs of a tree are counted over all levels: at most ${limit}`, async (open) => {
    const { client } = await open({
      script: [
        { when: { model: 'boss-1', tool: 'call_child' }, reply: { text: '{{last}}' } },
        {
          when: { model: 'boss-1' },
          reply: { toolCalls: ['1', '2', '3'].map((message) => call('call_child', message)) },
        },
        { reply: { text: 'Yes.' } },
      ],
      service: { AgentGraph: { MaxTotalRuns: limit } },
      agents: [child, boss],
    });
    const { runId, events } = await runStream(client, 'boss', 'Go');
    assert.equal((await listRuns(client, { parentRunId: runId })).length, expected);
    assert.equal(events.at(-1)?.['output'], expected === 3 ? 'Yes.' : 'The run tree has used its 2 agent calls.');
  });

forEachDurableService(
  'RUN-49 tokens are counted over the tree, and the run that meets the limit fails',
  async (open) => {
    const { client } = await open({
      script: [
        {
          when: { model: 'boss-1' },
          reply: { toolCalls: [call('call_child')], usage: { inputTokens: 50, outputTokens: 10 } },
        },
        { when: { model: 'child-1', tool: 'look' }, reply: { text: 'Never.' } },
        { reply: { toolCalls: [{ name: 'look', arguments: {} }], usage: { inputTokens: 30, outputTokens: 10 } } },
      ],
      tools: [tool('look', async () => 'seen')],
      service: { AgentGraph: { MaxTotalTokens: 100 } },
      agents: [{ ...child, toolNames: ['look'] }, boss],
    });
    const { runId, events } = await runStream(client, 'boss', 'Go');
    const [run] = await listRuns(client, { parentRunId: runId });
    assert.deepEqual(
      [run?.status, run?.error?.class, run?.error?.type],
      ['Failed', 'QuotaExceeded', 'budget_exceeded'],
    );
    const end = events.at(-1);
    assert.deepEqual([end?.type, end?.['error'].type], ['run.failed', 'budget_exceeded'], 'the caller meets it next');
    assert.equal((await getRun(client, runId)).treeUsage?.totalTokens, 100);
  },
);

forEachDurableService('RUN-43 cancelling a root stops its descendants, and every log ends once', async (open, t) => {
  const gate = new Gate();
  const app = await open({
    tools: [
      tool('wait', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'waited';
      }),
    ],
    script: [
      { when: { model: 'boss-1' }, reply: { toolCalls: [call('call_middle')] } },
      { when: { model: 'middle-1' }, reply: { toolCalls: [call('call_child')] } },
      ...callsTools('wait'),
    ],
    agents: [
      { ...child, toolNames: ['wait'] },
      { name: 'middle', model: model('middle'), callableAgentNames: ['child'] },
      { ...boss, callableAgentNames: ['middle'] },
    ],
  });
  const { client } = app;
  const { runId, frames } = await stream(client, 'boss', 'Go');
  await gate.reached;
  await client.runs.cancel({ params: { runId } });
  const end = assertWholeLog(await collect(frames)).at(-1);
  assert.deepEqual([end?.type, end?.['cause']], ['run.canceled', 'Requested']);
  const below = (await listRuns(client, { rootRunId: runId })).filter((run) => run.id !== runId);
  assert.deepEqual(
    below.map((run) => run.agentName),
    ['child', 'middle'],
  );
  for (const run of below) {
    const last = (await followToEnd(client, run.id)).at(-1);
    assert.deepEqual([last?.type, last?.['cause']], ['run.canceled', 'ParentCanceled'], run.agentName);
  }
  assertWholeLog(await readEvents(client, runId));
  const counts = (await listRuns(client, { rootRunId: runId })).map((run) => [run.id, run.eventCount]);
  await app.close();
  const storage = app.store.open();
  t.after(() => storage.close());
  const stored = await Promise.all(
    counts.map(async ([id]) => [id, (await storage.stores(runStore).packs('default', String(id), 0, 999)).at(-1)]),
  );
  assert.deepEqual(
    stored.map(([id, pack]) => [id, typeof pack === 'object' ? pack.lastSequence + 1 : null]),
    counts,
    'nothing was written after the ends',
  );
});

forEachDurableService('RUN-43 cancelling a child leaves its parent, whose model sees a tool error', async (open) => {
  const gate = new Gate();
  const { client } = await open({
    tools: [
      tool('wait', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'waited';
      }),
    ],
    script: [...asks.slice(0, 2), ...callsTools('wait')],
    agents: [{ ...child, toolNames: ['wait'] }, boss],
  });
  const { runId, frames } = await stream(client, 'boss', 'Go');
  await gate.reached;
  const [run] = await listRuns(client, { parentRunId: runId });
  await client.runs.cancel({ params: { runId: run?.id ?? '' } });
  const events = assertWholeLog(await collect(frames));
  assert.equal(find(events, 'child.completed')['status'], 'Canceled');
  assert.equal(events.at(-1)?.['output'], 'It said: Agent "child" was canceled.');
  assert.equal((await followToEnd(client, run?.id ?? '')).at(-1)?.['cause'], 'Requested');
});

forEachDurableService('AGENT-48 a child that takes longer than its deadline is asked to stop', async (open) => {
  const { client } = await open({
    script: [...asks.slice(0, 2), { when: { model: 'child-1' }, reply: { stall: true } }],
    service: { AgentGraph: { ChildDeadline: '5s', WaitTimeout: '6s' } },
    agents: [child, { ...boss, subAgents: { childDeadlineMs: 20 } }],
  });
  const { runId, events } = await runStream(client, 'boss', 'Go');
  const timedOut = find(events, 'child.timed-out');
  assert.deepEqual([timedOut['agentName'], timedOut['stage'], timedOut['limitMs']], ['child', 'Deadline', 20]);
  assert.equal(find(events, 'child.completed')['status'], 'Failed');
  const [run] = await listRuns(client, { parentRunId: runId });
  assert.deepEqual(
    [run?.id, run?.error?.class, run?.error?.type],
    [timedOut['childRunId'], 'Timeout', 'child_deadline'],
  );
  assert.equal(events.at(-1)?.type, 'run.completed');
});

overHttp('AGENT-48 a child without a deadline of its caller has that of the host', async (open) => {
  const { client } = await open({
    script: [...asks.slice(0, 2), { when: { model: 'child-1' }, reply: { stall: true } }],
    service: { AgentGraph: { ChildDeadline: '20ms', WaitTimeout: '6s' } },
    agents: [child, boss],
  });
  const { events } = await runStream(client, 'boss', 'Go');
  const timedOut = find(events, 'child.timed-out');
  assert.deepEqual([timedOut['stage'], timedOut['limitMs']], ['Deadline', 20]);
});

forEachDurableService(
  'AGENT-48 the caller stops waiting after its time, whether or not the child has stopped',
  async (open) => {
    const { client, app } = await open({
      script: [...asks.slice(0, 2), { when: { model: 'child-1' }, reply: { stall: true } }],
      service: { AgentGraph: { WaitTimeout: '20ms' } },
      agents: [child, boss],
    });
    const { runId, events } = await runStream(client, 'boss', 'Go');
    const timedOut = find(events, 'child.timed-out');
    assert.deepEqual([timedOut['stage'], timedOut['limitMs']], ['Wait', 20]);
    assert.equal(events.at(-1)?.['output'], 'It said: Agent "child" did not answer within 20 ms.');
    const [run] = await listRuns(client, { parentRunId: runId });
    assert.equal(run?.status, 'Running');
    await app.drain();
    assertWholeLog(await readEvents(client, run?.id ?? ''));
    assertWholeLog(await readEvents(client, runId));
  },
);

forEachDurableService('AGENT-27 AGENT-46 children that are called together run together', async (open) => {
  const gates = { one: new Gate(), two: new Gate() };
  const { client } = await open({
    simulator: {
      respond: (request: SimulatedRequest) => {
        const text = JSON.stringify(request.body['messages']);
        if (request.model === 'child') {
          const name = text.includes('one') ? 'one' : 'two';
          const called = text.includes('"tool"');
          return called
            ? { answer: { text: [name] } }
            : { answer: { toolCalls: [{ id: name, name: `wait_${name}`, arguments: '{}' }] } };
        }
        if (text.includes('"tool"')) return { answer: { text: ['Both.'] } };
        const calls = ['one', 'two'].map((message) => ({
          id: message,
          name: 'call_child',
          arguments: JSON.stringify({ message }),
        }));
        return { answer: { toolCalls: calls } };
      },
    },
    tools: (['one', 'two'] as const).map((name) =>
      tool(`wait_${name}`, async (_args, { signal }) => {
        await gates[name].pass(signal);
        return name;
      }),
    ),
    agents: [
      { name: 'child', model: { provider: 'local', model: 'child' }, toolNames: ['wait_one', 'wait_two'] },
      {
        name: 'boss',
        model: { provider: 'local', model: 'boss', allowConcurrentToolCalls: true },
        callableAgentNames: ['child'],
      },
    ],
  });
  const { frames } = await stream(client, 'boss', 'Go');
  await Promise.all([gates.one.reached, gates.two.reached]);
  gates.two.open();
  gates.one.open();
  assert.equal(eventsOf(await collect(frames)).at(-1)?.['output'], 'Both.');
});
