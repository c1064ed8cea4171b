import assert from 'node:assert/strict';
import { forEachHttpService, type TestApp } from '../../support/app.ts';
import { conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, token } from './openai-client.ts';
import { type Body, chat, type Json, respond } from './openai-wire.ts';

const png =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = { type: 'input_image', image_url: png };

const exposing = () =>
  helperSetup({
    host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
    service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } },
  });

const view = { type: 'function', name: 'view_image', parameters: { type: 'object', properties: {} } };
const asked = { type: 'message', role: 'user', content: 'Look.' };
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'view_image', arguments: '{}' });
const returned = (id: string, output: unknown) => ({ type: 'function_call_output', call_id: id, output });
const twoCalls = {
  answer: { toolCalls: ['c1', 'c2'].map((id) => ({ id, name: 'view_image', arguments: '{}' })) },
};

/** What the model has of a conversation, with the number of images in each message. */
const seen = (app: TestApp): string[] => {
  const request = app.simulator.lastRequest();
  const images = (request.body['messages'] as Body[]).map(
    ({ content }) => (Array.isArray(content) ? content : []).filter(({ type }: Body) => type === 'image_url').length,
  );
  const lines = conversation({
    ...request,
    body: {
      ...request.body,
      messages: (request.body['messages'] as Body[]).map((message) => ({
        ...message,
        content: Array.isArray(message.content)
          ? message.content.filter(({ type }: Body) => type === 'text')
          : message.content,
      })),
    },
  });
  return lines.map((line, index) => (images[index] === 0 ? line : `${line} [${images[index]}]`));
};

const shown = [
  'user: Look.',
  'assistant: view_image() view_image()',
  'tool: What it returned as files follows in the next message.',
  'tool: Two of them.\nWhat it returned as files follows in the next message.',
];
const first = 'Returned by the tool call c1:';
const second = 'Returned by the tool call c2:';
const results = [returned('c1', [image]), returned('c2', [{ type: 'input_text', text: 'Two of them.' }, image, image])];

forEachHttpService(
  'OAI-14 OAI-25 what a tool of the caller returns as files follows its results, in a conversation of the caller',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    simulator.enqueue(says('A dot.'), says('Dots.'), says('Dots.'));
    const request = { model: 'local/small', tools: [view], store: false };
    const answered = async (body: Json) => {
      const { status, text } = await respond(app, { ...request, ...body });
      assert.equal(status, 200, text);
    };
    await answered({ input: [asked, call('c1'), call('c2'), ...results] });
    assert.deepEqual(seen(app), [...shown, `user: ${first} [1]`, `user: ${second} [2]`]);
    await answered({
      input: [asked, call('c1'), call('c2'), ...results, { type: 'message', role: 'user', content: 'And?' }],
    });
    assert.deepEqual(seen(app), [...shown, `user: ${first} [1]`, `user: ${second} [2]`, 'user: And?']);

    const parts = (entries: readonly Json[]) =>
      entries.map((part) => (part['type'] === 'input_image' ? { type: 'image_url', image_url: { url: png } } : part));
    const ofChat = (id: string, content: readonly Json[]) => ({
      role: 'tool',
      tool_call_id: id,
      content: parts(content),
    });
    const calls = ['c1', 'c2'].map((id) => ({
      id,
      type: 'function',
      function: { name: 'view_image', arguments: '{}' },
    }));
    const { status, text } = await chat(app, {
      model: 'local/small',
      messages: [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: null, tool_calls: calls },
        ofChat('c1', [image]),
        ofChat('c2', [{ type: 'text', text: 'Two of them.' }, image, image]),
      ],
    });
    assert.equal(status, 200, text);
    assert.deepEqual(seen(app), [...shown, `user: ${first} [1]`, `user: ${second} [2]`]);
  },
);

forEachHttpService('OAI-14 OAI-31 files of results that go on from a response follow them as well', async (open) => {
  const app = await open(exposing());
  const { simulator } = app;
  simulator.enqueue(twoCalls, says('Dots.'));
  const { body: before } = await respond(app, { model: 'local/small', tools: [view], input: 'Look.' });
  const { status, text, body } = await respond(app, {
    ...{ model: 'local/small', tools: [view], previous_response_id: before.id, input: results },
  });
  assert.equal(status, 200, text);
  assert.equal(body.output[0].content[0].text, 'Dots.');
  assert.deepEqual(seen(app), [...shown, `user: ${first}\n${second} [3]`]);

  const far = await respond(app, {
    ...{ model: 'local/small', previous_response_id: before.id },
    input: [returned('c1', 'x'), returned('c2', [{ type: 'input_image', image_url: 'https://example.com/a.png' }])],
  });
  assert.deepEqual([far.status, far.body.error.param], [400, 'input[1].output[0].image_url']);
});
