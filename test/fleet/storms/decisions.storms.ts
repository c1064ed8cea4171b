import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { ask, calm, clients, codeOf, queue, read, run, runsOf, type Storm, saveAgent, together } from './storm.ts';

// What many ask for and one is to get: the first request of a key, the decision of an approval, the turn of a session.

export const decisionScript = [
  { when: { message: '/^once/' }, reply: { text: 'Only once.', chunkSize: 4, delay: '20ms' } },
  { when: { message: '/turn (?<tag>t\\d+)/' }, reply: { text: 'Heard {{tag}}.', chunkSize: 4, delay: '2ms' } },
  // Also in the run that goes on with the decision, whose first call this is.
  { when: { tool: 'guarded' }, reply: { text: 'That was it.' } },
  {
    when: { message: '/pay (?<bill>\\w+)/' },
    reply: { toolCalls: [{ name: 'guarded', arguments: { name: '{{bill}}' } }] },
  },
];

export const prepareDecisions = async (storm: Storm): Promise<void> => {
  for (const name of ['once', 'talker']) await saveAgent(storm, name);
  await saveAgent(storm, 'payer', { toolNames: ['guarded'] });
};

/** RUN-18, RUN-19. */
export const keysAreUsedOnce = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1)
    for (const prefer of ['', 'respond-async']) {
      const key = `key-${round}-${prefer}`;
      const headers = { 'idempotency-key': key, ...(prefer === '' ? {} : { prefer }) };
      const body = { message: `once ${round}`, stream: false };
      const first = async (): Promise<Answer> => {
        const answer = await ask(storm, '/api/agents/once/run', { body, headers });
        if (answer.status !== 409) return answer;
        assert.equal(codeOf(answer), 'idempotency-in-progress');
        await pause(20);
        return first();
      };
      const answers = await together(first);
      for (const answer of answers) assert.equal(answer.status, prefer === '' ? 200 : 202, answer.text);
      assert.equal(new Set(answers.map(({ text, headers: got }) => `${got['x-run-id']} ${text}`)).size, 1);
      const anew = answers.filter(({ headers: got }) => got['idempotency-replayed'] === undefined);
      assert.equal(anew.length, 1, 'all but one are told that it is a repeat');
      const other = await ask(storm, '/api/agents/once/run', { body: { ...body, message: 'once more' }, headers });
      assert.deepEqual([other.status, codeOf(other)], [422, 'idempotency-key-reused']);
    }
  const runs = await runsOf(storm, { agentName: 'once' });
  assert.equal(runs.length, 2 * storm.rounds);
};

interface Approval {
  readonly id: string;
  readonly runId: string;
  readonly arguments: { readonly name: string };
  readonly status: string;
  readonly decidedAt: string | null;
  readonly continuationRunId: string | null;
}

/** APPR-26, APPR-29, APPR-32. */
export const approvalsAreDecidedOnce = async (storm: Storm): Promise<void> => {
  const bills = 4 * storm.rounds;
  await together((bill) => queue(storm, 'payer', { message: `pay bill${bill}`, sessionId: `bill-${bill}` }), bills);
  const pending = await eventually(
    'all wait for a decision',
    async () => {
      const rows = await read<readonly Approval[]>(storm, '/api/approvals/pending?agentName=payer&take=200');
      return rows.length === bills ? rows : null;
    },
    processMs,
  );
  const answers = await together(async (client) => {
    const mine: { id: string; approved: boolean; answer: Answer }[] = [];
    for (let turn = 0; turn < bills; turn += 1) {
      const { id } = pending[(client + turn) % bills] ?? assert.fail('there are so many');
      const approved = (client + turn) % 2 === 0;
      mine.push({ id, approved, answer: await ask(storm, `/api/approvals/${id}/decide`, { body: { approved } }) });
    }
    return mine;
  });
  await calm(storm);
  for (const { id, runId, arguments: bill } of pending) {
    const row = await read<Approval>(storm, `/api/approvals/${id}`);
    for (const { id: of, approved, answer } of answers.flat())
      if (of !== id) continue;
      else if (approved === (row.status === 'Approved')) {
        const { status, decidedAt, continuationRunId } = answer.json<Approval>();
        assert.deepEqual([answer.status, status, decidedAt], [200, row.status, row.decidedAt], answer.text);
        assert.equal(continuationRunId, row.continuationRunId);
      } else assert.deepEqual([answer.status, codeOf(answer)], [409, 'approval-already-decided']);
    const next = (await runsOf(storm, { agentName: 'payer' })).filter((one) => one.continuedFromRunId === runId);
    assert.deepEqual(
      next.map((one) => [one.id, one.status]),
      [[row.continuationRunId, 'Completed']],
    );
    assert.equal(storm.world.hits.get(`External/${bill.name}`) ?? 0, row.status === 'Approved' ? 1 : 0, bill.name);
  }
};

/** APPR-15. */
export const requestsAreAnsweredOnce = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const sessionId = `in-band-${round}`;
    const asked = await run(storm, 'payer', { message: `pay inband${round}`, sessionId });
    const { runId, approvals } = asked.json<{ runId: string; approvals: readonly { requestId: string }[] }>();
    const decisions = approvals.map(({ requestId }) => ({ requestId, approved: true }));
    assert.equal(decisions.length, 1);
    const answers = await together(() => run(storm, 'payer', { sessionId, approvals: decisions }));
    const taken = answers.filter(({ status }) => status === 200);
    assert.equal(taken.length, 1, 'one goes on with the run');
    for (const answer of answers)
      if (answer.status !== 200)
        assert.ok(['session-busy', 'approval-already-decided'].includes(codeOf(answer)), answer.text);
    const next = (await runsOf(storm, { sessionId })).filter((one) => one.continuedFromRunId === runId);
    assert.deepEqual(
      next.map(({ status }) => status),
      ['Completed'],
    );
    assert.equal(storm.world.hits.get(`External/inband${round}`), 1);
  }
};

const sessionsOf = 4;

/** RUN-8: one writes at a time, and no turn is lost. */
export const turnsFollowEachOther = async (storm: Storm): Promise<void> => {
  const answered = await together(async (client) => {
    const tags: string[] = [];
    for (let turn = 0; turn < storm.rounds; turn += 1) {
      const tag = `t${client}000${turn}`;
      // Every fourth client does not wait, and may be refused.
      const concurrency = client % 16 < 4 ? 'Reject' : 'Enqueue';
      const body = { message: `turn ${tag}`, sessionId: `shared-${client % sessionsOf}`, concurrency };
      const answer = await run(storm, 'talker', body);
      if (answer.status === 200) tags.push(tag);
      else assert.deepEqual([concurrency, answer.status, codeOf(answer)], ['Reject', 409, 'session-busy']);
    }
    return tags;
  });
  assert.ok(answered.flat().length >= (clients * storm.rounds * 3) / 4);
  for (let session = 0; session < sessionsOf; session += 1) {
    const id = `shared-${session}`;
    const { messages, version } = await read<{ messages: readonly { role: string }[]; version: number }>(
      storm,
      `/api/sessions/${id}`,
    );
    const said = messages.map((message) => `${message.role} ${/t\d{4,}/.exec(JSON.stringify(message))?.[0]}`);
    const questions = said.filter((_, index) => index % 2 === 0);
    assert.deepEqual(
      said.filter((_, index) => index % 2 === 1),
      questions.map((question) => question.replace('User', 'Assistant')),
      'each question has its answer behind it',
    );
    const mine = answered.filter((_, client) => client % sessionsOf === session).flat();
    assert.deepEqual(questions.toSorted(), mine.map((tag) => `User ${tag}`).toSorted());
    assert.equal(version, mine.length, 'each turn is one change of the session');
    const spans = (await runsOf(storm, { sessionId: id })).map(({ startedAt, completedAt }) => ({
      from: Date.parse(startedAt ?? ''),
      to: Date.parse(completedAt ?? ''),
    }));
    for (const [index, { from }] of spans.sort((a, b) => a.from - b.from).entries())
      assert.ok(index === 0 || from >= (spans[index - 1]?.to ?? 0), `two runs of ${id} at once`);
  }
};
