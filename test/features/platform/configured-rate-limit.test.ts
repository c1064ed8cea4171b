import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';

overHttp('RATE-5 as many requests wait for the next window as is configured', async (open) => {
  const RateLimit = { Enabled: true, PermitLimit: 1, Window: '1h', QueueLimit: 1 };
  const { url } = await open({ service: { RateLimit } });
  const stop = new AbortController();
  const status = async (signal?: AbortSignal): Promise<number> =>
    (await fetch(`${url}/api/agents`, { signal: signal ?? null })).status;
  assert.equal(await status(), 200);
  const two = [status(stop.signal), status(stop.signal)];
  assert.equal(await Promise.race(two), 429, 'one of the two is refused');
  assert.equal(await status(), 429);
  stop.abort();
  const outcomes = (await Promise.allSettled(two)).map((one) => (one.status === 'fulfilled' ? one.value : 'it waited'));
  assert.deepEqual(outcomes.toSorted(), [429, 'it waited']);
});
