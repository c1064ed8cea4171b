import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, says } from '../runs/chat-requests.ts';
import { helperSetup, officialClient } from './openai-client.ts';
import { type Body, dataOf, respond, send } from './openai-wire.ts';

/** The events of one item, each with what it says besides its place. */
const eventsOf = (events: readonly Body[], index: number): Body[] =>
  events.filter((event) => event.output_index === index);
const typesOf = (events: readonly Body[]): string[] => events.map(({ type }) => type);

overHttp('OAI-30 OAI-33 OAI-34 a call that failed is marked as failed, and one that succeeded is not', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(calls('wipe', { disk: 'a' }, 'c1'), calls('add', {}, 'c2'), says('Done.'));
  const events = dataOf(await respond(app, { stream: true }));
  const call = (end: 'completed' | 'failed') => [
    'response.output_item.added',
    'response.mcp_call.in_progress',
    'response.mcp_call_arguments.done',
    `response.mcp_call.${end}`,
    'response.output_item.done',
  ];
  assert.deepEqual(typesOf(eventsOf(events, 0)), call('failed'));
  assert.deepEqual(typesOf(eventsOf(events, 1)), call('completed'));
  const { response } = events.at(-1);
  const [failed, succeeded] = response.output;
  for (const [index, item] of [failed, succeeded].entries()) {
    const own = eventsOf(events, index);
    assert.deepEqual(own.at(-1).item, item, 'the last event has the item of the response');
    assert.deepEqual(
      own.map((event) => event.item_id ?? event.item.id),
      own.map(() => item.id),
    );
    const [added] = own;
    assert.deepEqual([added.item.status, added.item.arguments], ['in_progress', '']);
    assert.equal(own[2].arguments, item.arguments);
  }
  assert.deepEqual([failed.status, failed.output, failed.arguments], ['failed', null, '{"disk":"a"}']);
  assert.match(failed.error, /approval-not-available/);
  assert.deepEqual([succeeded.status, succeeded.output, succeeded.error], ['completed', 'four', null]);
  const again = dataOf(await send(app, `/responses/${response.id}?stream=true`));
  assert.deepEqual(again, events);
});

overHttp('OAI-33 OAI-34 OAI-36 a text that was cut off is closed before the end of its stream', async (open, t) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  const closed = [
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
  ];
  const assertClosed = async (events: readonly Body[], end: string, status: string): Promise<void> => {
    const types = typesOf(events).filter((type, index, all) => type !== all[index - 1]);
    assert.deepEqual(types, ['response.created', 'response.in_progress', ...closed, end]);
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_event, index) => index),
    );
    const { response } = events.at(-1);
    const text = events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('');
    assert.ok(text.startsWith('Half '), text);
    const [item] = response.output;
    assert.deepEqual([response.status, item.type, item.status], [status, 'message', 'incomplete']);
    const of = (type: string) => events.find((event) => event.type === type);
    assert.deepEqual([of('response.output_text.done').text, item.content[0].text], [text, text]);
    assert.deepEqual(of('response.content_part.done').part, item.content[0]);
    assert.deepEqual(of('response.output_item.done').item, item);
    const stored = (await send(app, `/responses/${response.id}`)).body;
    assert.deepEqual([stored.status, stored.output[0].status], [status, 'incomplete']);
  };

  await t.test('by its provider', async () => {
    app.simulator.enqueue({ answer: { text: ['Half ', 'of it'] }, fault: { kind: 'cut', after: 3 } });
    await assertClosed(dataOf(await respond(app, { stream: true })), 'response.failed', 'failed');
  });

  await t.test('by a caller that canceled it', async () => {
    app.simulator.enqueue({ answer: { text: ['Half ', 'of it'] }, fault: { kind: 'stall', after: 2 } });
    const events: Body[] = [];
    const stream = await client.responses.create({ model: 'helper', input: 'Hello', stream: true });
    for await (const event of stream) {
      events.push(event);
      if (event.type !== 'response.output_text.delta') continue;
      const { response } = events[0];
      await eventually('the run is canceled', async () => {
        const { body } = await send(app, `/responses/${response.id}/cancel`, {});
        return body.id === response.id;
      });
    }
    await assertClosed(events, 'response.failed', 'cancelled');
  });
});
