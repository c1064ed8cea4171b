import assert from 'node:assert/strict';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import { sessionBranchStore } from '../../../src/features/sessions/session-branches.store.ts';
import { forEachDurableService, forEachService, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import {
  collect,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  refusal,
  start,
  stream,
  waitingSetup,
} from '../runs/run-calls.ts';
import { branch, getSession, listSessions, nothingLeft, removeSession, say, sessionRows } from './session-calls.ts';

/** The transaction of the deletion alone, in which another process is at this time. */
const removedElsewhere = async (app: TestApp, now: number, ...ids: readonly string[]): Promise<void> => {
  const storage = app.store.open();
  const branches = storage.stores(sessionBranchStore);
  for (const id of ids) {
    const row = (await storage.stores(sessionStore).get('default', id)) ?? assert.fail(`${id} is there`);
    await branches.remove(row, now, 'token');
  }
};

forEachDurableService(
  'SESS-11 delete takes the session and its messages; runs stay, and the id starts empty',
  async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const { runId } = await say(app.client, 's');
    await say(app.client, 'other');
    const { conversationId } = await getSession(app.client, 's');
    assert.equal((await removeSession(app.client, 's')).status, 204);
    for (const call of [() => getSession(app.client, 's'), () => removeSession(app.client, 's')])
      assert.deepEqual((await refusal(call())).code, 'session-not-found');
    assert.deepEqual(
      (await listSessions(app.client)).map(({ id }) => id),
      ['other'],
    );
    assert.deepEqual(await sessionRows(app), { sessions: 1, messages: 2, segments: 0, dropped: 0 });
    assert.equal((await getRun(app.client, runId)).sessionId, 's');
    assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
    await say(app.client, 's');
    const again = await getSession(app.client, 's');
    assert.deepEqual([again.version, again.messageCount], [1, 2]);
    assert.notEqual(again.conversationId, conversationId);
  },
);

forEachDurableService(
  'SESS-12 a session with a run in progress, waiting in line or queued is not deleted',
  async (open) => {
    const gate = new Gate();
    const app = await open(waitingSetup(gate));
    await say(app.client, 's', 'hello');
    const assertBusy = async () => {
      const problem = await refusal(removeSession(app.client, 's'));
      assert.deepEqual([problem.status, problem.code], [409, 'session-busy']);
    };
    const running = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    await assertBusy();
    const waiting = await stream(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
    const queued = await enqueue(app.client, 'helper', { message: 'three', sessionId: 's', concurrency: 'Enqueue' });
    await assertBusy();
    gate.open();
    await Promise.all([collect(running.frames), collect(waiting.frames)]);
    await followToEnd(app.client, queued);
    assert.equal((await getSession(app.client, 's')).version, 4);
    await removeSession(app.client, 's');
    assert.deepEqual(await sessionRows(app), nothingLeft);
  },
);

forEachService('SESS-12 a queued run that no worker has taken holds its session', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }], service: { Scheduling: { RunWorker: false } } });
  await say(app.client, 's');
  const runId = await enqueue(app.client, 'helper', { message: 'later', sessionId: 's' });
  assert.equal((await refusal(removeSession(app.client, 's'))).code, 'session-busy');
  assert.equal((await getSession(app.client, 's')).version, 1, 'a refusal has no side effect');
  await app.client.runs.cancel({ params: { runId } });
  await removeSession(app.client, 's');
});

forEachService('SESS-12 without recording a run in progress holds its session all the same', async (open) => {
  const gate = new Gate();
  const app = await open({ ...waitingSetup(gate), service: { RunRecording: { Enabled: false } } });
  await say(app.client, 's', 'hello');
  const running = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  assert.equal((await refusal(removeSession(app.client, 's'))).code, 'session-busy');
  gate.open();
  await collect(running.frames);
  await removeSession(app.client, 's');
});

forEachDurableService(
  'SESS-21 a turn whose session is deleted meanwhile ends with a conflict and saves nothing',
  async (open) => {
    const gate = new Gate();
    // Without a record of the run, another process knows it by its lock alone.
    const app = await open({ ...waitingSetup(gate), service: { RunRecording: { Enabled: false } } });
    await say(app.client, 's', 'hello');
    const answered = start(app.client, 'helper', { message: 'wait', sessionId: 's', stream: false });
    await Promise.race([gate.reached, answered]);
    // What another instance may do once the lock has lapsed.
    await removedElsewhere(app, app.clock.now() + 3_600_000, 's');
    gate.open();
    const problem = await refusal(answered);
    assert.deepEqual([problem.status, problem.code, problem.errorType], [409, 'session-conflict', 'session_conflict']);
    assert.equal(await app.store.count('sessions'), 0);
    assert.equal(await app.store.count('session messages'), 2, 'the turn left nothing');
  },
);

forEachDurableService(
  'SESS-20 of turns that begin at once one runs, and the others are refused as long as it does',
  async (open) => {
    const gate = new Gate();
    const app = await open(waitingSetup(gate));
    const turn = () => start(app.client, 'helper', { message: 'wait', sessionId: 'new', stream: false });
    const problems: string[] = [];
    const turns = [turn(), turn(), turn()].map((answer) =>
      answer.catch(async (error) => problems.push((await refusal(Promise.reject(error))).code)),
    );
    await eventually('two are refused while the third runs', () => problems.length === 2);
    gate.open();
    await Promise.all(turns);
    assert.deepEqual(problems, ['session-busy', 'session-busy']);
    const again = await Promise.allSettled([turn(), turn(), turn()]);
    assert.ok(again.some(({ status }) => status === 'fulfilled'));
    const session = await getSession(app.client, 'new');
    const saved = 1 + again.filter(({ status }) => status === 'fulfilled').length;
    assert.deepEqual([session.version, session.messageCount], [saved, saved * 4]);
    assert.equal((await listRuns(app.client)).length, saved);
  },
);

forEachDurableService('SESS-12 a turn and a deletion at once: one of them goes first', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const firstTurn = await say(app.client, 's');
  await removeSession(app.client, 's');
  for (let round = 0; round < 20; round += 1) {
    await say(app.client, 's');
    const [removed, turn] = await Promise.allSettled([removeSession(app.client, 's'), say(app.client, 's')]);
    if (removed.status === 'rejected') {
      assert.equal((await refusal(Promise.reject(removed.reason))).code, 'session-busy');
      assert.equal(turn.status, 'fulfilled');
      await removeSession(app.client, 's');
    } else if (turn.status === 'rejected')
      assert.match((await refusal(Promise.reject(turn.reason))).code, /^session-(busy|conflict)$/);
    else {
      const [anew] = await Promise.allSettled([getSession(app.client, 's')]);
      if (anew.status === 'fulfilled') {
        assert.deepEqual([anew.value.version, anew.value.messageCount], [1, 2]);
        await removeSession(app.client, 's');
      }
      // The deletion came after the end of the turn, which had the one before it: no turn of a new session is lost.
      else {
        assert.equal((await refusal(Promise.reject(anew.reason))).code, 'session-not-found');
        assert.ok((turn.value.usage?.inputTokens ?? 0) > (firstTurn.usage?.inputTokens ?? Number.NaN));
      }
    }
    assert.deepEqual(await sessionRows(app), nothingLeft);
  }
});

forEachDurableService('SESS-11 two deletions at once: one finds it', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  await say(app.client, 's');
  await branch(app.client, 's', 'b');
  const results = await Promise.allSettled([1, 2, 3].map(() => removeSession(app.client, 's')));
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected', 'rejected']);
  for (const result of results)
    if (result.status === 'rejected')
      assert.equal((await refusal(Promise.reject(result.reason))).code, 'session-not-found');
  await removeSession(app.client, 'b');
  assert.deepEqual(await sessionRows(app), nothingLeft);
});

forEachDurableService('SESS-11 what a process that died had not freed yet is freed at the next start', async (open) => {
  const first = await open({ agents: [{ name: 'helper' }] });
  for (const id of ['s', 'shared']) await say(first.client, id);
  await branch(first.client, 'shared', 'b', 0);
  // The transaction of the deletion was the last thing that it did.
  await removedElsewhere(first, first.clock.now(), 's', 'shared');
  assert.deepEqual(await sessionRows(first), { sessions: 1, messages: 4, segments: 1, dropped: 2 });
  await first.close();
  const next = await open({ folder: first.folder });
  assert.deepEqual(await sessionRows(next), { sessions: 1, messages: 1, segments: 1, dropped: 1 });
  assert.equal((await getSession(next.client, 'b')).messages?.length, 1);
  await removeSession(next.client, 'b');
  assert.deepEqual(await sessionRows(next), nothingLeft);
});
