import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { APICallError, tool as aiTool, generateText, jsonSchema, type ModelMessage, streamText } from 'ai';
import { forEachHttpService, type TestApp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, token } from './openai-client.ts';

const providerOf = (app: TestApp) => createOpenAI({ baseURL: `${app.url}/v1`, apiKey: token });

const weather = aiTool({
  description: 'The weather in a city',
  inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: async ({ city }) => `sunny in ${city}`,
});

forEachHttpService('OAI-21 OAI-31 @ai-sdk/openai runs its own tools over both APIs', async (open) => {
  const app = await open(helperSetup());
  const provider = providerOf(app);
  for (const model of [provider.chat('helper'), provider.responses('helper')]) {
    app.simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'), says('Sunny.'));
    const { text, steps } = await generateText({
      model,
      prompt: 'Weather in Rome?',
      tools: { weather },
      stopWhen: ({ steps: done }) => done.length === 2,
      maxRetries: 0,
    });
    assert.equal(text, 'Sunny.');
    assert.equal(steps.length, 2);
    assert.match(conversation(app.simulator.lastRequest()).at(-1) ?? '', /^tool: .*sunny in Rome/);
  }
});

forEachHttpService('OAI-23 OAI-33 @ai-sdk/openai reads streams of both APIs', async (open) => {
  const app = await open(helperSetup());
  const provider = providerOf(app);
  for (const model of [provider.chat('helper'), provider.responses('helper')]) {
    app.simulator.enqueue({ answer: { text: ['One ', 'two.'], usage: { input: 3, output: 2 } } });
    const result = streamText({ model, prompt: 'Count.', maxRetries: 0 });
    assert.equal((await Array.fromAsync(result.textStream)).join(''), 'One two.');
    assert.equal((await result.totalUsage).outputTokens, 2);
  }
});

forEachHttpService('OAI-1 OAI-2 @ai-sdk/openai raises its own error with our message', async (open) => {
  const app = await open(helperSetup());
  await assert.rejects(
    generateText({ model: providerOf(app).responses('nobody'), prompt: 'Hello', maxRetries: 0 }),
    (error: unknown) => APICallError.isInstance(error) && error.statusCode === 404 && /nobody/.test(error.message),
  );
});

forEachHttpService(
  'OAI-19 OAI-21 @langchain/openai talks, streams and leaves its calls to its program',
  async (open) => {
    const app = await open(helperSetup());
    const model = new ChatOpenAI({
      model: 'helper',
      apiKey: token,
      maxRetries: 0,
      configuration: { baseURL: `${app.url}/v1` },
    });
    app.simulator.enqueue(says('Hello Ada.'));
    assert.equal((await model.invoke('I am Ada.')).content, 'Hello Ada.');
    app.simulator.enqueue({ answer: { text: ['One ', 'two.'] } });
    const parts = await Array.fromAsync(await model.stream('Count.'));
    assert.equal(parts.map(({ content }) => content).join(''), 'One two.');
    app.simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'));
    const schema = { type: 'object', properties: { city: { type: 'string' } } } as const;
    const bound = model.bindTools([{ type: 'function', function: { name: 'weather', parameters: schema } }]);
    const { tool_calls } = await bound.invoke('Weather in Rome?');
    assert.deepEqual(
      tool_calls?.map(({ id, name, args }) => ({ id, name, args })),
      [{ id: 'call-1', name: 'weather', args: { city: 'Rome' } }],
    );
  },
);

forEachHttpService(
  'OAI-25 OAI-31 @openai/agents runs an agent of its own on one of ours, over both APIs',
  async (open) => {
    const app = await open(helperSetup());
    for (const useResponses of [true, false]) {
      const modelProvider = new OpenAIProvider({ apiKey: token, baseURL: `${app.url}/v1`, useResponses });
      const runner = new Runner({ modelProvider, tracingDisabled: true });
      const agent = new Agent({
        name: 'caller',
        instructions: 'Ask the weather.',
        model: 'helper',
        tools: [
          tool({
            name: 'weather',
            description: 'The weather in a city',
            strict: false,
            parameters: {
              type: 'object',
              properties: { city: { type: 'string' } },
              required: [],
              additionalProperties: true,
            },
            execute: async (input) => `sunny in ${(input as { city: string }).city}`,
          }),
        ],
      });
      app.simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'), says('Sunny.'));
      const { finalOutput } = await runner.run(agent, 'Weather in Rome?');
      assert.equal(finalOutput, 'Sunny.');
      assert.match(conversation(app.simulator.lastRequest()).at(-1) ?? '', /^tool: .*sunny in Rome/);
    }
  },
);

forEachHttpService(
  'OAI-25 OAI-29 @ai-sdk/openai keeps a conversation itself, by references to what is kept here and without',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    const ask = async (messages: ModelMessage[], options: { store?: boolean }) => {
      const { text, steps } = await generateText({
        model: providerOf(app)('helper'),
        messages,
        tools: { weather },
        stopWhen: ({ steps: done }) => done.length === 3,
        maxRetries: 0,
        providerOptions: { openai: options },
      });
      messages.push(...steps.flatMap(({ response }) => response.messages));
      return text;
    };
    const looks = [
      { id: 'c1', name: 'weather', arguments: '{"city":"Rome"}' },
      { id: 'c2', name: 'add', arguments: '{}' },
    ];
    // What it does by itself comes first.
    for (const options of [{}, { store: false }]) {
      const messages: ModelMessage[] = [{ role: 'user', content: 'Weather in Rome?' }];
      simulator.enqueue({ answer: { text: ['Let me look.'], toolCalls: looks } }, says('Sunny.'), says('Rome.'));
      assert.equal(await ask(messages, options), 'Sunny.');
      messages.push({ role: 'user', content: 'Where?' });
      assert.equal(await ask(messages, options), 'Rome.');
      assert.deepEqual(conversation(simulator.lastRequest()).slice(1), [
        'user: Weather in Rome?',
        'assistant: Let me look. weather()',
        'tool: sunny in Rome',
        'assistant: Sunny.',
        'user: Where?',
      ]);
      if (options.store !== false) continue;
      messages.push({ role: 'user', content: 'And now?' });
      await assert.rejects(ask(messages, {}), (error: unknown) => {
        assert.ok(APICallError.isInstance(error) && error.statusCode === 400);
        assert.match(
          error.message,
          /^input\[\d\]\.id names no item of a response that is kept here: send the item itself/,
        );
        return true;
      });
    }
  },
);
