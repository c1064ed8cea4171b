import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, call } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { atGate } from './gate.ts';
import {
  ask,
  assertEnded,
  calm,
  clients,
  codeOf,
  mostConnections,
  queue,
  read,
  run,
  runsOf,
  type Storm,
  saveAgent,
  together,
} from './storm.ts';

// What many ask for and one is to get: the first request of a key, the decision of an approval, the turn of a session.

export const decisionScript = [
  {
    when: { message: '/wait for (?<line>\\w+)/', call: 1 },
    reply: { toolCalls: [{ name: 'read', arguments: { name: '{{line}}' } }] },
  },
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
  await saveAgent(storm, 'liner', { toolNames: ['read'] });
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
      // More than the connections of one process: all of them have found that nobody has the key.
      const gate = { table: 'idempotency_keys', on: 'insert', when: 'true', waiting: mostConnections + 1 } as const;
      const answers = await atGate(storm, gate, () => together(first));
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
  const decide = (client: number) => async (id: string, turn: number) => {
    // Of two processes one is asked to approve what the other one is to reject.
    const approved = (client + turn) % 2 === 0;
    return { id, approved, answer: await ask(storm, `/api/approvals/${id}/decide`, { body: { approved } }) };
  };
  const { length: waiting } = storm.fleet.members;
  const gate = { table: 'approvals', on: 'update', when: `new.status <> 'Pending'`, waiting } as const;
  const [first, ...others] = pending.map(({ id }) => id);
  const answers = [
    await atGate(storm, gate, () => together((client) => decide(client)(first ?? assert.fail('one waits'), 0))),
    ...(await together(async (client) => {
      const mine: Awaited<ReturnType<ReturnType<typeof decide>>>[] = [];
      for (const index of others.keys()) {
        const turn = (client + index) % others.length;
        mine.push(await decide(client)(others[turn] ?? assert.fail('there are so many'), turn + 1));
      }
      return mine;
    })),
  ];
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
      next.map((one) => one.id),
      [row.continuationRunId],
    );
    const [run = assert.fail('the run goes on')] = next;
    assertEnded(run);
    const hits = storm.world.hits.get(`External/${bill.name}`) ?? 0;
    if (run.status === 'Completed') assert.equal(hits, row.status === 'Approved' ? 1 : 0, bill.name);
    else assert.ok(hits <= (row.status === 'Approved' ? 1 : 0), bill.name);
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
  // The sessions are there, and free.
  const opened = await together(async (session) => {
    const tag = `t9${session}000`;
    assert.equal((await run(storm, 'talker', { message: `turn ${tag}`, sessionId: `shared-${session}` })).status, 200);
    return [tag];
  }, sessionsOf);
  const takes = `new.id = 'shared-0' and old.active_run_id is null and new.active_run_id is not null`;
  const gate = { table: 'sessions', on: 'update', when: takes, waiting: 2 } as const;
  const talk = async (client: number): Promise<string[]> => {
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
  };
  const answered = await atGate(storm, gate, () => together(talk));
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
    const mine = [opened, answered].flatMap((all) => all.filter((_, index) => index % sessionsOf === session).flat());
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

interface SaidMessage {
  readonly role: string;
  readonly contents: readonly { readonly text?: string }[];
}

// Fewer than may wait for one session.
const comingLater = 8;

/** RUN-8: whoever waits comes before whoever comes later, also while the process of the one that waits stands still. */
export const linesAreKept = async (storm: Storm): Promise<void> => {
  const { fleet, world } = storm;
  const [here, there] = fleet.members;
  assert.ok(here !== undefined && there !== undefined);
  for (let round = 0; round < storm.rounds; round += 1) {
    const sessionId = `line-${round}`;
    const say = (url: string, message: string) =>
      call(`${url}/api/agents/liner/run`, { body: { message, sessionId, stream: false, concurrency: 'Enqueue' } });
    world.holds = (name) => name === `Read/line${round}`;
    const first = say(here.url, `wait for line${round}`);
    await eventually('the session is held', () => world.hits.has(`Read/line${round}`), processMs);
    const second = say(there.url, 'turn t1');
    const queued = async () => (await runsOf(storm, { sessionId, status: 'Queued' })).length === 1;
    await eventually('another one waits for it', queued, processMs);
    fleet.pause(there);
    let later: Promise<readonly Answer[]>;
    try {
      world.letGo();
      assert.equal((await first).status, 200);
      later = together(() => say(here.url, 'turn t2'), comingLater);
      const behind = async () => (await runsOf(storm, { sessionId, status: 'Queued' })).length === 1 + comingLater;
      await eventually('all others wait behind it', behind, processMs);
    } finally {
      fleet.resume(there);
    }
    for (const answer of [await second, ...(await later)]) assert.equal(answer.status, 200, answer.text);
    const { messages } = await read<{ messages: readonly SaidMessage[] }>(storm, `/api/sessions/${sessionId}`);
    const said = messages.flatMap(({ role, contents: [part] }) => (role === 'User' ? [part?.text] : []));
    assert.deepEqual(said, [`wait for line${round}`, 'turn t1', ...Array<string>(comingLater).fill('turn t2')]);
  }
};
