import assert from 'node:assert/strict';
import { forEachSharedService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { collect, Gate, listRuns, stream, waitingSetup } from './run-calls.ts';

const scanMs = 10_000;

forEachSharedService('RUN-74 one scan closes no more lost runs than is configured', async (open) => {
  const gate = new Gate();
  const { agents, ...setup } = waitingSetup(gate);
  const service = {
    RunReconciliation: {
      ...{ Enabled: true, HeartbeatInterval: '10s', OrphanThreshold: '30s', ScanInterval: '10s' },
      MaxRunsPerScan: 1,
    },
  };
  const still = testClock();
  const one = await open({ ...setup, agents: agents ?? [], service, clock: still });
  const two = await open({ ...setup, service, folder: one.folder, clock: testClock() });
  still.stand();
  const streams = await Promise.all([1, 2, 3].map(() => stream(one.client, 'helper', 'wait')));
  await gate.reached;
  const closed: number[] = [];
  for (let scans = 0; scans < 8; scans += 1) {
    await two.clock.advance(scanMs);
    closed.push((await listRuns(two.client)).filter(({ status }) => status === 'Failed').length);
  }
  assert.deepEqual([...new Set(closed)], [0, 1, 2, 3]);
  gate.open();
  await Promise.all(streams.map(({ frames }) => collect(frames)));
});
