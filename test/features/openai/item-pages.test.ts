import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionRow } from '../../../src/db/tables/sessions.ts';
import { type ChatMessage, newMessage } from '../../../src/engine/context/index.ts';
import { conversationService } from '../../../src/features/openai/conversations.service.ts';
import { firstOfRun } from '../../../src/features/openai/history-window.ts';
import { createItemPages } from '../../../src/features/openai/item-pages.ts';
import { hexOf, itemPage, itemsOf } from '../../../src/features/openai/items.ts';

const rules = { runsOnClient: (name: string) => name === 'weather', serverOf: () => null };

/** Numbers below `end`, the same ones for a seed. */
const numbers = (seed: number) => {
  let state = seed;
  return (end: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * end);
  };
};

const idOf = (kind: string, index: number): string => `00000000-0000-7000-8${kind}-${String(index).padStart(12, '0')}`;

/** Turns as runs write them. A call may get its result from a later run, and models use ids of calls again. */
const historyOf = (seed: number, runs: number, maxSteps = 5): ChatMessage[] => {
  const below = numbers(seed);
  const messages: ChatMessage[] = [];
  // Some runs have waited, so that the order of their ids is another one.
  const runIds = Array.from({ length: runs }, (_, index) => idOf('001', index % 7 === 3 ? index + 2 : index));
  const add = (runId: string, role: ChatMessage['role'], contents: ChatMessage['contents']): void => {
    messages.push(newMessage(runId, idOf('002', messages.length), role, 0, contents));
  };
  let open: string[] = [];
  const answer = (runId: string): void => {
    for (const toolCallId of open)
      add(runId, 'Tool', [
        { type: 'ToolResult', toolCallId, toolName: 'add', result: `${messages.length}`, errorMessage: null },
      ]);
    open = [];
  };
  for (const runId of new Set(runIds)) {
    answer(runId);
    add(runId, 'User', [{ type: 'Text', text: `${messages.length}` }]);
    for (let steps = below(maxSteps); steps > 0; steps -= 1) {
      open = Array.from({ length: 1 + below(3) }, (_, index) => `call_${index}`);
      const toolName = below(3) === 0 ? 'weather' : 'add';
      add(
        runId,
        'Assistant',
        open.map((toolCallId) => ({ type: 'ToolCall', toolCallId, toolName, arguments: { steps } })),
      );
      // The run pauses, and another one brings the results.
      if (steps === 1 && below(2) === 0) break;
      answer(runId);
    }
    if (open.length === 0) add(runId, 'Assistant', [{ type: 'Text', text: `${messages.length}` }]);
  }
  return messages;
};

const world = (messages: readonly ChatMessage[]) => {
  const reads: number[] = [];
  const store = {
    messagesBetween: async (_conversation: unknown, first: number, end: number) => {
      reads.push(end - first);
      return messages.slice(first, end);
    },
  };
  const session = { tenant_id: 'default', agent_name: 'helper', message_count: messages.length } as SessionRow;
  return {
    store,
    pages: createItemPages({ store, items: rules }),
    session,
    reads,
    all: itemsOf('default', messages, rules),
  };
};

test('OAI-44 pages of items are parts of the list of the complete conversation, in either order', async () => {
  for (const [seed, runs] of [
    [1, 1],
    [2, 3],
    [3, 40],
    [4, 90],
    [5, 200],
  ] as const) {
    const { pages, session, all } = world(historyOf(seed, runs));
    for (const order of ['asc', 'desc'])
      for (const limit of ['1', '7', '100']) {
        const query = { order, limit };
        let after: string | undefined;
        for (let read = 0; read < 12; read += 1) {
          const page = await pages.page(session, { ...query, after });
          assert.deepEqual(page, itemPage(all, { ...query, after }), `${seed} ${order} ${limit} ${after}`);
          if (!page.has_more) break;
          after = page.last_id ?? undefined;
        }
      }
    for (const item of all.filter((_item, index) => index % 17 === 0)) {
      assert.deepEqual(await pages.item(session, item.id), item);
      for (const order of ['asc', 'desc']) {
        const query = { order, limit: '5', after: item.id };
        assert.deepEqual(await pages.page(session, query), itemPage(all, query), `${seed} ${order} ${item.id}`);
      }
    }
  }
});

test('OAI-30 OAI-44 each item of long runs has its result, which a later run may have brought', async () => {
  const { pages, session, all } = world(historyOf(8, 4, 90));
  for (const item of all) assert.deepEqual(await pages.item(session, item.id), item);
});

test('OAI-44 a page of a long conversation reads the messages around it and no others', async () => {
  const { pages, session, reads, all } = world(historyOf(6, 6000));
  assert.ok(session.message_count > 20_000);
  const middle = all[Math.floor(all.length / 2)];
  for (const read of [
    () => pages.page(session, { limit: '1' }),
    () => pages.page(session, { limit: '1', order: 'asc' }),
    () => pages.page(session, { limit: '1', after: middle?.id }),
    () => pages.item(session, middle?.id ?? ''),
  ]) {
    reads.length = 0;
    await read();
    const messages = reads.reduce((sum, count) => sum + count, 0);
    assert.ok(messages < 400, `${messages} messages were read`);
  }
});

test('OAI-44 an item of another conversation is unknown, wherever its run would be', async () => {
  const { pages, session, all } = world(historyOf(7, 60));
  const [item] = all;
  const others = [`msg_${'0'.repeat(64)}`, `msg_${'f'.repeat(64)}`, `${item?.id.slice(0, -1)}f`, 'msg_0', ''];
  for (const id of others) {
    assert.equal(await pages.item(session, id), null);
    await assert.rejects(pages.page(session, { after: id }), /after names no item of this list/);
  }
});

test('OAI-30 the first message of a run is found, however many messages the run has', async () => {
  const messages = historyOf(8, 4, 90);
  const { store, session } = world(messages);
  for (const runId of new Set(messages.map((message) => message.runId ?? ''))) {
    const first = messages.find((message) => message.runId === runId);
    assert.deepEqual(await firstOfRun(store, session, hexOf(runId)), first);
  }
  assert.equal(await firstOfRun(store, session, 'f'.repeat(32)), undefined);
});

test('OAI-44 a conversation that is removed while its items are read was not found', async () => {
  const { store, session, all } = world(historyOf(3, 60));
  const removed = { ...store, messagesBetween: async () => [] };
  const service = conversationService({
    store: { conversation: async () => undefined },
    sessions: { store: { ...removed, get: async () => session }, access: { maySee: () => true } },
    authorization: { allows: async () => true },
    ...{ items: rules, persistent: true, enabled: true },
  } as never);
  const context = { tenantId: 'default', principal: {} } as never;
  const conversationId = 'c1';
  const notFound = { code: 'conversation-not-found' };
  await assert.rejects(
    async () => service.items(context, { params: { conversationId }, query: {} } as never),
    notFound,
  );
  const params = { conversationId, itemId: all[0]?.id };
  await assert.rejects(async () => service.item(context, { params } as never), notFound);
});
