import assert from 'node:assert/strict';
import { type Answer, call } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { lapseJobLeases } from '../../support/postgres-store.ts';
import { atGate, refusing } from './gate.ts';
import {
  ask,
  assertEnded,
  calm,
  codeOf,
  jobsOf,
  queue,
  run,
  runsOf,
  type Storm,
  saveAgent,
  send,
  together,
} from './storm.ts';

// Queued work, and what ends work everywhere.

export const workScript = [
  {
    when: { message: '/^fetch (?<order>\\w+)/', tool: 'read' },
    reply: { toolCalls: [{ name: 'external', arguments: { name: '{{order}}' } }] },
  },
  {
    when: { message: '/^fetch (?<order>\\w+)/', call: 1 },
    reply: { toolCalls: [{ name: 'read', arguments: { name: '{{order}}' } }] },
  },
  {
    when: { message: '/^send (?<order>\\w+)/', call: 1 },
    reply: { toolCalls: [{ name: 'external', arguments: { name: '{{order}}' } }] },
  },
  {
    when: { message: '/order (?<order>\\w+)/', call: 1 },
    reply: {
      text: 'Going on with it.',
      delay: '5ms',
      toolCalls: ['destructive', 'external'].map((name) => ({ name, arguments: { name: '{{order}}' } })),
    },
  },
  { when: { message: '/^slow/' }, reply: { text: 'This takes a while, and then some.', chunkSize: 4, delay: '30ms' } },
];

export const prepareWork = async (storm: Storm): Promise<void> => {
  await saveAgent(storm, 'shop', { toolNames: ['destructive', 'external'] });
  await saveAgent(storm, 'courier', { toolNames: ['read', 'external'] });
  for (const name of ['halted', 'busy']) await saveAgent(storm, name);
};

/** JOB-23, JOB-26, JOB-29. */
export const jobsAreDoneOnce = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const cancels = new Map<string, Answer[]>();
    const place = async (client: number) => {
      const order = `storm${round}x${client}`;
      const runId = await queue(storm, 'shop', { message: `order ${order}` });
      // Each second one is withdrawn, by three at once.
      if (client % 2 === 1) {
        const answers: Answer[] = [];
        cancels.set(runId, answers);
        const path = `/api/jobs/${runId}/cancel`;
        await together(async () => answers.push(await ask(storm, path, { method: 'POST' })), 3);
      }
      return { order, runId };
    };
    const { length: waiting } = storm.fleet.members;
    const gate = { table: 'jobs', on: 'update', when: `new.status = 'Leased'`, waiting } as const;
    const withdrawn = () => [...cancels.values()].flat().some(({ status }) => status === 204);
    const orders = await atGate(
      storm,
      gate,
      () => together(place),
      () => eventually('one is withdrawn before anybody has taken it', withdrawn, processMs),
    );
    await calm(storm);
    const jobs = new Map((await jobsOf(storm)).map((job) => [job.id, job]));
    const runs = new Map((await runsOf(storm, { agentName: 'shop' })).map((one) => [one.id, one]));
    const ends = { Completed: 0, Canceled: 0, Failed: 0 };
    for (const { order, runId } of orders) {
      const [job, done] = [jobs.get(runId), runs.get(runId)];
      assert.equal(job?.status, done?.status, JSON.stringify([job, done]));
      const answers = cancels.get(runId) ?? [];
      for (const answer of answers)
        assert.ok(answer.status === 204 || codeOf(answer) === 'job-not-cancelable', answer.text);
      const hits = ['Destructive', 'External'].map((effect) => storm.world.hits.get(`${effect}/${order}`) ?? 0);
      assert.ok(
        hits.every((count) => count <= 1),
        `${order}: ${hits}`,
      );
      assert.ok((job?.attempt ?? 0) <= 1, 'nobody has taken it twice');
      if (done?.status === 'Completed') assert.deepEqual(hits, [1, 1], order);
      else if (done?.status === 'Canceled') assert.ok(answers.some(({ status }) => status === 204));
      else assertEnded(done ?? assert.fail('each is a run'));
      ends[done?.status as keyof typeof ends] += 1;
    }
    assert.ok(ends.Completed > 0 && ends.Canceled > 0, JSON.stringify(ends));
  }
};

/** A call that changes something outside stands in the ledger before it is made, or is not made. */
export const unrecordedCallsAreNotMade = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const order = (client: number): string => `${client % 2 === 0 ? 'recorded' : 'refused'}${round}x${client}`;
    const refused = { table: 'tool_invocations', on: 'insert', when: `new.arguments like '%refused%'` } as const;
    await refusing(storm, refused, async () => {
      await together((client) => queue(storm, 'courier', { message: `send ${order(client)}` }), 16);
      await calm(storm);
    });
    for (let client = 0; client < 16; client += 1) {
      const hits = storm.world.hits.get(`External/${order(client)}`) ?? 0;
      assert.equal(hits, client % 2 === 0 ? 1 : 0, order(client));
    }
  }
};

const lostJobs = 8;
const lost = 'A run was closed or taken over';

/** RUN-74: a process stands still while calls of its jobs are out, and others take them. */
export const callsOfTheLostAreMadeOnce = async (storm: Storm): Promise<void> => {
  const { fleet, world } = storm;
  const [, there = assert.fail('there are several')] = fleet.members;
  for (let round = 0; round < storm.rounds; round += 1) {
    const orders = Array.from({ length: lostJobs }, (_, index) => {
      const [kind, effect] = index % 2 === 0 ? ['fetch', 'Read'] : ['send', 'External'];
      const name = `lost${round}x${index}`;
      return { name, message: `${kind} ${name}`, out: `${effect}/${name}` };
    });
    const hits = (name: string): number => world.hits.get(name) ?? 0;
    world.holds = (name) => hits(name) === 1 && orders.some(({ out }) => out === name);
    // What a process has put in line it takes itself while it can.
    const runIds = await together(async (index) => {
      const body = { message: orders[index]?.message };
      const headers = { prefer: 'respond-async' };
      const answer = await call(`${there.url}/api/agents/courier/run`, { body, headers });
      assert.equal(answer.status, 202, answer.text);
      return answer.json<{ runId: string }>().runId;
    }, lostJobs);
    await eventually('their calls are out', () => orders.every(({ out }) => hits(out) === 1), processMs);
    fleet.pause(there);
    try {
      // As if it had stood still for as long as a lease takes to lapse.
      await lapseJobLeases(fleet.database);
      world.letGo();
      await calm(storm);
    } finally {
      fleet.resume(there);
    }
    const attempts = new Map((await jobsOf(storm)).map(({ id, attempt }) => [id, attempt]));
    const taken = runIds.filter((runId) => attempts.get(runId) === 2);
    assert.ok(taken.length > lostJobs / 2, `${taken.length} were taken`);
    const told = () =>
      new Set(
        fleet.members.flatMap(({ log }) =>
          log().flatMap((line) => (line.message.startsWith(lost) ? [line['runId']] : [])),
        ),
      );
    await eventually('whoever has lost them knows it', () => taken.every((runId) => told().has(runId)), processMs);
    const runs = new Map((await runsOf(storm, { agentName: 'courier' })).map((one) => [one.id, one]));
    for (const [index, { name, message }] of orders.entries()) {
      const runId = runIds[index] ?? '';
      const done = runs.get(runId) ?? assert.fail('each is a run');
      assert.equal(hits(`External/${name}`), 1, `${message}: ${JSON.stringify(done)}`);
      // Of a call that was out nobody knows what became of it.
      if (message.startsWith('send') && taken.includes(runId)) assert.equal(done.error?.type, 'orphaned');
      else assert.equal(done.status, 'Completed', JSON.stringify(done));
    }
  }
};

interface Asked {
  readonly at: number;
  readonly answer: Answer;
}

/** All clients ask for runs while the gate is shut, until each process has refused; what was asked from `withinMs` on is refused. */
const assertShuts = async (
  storm: Storm,
  agent: string,
  {
    shut,
    isRefusal,
    withinMs,
  }: { shut: () => Promise<unknown>; isRefusal: (answer: Answer) => boolean; withinMs: number },
): Promise<void> => {
  const asked: Asked[] = [];
  let over = false;
  const clients = together(async () => {
    while (!over) {
      const at = Date.now();
      asked.push({ at, answer: await run(storm, agent, { message: 'slow' }) });
    }
  });
  await eventually('all are at work', () => asked.filter(({ answer }) => answer.status === 200).length > 10, processMs);
  await shut();
  const shutAt = Date.now() + withinMs;
  await eventually(
    'all are refused',
    () => asked.filter(({ at, answer }) => at > shutAt && isRefusal(answer)).length > 64,
    processMs,
  );
  over = true;
  await clients;
  for (const { at, answer } of asked)
    if (at > shutAt) assert.ok(isRefusal(answer), `${at - shutAt} ms after it was in force: ${answer.text}`);
    // What was under way may have been ended.
    else assert.ok(answer.status === 200 || codeOf(answer) === 'run-canceled' || isRefusal(answer), answer.text);
  const late = (await runsOf(storm, { agentName: agent })).filter(
    ({ startedAt, status }) => status !== 'Failed' && Date.parse(startedAt ?? '') > shutAt,
  );
  assert.deepEqual(late, [], 'no run has begun since');
};

/** A run of the agent succeeds at each process. */
const assertOpens = async ({ fleet }: Storm, agent: string): Promise<void> => {
  for (const { url } of fleet.members)
    await eventually(`${agent} runs at ${url}`, async () => {
      const answer = await fetch(`${url}/api/agents/${agent}/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message: 'Hi', stream: false }),
      });
      await answer.text();
      return answer.status === 200;
    });
};

export const stopsHoldEverywhere = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const scope = { scope: 'Agent', agentName: 'halted' };
    await assertShuts(storm, 'halted', {
      shut: () => send(storm, 'POST', '/api/emergency/stop', { ...scope, reason: 'storm' }),
      isRefusal: (answer) => codeOf(answer) === 'emergency-stopped',
      withinMs: 1000,
    });
    const executing = async () => (await runsOf(storm, { agentName: 'halted', status: 'Running' })).length;
    await eventually('what was under way has ended', async () => (await executing()) === 0, processMs);
    await assertOpens(storm, 'busy');
    await send(storm, 'POST', '/api/emergency/resume', scope);
    await assertOpens(storm, 'halted');
  }
};

export const providersAreShutEverywhere = async (storm: Storm): Promise<void> => {
  try {
    await assertShuts(storm, 'busy', {
      shut: () => send(storm, 'PUT', '/api/tenants/default/egress', { allowedProviders: ['openai'] }),
      isRefusal: ({ text }) => text.includes('"provider_not_allowed"'),
      withinMs: 5000,
    });
  } finally {
    await send(storm, 'DELETE', '/api/tenants/default/egress');
  }
  await assertOpens(storm, 'busy');
};
