import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelPart, ModelPrompt } from '../../../src/providers/models/index.ts';
import { finishOf, modelCall, modes, textOf, weatherTool } from '../../support/providers/model-calls.ts';
import { openSurface, type SurfaceCase, surfaceCases } from '../../support/providers/surface-cases.ts';

const pages = [
  { url: 'https://example.com/a', title: 'A page' },
  { url: 'https://example.com/b', title: 'Another' },
];
const answer = { search: { query: 'who won', pages }, text: ['The home team.'], usage: { input: 20, output: 4 } };

const surfaceOf = (provider: string): SurfaceCase => {
  const found = surfaceCases.find((surface) => surface.provider === provider);
  assert.ok(found !== undefined);
  return found;
};

const toolsOf = (body: Readonly<Record<string, unknown>>): string => JSON.stringify(body['tools'] ?? []);

type Hosted = Extract<ModelPart, { type: 'hosted-call' | 'hosted-result' }>;
const hostedOf = (parts: readonly ModelPart[]): Hosted[] =>
  parts.filter((part) => part.type === 'hosted-call' || part.type === 'hosted-result');

/** What the engine sends in the next turn: the answer with its search, then what the user says next. */
const nextTurn = (parts: readonly ModelPart[]): ModelPrompt => [
  { role: 'user', content: [{ type: 'text', text: 'Who won?' }] },
  {
    role: 'assistant',
    content: [
      ...hostedOf(parts).map((part) =>
        part.type === 'hosted-call'
          ? ({
              type: 'tool-call',
              toolCallId: part.toolCallId,
              toolName: part.toolName,
              input: JSON.parse(part.input) as unknown,
              providerExecuted: true,
              ...(part.providerMetadata !== undefined && { providerOptions: part.providerMetadata }),
            } as const)
          : ({
              type: 'tool-result',
              toolCallId: part.toolCallId,
              toolName: part.toolName,
              output: { type: part.isError ? 'error-json' : 'json', value: part.result },
              ...(part.providerMetadata !== undefined && { providerOptions: part.providerMetadata }),
            } as const),
      ),
      { type: 'text', text: textOf(parts) },
    ],
  },
  { role: 'user', content: [{ type: 'text', text: 'By how much?' }] },
];

/** Surfaces with a search of their own, as they declare it and as a later turn gives it back. */
const searching: readonly (readonly [provider: string, model: string, declared: object, sentBack: RegExp | null])[] = [
  [
    'openai-responses',
    'gpt-5-mini',
    { type: 'web_search' },
    /"type":"web_search_call","id":"ws_68af4034d8b08193","status":"completed","action":\{"type":"search","query":"who won"/,
  ],
  [
    'anthropic',
    'claude-sonnet-4-5',
    { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
    /"server_tool_use".*"input":\{"query":"who won"\}.*"web_search_tool_result".*"encrypted_content":"EqgfCioIARgBIiQ3YTAwMjY1"/,
  ],
  ['google', 'gemini-3-pro-preview', { googleSearch: {} }, null],
];

describe('AGENT-41 the web search of the provider', () => {
  for (const [provider, model, declared, sentBack] of searching)
    for (const mode of modes)
      test(`${provider} searches, tells of it and gets it back, ${mode.name}`, async () => {
        await using bench = await openSurface(surfaceOf(provider));
        const call = { model, tools: [weatherTool], webSearch: 'offered' } as const;
        bench.simulator.enqueue({ answer });
        const parts = await mode.run(bench.provider(provider), modelCall(call));
        const { body } = bench.simulator.lastRequest();
        const tools = body['tools'] as readonly object[];
        assert.equal(tools.length, 2);
        assert.deepEqual(
          tools.find((tool) => JSON.stringify(tool) === JSON.stringify(declared)),
          declared,
          toolsOf(body),
        );
        assert.match(toolsOf(body), /weather_get/);

        assert.equal(textOf(parts), 'The home team.');
        assert.equal(finishOf(parts).finishReason, 'Stop', 'nothing is left to be executed');
        const [asked, found, ...more] = hostedOf(parts);
        assert.deepEqual(more, []);
        assert.deepEqual([asked?.type, found?.type], ['hosted-call', 'hosted-result']);
        assert.equal(asked?.toolName, 'web_search');
        assert.equal(asked?.toolCallId, found?.toolCallId);
        const told = JSON.stringify([asked, found]);
        for (const { url } of pages) assert.ok(told.includes(url), told);
        assert.ok(told.includes('who won'), told);

        await mode.run(bench.provider(provider), modelCall({ ...call, prompt: nextTurn(parts) }));
        const sent = JSON.stringify(bench.simulator.lastRequest().body);
        if (sentBack === null) assert.ok(!sent.includes(asked?.toolCallId ?? ''));
        else assert.match(sent, sentBack);
        assert.ok(!sent.includes('"acp"'), 'our mark goes to nobody');
      });

  test('a search that fails is told as one', async () => {
    for (const provider of ['anthropic', 'openai-responses']) {
      const surface = surfaceOf(provider);
      await using bench = await openSurface(surface);
      for (const mode of modes) {
        bench.simulator.enqueue({ answer: { ...answer, search: { query: 'who won', pages: null } } });
        const parts = await mode.run(
          bench.provider(provider),
          modelCall({ model: surface.model, webSearch: 'offered' }),
        );
        const found = hostedOf(parts).at(-1);
        assert.ok(found?.type === 'hosted-result' && found.isError, provider);
        await mode.run(
          bench.provider(provider),
          modelCall({ model: surface.model, webSearch: 'offered', prompt: nextTurn(parts) }),
        );
      }
    }
  });

  test('no other kind of provider gets the search of one', async () => {
    await using bench = await openSurface(surfaceOf('anthropic'));
    bench.simulator.enqueue({ answer });
    const parts = await bench
      .provider('anthropic')
      .generate(modelCall({ model: 'claude-sonnet-4-5', webSearch: 'offered' }));
    for (const surface of surfaceCases.filter(({ provider }) => provider !== 'anthropic')) {
      await using other = await openSurface(surface);
      const { provider, model } = surface;
      await other.provider(provider).generate(modelCall({ model, webSearch: 'offered', prompt: nextTurn(parts) }));
      const sent = JSON.stringify(other.simulator.lastRequest().body);
      assert.match(sent, /The home team\./);
      assert.doesNotMatch(sent, /srvtoolu|EqgfCio/, provider);
    }
  });

  test('is offered where the provider has one for the model, and only when asked for', async () => {
    const without: readonly (readonly [provider: string, model: string])[] = [
      ['openai', 'gpt-5'],
      ['local', 'llama3.3:70b'],
      ['azure-openai', 'team-chat'],
      ['openai-responses', 'gpt-4.1-nano'],
      ['openai-responses', 'o3-mini'],
      ['anthropic', 'claude-3-haiku-20240307'],
      ['google', 'gemini-1.5-pro'],
    ];
    for (const [provider, model] of without) {
      await using bench = await openSurface(surfaceOf(provider));
      assert.notEqual(bench.provider(provider).searchesWeb?.(model), true, `${provider} ${model}`);
      await bench.provider(provider).generate(modelCall({ model, webSearch: 'offered' }));
      assert.equal(toolsOf(bench.simulator.lastRequest().body), '[]', `${provider} ${model}`);
    }
    for (const [provider, model] of searching) {
      await using bench = await openSurface(surfaceOf(provider));
      assert.equal(bench.provider(provider).searchesWeb?.(model), true);
      await bench.provider(provider).generate(modelCall({ model, tools: [weatherTool] }));
      assert.doesNotMatch(toolsOf(bench.simulator.lastRequest().body), /search/i, provider);
    }
  });

  test('gives way to the tools of the agent where a model takes one or the other', async () => {
    await using bench = await openSurface(surfaceOf('google'));
    const provider = bench.provider('google');
    await provider.generate(modelCall({ model: 'gemini-2.5-flash', tools: [weatherTool], webSearch: 'offered' }));
    assert.match(toolsOf(bench.simulator.lastRequest().body), /^(?!.*googleSearch).*weather_get/);
    await provider.generate(modelCall({ model: 'gemini-2.5-flash', webSearch: 'offered' }));
    assert.match(toolsOf(bench.simulator.lastRequest().body), /googleSearch/);
  });

  test('cannot be used in a last round', async () => {
    for (const [provider, model] of searching) {
      await using bench = await openSurface(surfaceOf(provider));
      const call = { model, tools: [weatherTool], webSearch: 'offered', toolChoice: 'none' } as const;
      await bench.provider(provider).generate(modelCall(call));
      const { body } = bench.simulator.lastRequest();
      const choice = JSON.stringify(body['tool_choice'] ?? body['toolConfig']);
      assert.match(choice, /none/i, provider);
      if (provider === 'google') assert.doesNotMatch(toolsOf(body), /googleSearch/);
    }
  });
});
