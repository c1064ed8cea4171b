import assert from 'node:assert/strict';
import { forEachOwnedService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { callsTools, Gate, listRuns, stream, tool } from './run-calls.ts';

forEachOwnedService('RUN-76 a run that is lost again continues as often as is configured', async (open) => {
  const gates = [new Gate(), new Gate(), new Gate()];
  let calls = 0;
  const setup = {
    service: {
      RunReconciliation: { Enabled: true },
      RunContinuation: { Enabled: true, MaxAttempts: 2 },
      Scheduling: { PollInterval: '1s' },
    },
    tools: [
      tool('wait', async (_args, { signal }) => {
        const gate = gates[calls];
        calls += 1;
        await gate?.pass(signal);
        return 'waited';
      }),
    ],
    script: callsTools('wait'),
  };
  const first = await open({ ...setup, agents: [{ name: 'helper', toolNames: ['wait'] }] });
  const { runId } = await stream(first.client, 'helper', { message: 'Hi', sessionId: 's' });
  await gates[0]?.reached;
  await first.close();
  const second = await open({ ...setup, folder: first.folder });
  await gates[1]?.reached;
  await second.close();
  gates[2]?.open();
  const third = await open({ ...setup, folder: first.folder });
  const runs = await eventually('the last run has ended', async () => {
    const all = await listRuns(third.client, { sessionId: 's' });
    return all.some(({ status }) => status === 'Completed') && all;
  });
  assert.deepEqual(runs.map(({ status }) => status).toSorted(), ['Completed', 'Failed', 'Failed']);
  assert.equal(runs.filter(({ continuedFromRunId }) => continuedFromRunId === runId).length, 1);
});
