import assert from 'node:assert/strict';
import { forEachDurableService, overHttp, type TestApp } from '../../support/app.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { callsTools, collect, Gate, refusal, runJson, stream, tool, waitingSetup } from '../runs/run-calls.ts';
import {
  branch,
  getSession,
  listSessions,
  nothingLeft,
  removeSession,
  saveTurn,
  say,
  sessionRows,
  textsOf,
} from './session-calls.ts';

const echo = {
  agents: [{ name: 'helper' }],
  script: [{ when: { message: '/^(?<said>.*)$/' }, reply: { text: 'You said {{said}}.' } }],
};

/** Lengthens a session of one turn to as many turns, without running them. */
const fillSession = (app: TestApp, id: string, turns: number): Promise<void> =>
  saveTurn(
    app,
    id,
    Array.from({ length: 2 * turns - 2 }, (_, index) => [{ type: 'Text', text: `message ${index + 2}` }]),
  );

forEachDurableService(
  'SESS-14 SESS-17 a branch begins with the history of its parent, and both go on alone',
  async (open) => {
    const app = await open(echo);
    await say(app.client, 's', 'one');
    await say(app.client, 's', 'two');
    const parent = await getSession(app.client, 's');
    const made = await branch(app.client, 's', 'b', 1);
    const opened = await getSession(app.client, 'b');
    assert.deepEqual(made, {
      sessionId: 'b',
      conversationId: opened.conversationId,
      parentSessionId: 's',
      parentConversationId: parent.conversationId,
      branchFromSequence: 1,
      copiedItemCount: 2,
    });
    assert.notEqual(opened.conversationId, parent.conversationId);
    assert.deepEqual(opened.messages, parent.messages?.slice(0, 2), 'ids and run ids are those of the parent');
    assert.deepEqual(
      [opened.version, opened.parentSessionId, opened.parentConversationId, opened.branchFromSequence],
      [1, 's', parent.conversationId, 1],
    );
    assert.deepEqual(await getSession(app.client, 's'), parent, 'the parent is not changed');
    await say(app.client, 'b', 'other');
    await say(app.client, 's', 'three');
    assert.deepEqual(textsOf(await getSession(app.client, 'b')), ['one', 'You said one.', 'other', 'You said other.']);
    assert.deepEqual(textsOf(await getSession(app.client, 's')).slice(2), [
      'two',
      'You said two.',
      'three',
      'You said three.',
    ]);
    const grown = await getSession(app.client, 'b');
    assert.deepEqual(
      grown.messages?.map(({ sequence }) => sequence),
      [0, 1, 2, 3],
    );
  },
);

overHttp('SESS-14 the answer to a branch is 201 and says where it is', async (open) => {
  const app = await open({ ...echo, host: { Prefix: '/acp' } });
  await say(app.client, 's');
  const made = await fetch(`${app.url}/api/sessions/s/branch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"newSessionId": "b:1"}',
  });
  assert.deepEqual([made.status, made.headers.get('location')], [201, '/acp/api/sessions/b:1']);
});

forEachDurableService('SESS-14 the model is sent the history of the branch, not that of its parent', async (open) => {
  const app = await open({
    simulator: { respond: () => ({ answer: { text: ['Yes.'] } }) },
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  const sent = (request: SimulatedRequest) =>
    (request.body['messages'] as { role: string; content: unknown }[]).map(({ role, content }) => [role, content]);
  await say(app.client, 's', 'one');
  await say(app.client, 's', 'two');
  await branch(app.client, 's', 'b', 1);
  await removeSession(app.client, 's');
  await say(app.client, 'b', 'three');
  const roles = sent(app.simulator.lastRequest()).map(([role]) => role);
  assert.deepEqual(roles, ['user', 'assistant', 'user']);
  assert.match(JSON.stringify(sent(app.simulator.lastRequest())), /one.*Yes\..*three/);
  assert.ok(!JSON.stringify(sent(app.simulator.lastRequest())).includes('two'));
});

forEachDurableService('SESS-15 SESS-16 what a branch may ask for', async (open) => {
  const app = await open(echo);
  await say(app.client, 's', 'one');
  await say(app.client, 'taken', 'one');
  const params = { sessionId: 's' };
  const before = await sessionRows(app);
  for (const [body, status, code] of [
    [{ upToSequence: -1 }, 400, 'sequence-out-of-range'],
    [{ upToSequence: 0.5 }, 400, 'sequence-out-of-range'],
    [{ upToSequence: 2 }, 400, 'sequence-out-of-range'],
    [{ upToSequence: 1e300 }, 400, 'sequence-out-of-range'],
    [{ upToSequence: '1' }, 400, 'validation-failed'],
    [{ newSessionId: 'not an id' }, 400, 'validation-failed'],
    [{ newSessionId: '' }, 400, 'validation-failed'],
    [{ upTo: 1 }, 400, 'validation-failed'],
    [{ newSessionId: 'taken' }, 409, 'session-exists'],
    [{ newSessionId: 's' }, 409, 'session-exists'],
    [{ upToSequence: 2, newSessionId: 'taken' }, 400, 'sequence-out-of-range'],
  ] as const) {
    const problem = await refusal(app.client.sessions.branch({ params, body: body as object }));
    assert.deepEqual([problem.status, problem.code], [status, code], JSON.stringify(body));
  }
  assert.deepEqual(await sessionRows(app), before, 'a refusal leaves nothing');
  for (const body of [{}, { upToSequence: null, newSessionId: null }]) {
    const made = (await app.client.sessions.branch({ params, body })).body;
    assert.match(made.sessionId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/);
    assert.deepEqual([made.branchFromSequence, made.copiedItemCount], [1, 2]);
  }
  assert.equal((await branch(app.client, 's', 'first', 0)).copiedItemCount, 1);
});

forEachDurableService('SESS-16 an empty history can only be branched whole', async (open) => {
  const app = await open(echo);
  await saveTurn(app, 's', []);
  assert.equal((await refusal(branch(app.client, 's', 'b', 0))).code, 'sequence-out-of-range');
  const made = await branch(app.client, 's', 'b');
  assert.deepEqual([made.branchFromSequence, made.copiedItemCount], [-1, 0]);
  assert.deepEqual((await getSession(app.client, 'b')).messages, []);
  await branch(app.client, 'b', 'c');
  await say(app.client, 'c', 'begin');
  assert.deepEqual(textsOf(await getSession(app.client, 'c')), ['begin', 'You said begin.']);
});

forEachDurableService(
  'SESS-6 calls that a branch cut off are answered as not executed in its next turn',
  async (open) => {
    const app = await open({
      tools: [tool('look', async () => 'seen')],
      agents: [{ name: 'helper', toolNames: ['look'] }],
      script: callsTools('look'),
    });
    await say(app.client, 's');
    const parent = await getSession(app.client, 's');
    assert.deepEqual(
      parent.messages?.map(({ role }) => role),
      ['User', 'Assistant', 'Tool', 'Assistant'],
    );
    await branch(app.client, 's', 'b', 1);
    const answer = await runJson(app.client, 'helper', { message: 'And now?', sessionId: 'b' });
    assert.equal(answer.status, 'Completed');
    const grown = await getSession(app.client, 'b');
    assert.deepEqual(grown.messages?.slice(0, 2), parent.messages?.slice(0, 2), 'stored messages stay as they are');
    assert.equal(grown.messages?.[2]?.role, 'User');
  },
);

forEachDurableService('SESS-18 a run in progress does not block a branch, which has what was saved', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  await say(app.client, 's', 'hello');
  const run = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  assert.equal((await branch(app.client, 's', 'b')).copiedItemCount, 2);
  gate.open();
  await collect(run.frames);
  assert.equal((await getSession(app.client, 'b')).messages?.length, 2);
  assert.equal((await getSession(app.client, 's')).version, 2);
});

forEachDurableService('SESS-14 a branch of a session of 1,000 turns copies no message', async (open) => {
  const app = await open(echo);
  await say(app.client, 's', 'one');
  await fillSession(app, 's', 1000);
  assert.equal((await sessionRows(app)).messages, 2000);
  await branch(app.client, 's', 'whole');
  await branch(app.client, 's', 'half', 999);
  await branch(app.client, 'half', 'quarter', 499);
  const after = await sessionRows(app);
  assert.equal(after.messages, 2000);
  for (const text of ['message 2', 'message 499', 'message 1999'])
    assert.equal((await app.store.text()).split(`${text}\\"`).length, 2, `${text} is stored once`);
  assert.equal(after.segments, 3, 'one stretch for each');
  const parent = await getSession(app.client, 's');
  assert.equal(parent.messages?.length, 2000);
  assert.deepEqual((await getSession(app.client, 'whole')).messages, parent.messages);
  assert.deepEqual((await getSession(app.client, 'quarter')).messages, parent.messages?.slice(0, 500));
  await say(app.client, 'half', 'go on');
  assert.equal(await app.store.count('session messages'), 2002, 'a turn of a branch appends its own messages');
});

forEachDurableService('SESS-14 a branch of a branch of a branch … reads as one history', async (open) => {
  const app = await open(echo);
  await say(app.client, 's-0', 'turn 0');
  const expected = ['turn 0', 'You said turn 0.'];
  for (let depth = 1; depth <= 50; depth += 1) {
    await branch(app.client, `s-${depth - 1}`, `s-${depth}`);
    // Every tenth has a turn of its own; the others add no stretch to those below them.
    if (depth % 10 !== 0) continue;
    await say(app.client, `s-${depth}`, `turn ${depth}`);
    expected.push(`turn ${depth}`, `You said turn ${depth}.`);
  }
  assert.deepEqual(textsOf(await getSession(app.client, 's-50')), expected);
  // Ten sessions with one stretch, ten with two, and so on up to five.
  assert.equal(
    await app.store.count('shared stretches'),
    150,
    'those that wrote messages, not those that were branched',
  );
  assert.equal(await app.store.count('session messages'), 12);
  for (let depth = 0; depth < 50; depth += 1) await removeSession(app.client, `s-${depth}`);
  assert.deepEqual(textsOf(await getSession(app.client, 's-50')), expected);
  assert.equal(await app.store.count('shared stretches'), 5, 'those of the deepest one');
  await removeSession(app.client, 's-50');
  assert.deepEqual(await sessionRows(app), nothingLeft);
});

forEachDurableService(
  'SESS-14 a branch outlives its parent; the last one that needs a message frees it',
  async (open) => {
    const app = await open(echo);
    await say(app.client, 's', 'one');
    await fillSession(app, 's', 800);
    await branch(app.client, 's', 'b', 1199);
    await say(app.client, 'b', 'more');
    await branch(app.client, 'b', 'c', 599);
    const expected = { b: textsOf(await getSession(app.client, 'b')), c: textsOf(await getSession(app.client, 'c')) };
    const { conversationId } = await getSession(app.client, 's');
    await removeSession(app.client, 's');
    assert.equal(await app.store.count('session messages'), 1202, 'what no branch shares is gone');
    const orphan = await getSession(app.client, 'b');
    assert.deepEqual([orphan.parentSessionId, orphan.parentConversationId], ['s', conversationId]);
    assert.deepEqual(textsOf(orphan), expected.b);
    await say(app.client, 's', 'anew');
    assert.deepEqual(textsOf(await getSession(app.client, 's')), ['anew', 'You said anew.'], 'the id starts empty');
    await removeSession(app.client, 'b');
    assert.deepEqual(textsOf(await getSession(app.client, 'c')), expected.c);
    assert.equal(await app.store.count('session messages'), 602);
    await branch(app.client, 'c', 'd', 9);
    await removeSession(app.client, 'c');
    assert.equal(await app.store.count('session messages'), 12);
    assert.equal((await getSession(app.client, 'd')).messages?.length, 10);
    await removeSession(app.client, 'd');
    await removeSession(app.client, 's');
    assert.deepEqual(await sessionRows(app), nothingLeft);
  },
);

forEachDurableService('SESS-14 branches, turns and deletions at once leave every history whole', async (open) => {
  const app = await open(echo);
  await say(app.client, 's', 'one');
  await fillSession(app, 's', 600);
  const history = textsOf(await getSession(app.client, 's'));
  await Promise.all([
    ...Array.from({ length: 8 }, (_, index) => branch(app.client, 's', `b-${index}`, 100 * index)),
    say(app.client, 's', 'two'),
  ]);
  const removals = Array.from({ length: 4 }, (_, index) => removeSession(app.client, `b-${index}`));
  const further = Array.from({ length: 4 }, (_, index) => branch(app.client, `b-${index + 4}`, `c-${index}`, 50));
  await Promise.all([...removals, removeSession(app.client, 's'), ...further]);
  for (let index = 0; index < 4; index += 1) {
    const b = textsOf(await getSession(app.client, `b-${index + 4}`));
    assert.deepEqual(b, history.slice(0, 100 * (index + 4) + 1));
    assert.deepEqual(textsOf(await getSession(app.client, `c-${index}`)), history.slice(0, 51));
  }
  assert.equal(await app.store.count('session messages'), 701);
  await Promise.all((await listSessions(app.client)).map(({ id }) => removeSession(app.client, id)));
  assert.deepEqual(await sessionRows(app), nothingLeft);
});

forEachDurableService('SESS-14 a branch of which one part cannot be written is none', async (open) => {
  const app = await open(echo);
  await say(app.client, 's', 'one');
  const accept = await app.store.refuse('shared stretches');
  await assert.rejects(branch(app.client, 's', 'b'));
  await accept();
  assert.deepEqual(
    (await listSessions(app.client)).map(({ id }) => id),
    ['s'],
  );
  await branch(app.client, 's', 'b');
  assert.deepEqual(textsOf(await getSession(app.client, 'b')), ['one', 'You said one.']);
});

forEachDurableService('SESS-15 of branches that ask for one id at once, one gets it', async (open) => {
  const app = await open(echo);
  await say(app.client, 's', 'one');
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => branch(app.client, 's', 'b')));
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const result of results)
    if (result.status === 'rejected')
      assert.equal((await refusal(Promise.reject(result.reason))).code, 'session-exists');
  assert.equal(await app.store.count('shared stretches'), 1);
});
