import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Answer } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { ask, calm, codeOf, jobsOf, queue, read, run, runsOf, type Storm, saveAgent, send, together } from './storm.ts';

// Queued work, stored bytes, and what ends work everywhere.

export const workScript = [
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
  for (const name of ['halted', 'busy']) await saveAgent(storm, name);
};

/** JOB-23, JOB-26, JOB-29. */
export const jobsAreDoneOnce = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const orders = await together(async (client) => {
      const order = `storm${round}x${client}`;
      return { order, runId: await queue(storm, 'shop', { message: `order ${order}` }) };
    });
    // Each second one is withdrawn, by three at once.
    const cancels = new Map<string, readonly Answer[]>();
    await together(async (client) => {
      const { runId } = orders[client] ?? assert.fail('each has one');
      if (client % 2 === 0) return;
      const path = `/api/jobs/${runId}/cancel`;
      cancels.set(runId, await together(() => ask(storm, path, { method: 'POST' }), 3));
    });
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
      // On a machine that is too busy a process may not learn in time whether the agent is stopped, and then does not call.
      else assert.equal(done?.error?.type, 'store_unavailable');
      ends[done?.status as keyof typeof ends] += 1;
    }
    assert.ok(ends.Completed > 0 && ends.Canceled > 0, JSON.stringify(ends));
  }
};

const boundary = 'storm-of-files';

const upload = async (storm: Storm, content: string, sessionId: string): Promise<{ id: string; sha256: string }> => {
  const body = [
    `--${boundary}`,
    'content-disposition: form-data; name="file"; filename="notes.txt"',
    'content-type: text/plain',
    '',
    content,
    `--${boundary}--`,
    '',
  ].join('\r\n');
  const headers = {
    'content-type': `multipart/form-data; boundary=${boundary}`,
    'content-length': String(Buffer.byteLength(body)),
  };
  const answer = await ask(storm, `/api/attachments?sessionId=${sessionId}`, { method: 'POST', body, headers });
  assert.equal(answer.status, 201, answer.text);
  return answer.json();
};

/** ATT-6. */
export const equalBytesAreIndependent = async (storm: Storm): Promise<void> => {
  for (let round = 0; round < storm.rounds; round += 1) {
    const content = `Round ${round}. ${'The same for everybody. '.repeat(2000 * storm.rounds)}`;
    const sha256 = createHash('sha256').update(content).digest('hex');
    const sessionId = `files-${round}`;
    const files = await together(() => upload(storm, content, sessionId));
    assert.equal(new Set(files.map(({ id }) => id)).size, files.length);
    for (const file of files) assert.equal(file.sha256, sha256);
    const assertWhole = async (id: string): Promise<void> => {
      const answer = await ask(storm, `/api/attachments/${id}`);
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answer.text === content, 'all bytes are there');
    };
    const remove = (id: string) => send(storm, 'DELETE', `/api/attachments/${id}`);
    // One half goes while the other one is read.
    await together(async (client) => {
      const { id } = files[client] ?? assert.fail('each has one');
      if (client % 2 === 1) return void (await remove(id));
      for (let reads = 0; reads < 2; reads += 1) await assertWhole(id);
    });
    const left = files.filter((_, client) => client % 2 === 0);
    for (const { id } of files.filter(({ id: one }) => !left.some(({ id: other }) => one === other)))
      assert.equal((await ask(storm, `/api/attachments/${id}`)).status, 404);
    // The last ones go while the same comes again.
    const again = await together(async (client) => {
      const mine = left[client];
      if (mine !== undefined) await remove(mine.id);
      return client % 4 === 0 ? [await upload(storm, content, sessionId)] : [];
    });
    for (const { id } of again.flat()) await assertWhole(id);
    const listed = await read<readonly { id: string }[]>(storm, `/api/attachments?sessionId=${sessionId}&take=200`);
    assert.deepEqual(
      listed.map(({ id }) => id).toSorted(),
      again
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    );
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
