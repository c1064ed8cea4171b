import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelPrompt } from '../../../src/providers/models/index.ts';
import {
  collect,
  failureOf,
  finishOf,
  modelCall,
  modes,
  textOf,
  toolCallsOf,
  weatherTool,
} from '../../support/providers/model-calls.ts';
import type { Scenario, SimulatedAnswer } from '../../support/providers/scenario.ts';
import { openBench, openSurface, type SurfaceCase, surfaceCases } from '../../support/providers/surface-cases.ts';
import { toolCallForms } from '../../support/providers/tool-call-forms.ts';

const isChat = ({ wire }: SurfaceCase): boolean => wire === 'chat' || wire === 'azure';

const toolCalls = [
  { id: 'call_a', name: 'weather_get', arguments: '{"city":"Wien \\"Mitte\\" {","days":[1,2,3]}' },
  { id: 'call_b', name: 'weather_get', arguments: '{"city":"São Paulo"}' },
];
const inputs = toolCalls.map((call) => JSON.parse(call.arguments));

const call = (surface: SurfaceCase) => modelCall({ model: surface.model, tools: [weatherTool] });

describe('tool calls as servers stream them', () => {
  for (const surface of surfaceCases.filter(isChat))
    for (const [name, callForm] of Object.entries(toolCallForms))
      test(`MODEL-6 ${surface.provider}: ${name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { toolCalls, oddities: { callForm } } });
        const parts = await collect(bench.provider(surface.provider).stream(call(surface)));
        const calls = toolCallsOf(parts);
        assert.deepEqual(
          calls.map((made) => [made.name, made.input]),
          inputs.map((input) => ['weather_get', input]),
        );
        assert.equal(new Set(calls.map(({ id }) => id)).size, 2);
      });

  // The vendor's own schema of responses has no such arguments: the call fails, and no tool runs without them.
  for (const surface of surfaceCases)
    for (const mode of modes)
      test(`MODEL-6 ${surface.provider}: arguments of another type than the API has, ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { toolCalls, oddities: { argumentsInOtherType: true } } });
        const run = mode.run(bench.provider(surface.provider), call(surface));
        if (surface.wire === 'responses') {
          assert.equal((await failureOf(run)).error.type, 'provider_error');
          return;
        }
        assert.deepEqual(
          toolCallsOf(await run).map(({ input }) => input),
          inputs,
        );
      });

  test('MODEL-6 calls of one index that differ in their names alone are all kept', async () => {
    const [surface] = surfaceCases.filter(({ provider }) => provider === 'local');
    assert.ok(surface !== undefined);
    await using bench = await openSurface(surface);
    const made = [
      { id: 'a', name: 'first', arguments: '{}' },
      { id: 'b', name: 'second', arguments: '{}' },
    ];
    for (const form of ['one index and no ids', 'one index and one id', 'neither index nor id']) {
      const callForm = toolCallForms[form];
      assert.ok(callForm !== undefined);
      bench.simulator.enqueue({ answer: { toolCalls: made, oddities: { callForm } } });
      const parts = await collect(bench.provider('local').stream(call(surface)));
      assert.deepEqual(
        toolCallsOf(parts).map(({ name }) => name),
        ['first', 'second'],
        form,
      );
    }
  });
});

describe('usage as servers report it', () => {
  const usage = { input: 1200, output: 300, cached: 1024 };
  const odd: Readonly<Record<string, SimulatedAnswer['oddities'] & object>> = {
    'in the choice': { usageAt: 'choice' },
    'in x_groq': { usageAt: 'x_groq' },
    'as texts': { countsAsTexts: true },
    'cached tokens as prompt_cache_hit_tokens alone': { cacheHits: true },
  };
  for (const surface of surfaceCases.filter(isChat))
    for (const mode of modes)
      for (const [name, oddities] of Object.entries(odd))
        test(`MODEL-27 ${surface.provider}: ${name}, ${mode.name}`, async () => {
          await using bench = await openSurface(surface);
          bench.simulator.enqueue({ answer: { text: ['Yes.'], usage, oddities } });
          const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
          const { inputTokens, outputTokens, cachedInputTokens } = finishOf(parts).usage;
          assert.deepEqual([inputTokens, outputTokens, cachedInputTokens], [1200, 300, 1024]);
          assert.ok(!('impossibleCounts' in finishOf(parts)));
        });

  test('MODEL-27 an input of 0 in the last event of Anthropic does not replace what was counted', async () => {
    const [surface] = surfaceCases.filter(({ wire }) => wire === 'anthropic');
    assert.ok(surface !== undefined);
    await using bench = await openSurface(surface);
    for (const [cached, input] of [
      [1024, 1200],
      [0, 1200],
      // All of it was cached: 0 is what was counted.
      [1200, 1200],
    ] as const) {
      bench.simulator.enqueue({
        answer: { text: ['Yes.'], usage: { input, output: 300, cached }, oddities: { zeroInputAtEnd: true } },
      });
      const parts = await collect(bench.provider('anthropic').stream(modelCall({ model: surface.model })));
      const reported = finishOf(parts).usage;
      assert.deepEqual(
        [reported.inputTokens, reported.outputTokens, reported.totalTokens, reported.cachedInputTokens],
        [1200, 300, 1500, cached],
      );
    }
  });
});

for (const surface of surfaceCases) {
  const answer: SimulatedAnswer = { text: ['Grüß', ' dich'], usage: { input: 20, output: 7 } };
  const other = { streamed: 'document', 'at once': 'events' } as const;

  describe(`an answer in another form: ${surface.provider}`, () => {
    for (const mode of modes) {
      const form = other[mode.name as keyof typeof other];
      const run = async (scenario: Scenario) => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ form, ...scenario });
        const parts = await mode.run(bench.provider(surface.provider), call(surface));
        assert.equal(bench.simulator.requests.length, 1, 'it is not asked again');
        return parts;
      };

      test(`MODEL-6 a text that is asked for ${mode.name} may come as ${form}`, async () => {
        const parts = await run({ answer });
        assert.equal(textOf(parts), 'Grüß dich');
        const { finishReason, usage } = finishOf(parts);
        assert.equal(finishReason, 'Stop');
        const isCounted = surface.wire !== 'chat' && surface.wire !== 'azure' ? true : mode.name === 'streamed';
        if (isCounted) assert.deepEqual([usage.inputTokens, usage.outputTokens], [20, 7]);
      });

      test(`MODEL-6 calls that are asked for ${mode.name} may come as ${form}`, async () => {
        const parts = await run({ answer: { ...answer, toolCalls } });
        assert.deepEqual(
          toolCallsOf(parts).map(({ id, input }) => [id, input]),
          toolCalls.map(({ id }, index) => [id, inputs[index]]),
        );
        assert.equal(finishOf(parts).finishReason, 'ToolCalls');
      });

      const broken: readonly (readonly [name: string, scenario: Scenario, type: RegExp])[] = [
        ['is cut', { fault: { kind: 'cut', after: 2 } }, /^provider_unavailable$/],
        ['ends half-way', { fault: { kind: 'malformed', after: 2 } }, /^provider_(?:error|unavailable)$/],
        ...(form === 'events'
          ? ([
              ['ends in good order before its finish', { fault: { kind: 'end', after: 2 } }, /^provider_unavailable$/],
            ] as const)
          : []),
        ['ends for a reason that is none', { answer: { ...answer, reason: 'brand_new' } }, /^provider_error$/],
      ];
      for (const [name, scenario, type] of broken)
        test(`MODEL-14 one that is asked for ${mode.name}, comes as ${form} and ${name} is no answer`, async () => {
          const { error } = await failureOf(run({ answer, ...scenario }));
          assert.match(error.type, type);
        });
    }
  });

  describe(`[DONE] without a finish reason: ${surface.provider}`, () => {
    // At the other wires the reason belongs to an event, and `[DONE]` is what a gateway adds.
    const oddities = { saysDone: true } as const;
    const streamed = async (scenario: Scenario) => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue(scenario);
      return await collect(bench.provider(surface.provider).stream(call(surface)));
    };

    test('MODEL-6 a text is complete', async () => {
      const parts = await streamed({ answer: { ...answer, reason: null, oddities } });
      assert.equal(textOf(parts), 'Grüß dich');
      assert.equal(finishOf(parts).finishReason, 'Stop');
    });

    test('MODEL-6 calls are complete', async () => {
      const parts = await streamed({ answer: { toolCalls, reason: null, oddities } });
      assert.deepEqual(
        toolCallsOf(parts).map(({ input }) => input),
        inputs,
      );
      assert.equal(finishOf(parts).finishReason, 'ToolCalls');
    });

    test('MODEL-14 nothing is no answer', async () => {
      const { error } = await failureOf(streamed({ answer: { reason: null, oddities } }));
      assert.equal(error.message, `Provider "${surface.provider}" broke off its answer.`);
    });

    test('MODEL-14 thoughts alone are no answer', async () => {
      const { error } = await failureOf(streamed({ answer: { reasoning: ['Hm'], reason: null, oddities } }));
      assert.equal(error.type, 'provider_unavailable');
    });

    // A message of Anthropic has `message_stop` in its place.
    if (surface.wire !== 'anthropic')
      test('MODEL-14 without [DONE] it was cut, whatever has come', async () => {
        const after = isChat(surface) ? 3 : 99;
        const cut: Scenario = { answer: { ...answer, reason: null }, fault: { kind: 'end', after } };
        const { error } = await failureOf(streamed(cut));
        assert.equal(error.message, `Provider "${surface.provider}" broke off its answer.`);
      });
  });
}

test('MODEL-6 a stream of Gemini that comes as a list of its chunks is read', async () => {
  const [surface] = surfaceCases.filter(({ wire }) => wire === 'gemini');
  assert.ok(surface !== undefined);
  await using bench = await openSurface(surface);
  bench.simulator.enqueue({ form: 'list', answer: { text: ['One', ' two'], usage: { input: 20, output: 7 } } });
  const parts = await collect(bench.provider('google').stream(modelCall({ model: surface.model })));
  assert.equal(textOf(parts), 'One two');
  assert.equal(finishOf(parts).usage.inputTokens, 20);
});

test('MODEL-6 reasoning of one compatible endpoint goes to no other one, which refuses members that it does not know', async () => {
  await using bench = await openBench({
    settings: (url) => ({
      Compatible: {
        deepseek: { Endpoint: `${url}/v1` },
        groq: { Endpoint: `${url}/v1` },
        asked: { Endpoint: `${url}/v1`, ReasoningReplay: 'ReasoningContent' },
      },
    }),
  });
  const [toolCall] = toolCalls;
  assert.ok(toolCall !== undefined);
  bench.simulator.enqueue({ answer: { reasoning: ['Hm'], toolCalls: [toolCall] } });
  const parts = await bench.provider('deepseek').generate(modelCall({ tools: [weatherTool] }));
  const kept = parts.find((part) => part.type === 'reasoning-end');
  assert.equal(kept?.text, 'Hm');
  const made = { toolCallId: 'call_a', toolName: 'weather_get' };
  const prompt: ModelPrompt = [
    { role: 'user', content: [{ type: 'text', text: 'How is the weather?' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm', providerOptions: kept?.providerMetadata ?? {} },
        { type: 'tool-call', ...made, input: {} },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', ...made, output: { type: 'text', value: 'Sunny' } }] },
  ];
  const sentTo = async (provider: string, model: string) => {
    await bench.provider(provider).generate(modelCall({ model, prompt, tools: [weatherTool] }));
    const messages = bench.simulator.lastRequest().body['messages'] as Readonly<Record<string, unknown>>[];
    return messages[1]?.['reasoning_content'];
  };
  assert.equal(await sentTo('deepseek', 'deepseek-v4'), 'Hm');
  assert.equal(await sentTo('groq', 'groq-llama'), undefined);
  assert.equal(await sentTo('asked', 'deepseek-v4'), 'Hm', 'but to one whose settings say so');
});
