import assert from 'node:assert/strict';
import type { Frame } from '../../src/contract/operation.ts';
import { calls, decide, openApprovals, pendingOf, queueWaiting } from '../features/approvals/approval-world.ts';
import {
  enqueue,
  followToEnd,
  Gate,
  getRun,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  waitingSetup,
} from '../features/runs/run-calls.ts';
import type { AppSetup, TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { forEachHearing, type Hearing, openMembers } from './members.ts';

// Conversations, decisions, keys and jobs whose requests come to different processes.

const service = { Scheduling: { PollInterval: '1s' } };

/** Two services with one set of tools; the first makes the agents. */
const openTwo = async (t: Parameters<typeof openMembers>[0], hearing: Hearing, setup: AppSetup) => {
  const both = { ...setup, service: { ...service, ...setup.service } };
  const [here, there] = await openMembers(t, [both, { ...both, agents: [] }], hearing);
  assert.ok(here !== undefined && there !== undefined);
  return [here, there] as const;
};

forEachHearing(
  'RUN-8 turns of a session that come to two processes follow each other in their order',
  async (t, hearing) => {
    const gate = new Gate();
    const [here, there] = await openTwo(t, hearing, waitingSetup(gate));
    const first = await stream(here.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    for (const concurrency of ['Reject', 'Interrupt', 'Rollback'] as const) {
      const problem = await refusal(start(there.client, 'helper', { message: 'now', sessionId: 's', concurrency }));
      const code = concurrency === 'Reject' ? 'session-busy' : 'run-not-on-this-instance';
      assert.deepEqual([problem.status, problem.code], [409, code], concurrency);
    }
    const deletion = await refusal(there.client.sessions.remove({ params: { sessionId: 's' } }));
    assert.ok(['session-busy', 'session-not-found'].includes(deletion.code), deletion.code);
    const waiting: { runId: string; iterator: AsyncIterator<Frame> }[] = [];
    for (const [index, { client }] of [there, here, there].entries()) {
      const { runId, frames } = await stream(client, 'helper', {
        message: `turn ${index}`,
        sessionId: 's',
        concurrency: 'Enqueue',
      });
      const iterator = frames[Symbol.asyncIterator]();
      const queued = (await readUntil(iterator, 'run.queued')).at(-1);
      assert.equal(JSON.parse(queued?.data ?? '').position, index + 1);
      waiting.push({ runId, iterator });
    }
    gate.open();
    for (const { iterator } of waiting) await readUntil(iterator, 'run.completed');
    assert.equal((await getRun(here.client, first.runId)).status, 'Completed');
    for (const { client } of [here, there]) {
      const { body } = await client.sessions.get({ params: { sessionId: 's' } });
      const said = body.messages?.flatMap(({ role, contents: [part] }) =>
        role === 'User' && part?.type === 'Text' ? [part.text] : [],
      );
      assert.deepEqual(said, ['wait', 'turn 0', 'turn 1', 'turn 2']);
      assert.deepEqual([body.version, body.activeRunId], [4, null]);
    }
  },
);

forEachHearing(
  'APPR-29 APPR-31 of two decisions at two processes one counts, and the run goes on',
  async (t, hearing) => {
    const setups: AppSetup[] = [];
    // The setup alone: its tools are those of both processes.
    const { done } = await openApprovals(async (setup = {}) => {
      setups.push(setup);
      return {} as TestApp;
    });
    const [here, there] = await openTwo(t, hearing, setups[0] ?? {});
    for (let round = 0; round < 3; round += 1) {
      const sessionId = `s${round}`;
      const { rows } = await queueWaiting(here, sessionId, ['pay']);
      const id = rows[0]?.id ?? '';
      const decisions = await Promise.allSettled([decide(here.client, id, true), decide(there.client, id, false)]);
      const [row = assert.fail('one counts')] = decisions.flatMap((each) =>
        each.status === 'fulfilled' ? [each.value] : [],
      );
      for (const each of decisions)
        if (each.status === 'rejected') assert.equal(each.reason.problem?.code, 'approval-already-decided');
      assert.deepEqual(decisions.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
      const continued = row.continuationRunId ?? assert.fail('it goes on');
      assert.equal((await followToEnd(there.client, continued)).at(-1)?.type, 'run.completed');
      const made = done.filter(({ runId }) => runId === continued);
      assert.equal(made.length, row.status === 'Approved' ? 1 : 0);
    }
    // A request of the session's next turn is answered once, too.
    await runJson(here.client, 'helper', { message: calls(['pay']), sessionId: 'in-band' });
    const open = (await here.client.sessions.get({ params: { sessionId: 'in-band' } })).body.openRequests;
    const approvals = open.map(({ id }) => ({ requestId: id, approved: true }));
    const before = done.length;
    const answers = await Promise.allSettled(
      [here, there].map(({ client }) => runJson(client, 'helper', { sessionId: 'in-band', approvals })),
    );
    assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const each of answers)
      if (each.status === 'rejected')
        assert.ok(
          ['session-busy', 'approval-already-decided'].includes(each.reason.problem?.code),
          String(each.reason),
        );
    assert.equal(done.length, before + 1);
    // One process gets the decision in the mailbox, the other one by the session's next run.
    for (let round = 0; round < 4; round += 1) {
      const sessionId = `both-${round}`;
      const { runId } = await runJson(here.client, 'helper', { message: calls(['pay']), sessionId });
      const [row] = (await pendingOf(there.client)).filter((pending) => pending.runId === runId);
      const { id = '', requestId = '' } = row ?? {};
      const brings = { sessionId, approvals: [{ requestId, approved: true }] };
      const made = done.length;
      const [mailbox, next] = await Promise.allSettled([
        decide(there.client, id, round % 2 === 0),
        runJson(here.client, 'helper', brings),
      ]);
      const { status, continuationRunId } = (await here.client.approvals.get({ params: { id } })).body;
      await followToEnd(there.client, continuationRunId ?? '');
      assert.equal((await here.client.runs.list({ query: { sessionId } })).body.length, 2, 'one run goes on');
      assert.deepEqual(
        done.slice(made).map((call) => call.runId),
        status === 'Approved' ? [continuationRunId] : [],
      );
      // Who came second is refused, or has said the same.
      assert.ok(mailbox.status === 'fulfilled' || next.status === 'fulfilled');
      if (next.status === 'fulfilled') assert.equal(next.value.runId, continuationRunId);
    }
  },
);

forEachHearing('RUN-18 one key at two processes at once is one run', async (t, hearing) => {
  const [here, there] = await openTwo(t, hearing, { agents: [{ name: 'helper' }] });
  for (let round = 0; round < 5; round += 1) {
    const headers = { headers: { 'idempotency-key': `k${round}` } };
    const body = { message: 'Hi', stream: false };
    const answers = await Promise.allSettled([here, there].map(({ client }) => start(client, 'helper', body, headers)));
    const ids = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.headers['x-run-id']] : []));
    for (const answer of answers)
      if (answer.status === 'rejected') assert.equal(answer.reason.problem?.code, 'idempotency-in-progress');
    assert.equal(new Set(ids).size, 1);
    const again = await start(there.client, 'helper', body, headers);
    assert.deepEqual([again.headers['x-run-id'], again.headers['idempotency-replayed']], [ids[0], 'true']);
  }
});

forEachHearing('JOB-23 a job is canceled at a process that does not have it', async (t, hearing) => {
  const gate = new Gate();
  const [here, there] = await openTwo(t, hearing, waitingSetup(gate));
  const runId = await enqueue(here.client, 'helper', 'wait');
  await gate.reached;
  for (const { client } of [here, there])
    assert.equal((await client.jobs.get({ params: { id: runId } })).body.job.status, 'Running');
  // Whichever of them has it.
  await there.client.jobs.cancel({ params: { id: runId } });
  assert.equal((await followToEnd(here.client, runId)).at(-1)?.type, 'run.canceled');
  await eventually('its job has ended', async () => {
    const { job } = (await here.client.jobs.get({ params: { id: runId } })).body;
    return job.status === 'Canceled';
  });
  const second = await enqueue(there.client, 'helper', 'Hi');
  assert.equal((await followToEnd(here.client, second)).at(-1)?.type, 'run.completed');
  assert.equal((await runJson(here.client, 'helper', 'Hi')).status, 'Completed');
});
