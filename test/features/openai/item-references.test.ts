import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { forEachHttpService, type TestApp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, officialClient } from './openai-client.ts';

const refer = (id: string | undefined) => ({ type: 'item_reference', id: id ?? '' }) as const;
const user = (content: string) => ({ role: 'user', content }) as const;

const refuses = async (request: PromiseLike<unknown>, param: string): Promise<void> => {
  await assert.rejects(
    async () => request,
    (error: unknown) => {
      assert.ok(error instanceof OpenAI.BadRequestError, String(error));
      assert.deepEqual([error.code, error.param], ['validation_failed', param]);
      return true;
    },
  );
};

const runsOf = async (app: TestApp): Promise<number> => (await app.client.runs.list()).body.length;

forEachHttpService('OAI-25 an item of a kept response stands in the place of a reference to it', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  const { simulator } = app;

  simulator.enqueue(calls('add', {}, 'c1'), says('It is four.'));
  const first = await client.responses.create({ model: 'helper', input: 'Two and two?' });
  const [added, said] = first.output;
  assert.deepEqual([added?.type, said?.type], ['mcp_call', 'message']);

  // Calls of the service's own tools are left out, as where a client sends them whole.
  simulator.enqueue(says('Five.'));
  const next = await client.responses.create({
    model: 'helper',
    input: [user('Two and two?'), refer(added?.id), refer(said?.id), user('And one more?')],
  });
  assert.deepEqual(conversation(simulator.lastRequest()).slice(1), [
    'user: Two and two?',
    'assistant: It is four.',
    'user: And one more?',
  ]);

  // What the user has said is an item of its response, too.
  const { data: given } = await client.responses.inputItems.list(next.id, { order: 'asc' });
  const mine = given.findLast((item) => item.type === 'message');
  simulator.enqueue(says('Six.'));
  await client.responses.create({
    model: 'helper',
    input: [{ id: mine?.id ?? '' }, refer(next.output.at(-1)?.id), user('And one more?')],
  });
  assert.deepEqual(conversation(simulator.lastRequest()).slice(1), [
    'user: And one more?',
    'assistant: Five.',
    'user: And one more?',
  ]);

  // A call of the caller's own tool, with its result; in a conversation, whose items have the same ids.
  simulator.enqueue(calls('weather', { city: 'Rome' }, 'c2'));
  const asked = await client.responses.create({ model: 'helper', conversation: 'talk', input: 'Weather?' });
  const call = asked.output.at(-1);
  const result = { type: 'function_call_output', call_id: 'c2', output: 'sunny' } as const;
  simulator.enqueue(says('Sunny.'));
  await client.responses.create({ model: 'helper', store: false, input: [user('Weather?'), refer(call?.id), result] });
  assert.deepEqual(conversation(simulator.lastRequest()).slice(1), [
    'user: Weather?',
    'assistant: weather()',
    'tool: sunny',
  ]);
});

forEachHttpService('OAI-12 OAI-25 a reference to what the caller cannot read is one to nothing', async (open) => {
  const app = await open(helperSetup());
  const client = officialClient(app);
  const { simulator } = app;
  const { body: key } = await app
    .inTenant('acme')
    .keys.create({ body: { name: 'o', scopes: ['RunsWrite', 'RunsRead'] } });
  const other = officialClient(app, { apiKey: key.plaintextKey });
  await app.inTenant('acme').agents.create({ body: { name: 'helper', model: { provider: 'local', model: 'any' } } });

  simulator.enqueue(says('Kept.'), says('Not kept.'), says('Removed.'));
  const kept = await client.responses.create({ model: 'helper', input: 'Hi' });
  const unkept = await client.responses.create({ model: 'helper', input: 'Hi', store: false });
  const removed = await client.responses.create({ model: 'helper', input: 'Hi' });
  await client.responses.delete(removed.id);
  const before = await runsOf(app);
  const create = (as: OpenAI, id: string | undefined) =>
    as.responses.create({ model: 'helper', input: [user('Hi'), refer(id), user('Go on.')] });

  await refuses(create(other, kept.output[0]?.id), 'input[1].id');
  for (const { output } of [unkept, removed]) await refuses(create(client, output[0]?.id), 'input[1].id');
  const own = kept.output[0]?.id ?? '';
  for (const id of [
    '',
    'msg_0',
    own.slice(0, -1),
    `${own.slice(0, -1)}${own.endsWith('0') ? '1' : '0'}`,
    kept.id,
    own.toUpperCase(),
  ])
    await refuses(create(client, id), 'input[1].id');
  assert.equal(await runsOf(app), before, 'none of them began a run');

  simulator.enqueue(says('Well.'));
  await create(client, own);
  assert.deepEqual(conversation(simulator.lastRequest()).slice(1), ['user: Hi', 'assistant: Kept.', 'user: Go on.']);
});
