import assert from 'node:assert/strict';
import type { RunEventListener } from '../../../src/engine/record/index.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, forEachSharedService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { anyJob } from './other-process.ts';
import { enqueue, followToEnd, Gate, getRun, tool } from './run-calls.ts';

/** A run that waits before it begins, and once more at its tool. */
const twoGates = (start: Gate, work: Gate, made: string[]) => ({
  module: {
    guards: [
      {
        name: 'gate',
        async inspect({ source }: { readonly source: string }) {
          if (source === 'UserMessage') await start.pass();
          return { decision: 'Allow' } as const;
        },
      },
    ],
  },
  tools: [
    tool('wait', async (_args, { signal }) => {
      made.push('called');
      await work.pass(signal);
      return 'waited';
    }),
  ],
  script: [
    { when: { call: 1 }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
    { reply: { text: 'Done.' } },
  ],
  agents: [{ name: 'helper', toolNames: ['wait'] }],
});

forEachDurableService(
  'JOB-29 the job of a queued run is Leased until the run begins, Running with it, and ends with it',
  async (open) => {
    const start = new Gate();
    const work = new Gate();
    const setup = twoGates(start, work, []);
    const atItsEnd: unknown[] = [];
    const listener: RunEventListener = {
      name: 'end',
      async onEvent({ type, runId }) {
        if (type === 'run.completed') atItsEnd.push((await jobs.get(runId))?.status);
      },
    };
    const app = await open({
      ...setup,
      module: { ...setup.module, eventListeners: [listener] },
      service: { ContentGuard: { GuardTimeout: '60s' } },
    });
    const jobs = app.store.open().stores(jobStore);
    const runId = await enqueue(app.client, 'helper', 'Hi');
    const states = async () => {
      const { job } = (await app.client.jobs.get({ params: { id: runId } })).body;
      return [job.status, (await getRun(app.client, runId)).status, job.leaseOwner === null];
    };
    await start.reached;
    assert.deepEqual(await states(), ['Leased', 'Queued', false]);
    start.open();
    await work.reached;
    assert.deepEqual(await states(), ['Running', 'Running', false]);
    work.open();
    await followToEnd(app.client, runId);
    assert.deepEqual(await states(), ['Completed', 'Completed', true]);
    await eventually('the end is heard', () => atItsEnd.length > 0);
    assert.deepEqual(atItsEnd, ['Completed'], 'committed together with the end of the run, with no moment in between');
  },
);

forEachDurableService(
  'JOB-30 a worker that lost the job before its run began neither begins nor closes the run',
  async (open) => {
    const start = new Gate();
    const made: string[] = [];
    const app = await open({
      ...twoGates(start, new Gate(), made),
      service: { AsyncRun: { MaxAttempts: 2 }, ContentGuard: { GuardTimeout: '60s' } },
    });
    const runId = await enqueue(app.client, 'helper', 'Hi');
    await start.reached;
    const jobs = app.store.open().stores(jobStore);
    const later = app.clock.now() + 3_600_000;
    const [taken = assert.fail('it has lapsed')] = await jobs.claim('other', later, later + 60_000, 1, anyJob);
    assert.deepEqual([taken.id, taken.attempt], [runId, 2]);
    const stored = async () => [
      await app.store.stored('runs'),
      await app.store.stored('run events'),
      await app.store.stored('jobs'),
    ];
    const before = await stored();
    start.open();
    await eventually('it is told', () =>
      app.log.some(({ message }) => message.startsWith('A run was closed or taken')),
    );
    await app.close();
    assert.deepEqual(made, []);
    assert.deepEqual(await stored(), before, 'it is Leased by the other one, and its run in line');
  },
);

forEachSharedService(
  'JOB-23 RUN-41 a run that another process looks at before it begins is canceled by anybody, once, and ends its job',
  async (open) => {
    const start = new Gate();
    const made: string[] = [];
    const one = await open({
      ...twoGates(start, new Gate(), made),
      service: { ContentGuard: { GuardTimeout: '60s' } },
    });
    const two = await open({ folder: one.folder, service: { Scheduling: { RunWorker: false } } });
    const runId = await enqueue(one.client, 'helper', 'Hi');
    await start.reached;
    const { body } = await two.client.runs.cancel({ params: { runId } });
    assert.equal(body.status, 'Canceled');
    start.open();
    const job = await eventually('the job has ended', async () => {
      const { job: row } = (await two.client.jobs.get({ params: { id: runId } })).body;
      return row.completedAt === null ? null : row;
    });
    assert.deepEqual([job.status, job.errorCode, job.leaseOwner], ['Canceled', null, null]);
    assert.deepEqual(await getRun(two.client, runId), body, 'nothing of its end is written once more');
    assert.deepEqual(
      (await followToEnd(two.client, runId)).map(({ type }) => type),
      ['run.queued', 'run.canceled'],
    );
    assert.deepEqual(made, []);
    assert.deepEqual(
      one.log.filter(({ level }) => level === 'error').map(({ message }) => message),
      [],
      'it is no failure of the recording',
    );
  },
);

for (const end of ['Completed', 'Failed'] as const)
  forEachDurableService(
    `RUN-28 JOB-29 a queued run whose end the store refused gets it later, and its job is ${end} already`,
    async (open) => {
      const work = new Gate();
      const setup = twoGates(new Gate(), work, []);
      const app = await open({
        tools: setup.tools,
        agents: setup.agents,
        script: [
          ...setup.script.slice(0, 1),
          { reply: end === 'Failed' ? { error: 'content_filtered' } : { text: 'Done.' } },
        ],
      });
      const runId = await enqueue(app.client, 'helper', 'Hi');
      await work.reached;
      app.clock.stand();
      const accept = await app.store.refuse('run events');
      work.open();
      const job = await eventually('the job has ended', async () => {
        const { job: row } = (await app.client.jobs.get({ params: { id: runId } })).body;
        return row.status === end ? row : null;
      });
      assert.equal((await getRun(app.client, runId)).status, 'Running');
      await accept();
      await app.clock.advance(1000);
      assert.equal((await getRun(app.client, runId)).status, end);
      assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, `run.${end.toLowerCase()}`);
      assert.deepEqual((await app.client.jobs.get({ params: { id: runId } })).body.job, job);
    },
  );
