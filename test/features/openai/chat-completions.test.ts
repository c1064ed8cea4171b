import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { forEachHttpService } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, officialClient } from './openai-client.ts';

const hello = [{ role: 'user', content: 'Hello' }] as const;

forEachHttpService('OAI-9 OAI-18 an agent is a model by its name, and another name is none', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  const { data } = await client.models.list();
  assert.deepEqual(
    data.map(({ id, object, owned_by }) => ({ id, object, owned_by })),
    [{ id: 'helper', object: 'model', owned_by: 'database' }],
  );
  assert.equal((await client.models.retrieve('helper')).id, 'helper');
  await assert.rejects(client.models.retrieve('nobody'), (error: unknown) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, 'model_not_found');
    assert.equal(error.param, 'model');
    assert.equal(error.type, 'invalid_request_error');
    return true;
  });
  await assert.rejects(
    client.chat.completions.create({ model: 'Helper', messages: [...hello] }),
    (error: unknown) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found',
  );
});

forEachHttpService(
  'OAI-19 OAI-22 a chat is one run without a session, with the history of its request',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    app.simulator.enqueue(says('Paris.'));
    const { data: answer, response } = await client.chat.completions
      .create({
        model: 'helper',
        messages: [
          { role: 'system', content: 'Answer in one word.' },
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: 'Hello.' },
          { role: 'user', content: 'The capital of France?' },
        ],
      })
      .withResponse();
    assert.equal(answer.choices[0]?.message.content, 'Paris.');
    assert.equal(answer.choices[0]?.finish_reason, 'stop');
    assert.match(answer.id, /^chatcmpl-[0-9a-f]{32}$/);
    assert.deepEqual(conversation(app.simulator.lastRequest()), [
      'system: Be brief.\n\nAnswer in one word.',
      'user: Hi',
      'assistant: Hello.',
      'user: The capital of France?',
    ]);
    const runId = response.headers.get('x-run-id') ?? '';
    assert.equal(answer.id, `chatcmpl-${runId.replaceAll('-', '')}`);
    const { body: run } = await app.client.runs.get({ params: { runId } });
    assert.equal(run.sessionId, null);
    assert.equal(run.status, 'Completed');
    assert.deepEqual((await app.client.sessions.list()).body, []);
    assert.equal(answer.usage?.prompt_tokens, run.usage?.inputTokens);
  },
);

forEachHttpService(
  'OAI-23 a streamed chat has its role first, its end with the usage, and then nothing',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    app.simulator.enqueue({ answer: { text: ['One ', 'two.'], usage: { input: 7, output: 3 } } });
    const stream = await client.chat.completions.create({
      model: 'helper',
      messages: [...hello],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    assert.deepEqual(chunks[0]?.choices[0]?.delta, { role: 'assistant', content: '' });
    assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), 'One two.');
    assert.deepEqual(chunks.at(-2)?.choices[0]?.delta, {});
    assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, 'stop');
    assert.deepEqual(chunks.at(-1)?.choices, []);
    assert.ok((chunks.at(-1)?.usage?.total_tokens ?? 0) > 0);
    assert.deepEqual([...new Set(chunks.slice(0, -1).map(({ usage }) => usage))], [null]);
    assert.equal(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size, 1);
  },
);

forEachHttpService(
  'OAI-21 a call of a client-side tool ends the answer, and its result begins the next run',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    for (const stream of [false, true]) {
      app.simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'));
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather in Rome?' }];
      const tools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'weather' } }];
      let message: OpenAI.ChatCompletionMessage | undefined;
      if (stream) {
        const final = await client.chat.completions.stream({ model: 'helper', messages, tools }).finalChatCompletion();
        assert.equal(final.choices[0]?.finish_reason, 'tool_calls');
        message = final.choices[0]?.message;
      } else {
        const { data, response } = await client.chat.completions
          .create({ model: 'helper', messages, tools })
          .withResponse();
        assert.equal(data.choices[0]?.finish_reason, 'tool_calls');
        message = data.choices[0]?.message;
        const runId = response.headers.get('x-run-id') ?? '';
        assert.equal((await app.client.runs.get({ params: { runId } })).body.status, 'Completed');
      }
      const call = message?.tool_calls?.[0];
      assert.ok(call?.type === 'function');
      assert.deepEqual(
        [call.id, call.function.name, JSON.parse(call.function.arguments)],
        ['call-1', 'weather', { city: 'Rome' }],
      );
      app.simulator.enqueue(says('It is sunny.'));
      const answer = await client.chat.completions.create({
        model: 'helper',
        tools,
        messages: [
          ...messages,
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: call.id, content: 'sunny' },
        ],
      });
      assert.equal(answer.choices[0]?.message.content, 'It is sunny.');
      assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
        'user: Weather in Rome?',
        'assistant: weather()',
        'tool: sunny',
      ]);
    }
  },
);

forEachHttpService(
  'OAI-15 APPR-7 a call that needs an approval fails, the model is told, and the run goes on',
  async (open) => {
    const app = await open(helperSetup());
    app.simulator.enqueue(calls('wipe', {}), says('I may not.'));
    const answer = await officialClient(app).chat.completions.create({ model: 'helper', messages: [...hello] });
    assert.equal(answer.choices[0]?.message.content, 'I may not.');
    assert.equal(answer.choices[0]?.message.tool_calls, undefined);
    assert.match(conversation(app.simulator.lastRequest()).at(-1) ?? '', /^tool: .*approval-not-available/);
    assert.deepEqual((await app.client.approvals.list()).body, []);
  },
);
