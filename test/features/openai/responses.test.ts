import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { forEachHttpService } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, officialClient } from './openai-client.ts';

type StreamEvent = OpenAI.Responses.ResponseStreamEvent;

const helper = { model: 'helper' } as const;

const codeOf = async (call: Promise<unknown>): Promise<[number | undefined, string | null | undefined]> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof OpenAI.APIError) return [error.status, error.code];
    throw error;
  }
  throw new Error('The call was not refused.');
};

const collect = async (stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> => Array.fromAsync(stream);

forEachHttpService('OAI-26 OAI-36 SESS-22 a response is kept, gone on from, and gone on from again', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  app.simulator.enqueue(says('Hello Ada.'), says('Ada.'), says('Your name is Ada.'));
  const first = await client.responses.create({ ...helper, input: 'I am Ada.', metadata: { team: 'red' } });
  assert.match(first.id, /^resp_[0-9a-f]{32}$/);
  assert.equal(first.output_text, 'Hello Ada.');
  assert.equal(first.status, 'completed');
  assert.deepEqual(first.metadata, { team: 'red' });
  const second = await client.responses.create({ ...helper, input: 'Who am I?', previous_response_id: first.id });
  assert.deepEqual(conversation(app.simulator.lastRequest()), [
    'system: Be brief.',
    'user: I am Ada.',
    'assistant: Hello Ada.',
    'user: Who am I?',
  ]);
  assert.equal(second.previous_response_id, first.id);
  const other = await client.responses.create({ ...helper, input: 'My name?', previous_response_id: first.id });
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(2), ['assistant: Hello Ada.', 'user: My name?']);
  const read = await client.responses.retrieve(first.id);
  assert.deepEqual({ ...read, output_text: '' }, { ...first, output_text: '' });
  const sessions = (await app.client.sessions.list()).body.map(({ id }) => id);
  assert.deepEqual(sessions.sort(), [first.id, second.id, other.id].sort());
  const items = await client.responses.inputItems.list(second.id, { order: 'asc' });
  assert.deepEqual(
    items.data.map((item) => (item.type === 'message' ? item.content : item.type)),
    [[{ type: 'input_text', text: 'Who am I?' }]],
  );
});

forEachHttpService(
  'OAI-33 OAI-34 a stream has its events in their order, numbered, and its text twice',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    app.simulator.enqueue(calls('add', {}), { answer: { text: ['It is ', 'four.'], usage: { input: 5, output: 2 } } });
    const events = await collect(await client.responses.create({ ...helper, input: 'Two and two?', stream: true }));
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_event, index) => index),
    );
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    assert.deepEqual(types, [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.mcp_call.in_progress',
      'response.mcp_call_arguments.done',
      'response.mcp_call.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const last = events.at(-1);
    assert.ok(last?.type === 'response.completed');
    const [call, message] = last.response.output;
    assert.ok(call?.type === 'mcp_call' && message?.type === 'message');
    assert.deepEqual([call.server_label, call.name, call.output, call.error], ['acp', 'add', 'four', null]);
    const deltas = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');
    assert.equal(deltas, 'It is four.');
    assert.deepEqual(message.content[0], { type: 'output_text', text: 'It is four.', annotations: [], logprobs: [] });
    assert.equal(last.response.usage?.output_tokens, 2);
    for (const event of events)
      if ('item_id' in event) assert.equal(event.item_id, last.response.output[event.output_index]?.id);
    const again = await client.responses.retrieve(last.response.id);
    assert.deepEqual(again.output, last.response.output);
  },
);

forEachHttpService('OAI-36 events are read again from any number, and not from one that never was', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  app.simulator.enqueue({ answer: { text: ['One ', 'two.'] } });
  const events = await collect(await client.responses.create({ ...helper, input: 'Count.', stream: true }));
  const created = events[0];
  assert.ok(created?.type === 'response.created');
  const { id } = created.response;
  for (const after of [undefined, 0, 3, events.length - 2]) {
    const rest = await client.responses.retrieve(id, {
      stream: true,
      ...(after === undefined ? {} : { starting_after: after }),
    });
    assert.deepEqual(await collect(rest), events.slice(after === undefined ? 0 : after + 1));
  }
  const [status] = await codeOf(client.responses.retrieve(id, { stream: true, starting_after: events.length }));
  assert.equal(status, 400);
});

forEachHttpService('OAI-31 a call of the client is answered in its chain, in more than one way', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  app.simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'));
  const asked = await client.responses.create({
    ...helper,
    input: 'Weather in Rome?',
    tools: [{ type: 'function', name: 'weather', parameters: {}, strict: false }],
  });
  assert.equal(asked.status, 'completed');
  const call = asked.output.at(-1);
  assert.ok(call?.type === 'function_call');
  assert.deepEqual([call.call_id, call.name, JSON.parse(call.arguments)], ['call-1', 'weather', { city: 'Rome' }]);
  const next = (output: string, callId = call.call_id) =>
    client.responses.create({
      ...helper,
      previous_response_id: asked.id,
      input: [{ type: 'function_call_output', call_id: callId, output }],
    });
  for (const weather of ['sunny', 'rainy']) {
    app.simulator.enqueue(says(`It is ${weather}.`));
    const answer = await next(weather);
    assert.equal(answer.output_text, `It is ${weather}.`);
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['message'],
    );
    assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
      'user: Weather in Rome?',
      'assistant: weather()',
      `tool: ${weather}`,
    ]);
    const items = await client.responses.inputItems.list(answer.id);
    assert.deepEqual(
      items.data.map((item) => (item.type === 'function_call_output' ? item.output : item.type)),
      [weather],
    );
    // In this chain it is answered; in the one before it is not.
    assert.deepEqual(
      await codeOf(
        client.responses.create({
          ...helper,
          previous_response_id: answer.id,
          input: [{ type: 'function_call_output', call_id: call.call_id, output: 'foggy' }],
        }),
      ),
      [409, 'tool_call_answered'],
    );
  }
  assert.deepEqual(await codeOf(next('sunny', 'call-2')), [400, 'tool_call_unknown']);
});

forEachHttpService('OAI-29 store: false keeps nothing to read or go on from, but the run', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  app.simulator.enqueue(says('Hi.'), says('Kept.'), says('Ada.'));
  const { data: gone, response } = await client.responses
    .create({ ...helper, input: 'Hello', store: false })
    .withResponse();
  assert.equal(gone.output_text, 'Hi.');
  assert.equal((gone as unknown as { store: boolean }).store, false);
  assert.deepEqual(await codeOf(client.responses.retrieve(gone.id)), [404, 'response_not_found']);
  assert.deepEqual(await codeOf(client.responses.create({ ...helper, input: 'On', previous_response_id: gone.id })), [
    404,
    'previous_response_not_found',
  ]);
  assert.deepEqual((await app.client.sessions.list()).body, []);
  const runId = response.headers.get('x-run-id') ?? '';
  assert.equal((await app.client.runs.get({ params: { runId } })).body.status, 'Completed');
  const conversationId = 'talk-1';
  assert.equal(
    (await codeOf(client.responses.create({ ...helper, input: 'a', store: false, conversation: conversationId })))[0],
    400,
  );
  const kept = await client.responses.create({ ...helper, input: 'I am Ada.' });
  await client.responses.create({ ...helper, input: 'Who am I?', previous_response_id: kept.id, store: false });
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
    'user: I am Ada.',
    'assistant: Kept.',
    'user: Who am I?',
  ]);
  assert.equal((await app.client.sessions.list()).body.length, 1);
});

forEachHttpService('OAI-37 a removed response is gone once, and those that went on from it stay', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  app.simulator.enqueue(says('One.'), says('Two.'), says('Three.'));
  const first = await client.responses.create({ ...helper, input: 'a' });
  const second = await client.responses.create({ ...helper, input: 'b', previous_response_id: first.id });
  await client.responses.delete(first.id);
  assert.deepEqual(await codeOf(client.responses.retrieve(first.id)), [404, 'response_not_found']);
  assert.deepEqual(await codeOf(client.responses.delete(first.id)), [404, 'response_not_found']);
  assert.equal((await client.responses.retrieve(second.id)).output_text, 'Two.');
  const third = await client.responses.create({ ...helper, input: 'c', previous_response_id: second.id });
  assert.equal(third.output_text, 'Three.');
  assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
    'user: a',
    'assistant: One.',
    'user: b',
    'assistant: Two.',
    'user: c',
  ]);
  assert.equal((await app.client.runs.list()).body.length, 3);
  const { body: trail } = await app.client.audit.list({ query: { action: 'response.delete' } });
  assert.deepEqual(
    trail.map(({ entity }) => entity),
    [`response:${first.id}`],
  );
});

forEachHttpService(
  'OAI-32 OAI-35 a failed run is an HTTP error, a failed stream its last event, and both are kept',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    const fails = { fault: { kind: 'status', status: 400, vendor: 'bad-request' } } as const;
    app.simulator.enqueue(fails, fails);
    const error = await client.responses.create({ ...helper, input: 'a' }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.deepEqual([error.status, error.code, error.type], [502, 'provider_error', 'server_error']);
    assert.equal(error.headers.get('x-should-retry'), 'false');
    const runId = error.headers.get('x-run-id') ?? '';
    const kept = await client.responses.retrieve(`resp_${runId.replaceAll('-', '')}`);
    assert.deepEqual([kept.status, kept.error?.code], ['failed', 'provider_error']);
    const events = await collect(await client.responses.create({ ...helper, input: 'a', stream: true }));
    const last = events.at(-1);
    assert.ok(last?.type === 'response.failed');
    assert.equal(last.response.error?.code, 'provider_error');
    assert.equal(events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type)).length, 1);
  },
);
