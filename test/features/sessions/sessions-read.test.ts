import assert from 'node:assert/strict';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { faults } from '../../support/faults.ts';
import { collect, Gate, getRun, listRuns, refusal, runStream, stream, waitingSetup } from '../runs/run-calls.ts';
import {
  branch,
  getSession,
  listSessions,
  removeSession,
  saveTurn,
  say,
  sessionRow,
  textsOf,
} from './session-calls.ts';

forEachDurableService('SESS-1 an id that no run used is 404, also one that no session can have', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await say(app.client, 'Order:1');
  for (const sessionId of ['nothing', 'order:1', 'not an id!', 'x'.repeat(129)]) {
    const params = { sessionId };
    for (const call of [
      () => app.client.sessions.get({ params }),
      () => app.client.sessions.remove({ params }),
      () => app.client.sessions.branch({ params, body: {} }),
    ]) {
      const problem = await refusal(call());
      assert.deepEqual([problem.status, problem.code], [404, 'session-not-found'], sessionId);
    }
  }
  assert.equal((await getSession(app.client, 'Order:1')).id, 'Order:1');
});

forEachDurableService('SESS-3 SESS-5 SESS-8 a session shows its turns, and a message its sequence', async (open) => {
  const app = await open({
    agents: [{ name: 'helper' }],
    script: [{ when: { message: '/^(?<said>.*)$/' }, reply: { text: 'You said {{said}}.' } }],
  });
  const first = await say(app.client, 's', 'one');
  const opened = await getSession(app.client, 's');
  assert.deepEqual(
    [opened.version, opened.messageCount, opened.lastRunId, opened.activeRunId, opened.agentName, opened.ownerId],
    [1, 2, first.runId, null, 'helper', null],
  );
  const second = await say(app.client, 's', 'two');
  const session = await getSession(app.client, 's');
  assert.deepEqual(
    [session.version, session.messageCount, session.lastRunId, session.createdAt],
    [2, 4, second.runId, opened.createdAt],
  );
  assert.ok(session.updatedAt >= opened.updatedAt);
  assert.deepEqual(
    session.messages?.map(({ sequence, role, runId, interrupted, authorName }) => [
      sequence,
      role,
      runId,
      interrupted,
      authorName,
    ]),
    [
      [0, 'User', first.runId, false, null],
      [1, 'Assistant', first.runId, false, null],
      [2, 'User', second.runId, false, null],
      [3, 'Assistant', second.runId, false, null],
    ],
  );
  assert.deepEqual(textsOf(session), ['one', 'You said one.', 'two', 'You said two.']);
  assert.ok(session.state !== undefined && session.state !== null, 'state is always there');
  assert.deepEqual(session.openRequests, []);
  assert.deepEqual([session.parentSessionId, session.branchFromSequence], [null, null]);
});

forEachDurableService(
  'SESS-1 a session in its first turn is not there yet, and shows its run in the next',
  async (open) => {
    const gate = new Gate();
    const app = await open(waitingSetup(gate));
    const first = await stream(app.client, 'helper', { message: 'wait', sessionId: 'new' });
    await say(app.client, 'old', 'hello');
    await gate.reached;
    assert.equal((await refusal(getSession(app.client, 'new'))).status, 404);
    assert.equal((await refusal(removeSession(app.client, 'new'))).status, 404);
    assert.deepEqual(
      (await listSessions(app.client)).map(({ id }) => id),
      ['old'],
    );
    const taken = await refusal(
      app.client.sessions.branch({ params: { sessionId: 'old' }, body: { newSessionId: 'new' } }),
    );
    assert.deepEqual([taken.status, taken.code], [409, 'session-exists'], 'the id is in use all the same');
    const second = await stream(app.client, 'helper', { message: 'wait', sessionId: 'old' });
    assert.equal((await getSession(app.client, 'old')).activeRunId, second.runId);
    assert.equal((await getSession(app.client, 'old')).version, 1);
    gate.open();
    await Promise.all([collect(first.frames), collect(second.frames)]);
    assert.equal((await getSession(app.client, 'new')).version, 1);
    assert.equal((await getSession(app.client, 'old')).activeRunId, null);
  },
);

forEachService('SESS-7 the last updated session is first; agentName narrows; any page is answered', async (open) => {
  const clock = testClock({ stands: true });
  const app = await open({ agents: [{ name: 'helper' }, { name: 'other' }], clock });
  for (const [id, agent, afterMs] of [
    ['d', 'helper', 0],
    ['a', 'helper', 0],
    ['c', 'helper', 1000],
    ['b', 'other', 1000],
  ] as const) {
    await clock.advance(afterMs);
    await say(app.client, id, 'Hello', agent);
  }
  const ids = async (query = {}) => (await listSessions(app.client, query)).map(({ id }) => id);
  assert.deepEqual(await ids(), ['b', 'c', 'd', 'a'], 'the same moment: by id, the last one first');
  assert.deepEqual(await ids({ agentName: 'helper' }), ['c', 'd', 'a']);
  assert.deepEqual(await ids({ agentName: 'help' }), []);
  assert.deepEqual(await ids({ skip: 1, take: 2 }), ['c', 'd']);
  assert.deepEqual(await ids({ skip: -1, take: 999_999 }), ['b', 'c', 'd', 'a']);
  assert.deepEqual(await ids({ take: 0 }), ['b']);
  assert.deepEqual(await ids({ take: -5 }), ['b']);
  assert.deepEqual(await ids({ skip: 9_007_199_254_740_991 }), []);
  await clock.advance(1000);
  await say(app.client, 'a');
  assert.equal((await ids())[0], 'a');
});

overHttp('SESS-7 take is 50 unless given, at most 200, and a list is a bare array', async (open) => {
  const app = await open();
  const storage = app.store.open();
  const sessions = storage.stores(sessionStore);
  const ids = Array.from({ length: 230 }, (_, index) => `s-${String(index + 1).padStart(3, '0')}`);
  await storage.write(ids.map((id, index) => sessions.open(sessionRow(id, index))));
  const list = async (query: string) =>
    (await (await fetch(`${app.url}/api/sessions${query}`)).json()) as { readonly id: string }[];
  assert.deepEqual(
    [(await list('')).length, (await list('?take=999999')).length, (await list('?skip=-1&take=1'))[0]?.id],
    [50, 200, 's-230'],
  );
  for (const query of ['?take=many', '?skip=1.5']) {
    const response = await fetch(`${app.url}/api/sessions${query}`);
    assert.equal(response.status, 400, query);
  }
});

forEachService('SESS-2 the sessions of a deleted agent stay readable', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await say(app.client, 's');
  await app.client.agents.remove({ params: { name: 'helper' } });
  assert.equal((await getSession(app.client, 's')).agentName, 'helper');
  assert.equal((await listSessions(app.client, { agentName: 'helper' })).length, 1);
});

forEachDurableService('SESS-4 reads and branching change neither version nor updatedAt', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await say(app.client, 's');
  const before = await getSession(app.client, 's');
  await listSessions(app.client);
  await app.client.sessions.branch({ params: { sessionId: 's' }, body: {} });
  assert.deepEqual(await getSession(app.client, 's'), before);
});

for (const shown of [false, true])
  forEachDurableService(
    `SESS-8 reasoning is ${shown ? 'shown where it is recorded' : 'not shown unless it is recorded'}, signatures never`,
    async (open) => {
      const app = await open({
        agents: [{ name: 'helper' }],
        service: { RunRecording: { RecordReasoningDeltas: shown } },
      });
      const part = {
        type: 'Reasoning' as const,
        text: 'Hm.',
        providerMetadata: { anthropic: { signature: 'secret-signature' } },
      };
      const call = {
        type: 'ToolCall' as const,
        toolCallId: 'c',
        toolName: 't',
        arguments: {},
        providerMetadata: part.providerMetadata,
      };
      await saveTurn(app, 's', [[{ type: 'Text', text: 'Hi' }], [part, call]]);
      assert.ok((await app.store.text()).includes('secret-signature'));
      const session = await getSession(app.client, 's');
      assert.deepEqual(session.messages?.[1]?.contents, [
        ...(shown ? [{ type: 'Reasoning', text: 'Hm.' }] : []),
        { type: 'ToolCall', toolCallId: 'c', toolName: 't', arguments: {} },
      ]);
      assert.ok(!JSON.stringify(session).includes('secret-signature'));
    },
  );

forEachService('SESS-8 SESS-19 a store in memory shows no messages and cannot branch', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], service: { Persistence: { Provider: 'Memory' } } });
  await say(app.client, 's', 'one');
  await say(app.client, 's', 'two');
  const session = await getSession(app.client, 's');
  assert.deepEqual([session.version, session.messages, session.messageCount], [2, null, null]);
  assert.ok(session.state !== null);
  assert.deepEqual(
    (await listSessions(app.client)).map(({ id, messageCount }) => [id, messageCount]),
    [['s', null]],
  );
  for (const sessionId of ['s', 'nothing']) {
    const problem = await refusal(app.client.sessions.branch({ params: { sessionId }, body: {} }));
    assert.deepEqual([problem.status, problem.code], [501, 'branch-not-supported']);
  }
  const body = { upToSequence: -1 };
  assert.equal((await refusal(app.client.sessions.branch({ params: { sessionId: 's' }, body }))).status, 400);
  await removeSession(app.client, 's');
  assert.deepEqual(await listSessions(app.client), []);
});

forEachDurableService(
  'SESS-3 a cancelled turn is in the detail with its last answer marked, a rolled back one not',
  async (open) => {
    const gate = new Gate();
    const app = await open(waitingSetup(gate));
    const { runId, frames } = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    await app.client.runs.cancel({ params: { runId } });
    await collect(frames);
    const session = await getSession(app.client, 's');
    assert.deepEqual(
      session.messages?.slice(0, 2).map(({ role, interrupted }) => [role, interrupted]),
      [
        ['User', false],
        ['Assistant', true],
      ],
    );
    assert.equal(session.version, 1);
    assert.equal((await getRun(app.client, runId)).status, 'Canceled');
    const again = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
    const rollback = { message: 'instead', sessionId: 's', concurrency: 'Rollback' } as const;
    const instead = await runStream(app.client, 'helper', rollback);
    await collect(again.frames);
    const rolledBack = await getSession(app.client, 's');
    assert.deepEqual(
      rolledBack.messages?.slice(session.messages?.length).map((message) => message.runId),
      [instead.runId, instead.runId],
    );
    assert.equal(rolledBack.version, 2);
    assert.equal((await listRuns(app.client)).length, 3);
  },
);

forEachDurableService('SESS-10 the host refuses a list whole, and one session as an unknown one', async (open) => {
  const asked: RunAuthorizationRequest[] = [];
  const policy = { refused: '' };
  const runAuthorization = {
    async authorize(request: RunAuthorizationRequest) {
      asked.push(request);
      return { allowed: request.action !== policy.refused };
    },
  };
  const app = await open({ agents: [{ name: 'helper' }], module: { runAuthorization } });
  await say(app.client, 's');
  for (const [action, call] of [
    ['Read', () => getSession(app.client, 's')],
    ['Change', () => branch(app.client, 's', 'b')],
    ['Delete', () => removeSession(app.client, 's')],
  ] as const) {
    policy.refused = action;
    const problem = await refusal(call());
    assert.deepEqual([problem.status, problem.code], [404, 'session-not-found'], action);
    const { resource, id, sessionId, agentName } = asked.at(-1) ?? assert.fail('the host was not asked');
    assert.deepEqual([resource, id, sessionId, agentName], ['Session', 's', 's', 'helper']);
  }
  assert.equal((await listSessions(app.client)).length, 1, 'a list is never filtered');
  policy.refused = 'List';
  const problem = await refusal(listSessions(app.client));
  assert.deepEqual([problem.status, problem.code], [403, 'run-not-allowed']);
});

forEachDurableService('RUN-8 a session whose messages a run could not read is free for the next one', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await say(app.client, 's');
  const giveBack = await app.store.takeAway(faults['session messages']);
  const problem = await refusal(say(app.client, 's'));
  assert.ok(problem.status >= 500, problem.code);
  await giveBack();
  await say(app.client, 's');
  assert.equal((await getSession(app.client, 's')).version, 2);
});
