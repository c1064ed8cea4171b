import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { retryAfterMs } from '../../../src/providers/models/retry-after.ts';
import { readVendorError } from '../../../src/providers/models/vendor-error.ts';
import { finishOf, modelCall, modes } from '../../support/providers/model-calls.ts';
import { openSurface, surfaceCases } from '../../support/providers/surface-cases.ts';

for (const surface of surfaceCases)
  describe(`counts that no call can have: ${surface.provider}`, () => {
    for (const { name, run } of modes)
      for (const input of [1e300, 1e15, 10.5, -7])
        test(`${input} input tokens, ${name}, are not reported and are told`, async () => {
          await using bench = await openSurface(surface);
          bench.simulator.enqueue({ answer: { text: ['Yes.'], usage: { input, output: 3 } } });
          const provider = bench.provider(surface.provider);
          const finish = finishOf(await run(provider, modelCall({ model: surface.model })));
          assert.equal(finish.usage.inputTokens, null);
          assert.ok((finish.usage.totalTokens ?? 0) < 1e9, 'the sum is not taken either');
          assert.ok((finish.impossibleCounts?.length ?? 0) > 0);
        });

    test('what can be is reported, and nothing is told', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ answer: { text: ['Yes.'], usage: { input: 1_000_000, output: 0 } } });
      const finish = finishOf(await bench.provider(surface.provider).generate(modelCall({ model: surface.model })));
      assert.deepEqual([finish.usage.inputTokens, finish.usage.outputTokens], [1_000_000, 0]);
      assert.ok(!('impossibleCounts' in finish));
    });
  });

test('a wait that a provider asks for is bounded and whole', () => {
  const day = 86_400_000;
  const asks = (retryDelay: string) => readVendorError({ error: { details: [{ retryDelay }] } }).retryAfterMs;
  assert.deepEqual([asks('17.0004s'), asks(`${'9'.repeat(20)}s`), asks(`${'9'.repeat(400)}s`)], [17_001, day, null]);
  assert.equal(retryAfterMs(new Map([['retry-after', '9'.repeat(20)]]), 0), day);
});
