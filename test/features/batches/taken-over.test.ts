import assert from 'node:assert/strict';
import { jobItemStore, jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { anyJob } from '../runs/other-process.ts';
import { Gate, waitingSetup } from '../runs/run-calls.ts';
import { detail, save, trigger } from '../schedules/schedule-world.ts';

forEachDurableService(
  'JOB-30 JOB-48 of a batch that another worker has taken over nothing more is written',
  async (open) => {
    const gate = new Gate();
    const app = await open({ ...waitingSetup(gate), service: { Scheduling: { MaxConcurrentItems: 1 } } });
    const what = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: ['wait', 'Hi'] };
    await save(app.client, 'batch', what);
    const { id } = await trigger(app.client, 'batch');
    await gate.reached;
    const storage = app.store.open();
    const jobs = storage.stores(jobStore);
    const later = app.clock.now() + 3_600_000;
    const [taken = assert.fail('it has lapsed')] = await jobs.claim('other', later, later + 60_000, 1, anyJob);
    assert.deepEqual([taken.id, taken.attempt], [id, 2]);
    const runId = (await detail(app.client, id)).items[0]?.runId ?? assert.fail('its run is named while it executes');
    await storage.stores(jobItemStore).takeOver(taken, 0, runId, jobs.held(taken));
    const stored = async () => [
      await app.store.stored('jobs'),
      await app.store.stored('items of jobs'),
      await app.store.stored('runs'),
      await app.store.stored('run events'),
    ];
    const before = await stored();
    gate.open();
    await eventually('the run is stopped as lost', () =>
      app.log.some(
        ({ message, fields }) => message.startsWith('A run was closed or taken') && fields['runId'] === runId,
      ),
    );
    await eventually('the job is left to others', () =>
      app.log.some(({ message, fields }) => message.startsWith('A worker lost the lease') && fields['jobId'] === id),
    );
    await app.close();
    assert.deepEqual(await stored(), before, 'no item has ended, and the second one has not begun');
  },
);
