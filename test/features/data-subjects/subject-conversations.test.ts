import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { says } from '../runs/chat-requests.ts';

overHttp(
  'SUBJ-3 SUBJ-6 what a person has reserved and stored over the OpenAI API is exported, and erased',
  async (open) => {
    const owners: string[] = [];
    const key = Buffer.alloc(32, 1).toString('base64');
    const app = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
      service: { SessionOwnership: { Enabled: true }, AtRest: { ActiveKeyId: 'a', Keys: { a: key } } },
      module: { dataSubjectResolver: { resolve: async () => ({ userIds: [], sessionIds: [], ownerIds: owners }) } },
    });
    const clientOf = async (name: string) => {
      const { body } = await app.client.keys.create({ body: { name, scopes: ['RunsRead', 'RunsWrite'] } });
      return { client: await app.clientFor(body.plaintextKey), owner: `apikey:${body.record.id}` };
    };
    const [ann, bob] = [await clientOf('ann'), await clientOf('bob')];
    owners.push(ann.owner);
    const kept: Record<string, { conversationId: string; responseId: string }> = {};
    for (const [who, { client }] of Object.entries({ ann, bob })) {
      const metadata = { topic: `Zanzibar of ${who}` };
      const { body: reserved } = await client.conversations.create({ body: { metadata } });
      await client.conversations.create({ body: { metadata } });
      app.simulator.enqueue(says('Hi.'), says('Hi.'));
      const body = { model: 'helper', input: 'Hello', metadata };
      const { body: own } = await client.responses.create({ body });
      await client.responses.create({ body: { ...body, conversation: reserved.id } });
      kept[who] = { conversationId: reserved.id, responseId: own?.id ?? '' };
    }

    const { bytes } = await app.client.dataSubjects.export({ params: { id: 'ann' } });
    const document = JSON.parse(Buffer.concat(await Array.fromAsync(bytes ?? [])).toString());
    assert.deepEqual([document.conversations.length, document.responses.length], [2, 2]);
    for (const list of [document.conversations, document.responses])
      for (const row of list) assert.match(JSON.stringify(row), /Zanzibar of ann/);
    assert.ok(!JSON.stringify(document).includes('bob'));

    const erase = async (dryRun: boolean) =>
      (await app.client.dataSubjects.erase({ params: { id: 'ann' }, query: { dryRun } })).body.rowsByTarget;
    for (const dryRun of [true, false]) {
      const { conversations, responses } = await erase(dryRun);
      assert.deepEqual([conversations, responses], [2, 2]);
    }
    const { conversations, responses } = await erase(true);
    assert.deepEqual([conversations, responses], [0, 0]);
    for (const [who, { client }] of Object.entries({ ann, bob })) {
      const { conversationId = '', responseId = '' } = kept[who] ?? {};
      const there = [
        client.conversations.get({ params: { conversationId } }),
        client.responses.get({ params: { responseId } }),
      ].map((call) =>
        call.then(
          () => true,
          (error: { readonly status: number }) => error.status !== 404,
        ),
      );
      assert.deepEqual(await Promise.all(there), who === 'ann' ? [false, false] : [true, true]);
    }
    assert.equal((await app.store.sealed('a'))['openai_conversations.metadata'], 2);
  },
);
