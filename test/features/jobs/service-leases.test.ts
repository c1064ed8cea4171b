import assert from 'node:assert/strict';
import { forEachSharedService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

/** Under which names a process does the work of services, as its log tells. */
const ownersOf = ({ log }: TestApp): unknown[] =>
  log
    .filter(({ message }) => message === 'This process does the work of a service')
    .map(({ fields }) => fields['owner']);

forEachSharedService(
  'JOB-40 JOB-41 JOB-42 a service is that of one process, by its name, for as long as is configured',
  async (open) => {
    const clocks = [testClock(), testClock()] as const;
    const setup = (index: 0 | 1, folder?: string) => ({
      ...(folder !== undefined && { folder }),
      clock: clocks[index],
      service: { SingletonExecution: { Enabled: true, LeaseDuration: '10s', OwnerId: `node-${index}` } },
    });
    const one = await open(setup(0));
    const names = await eventually('the first one does the work', () => ownersOf(one).length > 0 && ownersOf(one));
    assert.deepEqual(new Set(names), new Set(['node-0']));
    const two = await open(setup(1, one.folder));
    clocks[0].stand();
    assert.deepEqual(ownersOf(two), []);
    for (let steps = 0; steps < 5; steps += 1) await clocks[1].advance(5000);
    await eventually('the other one takes over', () => ownersOf(two).includes('node-1'));
  },
);
