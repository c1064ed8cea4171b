import assert from 'node:assert/strict';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { overHttp } from '../../support/app.ts';
import { runJson } from './run-calls.ts';

/** A second call that may begin has begun by then. */
const turns = 500;

overHttp('RUN-66 MODEL-21 calls beyond the configured number wait for one that is in progress', async (open) => {
  const inProgress = { now: 0, most: 0 };
  const { client } = await open({
    simulator: {
      async respond() {
        inProgress.now += 1;
        inProgress.most = Math.max(inProgress.most, inProgress.now);
        for (let turn = 0; turn < turns && inProgress.most < 2; turn += 1) await turnOfTheEventLoop();
        inProgress.now -= 1;
        return { answer: { text: ['Hi.'] } };
      },
    },
    service: { ModelConcurrency: { MaxConcurrentCallsPerProvider: 1 } },
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
  });
  const runs = await Promise.all([1, 2, 3].map(() => runJson(client, 'helper', 'Hi')));
  assert.deepEqual(
    runs.map(({ output }) => output),
    ['Hi.', 'Hi.', 'Hi.'],
  );
  assert.equal(inProgress.most, 1);
});
