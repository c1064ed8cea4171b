import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  anthropicFinish,
  azureFinish,
  compatibleFinish,
  geminiFinish,
  openAIFinish,
  responsesFinish,
} from '../../../src/providers/models/finish-reasons.ts';
import {
  assertFailure,
  failureOf,
  finishOf,
  modelCall,
  modes,
  textOf,
  weatherTool,
} from '../../support/providers/model-calls.ts';
import type { WireName } from '../../support/providers/scenario.ts';
import { openSurface, surfaceCases } from '../../support/providers/surface-cases.ts';

/** What the documents of the vendors list, by what it means. */
interface Reasons {
  readonly stop: readonly string[];
  readonly length: readonly string[];
  readonly filter: readonly string[];
  readonly failed: readonly string[];
  /** Announce a call of a tool. */
  readonly calls: readonly string[];
  /** Have tests of their own. */
  readonly others?: readonly string[];
}

const chat: Reasons = {
  stop: ['stop'],
  length: ['length'],
  filter: ['content_filter'],
  failed: [],
  calls: ['tool_calls', 'function_call'],
};

const gemini: Reasons = {
  stop: ['STOP'],
  length: ['MAX_TOKENS', 'CONTINUATION'],
  filter: [
    'SAFETY',
    'RECITATION',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'IMAGE_SAFETY',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
    'MODEL_ARMOR',
    'ESCALATION',
  ],
  calls: [],
  failed: [
    'LANGUAGE',
    'OTHER',
    'MALFORMED_FUNCTION_CALL',
    'MALFORMED_RESPONSE',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE',
    'IMAGE_OTHER',
    'NO_IMAGE',
    'FINISH_REASON_UNSPECIFIED',
  ],
};

const compatible: Reasons = {
  // Together, Text Generation Inference, Anthropic and Cohere behind a gateway
  stop: [...chat.stop, 'eos', 'eos_token', 'stop_sequence', 'end_turn', 'COMPLETE', 'STOP'],
  length: [
    ...chat.length,
    'model_length',
    'max_tokens',
    'max_output_tokens',
    'model_context_window_exceeded',
    'ERROR_LIMIT',
  ],
  filter: [
    ...chat.filter,
    'refusal',
    'sensitive',
    'guardrail_intervened',
    'content_filtered',
    'ERROR_TOXIC',
    'safety',
    'recitation',
    'blocklist',
    'prohibited_content',
    'spii',
  ],
  calls: [...chat.calls, 'tool_call', 'TOOL_CALL', 'tool_use'],
  failed: [
    'USER_CANCEL',
    'timeout',
    'aborted',
    'cancelled',
    'canceled',
    'malformed_model_output',
    'malformed_tool_use',
    'malformed_response',
    'finish_reason_unspecified',
    'error',
    'abort',
    'insufficient_system_resource',
    'network_error',
    'malformed_function_call',
    'unexpected_tool_call',
    'too_many_tool_calls',
    'missing_thought_signature',
    'language',
    'other',
    'load',
    'unload',
  ],
};

/** States of a response in which it is no answer. */
const states = ['incomplete', 'failed', 'cancelled', 'queued', 'in_progress'];

const reasons: Readonly<Record<Exclude<WireName, 'embeddings'>, Reasons>> = {
  // The provider of this wire without a vendor behind it.
  chat: compatible,
  azure: chat,
  responses: {
    ...{ stop: [], length: ['max_output_tokens'], filter: ['content_filter'], failed: [], calls: [] },
    others: [...states, 'completed', 'error'],
  },
  anthropic: {
    stop: ['end_turn', 'stop_sequence'],
    length: ['max_tokens', 'model_context_window_exceeded'],
    filter: ['refusal'],
    failed: ['compaction'],
    calls: ['tool_use'],
    others: ['pause_turn'],
  },
  gemini,
};

for (const surface of surfaceCases)
  describe(`finish reasons: ${surface.provider}`, () => {
    if (surface.wire === 'embeddings') return;
    const known = reasons[surface.wire];
    for (const mode of modes) {
      test(`MODEL-22 each one means what its vendor says, ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        for (const [list, meaning] of [
          [known.stop, 'Stop'],
          [known.length, 'Length'],
          [known.filter, 'ContentFilter'],
        ] as const)
          for (const reason of list) {
            bench.simulator.enqueue({ answer: { text: ['Half of it'], reason } });
            const parts = await mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
            assert.equal(finishOf(parts).finishReason, meaning, reason);
            assert.equal(textOf(parts), 'Half of it');
          }
      });

      test(`MODEL-22 what is no end of an answer fails, is named and may fall back, ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        const failed = [...known.failed.map((reason) => [reason, true] as const), ['brand_new', false] as const];
        // With text before it, and without.
        for (const [reason, isKnown] of failed)
          for (const text of [['Half of it'], undefined]) {
            bench.simulator.enqueue({ answer: { ...(text && { text }), reason } });
            const run = mode.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
            const { error } = await failureOf(run);
            const rest = isKnown ? '' : ', a finish reason that is not known';
            const message = `Provider "${surface.provider}" ended its answer with "${reason}"${rest}.`;
            assertFailure(error, 'provider_error', message, true);
            assert.deepEqual(error.reason, { code: reason, type: null, param: null, requestId: 'req-1' });
          }
      });

      test(`MODEL-22 a complete call before a bad end is not handed on as an answer, ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        const toolCalls = [{ id: 'call_a', name: 'weather_get', arguments: '{"city":"Graz"}' }];
        bench.simulator.enqueue({ answer: { toolCalls, reason: known.failed[0] ?? 'brand_new' } });
        const call = modelCall({ model: surface.model, tools: [weatherTool] });
        const { error, before } = await failureOf(mode.run(bench.provider(surface.provider), call));
        assert.equal(error.mayFallBack, true);
        assert.ok(before.every((part) => part.type !== 'finish'));
        if (surface.wire === 'chat' || surface.wire === 'azure') assert.deepEqual(before, []);
      });
    }

    test('MODEL-14 a reason that is no name, or holds the key, is not passed on', async () => {
      await using bench = await openSurface(surface);
      for (const reason of ['see https://example.com/a b', 'sk-test-0123456789', 'x'.repeat(100)]) {
        bench.simulator.enqueue({ answer: { text: ['Half'], reason } });
        const { error } = await failureOf(
          bench.provider(surface.provider).generate(modelCall({ model: surface.model })),
        );
        const shown = surface.credentialHeader === null && reason.startsWith('sk-');
        assert.equal(error.message.includes(reason), shown);
        if (!shown) assert.equal(error.reason, null);
      }
    });
  });

const caseOf = (provider: string) => {
  const found = surfaceCases.find((surface) => surface.provider === provider);
  assert.ok(found !== undefined);
  return found;
};

for (const mode of modes) {
  test(`pause_turn of Anthropic is a pause, and no end, ${mode.name}`, async () => {
    const surface = caseOf('anthropic');
    await using bench = await openSurface(surface);
    bench.simulator.enqueue({ answer: { text: ['I look it up.'], reason: 'pause_turn' } });
    const parts = await mode.run(bench.provider('anthropic'), modelCall({ model: surface.model }));
    assert.equal(finishOf(parts).isPaused, true);
    bench.simulator.enqueue({ answer: { text: ['Sunny.'] } });
    const ended = await mode.run(bench.provider('anthropic'), modelCall({ model: surface.model }));
    assert.ok(!('isPaused' in finishOf(ended)));
  });

  test(`MODEL-22 a response that is neither complete nor says why fails, ${mode.name}`, async () => {
    const surface = caseOf('openai-responses');
    await using bench = await openSurface(surface);
    for (const status of states) {
      bench.simulator.enqueue({ answer: { text: ['Half of it'], oddities: { status } } });
      const { error } = await failureOf(
        mode.run(bench.provider(surface.provider), modelCall({ model: surface.model })),
      );
      assert.equal(error.mayFallBack, true, status);
      assert.ok(error.type === 'provider_error' || error.type === 'provider_unavailable');
    }
  });

  test(`a call that is announced and does not come fails, ${mode.name}`, async () => {
    for (const [provider, reason] of [
      ...compatible.calls.map((name) => ['local', name] as const),
      ...chat.calls.map((name) => ['azure-openai', name] as const),
      ['anthropic', 'tool_use'] as const,
    ]) {
      const surface = caseOf(provider);
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ answer: { reason } });
      const { error } = await failureOf(mode.run(bench.provider(provider), modelCall({ model: surface.model })));
      assertFailure(error, 'provider_error', `Provider "${provider}" announced a tool call and sent none.`, true);
    }
  });
}

test('MODEL-6 the vendor of chat completions has the reasons of its documents, another server those of all', async () => {
  const { openAIChatSurface } = await import('../../../src/providers/models/surfaces/openai.surface.ts');
  const tableOf = (Endpoint?: string) =>
    openAIChatSurface({ ApiKey: 'k', ...(Endpoint && { Endpoint }) }).finishReasons;
  assert.equal(tableOf(), openAIFinish);
  assert.equal(tableOf('https://eu.api.openai.com/v1'), openAIFinish);
  assert.equal(tableOf('https://api.openai.com.example.com/v1'), compatibleFinish);
  assert.equal('eos' in openAIFinish.meanings, false);
});

test('MODEL-22 the tables have the reasons that are proved above, and no others', () => {
  const tables = {
    chat: compatibleFinish,
    azure: azureFinish,
    responses: responsesFinish,
    anthropic: anthropicFinish,
    gemini: geminiFinish,
  };
  for (const [wire, { meanings, ignoresCase }] of Object.entries(tables)) {
    const { stop, length, filter, failed, calls, others = [] } = reasons[wire as keyof typeof tables];
    const proved = [...stop, ...length, ...filter, ...failed, ...calls, ...others];
    const names = proved.map((name) => (ignoresCase ? name.toLowerCase() : name));
    assert.deepEqual([...new Set(names)].sort(), Object.keys(meanings).sort(), wire);
  }
});
