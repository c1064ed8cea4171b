import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { forEachDurableService, forEachHttpService, forEachService } from '../../support/app.ts';
import { conversation, says } from '../runs/chat-requests.ts';
import { refusal } from '../runs/run-calls.ts';
import { helperSetup, officialClient } from './openai-client.ts';

const helper = { model: 'helper' } as const;

forEachHttpService(
  'OAI-26 OAI-40 OAI-42 OAI-43 a conversation is reserved, used, changed and removed',
  async (open) => {
    const app = await open(helperSetup());
    const client = officialClient(app);
    const reserved = await client.conversations.create({ metadata: { topic: 'tea' } });
    assert.match(reserved.id, /^conv_[0-9a-f]{32}$/);
    assert.deepEqual((await client.conversations.items.list(reserved.id)).data, []);
    app.simulator.enqueue(says('Hello Ada.'), says('Ada.'));
    const first = await client.responses.create({ ...helper, input: 'I am Ada.', conversation: reserved.id });
    assert.deepEqual(first.conversation, { id: reserved.id });
    await client.responses.create({ ...helper, input: 'Who am I?', conversation: { id: reserved.id } });
    assert.deepEqual(conversation(app.simulator.lastRequest()).slice(1), [
      'user: I am Ada.',
      'assistant: Hello Ada.',
      'user: Who am I?',
    ]);
    const changed = await client.conversations.update(reserved.id, { metadata: { kind: 'green' } });
    assert.deepEqual(changed.metadata, { kind: 'green' });
    assert.deepEqual((await client.conversations.retrieve(reserved.id)).metadata, { kind: 'green' });
    assert.deepEqual(await client.conversations.delete(reserved.id), {
      id: reserved.id,
      object: 'conversation.deleted',
      deleted: true,
    });
    for (const call of [
      () => client.conversations.delete(reserved.id),
      () => client.conversations.retrieve(reserved.id),
      () => client.conversations.update(reserved.id, { metadata: {} }),
      () => client.conversations.items.list(reserved.id),
    ])
      await assert.rejects(
        call(),
        (error: unknown) => error instanceof OpenAI.NotFoundError && error.code === 'conversation_not_found',
      );
    assert.equal((await app.client.runs.list()).body.length, 2);
    assert.equal((await app.client.sessions.list()).body.length, 0);
  },
);

forEachDurableService('OAI-44 items come in pages that end, in either order, under ids that stay', async (open) => {
  const app = await open(helperSetup());
  const { body: reserved } = await app.client.conversations.create({ body: {} });
  const conversationId = reserved.id;
  for (const input of ['a', 'b', 'c']) {
    app.simulator.enqueue(says(`${input}!`));
    await app.client.responses.create({ body: { model: 'helper', input, conversation: conversationId } });
  }
  const page = async (query: Record<string, string>) =>
    (await app.client.conversations.items({ params: { conversationId }, query })).body;
  const all = await page({ order: 'asc' });
  assert.deepEqual(
    all.data.map((item) => (item as unknown as { content: { text: string }[] }).content[0]?.text),
    ['a', 'a!', 'b', 'b!', 'c', 'c!'],
  );
  assert.equal(all.has_more, false);
  const ids = all.data.map(({ id }) => id);
  assert.deepEqual(
    (await page({})).data.map(({ id }) => id),
    ids.toReversed(),
  );
  const first = await page({ order: 'asc', limit: '4' });
  assert.deepEqual([first.has_more, first.first_id, first.last_id], [true, ids[0], ids[3]]);
  const rest = await page({ order: 'asc', limit: '2', after: ids[3] ?? '' });
  assert.deepEqual([rest.has_more, rest.data.map(({ id }) => id)], [false, ids.slice(4)]);
  const none = await page({ order: 'asc', after: ids[5] ?? '' });
  assert.deepEqual([none.data, none.first_id, none.last_id, none.has_more], [[], null, null, false]);
  assert.equal((await page({ limit: '0' })).data.length, 1);
  assert.equal((await refusal(page({ limit: 'many' }))).status, 400);
  assert.equal((await refusal(page({ after: 'msg_0' }))).status, 400);
  const itemId = ids[1] ?? '';
  const { body: item } = await app.client.conversations.item({ params: { conversationId, itemId } });
  assert.deepEqual(item, all.data[1]);
});

forEachDurableService('OAI-44 a branch of a session has the items up to it and its own', async (open) => {
  const app = await open(helperSetup());
  const say = async (conversation: string, input: string) => {
    app.simulator.enqueue(says(`${input}!`));
    await app.client.responses.create({ body: { ...helper, input, conversation } });
  };
  const branch = (sessionId: string, newSessionId: string, upToSequence: number) =>
    app.client.sessions.branch({ params: { sessionId }, body: { newSessionId, upToSequence } });
  const textsOf = async (conversationId: string, order: 'asc' | 'desc') => {
    const texts: unknown[] = [];
    for (let after: string | undefined; ; ) {
      const query = { order, limit: '1', ...(after === undefined ? {} : { after }) };
      const { body: page } = await app.client.conversations.items({ params: { conversationId }, query });
      for (const item of page.data) texts.push((item as unknown as { content: { text: string }[] }).content[0]?.text);
      if (!page.has_more) return texts.join(' ');
      after = page.last_id ?? undefined;
    }
  };
  await say('talk', 'a');
  await say('talk', 'b');
  await branch('talk', 'other', 1);
  await say('other', 'c');
  await branch('other', 'third', 2);
  assert.equal(await textsOf('talk', 'asc'), 'a a! b b!');
  assert.equal(await textsOf('other', 'asc'), 'a a! c c!');
  assert.equal(await textsOf('other', 'desc'), 'c! c a! a');
  assert.equal(await textsOf('third', 'desc'), 'c a! a');
});

forEachService(
  'OAI-43 of several who remove a conversation at once one has done so, and it is told once',
  async (open) => {
    const app = await open(helperSetup());
    const remove = (conversationId: string) => app.client.conversations.remove({ params: { conversationId } });
    const codeOf = async (call: Promise<unknown>): Promise<string> =>
      call.then(
        () => 'removed',
        (error: unknown) => (error as { code: string }).code,
      );
    const reserved = async () => (await app.client.conversations.create({ body: {} })).body.id;
    for (const [conversationId, isUsed] of [
      [await reserved(), false],
      [await reserved(), true],
      ['talk', true],
    ] as const) {
      app.simulator.enqueue(says('Hi.'));
      if (isUsed)
        await app.client.responses.create({ body: { model: 'helper', input: 'Hello', conversation: conversationId } });
      const ends = await Promise.all([1, 2, 3, 4].map(() => codeOf(remove(conversationId))));
      assert.deepEqual(ends.sort(), [...Array(3).fill('conversation-not-found'), 'removed'], conversationId);
      const { body: trail } = await app.client.audit.list({ query: { action: 'conversation.delete' } });
      assert.equal(trail.filter(({ entity }) => entity === `conversation:${conversationId}`).length, 1);
    }
  },
);
