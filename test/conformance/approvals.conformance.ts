import assert from 'node:assert/strict';
import { type Answer, type Api, assertProblem, type Body, errorPaths, type Frame, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { agentGone, approvalRulesInForce } from './in-force.ts';
import { rule } from './rule.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const queued = { headers: { prefer: 'respond-async' } };

interface World {
  readonly agent: string;
  readonly sessionId: string;
}

const world = async (api: Api, definition: Record<string, unknown> = {}): Promise<World> => ({
  agent: await api.agent({ toolNames: ['guarded', 'add'], ...definition }),
  sessionId: unique('session'),
});

/** A turn of the session that ends waiting. */
const paused = async (api: Api, { agent, sessionId }: World, message: string, status = 'AwaitingApproval') => {
  const answer = await api.run(agent, { message, sessionId });
  assert.deepEqual([answer.status, answer.body.status], [200, status], answer.text);
  return answer.body;
};

const next = (api: Api, { agent, sessionId }: World, body: Record<string, unknown>): Promise<Answer> =>
  api.run(agent, { sessionId, ...body });

const yes = (requestId: string, more: Record<string, unknown> = {}) => ({ requestId, approved: true, ...more });
const no = (requestId: string, more: Record<string, unknown> = {}) => ({ requestId, approved: false, ...more });

const logOf = (api: Api, runId: string): Promise<Frame[]> => api.frames('GET', `/api/runs/${runId}/events`);

const recordOf = async (api: Api, runId: string): Promise<Body> => (await api.get(`/api/runs/${runId}`)).body;

const runsOf = async (api: Api, { agent }: World): Promise<Body[]> =>
  (await api.get(`/api/runs?agentName=${agent}`)).body;

const pending = async (api: Api, agent: string): Promise<Body[]> => {
  const answer = await api.get(`/api/approvals/pending?agentName=${agent}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** Tool calls that the run executed, by tool and result. */
const executed = async (api: Api, runId: string): Promise<[string, string | null][]> =>
  (await logOf(api, runId))
    .filter(({ event }) => event === 'tool.invoked')
    .map(({ data }) => [data.toolName, data.result]);

/** Queues a turn, follows it to its end and gives the rows of the mailbox, oldest first. */
const mailed = async (
  api: Api,
  { agent, sessionId }: World,
  message: string,
): Promise<{ runId: string; rows: Body[] }> => {
  const answer = await api.run(agent, { message, sessionId }, queued);
  assert.equal(answer.status, 202, answer.text);
  const { runId } = answer.body;
  assert.equal((await logOf(api, runId)).at(-1)?.event, 'run.awaiting-approval');
  const rows = (await pending(api, agent)).filter((row) => row.runId === runId);
  return { runId, rows: rows.toReversed() };
};

/** The same in a new world, as often as its rows lapse before what has to be done with them is done. */
const mailedInTime = async <T>(
  api: Api,
  message: string,
  use: (rows: readonly Body[]) => Promise<T | null>,
): Promise<{ here: World; runId: string; rows: Body[]; used: T }> => {
  const { unwatched } = api;
  return eventually('the rows have not lapsed yet', async () => {
    const here = await world(unwatched);
    const { runId, rows } = await mailed(unwatched, here, message);
    const used = rows.length === 0 ? null : await use(rows);
    return used !== null && { here, runId, rows, used };
  });
};

const decide = (api: Api, row: Body, approved: boolean, reason?: string): Promise<Answer> =>
  api.post(`/api/approvals/${row.id}/decide`, { approved, ...(reason === undefined ? {} : { reason }) });

const show = async (api: Api, row: Body): Promise<Body> => {
  const answer = await api.get(`/api/approvals/${row.id}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** What the model was told of the calls of a session, in its order. */
const toldOf = async (api: Api, sessionId: string): Promise<string[]> =>
  (await api.get(`/api/sessions/${sessionId}`)).body.messages.flatMap((message: Body) =>
    message.contents.flatMap((part: Body) => (part.type === 'ToolResult' ? [part.result ?? part.errorMessage] : [])),
  );

rule(
  'APPR-1 APPR-8 APPR-10 TOOL-28 TOOL-29 RUN-30',
  'the other calls of the turn run first, then the run closes and asks in its answer',
  async (api) => {
    const here = await world(api, { toolNames: ['guarded', 'add', 'on_client'] });
    const reply = await paused(api, here, 'call mixed');
    assert.equal(reply.output, null);
    const [asked, ...others] = reply.approvals;
    assert.deepEqual(others, []);
    assert.deepEqual([asked.toolName, asked.arguments], ['guarded', { amount: 1 }]);
    const log = await logOf(api, reply.runId);
    assert.deepEqual(
      log.slice(-4).map(({ event }) => event),
      ['tool.invoking', 'tool.invoked', 'approval.requested', 'run.awaiting-approval'],
    );
    const { data } = log.at(-2) as Frame;
    const { requestId, toolCallId, toolName, arguments: args, presentation } = data;
    assert.deepEqual({ requestId, toolCallId, toolName, arguments: args, presentation }, asked);
    assert.deepEqual(log.at(-1)?.data.approvals, reply.approvals);
    assert.equal((await recordOf(api, reply.runId)).status, 'AwaitingApproval');
    const [row, ...more] = await pending(api, here.agent);
    assert.deepEqual([row?.requestId, row?.inBand, more], [asked.requestId, true, []]);
    // TOOL-35 is proved below: the client's call is not asked for here.
    assert.deepEqual(reply.clientToolCalls, []);
  },
);

rule('APPR-1', 'a tool that asks for nothing runs unasked', async (api) => {
  const here = await world(api);
  const answer = await next(api, here, { message: 'call add {"a":1,"b":2}' });
  assert.deepEqual([answer.body.status, answer.body.output, answer.body.approvals], ['Completed', 'Result: 3', []]);
});

rule('APPR-2', 'arguments that do not fit are answered to the model, and nobody is asked', async (api) => {
  const here = await world(api);
  const answer = await next(api, here, { message: 'call guarded {"amount":"much"}' });
  assert.deepEqual([answer.body.status, answer.body.approvals], ['Completed', []]);
  assert.deepEqual(await executed(api, answer.body.runId), []);
});

rule('APPR-5 TOOL-31', 'an agent that another agent called cannot ask', async (api) => {
  await api.agent({ name: 'conformance_child', toolNames: ['guarded', 'on_client'] });
  const here = await world(api, { toolNames: [], callableAgentNames: ['conformance_child'] });
  for (const [tool, code] of [
    ['guarded', 'approval-not-available'],
    ['on_client', 'client-tool-not-available'],
  ]) {
    const answer = await next(api, here, { message: `call the child: call ${tool} {"amount":1}` });
    assert.equal(answer.body.status, 'Completed', answer.text);
    assert.match(answer.body.output, new RegExp(`${code}: `));
  }
  assert.deepEqual(await pending(api, 'conformance_child'), []);
});

rule('APPR-6 TOOL-36', 'a replay asks nobody: live tools that would have to are refused', async (api) => {
  const here = await world(api);
  const { runId } = (await next(api, here, { message: 'say hello' })).body;
  assert.equal((await api.post(`/api/runs/${runId}/replay`, { toolMode: 'LiveTools' })).status, 409);
  for (const toolMode of ['ReplayTools', 'NoTools'])
    assert.equal((await api.post(`/api/runs/${runId}/replay`, { toolMode })).status, 200, toolMode);
  const client = await world(api, { toolNames: ['on_client'] });
  const other = (await next(api, client, { message: 'say hello' })).body;
  assertProblem(
    await api.post(`/api/runs/${other.runId}/replay`, { toolMode: 'ReplayTools' }),
    409,
    'replay-client-tools',
  );
});

rule(
  'APPR-9 APPR-14 RUN-30 TOOL-30',
  'the answer starts a new run, which executes the approved calls first',
  async (api) => {
    const here = await world(api);
    const first = await paused(api, here, 'call guarded {"amount":5}');
    const before = await recordOf(api, first.runId);
    const answer = await next(api, here, { approvals: [yes(first.approvals[0].requestId)] });
    assert.deepEqual([answer.body.status, answer.body.output], ['Completed', 'Result: paid 5'], answer.text);
    assert.notEqual(answer.body.runId, first.runId);
    assert.equal((await recordOf(api, answer.body.runId)).continuedFromRunId, first.runId);
    const [started, ...rest] = await logOf(api, answer.body.runId);
    assert.deepEqual([started?.event, started?.data.continuedFromRunId], ['run.started', first.runId]);
    assert.deepEqual(
      rest.slice(0, 2).map(({ event, data }) => [event, data.toolName]),
      [
        ['tool.invoking', 'guarded'],
        ['tool.invoked', 'guarded'],
      ],
    );
    // Nothing of it is rewritten; only that it went on is told when it is read.
    assert.deepEqual(await recordOf(api, first.runId), { ...before, continuedBy: answer.body.runId });
    assertProblem(await api.post(`/api/runs/${first.runId}/cancel`), 409, 'run-finished');
  },
);

rule('APPR-10 APPR-14', 'a streaming run asks and is answered in its stream', async (api) => {
  const here = await world(api);
  const path = `/api/agents/${here.agent}/run`;
  const first = await api.frames('POST', path, { message: 'call guarded {"amount":5}', sessionId: here.sessionId });
  const last = first.at(-1);
  assert.equal(last?.event, 'run.awaiting-approval');
  const [row] = await pending(api, here.agent);
  assert.deepEqual([row?.requestId, row?.inBand], [last?.data.approvals[0].requestId, true]);
  const approvals = last?.data.approvals.map(({ requestId }: Body) => yes(requestId));
  const second = await api.frames('POST', path, { approvals, sessionId: here.sessionId });
  assert.equal(second.at(-1)?.event, 'run.completed');
  assert.deepEqual(second.find(({ event }) => event === 'tool.invoked')?.data.result, 'paid 5');
  const { status, continuationRunId } = await show(api, row ?? {});
  assert.deepEqual([status, continuationRunId], ['Approved', second[0]?.data.runId]);
  assert.deepEqual(await pending(api, here.agent), []);
  assertProblem(await decide(api, row ?? {}, false), 409, 'approval-already-decided');
});

rule(
  'APPR-10 APPR-30 APPR-31',
  'the mailbox decides what a run asked in its answer, and then all of it',
  async (api) => {
    const here = await world(api);
    const { approvals } = await paused(api, here, 'call guards');
    const all = approvals.map(({ requestId }: Body) => yes(requestId));
    const [second, first] = await pending(api, here.agent);
    assert.equal((await decide(api, first ?? {}, true)).body.continuationRunId, null);
    for (const body of [{ approvals: all }, { approvals: [yes('unknown')] }, { message: 'Hi' }])
      assertProblem(await next(api, here, body), 409, 'approval-pending');
    const { continuationRunId } = (await decide(api, second ?? {}, false)).body;
    assert.equal((await logOf(api, continuationRunId)).at(-1)?.event, 'run.completed');
    assert.equal((await executed(api, continuationRunId)).length, 1);
    assertProblem(await next(api, here, { approvals: all }), 409, 'approval-already-decided');
  },
);

rule('APPR-12 RUN-7', 'a run without a session cannot wait: the call fails and the run goes on', async (api) => {
  const agent = await api.agent({ toolNames: ['guarded', 'on_client'] });
  const asked = await api.run(agent, 'call guarded {"amount":1}');
  assert.match(asked.body.output, /^Result: approval-needs-session: /);
  const client = await api.run(agent, 'call on_client {"amount":1}');
  assert.match(client.body.output, /^Result: client-tool-needs-session: /);
  assert.deepEqual([asked.body.status, client.body.status], ['Completed', 'Completed']);
});

rule('APPR-13 TOOL-32', 'the presentation is the presenter’s, and null when that fails', async (api) => {
  const shown = async (amount: number) =>
    (await paused(api, await world(api), `call guarded {"amount":${amount}}`)).approvals[0].presentation;
  assert.deepEqual(await shown(7), { entityType: 'Payment', entityId: '7', entityName: null, message: 'Pay 7.' });
  assert.equal(await shown(13), null);
  const { rows } = await mailed(api, await world(api), 'call guarded {"amount":7}');
  assert.equal(rows[0].presentation.message, 'Pay 7.');
});

rule('APPR-14 APPR-15 RUN-30 RUN-31', 'decisions that fit nothing are refused, and nothing is decided', async (api) => {
  const here = await world(api, { toolNames: ['guarded', 'on_client'] });
  const { sessionId } = here;
  const { approvals } = await paused(api, here, 'call guards');
  const [one, two] = approvals.map(({ requestId }: Body) => requestId);
  const before = await runsOf(api, here);
  const all = [yes(one), yes(two)];
  const toolResults = [{ callId: 'c', result: 'r' }];
  const wrong: [Record<string, unknown>, string][] = [
    [{ sessionId, approvals: [yes(one), yes('nothing')] }, 'approval-unknown'],
    [{ sessionId: unique('session'), approvals: all }, 'approval-unknown'],
    [{ sessionId, approvals: [yes(one)] }, 'approvals-missing'],
    [{ sessionId, approvals: all, toolResults }, 'validation-failed'],
    [{ approvals: all }, 'validation-failed'],
    [{ toolResults }, 'validation-failed'],
    [{ sessionId, approvals: [yes(one), no(two, { remember: true })] }, 'validation-failed'],
    [{ sessionId, approvals: [yes(one, { rememberArgumentsOnly: true }), yes(two)] }, 'validation-failed'],
    [{ sessionId, approvals: [yes(one, { reason: 'x'.repeat(2001) }), yes(two)] }, 'validation-failed'],
  ];
  for (const [body, code] of wrong) {
    assertProblem(await api.run(here.agent, body), 400, code);
    assertProblem(await api.run(here.agent, { ...body, stream: true }), 400, code);
  }
  assert.equal((await api.run(here.agent, { sessionId, approvals: all }, queued)).status, 400);
  assert.deepEqual(await runsOf(api, here), before);
  assert.equal((await next(api, here, { approvals: all })).status, 200);
  assertProblem(await next(api, here, { approvals: all }), 409, 'approval-already-decided');
});

rule('APPR-16 RUN-33', 'a message without decisions is taken, and what waited is not approved', async (api) => {
  const here = await world(api);
  const { approvals } = await paused(api, here, 'call guarded {"amount":5}');
  const [row] = await pending(api, here.agent);
  const answer = await next(api, here, { message: 'say never mind' });
  assert.deepEqual([answer.status, answer.body.output], [200, 'never mind']);
  assert.deepEqual(await executed(api, answer.body.runId), []);
  assert.deepEqual((await api.get(`/api/sessions/${here.sessionId}`)).body.openRequests, []);
  assertProblem(await next(api, here, { approvals: [yes(approvals[0].requestId)] }), 409, 'approval-already-decided');
  assert.equal((await show(api, row ?? {})).status, 'Rejected');
  assertProblem(await decide(api, row ?? {}, true), 409, 'approval-already-decided');
});

rule('APPR-17 TOOL-30', 'the model is told the reason, or that the user declined', async (api) => {
  const here = await world(api);
  for (const [reason, told] of [
    ['Too much.', /Too much\./],
    [undefined, /declined/],
  ] as const) {
    const { approvals } = await paused(api, here, 'call guarded {"amount":5}');
    const answer = await next(api, here, {
      approvals: [no(approvals[0].requestId, reason === undefined ? {} : { reason })],
    });
    assert.match(answer.body.output, told);
    assert.deepEqual(await executed(api, answer.body.runId), []);
  }
});

rule('APPR-18 RULE-3 RULE-4', 'what is remembered becomes a standing rule for this agent and tool', async (api) => {
  const here = await world(api);
  const call = 'call guarded {"amount":250}';
  const exact = { remember: true, rememberArgumentsOnly: true };
  const first = await paused(api, here, call);
  await next(api, here, { approvals: [yes(first.approvals[0].requestId, exact)] });
  const rules = async () => (await api.get(`/api/approvals/rules?agentName=${here.agent}`)).body;
  const [stored, ...others] = await rules();
  assert.deepEqual(others, []);
  assert.deepEqual([stored.toolName, stored.argumentConditions], ['guarded', []]);
  assert.match(stored.argumentsHash, /^[0-9a-f]{64}$/);
  await approvalRulesInForce(api);
  assert.equal((await next(api, here, { message: call })).body.output, 'Result: paid 250');
  const second = await paused(api, here, 'call guarded {"amount":251}');
  await next(api, here, { approvals: [yes(second.approvals[0].requestId, { remember: true })] });
  assert.equal((await rules())[0].argumentsHash, null);
  await approvalRulesInForce(api);
  assert.equal((await next(api, here, { message: 'call guarded {"amount":1}' })).body.output, 'Result: paid 1');
  const other = await world(api);
  await paused(api, other, call);
});

rule(
  'APPR-18',
  'to remember needs the authority to make rules: 403, and nothing is decided',
  async (api) => {
    const here = await world(api);
    const { approvals } = await paused(api, here, 'call guarded {"amount":5}');
    const [{ requestId }] = approvals;
    const operator = await api.withKey('Operator', ['PlatformRead', 'RunsRead', 'RunsWrite']);
    const unscoped = await api.withKey('Admin', ['PlatformRead', 'RunsRead', 'RunsWrite']);
    const before = await runsOf(api, here);
    for (const client of [operator, unscoped])
      assert.equal((await next(client, here, { approvals: [yes(requestId, { remember: true })] })).status, 403);
    assert.deepEqual(await runsOf(api, here), before);
    assert.equal((await next(operator, here, { approvals: [yes(requestId)] })).body.status, 'Completed');
  },
  { shares: true },
);

rule(
  'APPR-11 APPR-20 APPR-21',
  'a queued run asks in the mailbox, one row for each call, newest first',
  async (api) => {
    const here = await world(api);
    const { runId, rows } = await mailed(api, here, 'call guards');
    const asked = (await logOf(api, runId)).filter(({ event }) => event === 'approval.requested');
    assert.deepEqual(
      rows.map(({ requestId, toolCallId, toolName, arguments: args }) => [requestId, toolCallId, toolName, args]),
      asked.map(({ data }) => [data.requestId, data.toolCallId, 'guarded', data.arguments]),
    );
    assert.equal(rows.length, 2);
    for (const row of rows) {
      assert.match(row.id, uuid);
      assert.deepEqual([row.agentName, row.sessionId, row.status], [here.agent, here.sessionId, 'Pending']);
      assert.deepEqual([row.decidedBy, row.decidedAt, row.reason, row.continuationRunId], [null, null, null, null]);
      assert.deepEqual(await show(api, row), row);
    }
    const ids = rows.map(({ id }) => id).toReversed();
    const list = async (query: string) =>
      (await api.get(`/api/approvals/pending?agentName=${here.agent}${query}`)).body.map(({ id }: Body) => id);
    assert.deepEqual(await list('&skip=-1&take=999999'), ids);
    assert.deepEqual(await list('&take=0'), ids.slice(0, 1));
    assert.deepEqual(await list('&skip=1'), ids.slice(1));
    assert.deepEqual(await pending(api, unique('agent')), []);
    assertProblem(await api.get(`/api/approvals/${unknownId}`), 404, 'not-found');
    assertProblem(await decide(api, { id: unknownId }, true), 404, 'not-found');
    assert.equal((await api.get('/api/approvals/x')).status, 400);
  },
);

rule('APPR-24', 'the approval of another tenant is unknown', async (api) => {
  const here = await world(api);
  const { rows } = await mailed(api, here, 'call guarded {"amount":5}');
  const other = api.inTenant(unique('tenant'));
  assertProblem(await other.get(`/api/approvals/${rows[0].id}`), 404, 'not-found');
  assertProblem(await decide(other, rows[0], true), 404, 'not-found');
  assert.deepEqual(await pending(other, here.agent), []);
  assert.equal((await show(api, rows[0])).status, 'Pending');
});

rule(
  'APPR-25 APPR-26',
  'the same decision again is answered with the first, the opposite refused',
  async (api) => {
    const { rows } = await mailed(api, await world(api), 'call guarded {"amount":5}');
    for (const body of [{}, { approved: 'yes' }, { approved: null }, { approved: true, reason: 'x'.repeat(2001) }])
      assertProblem(await api.post(`/api/approvals/${rows[0].id}/decide`, body), 400, 'validation-failed');
    const first = await decide(api, rows[0], true, 'Fine.');
    assert.deepEqual([first.status, first.body.status, first.body.reason], [200, 'Approved', 'Fine.'], first.text);
    assert.ok(!Number.isNaN(Date.parse(first.body.decidedAt)));
    assert.notEqual(first.body.decidedBy, null);
    const other = await api.withKey('Operator', ['RunsRead', 'RunsWrite']);
    assert.deepEqual((await decide(other, rows[0], true, 'Again.')).body, first.body);
    assertProblem(await decide(api, rows[0], false), 409, 'approval-already-decided');
    await logOf(api, first.body.continuationRunId);
  },
  { shares: true },
);

rule('APPR-29', 'of two decisions at the same moment exactly one wins', async (api) => {
  const here = await world(api);
  const { rows } = await mailed(api, here, 'call guarded {"amount":5}');
  const answers = await Promise.all([true, false, true, false].map((approved) => decide(api, rows[0], approved)));
  const winner = (await show(api, rows[0])).status === 'Approved';
  for (const [index, answer] of answers.entries())
    if ((index % 2 === 0) === winner) assert.equal(answer.status, 200, answer.text);
    else assertProblem(answer, 409, 'approval-already-decided');
  await logOf(api, (await show(api, rows[0])).continuationRunId);
  assert.equal((await runsOf(api, here)).length, 2);
});

rule('APPR-30 RUN-30', 'while rows are pending the session takes no other turn', async (api) => {
  const here = await world(api);
  const { rows } = await mailed(api, here, 'call guarded {"amount":5}');
  for (const concurrency of ['Reject', 'Enqueue', 'Interrupt', 'Rollback'])
    assertProblem(await next(api, here, { message: 'Hi', concurrency }), 409, 'approval-pending');
  assertProblem(await next(api, here, { approvals: [yes(rows[0].requestId)] }), 409, 'approval-pending');
  const plain = { message: 'Hi', sessionId: here.sessionId };
  assertProblem(await api.run(here.agent, plain, queued), 409, 'approval-pending');
  assert.equal((await runsOf(api, here)).length, 1);
  await logOf(api, (await decide(api, rows[0], true)).body.continuationRunId);
  assert.equal((await next(api, here, { message: 'Hi' })).status, 200);
});

rule(
  'APPR-31 APPR-32 APPR-33',
  'the last decision queues the run that goes on, with the recorded arguments',
  async (api) => {
    const here = await world(api);
    const body = { message: 'call guards', sessionId: here.sessionId, lane: 'slow-lane' };
    const { runId } = (await api.run(here.agent, body, queued)).body;
    await logOf(api, runId);
    const [second, first] = await pending(api, here.agent);
    const rejected = await decide(api, first, false, 'Not this one.');
    assert.deepEqual([rejected.body.status, rejected.body.continuationRunId], ['Rejected', null]);
    const approved = await decide(api, second, true);
    const { continuationRunId } = approved.body;
    assert.match(continuationRunId, uuid);
    const log = await logOf(api, continuationRunId);
    assert.deepEqual(
      log.slice(0, 3).map(({ event }) => event),
      ['run.queued', 'run.started', 'tool.invoking'],
    );
    assert.equal(log[0]?.data.lane, 'slow-lane');
    assert.deepEqual(await executed(api, continuationRunId), [['guarded', 'paid 2']]);
    const told = await toldOf(api, here.sessionId);
    assert.match(told[0] ?? '', /Not this one\./);
    assert.equal(told[1], 'paid 2');
    const [source, record] = [await recordOf(api, runId), await recordOf(api, continuationRunId)];
    assert.deepEqual(
      [record.status, record.continuedFromRunId, record.sessionId, record.agentVersion],
      ['Completed', runId, here.sessionId, source.agentVersion],
    );
    assert.equal(source.status, 'AwaitingApproval');
    assert.equal((await show(api, first)).continuationRunId, continuationRunId);
  },
);

rule('APPR-34', 'a run that was queued before waits until the paused session has gone on', async (api) => {
  const here = await world(api);
  const hold = new AbortController();
  const path = `/api/agents/${here.agent}/run?onDisconnect=cancel`;
  const busy = await api.fetch('POST', path, { message: 'wait', sessionId: here.sessionId }, { signal: hold.signal });
  const queue = async (message: string): Promise<string> =>
    (await api.run(here.agent, { message, sessionId: here.sessionId, concurrency: 'Enqueue' }, queued)).body.runId;
  const asks = await queue('call guarded {"amount":5}');
  const later = await queue('say later');
  hold.abort();
  await busy.text().catch(() => '');
  await logOf(api, asks);
  const [row] = await pending(api, here.agent);
  const { continuationRunId } = (await decide(api, row, true)).body;
  assert.equal((await logOf(api, continuationRunId)).at(-1)?.event, 'run.completed');
  assert.deepEqual(await executed(api, continuationRunId), [['guarded', 'paid 5']]);
  assert.equal((await logOf(api, later)).at(-1)?.event, 'run.completed');
});

rule('APPR-36', 'a tool that the agent has lost fails the continuation, not the decision', async (api) => {
  const here = await world(api);
  const { rows } = await mailed(api, here, 'call guarded {"amount":5}');
  assert.equal((await api.del(`/api/agents/${here.agent}`)).status, 204);
  await agentGone(api, here.agent);
  const answer = await decide(api, rows[0], true);
  assert.deepEqual([answer.status, answer.body.status], [200, 'Approved'], answer.text);
  assert.equal((await logOf(api, answer.body.continuationRunId)).at(-1)?.event, 'run.failed');
});

rule('APPR-37', 'a row expires a day after it was made', async (api) => {
  const { rows } = await mailed(api, await world(api), 'call guarded {"amount":5}');
  assert.equal(Date.parse(rows[0].expiresAt) - Date.parse(rows[0].createdAt), 24 * 3_600_000);
});

rule(
  'APPR-27 APPR-38 APPR-39',
  'a row past its time is expired, cannot be decided, and the session takes its next turn',
  async (api) => {
    const { here, runId, used: expiring } = await mailedInTime(api, 'call guarded {"amount":5}', async ([row]) => row);
    assert.equal(Date.parse(expiring.expiresAt) - Date.parse(expiring.createdAt), 5000);
    await eventually('the approval has expired', async () => (await show(api, expiring)).status === 'Expired');
    assertProblem(await decide(api, expiring, true), 409, 'approval-expired');
    assert.deepEqual(await pending(api, here.agent), []);
    assert.deepEqual([(await show(api, expiring)).continuationRunId, (await runsOf(api, here)).length], [null, 1]);
    assert.equal((await recordOf(api, runId)).status, 'AwaitingApproval');
    const answer = await next(api, here, { message: 'say on' });
    assert.equal(answer.body.output, 'on', answer.text);
  },
  { settings: { 'Service:Approvals:DefaultExpiration': '5s', 'Service:Approvals:ScanInterval': '200ms' } },
);

rule(
  'APPR-31 APPR-33 APPR-38',
  'what expires beside a decision is not approved, and the scan queues the run that goes on',
  async (api) => {
    const { here, rows, used } = await mailedInTime(api, 'call guards', async (open) => {
      const answer = open.length === 2 ? await decide(api.unwatched, open[1], true) : null;
      return answer?.status === 200 ? answer.body : null;
    });
    assert.equal(used.continuationRunId, null);
    await eventually('the continuation is there', async () => (await show(api, rows[1])).continuationRunId !== null);
    const { continuationRunId } = await show(api, rows[0]);
    assert.equal((await logOf(api, continuationRunId)).at(-1)?.event, 'run.completed');
    assert.deepEqual(await executed(api, continuationRunId), [['guarded', 'paid 2']]);
    assert.match((await toldOf(api, here.sessionId))[0] ?? '', /^Not approved/);
    assert.equal((await show(api, rows[0])).status, 'Expired');
  },
  { settings: { 'Service:Approvals:DefaultExpiration': '5s', 'Service:Approvals:ScanInterval': '200ms' } },
);

rule(
  'APPR-22 APPR-37',
  'without payload recording arguments are not shown, and without expiry a row stays',
  async (api) => {
    const { rows } = await mailed(api, await world(api), 'call guarded {"amount":5}');
    assert.deepEqual([rows[0].arguments, rows[0].expiresAt], [null, null]);
    assert.equal(rows[0].presentation.message, 'Pay 5.');
    const { continuationRunId } = (await decide(api, rows[0], true)).body;
    assert.equal((await logOf(api, continuationRunId)).at(-1)?.event, 'run.completed');
  },
  { settings: { 'Service:RunRecording:RecordToolPayloads': 'false', 'Service:Approvals:ExpirationEnabled': 'false' } },
);

rule('APPR-40', 'deleting the session expires its rows', async (api) => {
  const here = await world(api);
  const { rows } = await mailed(api, here, 'call guarded {"amount":5}');
  assert.equal((await api.del(`/api/sessions/${here.sessionId}`)).status, 204);
  assert.equal((await show(api, rows[0])).status, 'Expired');
  assertProblem(await decide(api, rows[0], true), 409, 'approval-expired');
  assert.deepEqual(await pending(api, here.agent), []);
  assert.equal((await runsOf(api, here)).length, 1);
});

const createRule = (api: Api, body: Record<string, unknown>): Promise<Answer> => api.post('/api/approvals/rules', body);

rule(
  'RULE-1 RULE-2 RULE-3 RULE-10',
  'rules are listed newest first, narrowed exactly, and stored once',
  async (api) => {
    const [agentName, toolName] = [unique('agent'), unique('tool')];
    const own = await createRule(api, { agentName, toolName });
    assert.equal(own.status, 201, own.text);
    const { id, tenantId, createdAt, createdBy, ...fields } = own.body;
    assert.match(id, uuid);
    assert.deepEqual(fields, { agentName, toolName, argumentsHash: null, argumentConditions: [], labels: {} });
    const all = await createRule(api, { agentName: '', toolName });
    assert.deepEqual([all.status, all.body.agentName], [201, null]);
    const same = await createRule(api, { agentName: null, toolName, argumentConditions: [] });
    assert.deepEqual([same.status, same.body], [200, all.body]);
    const conditions = [
      { path: 'amount', operator: 'LessThan', value: 5 },
      { path: 'customer.tier', operator: 'In', value: ['gold'] },
    ];
    const narrow = await createRule(api, { toolName, argumentConditions: conditions });
    assert.equal(narrow.status, 201);
    assert.deepEqual((await createRule(api, { toolName, argumentConditions: conditions })).body, narrow.body);
    const list = async (query: string) =>
      (await api.get(`/api/approvals/rules?toolName=${toolName}${query}`)).body.map((entry: Body) => entry.id);
    assert.deepEqual(await list(''), [narrow.body.id, all.body.id, id]);
    assert.deepEqual(await list(`&agentName=${agentName}`), [id]);
    assert.deepEqual(await list('&agentName='), [narrow.body.id, all.body.id]);
    assert.equal((await createRule(api, { toolName, argumentsHash: 'a'.repeat(64) })).status, 400);
  },
);

rule('RULE-5 RULE-7', 'conditions of another shape are refused', async (api) => {
  const wrong: Record<string, unknown>[] = [
    { path: '', operator: 'Equals', value: 1 },
    { path: 'a..b', operator: 'Equals', value: 1 },
    { path: 'a.b.c.d.e.f.g.h.i', operator: 'Equals', value: 1 },
    { path: 'x'.repeat(257), operator: 'Equals', value: 1 },
    { path: 'a', operator: 'Matches', value: 1 },
    { path: 'a', operator: 'Equals', value: null },
    { path: 'a', operator: 'Equals', value: ['a'] },
    { path: 'a', operator: 'NotEquals', value: {} },
    { path: 'a', operator: 'GreaterThan', value: '1' },
    { path: 'a', operator: 'LessThanOrEqual', value: true },
    { path: 'a', operator: 'In', value: 'a' },
    { path: 'a', operator: 'In', value: [] },
    { path: 'a', operator: 'NotIn', value: ['a', 1] },
    { path: 'a', operator: 'NotIn', value: [true] },
    { path: 'a', operator: 'In', value: Array.from({ length: 101 }, (_, index) => index) },
    { path: 'a', operator: 'Equals' },
  ];
  for (const condition of wrong) {
    const answer = await createRule(api, { toolName: 'any', argumentConditions: [condition] });
    const problem = assertProblem(answer, 400, 'validation-failed');
    assert.match(errorPaths(problem).join(), /argumentConditions/, JSON.stringify(condition));
  }
  const many = Array.from({ length: 17 }, (_, value) => ({ path: 'a', operator: 'Equals', value }));
  assertProblem(await createRule(api, { toolName: 'any', argumentConditions: many }), 400, 'validation-failed');
  assertProblem(await createRule(api, { toolName: '' }), 400, 'validation-failed');
  assertProblem(await createRule(api, { toolName: 'x'.repeat(257) }), 400, 'validation-failed');
});

rule('RULE-5 RULE-6 RULE-7', 'a call runs unasked where every condition certainly holds', async (api) => {
  const here = await world(api);
  const { agent: agentName } = here;
  const runsUnasked = async (argumentConditions: unknown[]): Promise<boolean> => {
    const { id } = (await createRule(api, { agentName, toolName: 'guarded', argumentConditions })).body;
    await approvalRulesInForce(api);
    const { status } = (await next(api, here, { message: 'call guarded {"amount":250,"customer":{"tier":"gold"}}' }))
      .body;
    assert.equal((await api.del(`/api/approvals/rules/${id}`)).status, 204);
    return status === 'Completed';
  };
  const cases: [string, string, unknown, boolean][] = [
    ['customer.tier', 'Equals', 'gold', true],
    ['customer.tier', 'Equals', 'Gold', false],
    ['amount', 'LessThanOrEqual', 250.0, true],
    ['amount', 'Equals', '250', false],
    ['amount', 'NotEquals', '250', false],
    ['customer.level', 'NotEquals', 'gold', false],
    ['customer', 'NotEquals', 'gold', false],
    ['customer.tier', 'In', ['silver', 'gold'], true],
    ['customer.tier', 'NotIn', ['silver'], true],
  ];
  for (const [path, operator, value, expected] of cases)
    assert.equal(await runsUnasked([{ path, operator, value }]), expected, `${path} ${operator} ${value}`);
  const holds = { path: 'amount', operator: 'GreaterThan', value: 249 };
  const fails = { path: 'amount', operator: 'LessThan', value: 250 };
  assert.equal(await runsUnasked([holds, fails]), false);
});

rule(
  'APPR-3 RULE-2 RULE-8 RULE-9 RULE-11',
  'a rule counts at once, for all agents without a name, until it is removed',
  async (api) => {
    const here = await world(api);
    const call = { message: 'call guarded {"amount":77}' };
    const conditions = (value: number) => [{ path: 'amount', operator: 'Equals', value }];
    await createRule(api, { agentName: here.agent, toolName: 'guarded', argumentConditions: conditions(1) });
    await paused(api, here, call.message);
    const { body: made } = await createRule(api, { toolName: 'guarded', argumentConditions: conditions(77) });
    await approvalRulesInForce(api);
    assert.equal((await next(api, here, call)).body.output, 'Result: paid 77');
    const other = await world(api);
    assert.equal((await next(api, other, call)).body.output, 'Result: paid 77');
    const elsewhere = api.inTenant(unique('tenant'));
    assertProblem(await elsewhere.del(`/api/approvals/rules/${made.id}`), 404, 'not-found');
    assert.equal((await api.del(`/api/approvals/rules/${made.id}`)).status, 204);
    assertProblem(await api.del(`/api/approvals/rules/${made.id}`), 404, 'not-found');
    assertProblem(await api.del(`/api/approvals/rules/${unknownId}`), 404, 'not-found');
    assert.equal((await api.del('/api/approvals/rules/x')).status, 400);
    await approvalRulesInForce(api);
    await paused(api, here, call.message);
    for (const method of ['PUT', 'PATCH'])
      assert.ok([404, 405].includes((await api.call(method, `/api/approvals/rules/${made.id}`, {})).status));
  },
);

const client = (api: Api): Promise<World> => world(api, { toolNames: ['on_client', 'add', 'guarded'] });

rule('TOOL-33 RUN-32', 'a client-side call passes validation, then the run closes and hands it out', async (api) => {
  const here = await client(api);
  const wrong = await next(api, here, { message: 'call on_client {"amount":"x"}' });
  assert.deepEqual([wrong.body.status, wrong.body.clientToolCalls], ['Completed', []]);
  const reply = await paused(api, here, 'call on_client {"amount":3}', 'AwaitingInput');
  const [call, ...others] = reply.clientToolCalls;
  assert.deepEqual([others, reply.approvals], [[], []]);
  assert.deepEqual([call.toolName, call.arguments], ['on_client', { amount: 3 }]);
  const log = await logOf(api, reply.runId);
  assert.deepEqual(
    log.slice(-2).map(({ event }) => event),
    ['client-tool.requested', 'run.awaiting-input'],
  );
  assert.equal(log.at(-2)?.data.callId, call.callId);
  assert.equal((await recordOf(api, reply.runId)).status, 'AwaitingInput');
});

rule('TOOL-34 RUN-32', 'the next run brings the result, or the error, to the model', async (api) => {
  const here = await client(api);
  for (const answer of [{ result: 'from the client' }, { errorMessage: 'no signal' }]) {
    const first = await paused(api, here, 'call on_client {"amount":3}', 'AwaitingInput');
    const { callId } = first.clientToolCalls[0];
    const second = await next(api, here, { toolResults: [{ callId, ...answer }] });
    assert.equal(second.body.output, `Result: ${Object.values(answer)[0]}`, second.text);
    assert.equal((await recordOf(api, second.body.runId)).continuedFromRunId, first.runId);
  }
});

rule('RUN-32 RUN-33', 'results that fit nothing are refused; a plain message overtakes the call', async (api) => {
  const here = await client(api);
  const { clientToolCalls } = await paused(api, here, 'call on_client {"amount":3}', 'AwaitingInput');
  const [{ callId }] = clientToolCalls;
  const result = { callId, result: 'r' };
  const before = await runsOf(api, here);
  assertProblem(await next(api, here, { toolResults: [{ callId: 'x', result: 'r' }] }), 400, 'tool-call-unknown');
  const both = [{ callId, result: 'r', errorMessage: 'e' }];
  assertProblem(await next(api, here, { toolResults: both }), 400, 'validation-failed');
  assertProblem(await next(api, here, { toolResults: [{ callId }] }), 400, 'validation-failed');
  assertProblem(await api.run(here.agent, { toolResults: [result] }), 400, 'validation-failed');
  assert.deepEqual(await runsOf(api, here), before);
  assert.equal((await next(api, here, { message: 'say on' })).body.output, 'on');
  assertProblem(await next(api, here, { toolResults: [result] }), 409, 'tool-call-answered');
});

rule('TOOL-35', 'of one turn with both kinds the approvals come first', async (api) => {
  const here = await client(api);
  const first = await paused(api, here, 'call mixed');
  assert.deepEqual(first.clientToolCalls, []);
  const second = (await next(api, here, { approvals: [yes(first.approvals[0].requestId)] })).body;
  assert.equal(second.status, 'AwaitingInput');
  const [{ callId, arguments: args }] = second.clientToolCalls;
  assert.deepEqual(args, { amount: 3 });
  const third = (await next(api, here, { toolResults: [{ callId, result: 'done' }] })).body;
  assert.equal(third.status, 'Completed');
  assert.deepEqual((await toldOf(api, here.sessionId)).sort(), ['3', 'done', 'paid 1']);
});

rule('TOOL-36', 'an agent with a client-side tool cannot run queued', async (api) => {
  const { agent } = await client(api);
  const answer = await api.run(agent, 'Hi', queued);
  assertProblem(answer, 400, 'client-tools-need-a-client');
});
