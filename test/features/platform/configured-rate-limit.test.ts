import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';

overHttp('RATE-5 as many requests wait for the next window as is configured, and as long', async (open) => {
  const RateLimit = { Enabled: true, PermitLimit: 1, Window: '1h', QueueLimit: 1 };
  const { url } = await open({ service: { RateLimit } });
  const stop = new AbortController();
  const ask = (signal: AbortSignal | null = null) => fetch(`${url}/api/agents`, { signal });
  const status = async (signal?: AbortSignal): Promise<number> => (await ask(signal)).status;
  assert.equal(await status(), 200);
  const two = [status(stop.signal), status(stop.signal)];
  assert.equal(await Promise.race(two), 429, 'one of the two is refused');
  const refused = await ask();
  assert.equal(refused.status, 429);
  assert.ok(
    Number(refused.headers.get('retry-after')) > 3600,
    'the window after the next one, which somebody waits for',
  );
  stop.abort();
  const outcomes = (await Promise.allSettled(two)).map((one) => (one.status === 'fulfilled' ? one.value : 'it waited'));
  assert.deepEqual(outcomes.toSorted(), [429, 'it waited']);
});
