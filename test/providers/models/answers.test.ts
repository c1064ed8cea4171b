import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  collect,
  finishOf,
  modelCall,
  modes,
  reasoningOf,
  textOf,
  toolCallsOf,
  weatherTool,
} from '../../support/providers/model-calls.ts';
import { openSurface, surfaceCases } from '../../support/providers/surface-cases.ts';

const noUsage = {
  inputTokens: null,
  outputTokens: null,
  totalTokens: null,
  cachedInputTokens: null,
  reasoningTokens: null,
  audioInputTokens: null,
  audioOutputTokens: null,
};

for (const surface of surfaceCases) {
  describe(`MODEL-6 ${surface.provider} speaks ${surface.wire}`, () => {
    for (const mode of modes) {
      test(`text comes ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['Grüß', ' dich', ', 世界 🌍'], usage: { input: 20, output: 7 } } });

        const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));

        assert.equal(textOf(parts), 'Grüß dich, 世界 🌍');
        assert.equal(finishOf(parts).finishReason, 'Stop');
        const request = bench.simulator.lastRequest();
        assert.equal(request.wire, surface.wire);
        assert.equal(request.model, surface.model);
        assert.equal(request.streaming, mode.name === 'streamed');
        assert.equal(bench.log.length, 0);
      });

      test(`usage with cached and reasoning tokens comes ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({
          answer: { text: ['Yes.'], usage: { input: 1200, output: 300, cached: 1024, reasoning: 192 } },
        });

        const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));

        assert.deepEqual(finishOf(parts).usage, {
          ...noUsage,
          inputTokens: 1200,
          outputTokens: 300,
          totalTokens: 1500,
          cachedInputTokens: 1024,
          reasoningTokens: 192,
          audioInputTokens: surface.wire === 'chat' || surface.wire === 'azure' ? 0 : null,
        });
      });

      test(`what the provider does not report is null, not 0, ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['Yes.'], usage: { input: 10, output: 3 } } });
        const counted = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
        assert.deepEqual(finishOf(counted).usage, { ...noUsage, inputTokens: 10, outputTokens: 3, totalTokens: 13 });

        // Anthropic always reports a usage.
        if (surface.wire !== 'anthropic') {
          bench.simulator.enqueue({ answer: { text: ['Yes.'], usage: null } });
          const silent = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
          assert.deepEqual(finishOf(silent).usage, noUsage);
        }
      });

      test(`parallel tool calls in pieces come ${mode.name}, whole and in the model's order`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({
          answer: {
            toolCalls: [
              { id: 'call_a', name: 'weather_get', arguments: '{"city":"Wien \\"Mitte\\"","days":[1,2,3]}' },
              { id: 'call_b', name: 'weather_get', arguments: '{"city":"São Paulo"}' },
            ],
            usage: { input: 50, output: 20 },
          },
        });

        const call = modelCall({ model: surface.model, tools: [weatherTool] });
        const parts = await mode.run(bench.provider(surface.provider), call);

        assert.deepEqual(toolCallsOf(parts), [
          { id: 'call_a', name: 'weather_get', input: { city: 'Wien "Mitte"', days: [1, 2, 3] } },
          { id: 'call_b', name: 'weather_get', input: { city: 'São Paulo' } },
        ]);
        assert.equal(finishOf(parts).finishReason, 'ToolCalls');
      });

      test(`text before a tool call comes ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({
          answer: {
            text: ['Let me', ' look.'],
            toolCalls: [{ id: 'call_a', name: 'weather_get', arguments: '{"city":"Graz"}' }],
          },
        });

        const parts = await mode.run(
          bench.provider(surface.provider),
          modelCall({ model: surface.model, tools: [weatherTool] }),
        );

        assert.equal(textOf(parts), 'Let me look.');
        assert.deepEqual(
          toolCallsOf(parts).map((call) => call.id),
          ['call_a'],
        );
        assert.deepEqual(
          parts.filter((part) => part.type !== 'text-delta').map((part) => part.type),
          ['tool-call', 'finish'],
        );
      });

      test(`an answer that reached its limit says so ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['Once upon'], finish: 'length' } });
        const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
        assert.equal(finishOf(parts).finishReason, 'Length');
      });

      test(`an answer that the filter cut says so ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['Once upon'], finish: 'filter' } });
        const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
        assert.equal(textOf(parts), 'Once upon');
        assert.equal(finishOf(parts).finishReason, 'ContentFilter');
      });
    }

    test('the model that answered is named where the provider names it', async () => {
      await using bench = await openSurface(surface);
      const parts = await collect(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      const named = finishOf(parts).responseModel;
      assert.equal(named?.startsWith(`${surface.model}-`) ?? false, surface.namesModel);
    });

    test('nothing is sent before the first read', async () => {
      await using bench = await openSurface(surface);
      const stream = bench.provider(surface.provider).stream(modelCall({ model: surface.model }));
      await bench.provider(surface.provider).generate(modelCall({ model: surface.model }));
      assert.equal(bench.simulator.requests.length, 1);
      await collect(stream);
      assert.equal(bench.simulator.requests.length, 2);
    });

    test('connections are used again', async () => {
      await using bench = await openSurface(surface);
      const provider = bench.provider(surface.provider);
      // An answer is over for its reader a little before it is over on the wire, so the next one may need another.
      for (let round = 0; round < 20; round += 1) {
        await provider.generate(modelCall({ model: surface.model }));
        await collect(provider.stream(modelCall({ model: surface.model })));
      }
      assert.ok((await bench.simulator.connections()) < 20);
    });
  });
}

describe('AGENT-23 thoughts', () => {
  for (const surface of surfaceCases.filter(
    (candidate) => candidate.wire !== 'azure' && candidate.provider !== 'openai',
  )) {
    for (const mode of modes)
      test(`${surface.provider} gives them ${mode.name}, apart from the text and closed`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { reasoning: ['Hmm,', ' let me see.'], text: ['Sunny.'] } });

        const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));

        assert.equal(reasoningOf(parts), 'Hmm, let me see.');
        assert.equal(textOf(parts), 'Sunny.');
        const types = parts.map((part) => part.type);
        assert.ok(types.lastIndexOf('reasoning-delta') < types.lastIndexOf('reasoning-end'));
        assert.ok(types.lastIndexOf('reasoning-end') < types.indexOf('text-delta'));
      });
  }
});
