import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { compatibleFinish } from '../../../../src/providers/models/finish-reasons.ts';
import { createModelProviders, type ModelCallError, type ModelPart } from '../../../../src/providers/models/index.ts';
import { LibraryParts } from '../../../../src/providers/models/library-parts.ts';
import { chatUsage } from '../../../../src/providers/models/model-usage.ts';
import {
  collect,
  failureOf,
  finishOf,
  modelCall,
  reasoningOf,
  textOf,
} from '../../../support/providers/model-calls.ts';
import { startRawServer } from '../../../support/providers/raw-server.ts';

/** A server that answers every request with this text at once. */
const serve = async <T>(text: string, use: (url: string) => Promise<T>): Promise<T> => {
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(text);
  });
  return await use(`${server.url}/v1`);
};

const answered = async (text: string): Promise<readonly ModelPart[]> =>
  serve(text, async (url) => {
    const providers = createModelProviders({ Compatible: { local: { Endpoint: url } } }, { log: () => undefined });
    try {
      const provider = providers.get('local');
      assert.ok(provider !== undefined);
      return await provider.generate(modelCall());
    } finally {
      await providers.close();
    }
  });

const failed = async (text: string): Promise<ModelCallError> => (await failureOf(answered(text))).error;

/** The same text through the vendor library's own decoder. */
const byLibrary = async (text: string): Promise<ModelPart[]> =>
  serve(text, async (url) => {
    const model = createOpenAICompatible({ name: 'compatible', baseURL: url }).chatModel('test-model');
    const result = await model.doGenerate({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] });
    return new LibraryParts(
      { provider: 'local', requestId: 'req-1', secret: null, saidDone: false },
      { kind: 'compatible', usage: chatUsage, finishReasons: compatibleFinish },
    ).readAnswer(result.content, {
      reason: result.finishReason,
      usage: result.usage,
      raw: result.usage.raw,
      model: result.response?.modelId,
      metadata: result.providerMetadata,
      body: result.response?.body,
    });
  });

const body = (message: object | null, rest: object = {}, finish: string | null = 'stop'): string =>
  JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm-1',
    choices: [{ index: 0, message, finish_reason: finish }],
    ...rest,
  });

const call = (id: string, name: string, args: string, rest: object = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
  ...rest,
});

const same: Record<string, string> = {
  'text and usage': body(
    { role: 'assistant', content: 'Hello' },
    { usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 } },
  ),
  'text without a usage': body({ role: 'assistant', content: 'Hello' }),
  'an answer that was cut at its limit': body({ role: 'assistant', content: 'Hel' }, {}, 'length'),
  'calls of tools, in their order': body(
    { role: 'assistant', content: null, tool_calls: [call('b', 'g', '{"y":2}'), call('a', 'f', '{}')] },
    {},
    'tool_calls',
  ),
  'calls of tools of a server that says stop': body({
    role: 'assistant',
    content: '',
    tool_calls: [call('a', 'f', '')],
  }),
  'a call with a signature': body(
    {
      role: 'assistant',
      content: null,
      tool_calls: [call('a', 'f', '{}', { extra_content: { google: { thought_signature: 'sig' } } })],
    },
    {},
    'tool_calls',
  ),
  'a reason of another vendor': body({ role: 'assistant', content: 'Hello' }, {}, 'eos'),
};

describe('MODEL-6 whole answers of chat completions', () => {
  for (const [name, text] of Object.entries(same))
    test(`are read as the vendor library reads them: ${name}`, async () => {
      assert.deepEqual(await answered(text), await byLibrary(text));
    });

  test('thoughts come before the text, under either name', async () => {
    for (const name of ['reasoning', 'reasoning_content']) {
      const parts = await answered(body({ role: 'assistant', [name]: 'Well', content: 'Yes' }));
      assert.deepEqual(
        parts.map(({ type }) => type),
        ['reasoning-delta', 'reasoning-end', 'text-delta', 'finish'],
      );
      assert.equal(reasoningOf(parts), 'Well');
    }
  });

  test('a refusal is text, and the reason of the end', async () => {
    const parts = await answered(body({ role: 'assistant', content: null, refusal: 'I cannot' }));
    assert.equal(textOf(parts), 'I cannot');
    assert.equal(finishOf(parts).finishReason, 'ContentFilter');
  });

  test('calls without an id, or with one that is used, are calls of their own', async () => {
    const parts = await answered(
      body({
        role: 'assistant',
        content: null,
        tool_calls: [call('', 'f', '{}'), call('a', 'g', '{}'), call('a', 'g', '{"x":1}')],
      }),
    );
    const calls = parts.filter((part) => part.type === 'tool-call');
    assert.deepEqual(
      calls.map(({ toolName, input }) => [toolName, input]),
      [
        ['f', '{}'],
        ['g', '{}'],
        ['g', '{"x":1}'],
      ],
    );
    assert.equal(new Set(calls.map(({ toolCallId }) => toolCallId)).size, 3);
    assert.ok(calls.every(({ toolCallId }) => toolCallId !== ''));
  });

  test('only the first choice counts', async () => {
    const choice = (index: number, content: string) => ({ index, message: { content }, finish_reason: 'stop' });
    const parts = await answered(body(null, { choices: [choice(0, 'one'), choice(1, 'two')] }));
    assert.equal(textOf(parts), 'one');
  });

  test('a text may be a list of parts', async () => {
    const parts = await answered(
      body({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
          { type: 'text', text: 'Yes' },
        ],
      }),
    );
    assert.equal(reasoningOf(parts), 'Hm');
    assert.equal(textOf(parts), 'Yes');
  });

  test('MODEL-6 of a stream in place of an answer nothing counts after [DONE]', async () => {
    const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
    const chunk = event({ choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }] });
    assert.equal(textOf(await answered(`${chunk}data: [DONE]\n\n${chunk}data: nonsense\n\n`)), 'x');
  });

  const notAnswers: Record<string, [text: string, type: string, status: number | null]> = {
    'an error in an answer that says 200': [
      '{"error":{"type":"overloaded_error","message":"x"}}',
      'provider_error',
      529,
    ],
    'no JSON': ['<html>Sign in</html>', 'provider_error', 200],
    'half a JSON': [body({ content: 'Hello' }).slice(0, 80), 'provider_error', 200],
    'nothing at all': ['', 'provider_error', 200],
    'a text instead of an object': ['"Hello"', 'provider_error', 200],
    'no choice': ['{"choices":[],"usage":{"prompt_tokens":5}}', 'provider_error', 200],
    'choices that are nothing': ['{"choices":[null]}', 'provider_error', 200],
    'something else': ['{"status":"ok"}', 'provider_error', 200],
    'an unknown reason': [body({ content: 'Hello' }, {}, 'done'), 'provider_error', null],
    'no reason of the end': [body({ content: 'Hello' }, {}, null), 'provider_unavailable', null],
    'a call without a name': [
      body({ content: null, tool_calls: [call('a', '', '{}')] }, {}, 'tool_calls'),
      'provider_error',
      200,
    ],
  };
  for (const [name, [text, type, status]] of Object.entries(notAnswers))
    test(`MODEL-14 fails on ${name}`, async () => {
      const error = await failed(text);
      assert.deepEqual([error.type, error.httpStatus], [type, status]);
    });
});

describe('AGENT-41 pages that an answer rests on, of a model that searches by itself', () => {
  const annotations = [
    { type: 'url_citation', url_citation: { url: 'https://example.com/a', title: 'A', start_index: 0, end_index: 2 } },
    { type: 'url_citation', url_citation: { url: 'https://example.com/b' } },
    { type: 'file_citation' },
    null,
  ];
  const wanted = { sources: [{ url: 'https://example.com/a', title: 'A' }, { url: 'https://example.com/b' }] };
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ model: 'm-1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

  const check = (parts: readonly ModelPart[]): void => {
    assert.equal(textOf(parts), 'Yes');
    const result = parts.find((part) => part.type === 'hosted-result');
    assert.deepEqual(result?.result, wanted);
    finishOf(parts);
  };

  test('at once', async () => {
    check(await answered(body({ role: 'assistant', content: 'Yes', annotations })));
  });

  test('streamed', async () => {
    const stream = `${chunk({ content: 'Yes' })}${chunk({ annotations })}${chunk({}, 'stop')}data: [DONE]\n\n`;
    const parts = await serve(stream, async (url) => {
      const providers = createModelProviders({ Compatible: { local: { Endpoint: url } } }, { log: () => undefined });
      const provider = providers.get('local');
      assert.ok(provider !== undefined);
      return collect(provider.stream(modelCall())).finally(() => providers.close());
    });
    check(parts);
  });
});
