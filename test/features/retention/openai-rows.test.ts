import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { responseStore } from '../../../src/features/openai/responses.store.ts';
import { forEachDurableService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { says } from '../runs/chat-requests.ts';
import { opensRun } from '../runs/other-process.ts';
import { dayMs, daysAgo, swept } from './retention-world.ts';

forEachDurableService(
  'RET-9 OAI-36 OAI-41 old responses and conversations go, and neither what is in use nor what hangs on it',
  async (open) => {
    const app = await open({
      clock: testClock({ at: daysAgo(3) }),
      simulator: {},
      agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
    });
    const { client, simulator } = app;
    const respond = async (conversation: string | null): Promise<string> => {
      simulator.enqueue(says('Hi.'));
      const { body } = await client.responses.create({ body: { model: 'helper', input: 'Hello', conversation } });
      return body?.id ?? '';
    };
    const reserve = async () => (await client.conversations.create({ body: { metadata: { topic: 'tea' } } })).body.id;
    const [idle, used] = [await reserve(), await reserve()];
    const old = [await respond(null), await respond('talk'), await respond(used)];
    const running = newId();
    const other = app.store.open();
    await opensRun(other, running);
    const inProgress = `resp_${running.replaceAll('-', '')}`;
    const session = { session_id: inProgress, conversation_id: null, previous_response_id: null, owner_id: null };
    const said = { agent_name: 'helper', metadata: '{}', settings: '{}', created_at: app.clock.now() };
    const row = { tenant_id: 'default', id: inProgress, run_id: running, ...session, ...said };
    await other.write([other.stores(responseStore).opened(row)]);

    await app.clock.jump(3 * dayMs);
    const young = [await respond(null), await respond(used), inProgress];
    const counts = async () => [
      (await client.runs.list({ query: { take: 100 } })).body.length,
      (await client.sessions.list({})).body.length,
    ];
    const before = await counts();
    await client.retention.save({ params: { target: 'Conversations' }, body: { maxAgeDays: 1 } });
    await swept(app, 'Conversations');

    const isThere = (call: Promise<unknown>): Promise<boolean> =>
      call.then(
        () => true,
        (error: { readonly status: number }) => error.status !== 404,
      );
    const response = (responseId: string) => isThere(client.responses.get({ params: { responseId } }));
    const conversation = (conversationId: string) => isThere(client.conversations.get({ params: { conversationId } }));
    assert.deepEqual(await Promise.all(old.map(response)), [false, false, false]);
    assert.deepEqual(await Promise.all(young.map(response)), [true, true, true]);
    assert.deepEqual(await Promise.all([idle, used, 'talk'].map(conversation)), [false, true, true]);
    // One that is spoken in is as young as what was said last, and keeps what was said of it.
    const { body: kept } = await client.conversations.get({ params: { conversationId: used } });
    assert.deepEqual(kept.metadata, { topic: 'tea' });
    assert.deepEqual(await counts(), before);
  },
);
