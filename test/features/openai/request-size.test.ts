import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { says } from '../runs/chat-requests.ts';
import { helperSetup } from './openai-client.ts';
import { type Answer, chat, type Json, respond } from './openai-wire.ts';

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const user = (content: unknown) => ({ role: 'user', content });
const functionCall = (at: number) => ({ type: 'function_call', call_id: `c${at}`, name: 'weather', arguments: '{}' });
const functionOutput = (at: number) => ({ type: 'function_call_output', call_id: `c${at}`, output: `${at}` });
const toolCall = (at: number) => ({ id: `c${at}`, type: 'function', function: { name: 'weather', arguments: '{}' } });

const refusalOf = ({ status, body }: Answer): unknown[] => [status, body?.error?.code, body?.error?.param];

overHttp(
  'OAI-20 OAI-25 a request has at most 10,000 messages, items, parts and calls, and 500 files',
  async (open, t) => {
    const app = await open(helperSetup());
    const { simulator } = app;

    await t.test('more is refused by its place, and no run begins', async () => {
      const text = { type: 'text', text: 'x' };
      const inputText = { type: 'input_text', text: 'x' };
      const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
      const inputImage = { type: 'input_image', image_url: 'data:image/png;base64,AAAA' };
      const calls = (from: number) => ({ role: 'assistant', tool_calls: many(5001, (at) => toolCall(from + at)) });
      const results = (count: number, content: () => unknown) => [
        { role: 'assistant', tool_calls: many(count, toolCall) },
        ...many(count, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: content() })),
      ];
      const outputs = (count: number, output: () => unknown) => [
        ...many(count, functionCall),
        ...many(count, (at) => ({ ...functionOutput(at), output: output() })),
      ];
      for (const [member, wrong, param] of [
        ['messages', many(10_001, () => user('x')), 'messages'],
        ['messages', [user(many(10_001, () => text))], 'messages[0].content'],
        ['messages', many(4, () => user(many(3000, () => text))), 'messages[3].content'],
        ['messages', [calls(0), calls(5001), user('x')], 'messages[1].tool_calls'],
        ['messages', many(2, () => user(many(251, () => image))), 'messages[1].content'],
        [
          'messages',
          [...many(4, () => ({ role: 'system', content: many(3000, () => text) })), user('x')],
          'messages[3].content',
        ],
        [
          'messages',
          [...many(4, () => ({ role: 'assistant', content: many(3000, () => text) })), user('x')],
          'messages[3].content',
        ],
        ['messages', results(4, () => many(3000, () => text)), 'messages[4].content'],
        ['messages', results(2, () => many(251, () => image)), 'messages[2].content'],
        ['input', [...many(5001, functionCall), ...many(5001, functionOutput)], 'input'],
        ['input', many(4, () => user(many(3000, () => inputText))), 'input[3].content'],
        ['input', many(2, () => user(many(251, () => inputImage))), 'input[1].content'],
        ['input', many(4, () => ({ role: 'developer', content: many(3000, () => inputText) })), 'input[3].content'],
        ['input', many(4, () => ({ role: 'assistant', content: many(3000, () => inputText) })), 'input[3].content'],
        ['input', outputs(4, () => many(3000, () => inputText)), 'input[7].output'],
        ['input', outputs(2, () => many(251, () => inputImage)), 'input[3].output'],
      ] as const) {
        const body: Json = { [member]: wrong };
        const answer = await (member === 'messages' ? chat(app, body) : respond(app, body));
        assert.deepEqual(refusalOf(answer), [400, 'validation_failed', param]);
      }
      assert.deepEqual((await app.client.runs.list()).body, []);
    });

    await t.test('as much is answered, with everything that was said', async () => {
      simulator.enqueue(says('Hi.'), says('Hi.'));
      const input = [...many(5000, functionCall), ...many(5000, functionOutput)];
      assert.equal((await respond(app, { input })).status, 200);
      const sent = simulator.lastRequest().body['messages'] as { role: string; tool_calls?: unknown[] }[];
      assert.equal(sent.find(({ role }) => role === 'assistant')?.tool_calls?.length, 5000);
      assert.equal(sent.filter(({ role }) => role === 'tool').length, 5000);
      assert.equal((await chat(app, { messages: many(10_000, () => user('x')) })).status, 200);
    });
  },
);
