import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openApp } from '../../support/app.ts';
import { calls, conversation } from '../runs/chat-requests.ts';
import { helperSetup, local, token } from './openai-client.ts';

/*
 * The scenarios of the compliance suite of Open Responses that go over HTTP, by their names. The suite checks each answer against its
 * schema of a response; `members` is what that requires of the members that every answer has.
 */

type Json = Readonly<Record<string, unknown>>;
type Kind = (value: unknown) => boolean;

const isText: Kind = (value) => typeof value === 'string';
const isNumber: Kind = (value) => typeof value === 'number';
const isCount: Kind = (value) => Number.isInteger(value);
const isFlag: Kind = (value) => typeof value === 'boolean';
const isObject: Kind = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const or =
  (kind: Kind): Kind =>
  (value) =>
    value === null || kind(value);
const word =
  (...words: readonly string[]): Kind =>
  (value) =>
    words.includes(String(value));

const members: Readonly<Record<string, Kind>> = {
  id: isText,
  object: word('response'),
  created_at: isCount,
  completed_at: or(isCount),
  status: isText,
  incomplete_details: or(isObject),
  model: isText,
  previous_response_id: or(isText),
  instructions: or(isText),
  output: Array.isArray,
  error: or(isObject),
  tools: Array.isArray,
  tool_choice: word('auto', 'none', 'required'),
  truncation: word('auto', 'disabled'),
  parallel_tool_calls: isFlag,
  text: (value) => isObject(value) && isObject((value as Json)['format']),
  top_p: isNumber,
  presence_penalty: isNumber,
  frequency_penalty: isNumber,
  top_logprobs: isCount,
  temperature: isNumber,
  reasoning: or(isObject),
  user: or(isText),
  max_output_tokens: or(isCount),
  max_tool_calls: or(isCount),
  store: isFlag,
  background: isFlag,
  service_tier: isText,
  metadata: isObject,
  safety_identifier: or(isText),
  prompt_cache_key: or(isText),
};

const assertResponse = (response: Json): void => {
  const wrong = Object.entries(members).filter(([name, fits]) => !fits(response[name]));
  assert.deepEqual(
    wrong.map(([name]) => `${name}: ${JSON.stringify(response[name])}`),
    [],
  );
  const usage = response['usage'];
  if (usage === null) return;
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage as Json;
  assert.ok([input, output, total].every(isCount), JSON.stringify(usage));
};

const heart =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const user = (content: unknown) => ({ type: 'message', role: 'user', content });

test('OAI-25 OAI-30 OAI-33 OAI-34 the scenarios of Open Responses over HTTP', async (t) => {
  const app = await openApp(
    t,
    'http',
    helperSetup({
      tools: [
        {
          name: 'get_weather',
          description: 'Get the current weather for a location',
          inputSchema: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
          runsOnClient: true,
        },
      ],
      agents: [{ name: 'helper', model: { ...local, temperature: 1, topP: 1 }, toolNames: ['get_weather'] }],
    }),
  );
  const { simulator } = app;
  const send = async (body: Json, path = '/responses') =>
    fetch(`${app.url}/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: 'helper', ...body }),
    });
  const says = (text: string) => simulator.enqueue({ answer: { text: [text], usage: { input: 12, output: 4 } } });
  const answered = async (input: readonly unknown[], more: Json = {}): Promise<Json> => {
    const response = await send({ input, ...more });
    const body = (await response.json()) as Json;
    assert.equal(response.status, 200, JSON.stringify(body));
    assertResponse(body);
    assert.equal(body['status'], 'completed');
    assert.ok((body['output'] as unknown[]).length > 0);
    return body;
  };

  await t.test('basic-response', async () => {
    says('Hello there, friend.');
    await answered([user('Say hello in exactly 3 words.')]);
  });

  await t.test('streaming-response', async () => {
    simulator.enqueue({ answer: { text: ['1 2 ', '3 4 5'], usage: { input: 9, output: 9 } } });
    const text = await (await send({ input: [user('Count from 1 to 5.')], stream: true })).text();
    const frames = text.split('\n\n').filter((frame) => frame.startsWith('event: '));
    const events = frames.map((frame) => {
      const [event = '', data = ''] = frame.split('\n');
      const parsed = JSON.parse(data.slice('data: '.length)) as Json;
      assert.equal(parsed['type'], event.slice('event: '.length));
      return parsed;
    });
    assert.deepEqual(
      events.map((event) => event['sequence_number']),
      events.map((_event, index) => index),
    );
    const last = events.at(-1) ?? {};
    assert.equal(last['type'], 'response.completed');
    for (const event of events) if (event['response'] !== undefined) assertResponse(event['response'] as Json);
    assert.equal((last['response'] as Json)['status'], 'completed');
  });

  await t.test('system-prompt', async () => {
    says('Ahoy.');
    await answered([{ type: 'message', role: 'system', content: 'You are a pirate.' }, user('Say hello.')]);
    assert.deepEqual(conversation(simulator.lastRequest()), ['system: You are a pirate.', 'user: Say hello.']);
  });

  await t.test('tool-calling', async () => {
    simulator.enqueue(calls('get_weather', { location: 'San Francisco, CA' }));
    const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
    const tools = [{ type: 'function', name: 'get_weather', description: 'The weather', parameters }];
    const { output } = await answered([user("What's the weather like in San Francisco?")], { tools });
    const [call] = output as Json[];
    assert.deepEqual([call?.['type'], call?.['name']], ['function_call', 'get_weather']);
  });

  await t.test('image-input', async () => {
    says('A dot.');
    await answered([
      user([
        { type: 'input_text', text: 'What do you see?' },
        { type: 'input_image', image_url: heart },
      ]),
    ]);
    assert.ok(JSON.stringify(simulator.lastRequest().body).includes(heart));
  });

  await t.test('multi-turn', async () => {
    says('Alice.');
    const greeting = { type: 'message', role: 'assistant', content: 'Hello Alice!' };
    await answered([user('My name is Alice.'), greeting, user('What is my name?')]);
    assert.equal(conversation(simulator.lastRequest()).length, 3);
  });

  await t.test('compact-response and compact-missing-model: there is no such endpoint', async () => {
    for (const body of [{ input: [user('Hi')] }, { input: [user('Hi')], model: undefined }]) {
      const response = await send(body, '/responses/compact');
      assert.equal(response.status, 405);
      assert.equal(((await response.json()) as { error: Json }).error['code'], 'method_not_allowed');
    }
  });
});
