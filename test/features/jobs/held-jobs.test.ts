import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue } from '../runs/run-calls.ts';
import { noPolls, of, workshop } from './flow-workshop.ts';
import { enqueueAll } from './flow-world.ts';

forEachService(
  'FLOW JOB-27 concurrency: many held jobs of a key delay the first one of another tenant by one job at most',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const app = await open({ ...setup, service: { Scheduling: { ...noPolls.Scheduling, MaxConcurrentJobs: 1 } } });
    const other = app.inTenant('acme');
    const { definition } = (await app.client.agents.get({ params: { name: 'helper' } })).body;
    assert.ok(definition != null);
    await other.agents.create({ body: { ...definition, name: 'helper' } });
    const [first = '', second = ''] = await enqueueAll(
      app,
      Array.from({ length: 40 }, () => of('ann')),
    );
    const at = async (count: number) => {
      await eventually('the next one is at work', () => begun.length === count);
      return begun.at(-1);
    };
    assert.equal(await at(1), first);
    const small = [await enqueue(other, 'helper', of('bob')), await enqueue(other, 'helper', of('bob'))];
    const order = [first];
    for (let count = 2; count <= 4; count += 1) {
      calls[count - 2]?.goOn();
      order.push((await at(count)) ?? '');
    }
    assert.deepEqual(order, [first, small[0], second, small[1]]);
  },
);
