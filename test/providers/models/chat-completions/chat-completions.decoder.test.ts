import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

interface Sent {
  readonly chunks: readonly (string | Buffer)[];
}

/** A server that answers every request with these bytes, one write for each chunk. */
const serve = async <T>(sent: Sent, use: (url: string) => Promise<T>): Promise<T> => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let next = 0;
    const step = (): void => {
      const chunk = sent.chunks[next];
      next += 1;
      if (chunk === undefined) response.end();
      else response.write(chunk, () => setImmediate(step));
    };
    step();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};

const decoded = async (sent: Sent): Promise<ModelPart[]> =>
  serve(sent, async (url) => {
    const providers = createModelProviders({ Compatible: { local: { Endpoint: url } } }, { log: () => undefined });
    try {
      const provider = providers.get('local');
      assert.ok(provider !== undefined);
      return await collect(provider.stream(modelCall()));
    } finally {
      await providers.close();
    }
  });

const failed = async (sent: Sent): Promise<ModelCallError> => (await failureOf(decoded(sent))).error;

/** The same bytes through the vendor library's own decoder. */
const byLibrary = async (sent: Sent): Promise<ModelPart[]> =>
  serve(sent, async (url) => {
    const model = createOpenAICompatible({ name: 'compatible', baseURL: url, includeUsage: true }).chatModel(
      'test-model',
    );
    const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] });
    const parts = new LibraryParts(
      { provider: 'local', requestId: 'req-1', secret: null, saidDone: false },
      { kind: 'compatible', usage: chatUsage, finishReasons: compatibleFinish },
    );
    const read: ModelPart[] = [];
    for await (const part of stream) {
      const ours = parts.read(part);
      ours !== null && read.push(ours);
    }
    return read;
  });

const event = (choice: object | null, rest: object = {}): string => {
  const choices = choice === null ? [] : [{ index: 0, finish_reason: null, ...choice }];
  return `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm-1', choices, ...rest })}\n\n`;
};

const say = (content: string) => event({ delta: { content } });
const tool = (...calls: object[]) => event({ delta: { tool_calls: calls } });
const stop = (reason = 'stop') => event({ delta: {}, finish_reason: reason });
const usage = event(null, { usage: { prompt_tokens: 5, completion_tokens: 6, total_tokens: 11 } });
const done = 'data: [DONE]\n\n';

const same: Record<string, readonly string[]> = {
  'text and usage': [event({ delta: { role: 'assistant', content: '' } }), say('Hel'), say('lo'), stop(), usage, done],
  'no usage and no [DONE]': [say('Hello'), stop()],
  'finish reason beside the last text': [
    say('Hello'),
    event({ delta: { content: '!' }, finish_reason: 'length' }),
    done,
  ],
  'usage in every chunk': [
    event({ delta: { content: 'a' } }, { usage: { prompt_tokens: 1, completion_tokens: 1 } }),
    event({ delta: { content: 'b' }, finish_reason: 'stop' }, { usage: { prompt_tokens: 1, completion_tokens: 2 } }),
    done,
  ],
  'thoughts under either name': [
    event({ delta: { reasoning_content: 'Well' } }),
    event({ delta: { reasoning: ', well' } }),
    say('Yes'),
    stop(),
    done,
  ],
  'thoughts only': [event({ delta: { reasoning_content: 'Well' } }), stop('length'), done],
  'content as parts': [
    event({ delta: { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] } }),
    event({ delta: { content: [{ type: 'text', text: 'Yes' }] } }),
    stop(),
    done,
  ],
  'a refusal': [event({ delta: { refusal: 'I cannot' } }), stop(), done],
  'a tool call in pieces': [
    tool({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }),
    tool({ index: 0, function: { arguments: '{"x"' } }),
    tool({ index: 0, function: { arguments: ':1}' } }),
    stop('tool_calls'),
    usage,
    done,
  ],
  'parallel calls mixed': [
    tool({ index: 1, id: 'b', function: { name: 'g', arguments: '{"y"' } }),
    tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }),
    tool({ index: 1, function: { arguments: ':2}' } }, { index: 0, function: { arguments: '}' } }),
    stop('tool_calls'),
    done,
  ],
  'a whole call in one chunk with its id and name repeated': [
    tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }),
    tool({ index: 0, id: 'a', function: { name: 'f', arguments: '1}' } }),
    stop('tool_calls'),
    done,
  ],
  'several calls under one index': [
    tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }),
    tool({ index: 0, id: 'b', function: { name: 'f', arguments: '{"x":2}' } }),
    stop('tool_calls'),
    done,
  ],
  'a name that comes late': [
    tool({ index: 0, id: 'a', function: { arguments: '{"x"' } }),
    tool({ index: 0, function: { name: 'f', arguments: ':1}' } }),
    stop('tool_calls'),
    done,
  ],
  'a thought signature': [
    tool({
      index: 0,
      id: 'a',
      function: { name: 'f', arguments: '{}' },
      extra_content: { google: { thought_signature: 'sig' } },
    }),
    stop('tool_calls'),
    done,
  ],
  'stop after tool calls': [tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }), stop('stop'), done],
  'a reason of another vendor for a normal end': [say('x'), stop('eos'), done],
  'a filtered answer': [say('x'), stop('content_filter'), done],
  'comments and other fields': [': ping\n\n', 'retry: 100\n', 'event: message\nid: 1\n', say('x'), stop(), done],
  'CRLF line ends': [say('x').replaceAll('\n', '\r\n'), stop().replaceAll('\n', '\r\n'), done.replaceAll('\n', '\r\n')],
};

/** Library parts that belong together may be cut differently, so neighbours are joined. */
const joined = (parts: readonly ModelPart[]): ModelPart[] => {
  const list: ModelPart[] = [];
  for (const part of parts) {
    const last = list.at(-1);
    if ((part.type === 'text-delta' || part.type === 'reasoning-delta') && last?.type === part.type)
      list[list.length - 1] = { ...part, text: last.text + part.text };
    else list.push(part);
  }
  return list;
};

describe('the decoder of chat completions gives what the vendor library gives', () => {
  for (const [name, chunks] of Object.entries(same))
    test(name, async () => {
      assert.deepEqual(joined(await decoded({ chunks })), joined(await byLibrary({ chunks })));
    });

  test('whatever the bytes are cut into', async () => {
    const whole = Buffer.from([say('Grüße 🌍'), say(' 世界'), stop(), usage, done].join(''));
    const single = Array.from({ length: whole.length }, (_, index) => whole.subarray(index, index + 1));
    const expected = await decoded({ chunks: [whole] });
    assert.equal(textOf(expected), 'Grüße 🌍 世界');
    assert.deepEqual(await decoded({ chunks: single }), expected);
  });
});

describe('the decoder of chat completions', () => {
  test('takes a last event without its blank line', async () => {
    assert.equal(finishOf(await decoded({ chunks: [say('x'), stop().trimEnd()] })).finishReason, 'Stop');
  });

  test('takes the first choice only', async () => {
    const other = `data: ${JSON.stringify({ choices: [{ index: 1, delta: { content: 'B' }, finish_reason: 'length' }] })}\n\n`;
    const parts = await decoded({ chunks: [say('A'), other, stop(), done] });
    assert.equal(textOf(parts), 'A');
    assert.equal(finishOf(parts).finishReason, 'Stop');
  });

  test('gives calls without an id, or with one that is used, an id of their own', async () => {
    const parts = await decoded({
      chunks: [
        tool({ index: 0, function: { name: 'f', arguments: '{}' } }),
        tool({ index: 1, id: 'a', function: { name: 'f', arguments: '{}' } }),
        tool({ index: 2, id: 'a', function: { name: 'f', arguments: '{}' } }),
        stop('tool_calls'),
        done,
      ],
    });
    const ids = parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
    assert.equal(new Set(ids).size, 3);
    assert.ok(ids.every((id) => id !== ''));
  });

  test('passes arguments on that are no JSON', async () => {
    const parts = await decoded({
      chunks: [tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }), stop('tool_calls'), done],
    });
    assert.deepEqual(parts[0], { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: '{"x":' });
  });

  test('closes a thought before a tool call', async () => {
    const parts = await decoded({
      chunks: [
        event({ delta: { reasoning_content: 'Hm' } }),
        tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        stop('tool_calls'),
        done,
      ],
    });
    assert.deepEqual(
      parts.map((part) => part.type),
      ['reasoning-delta', 'reasoning-end', 'tool-call', 'finish'],
    );
    assert.equal(reasoningOf(parts), 'Hm');
  });

  test('ignores what comes after [DONE]', async () => {
    const parts = await decoded({ chunks: [say('x'), stop(), done, say('y'), 'data: nonsense\n\n'] });
    assert.equal(textOf(parts), 'x');
  });

  test('takes from a message at the end what no chunk had', async () => {
    const message = { content: 'Hello', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] };
    const parts = await decoded({
      chunks: [say('Hel'), say('lo'), event({ message, finish_reason: 'tool_calls' }), done],
    });
    assert.equal(textOf(parts), 'Hello');
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolName] : [])),
      ['f'],
    );
  });

  test('MODEL-27 keeps a count that a later usage lacks, or has as 0', async () => {
    const counts = (usage: object) => event(null, { usage });
    const parts = await decoded({
      chunks: [
        say('x'),
        stop(),
        counts({ prompt_tokens: 5, completion_tokens: 6, cached_tokens: 4 }),
        counts({ prompt_tokens: 0, completion_tokens: 7 }),
        done,
      ],
    });
    const { inputTokens, outputTokens, cachedInputTokens } = finishOf(parts).usage;
    assert.deepEqual([inputTokens, outputTokens, cachedInputTokens], [5, 7, 4]);
  });

  test('a refusal without a finish reason is one of the filter', async () => {
    const parts = await decoded({ chunks: [event({ delta: { refusal: 'I cannot' } }), done] });
    assert.equal(finishOf(parts).finishReason, 'ContentFilter');
  });

  const broken: Record<string, readonly [chunks: readonly string[], type: string]> = {
    'half a JSON text': [[say('x'), 'data: {"choices":[{"delta":{"content":"y"\n\n', stop(), done], 'provider_error'],
    'a JSON text that is no object': [[say('x'), 'data: 42\n\n', stop(), done], 'provider_error'],
    'lines that are no events': [['<html>', '\n<body>Sign in</body>\n\n'], 'provider_unavailable'],
    'a tool call without a name': [
      [tool({ index: 0, id: 'a', function: { arguments: '{}' } }), stop(), done],
      'provider_error',
    ],
    'nothing but [DONE]': [[event({ delta: { role: 'assistant', content: '' } }), done], 'provider_unavailable'],
    'half a tool call before [DONE]': [
      [tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }), done],
      'provider_unavailable',
    ],
    'a text and half a tool call before [DONE]': [
      [say('x'), tool({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }), done],
      'provider_unavailable',
    ],
    'an error object after text': [
      [say('x'), 'data: {"error":{"message":"boom","type":"server_error"}}\n\n'],
      'provider_error',
    ],
    'an error text': [['data: {"error":"boom"}\n\n'], 'provider_error'],
  };
  for (const [name, [chunks, type]] of Object.entries(broken))
    test(`fails on ${name}`, async () => {
      assert.equal((await failed({ chunks })).type, type);
    });

  test('fails on an event that never ends', async () => {
    const chunk = 'x'.repeat(1024 * 1024);
    const error = await failed({ chunks: ['data: ', ...Array.from({ length: 20 }, () => chunk)] });
    assert.equal(error.type, 'provider_error');
  });
});
