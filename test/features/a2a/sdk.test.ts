import assert from 'node:assert/strict';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { overHttp, type TestApp } from '../../support/app.ts';
import { cardOf, keyFor, openA2A, type Wire } from './a2a-world.ts';

/** The client of the SDK, as its users make it: from the address of a card, with a credential of theirs. */
const clientOf = async ({ url }: TestApp, token: string, version: '1.0' | '0.3'): Promise<Client> => {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...init?.headers, authorization: `Bearer ${token}` } });
  const legacyCompat = { enabled: version === '0.3' };
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
    }),
  );
  const cardUrl = `${url}/a2a/helper/.well-known/agent-card.json`;
  if (version === '1.0') return factory.createFromUrl(cardUrl, '');
  // A card of an agent that speaks 0.3 alone, as its readers see ours.
  const { supportedInterfaces: _newer, ...card } = (await (await fetchImpl(cardUrl)).json()) as Record<string, unknown>;
  return factory.createFromAgentCard(card as never);
};

const request = (text: string, messageId: string): Wire => ({
  tenant: '',
  message: {
    messageId,
    contextId: '',
    taskId: '',
    role: 1,
    parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: '', metadata: undefined }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: undefined,
});

const completed = 3;
const working = 2;
const canceled = 5;

for (const version of ['1.0', '0.3'] as const)
  overHttp(`A2A-12 the official SDK works unchanged in version ${version}`, async (open) => {
    const app = await openA2A(open, {
      host: { AnonymousLoopback: false, AuthToken: 'a-shared-token-of-this-test' },
      token: 'a-shared-token-of-this-test',
    });
    const token = await keyFor(app, 'partner');
    const client = await clientOf(app, token, version);
    assert.equal(client.protocolVersion, version);
    assert.equal((await client.getAgentCard()).name, (await cardOf(app, { token })).body.name);

    const sent = (await client.sendMessage(request('Hi', `hi-${version}`))) as Wire;
    assert.equal(sent.status.state, completed);
    assert.equal(sent.artifacts[0].parts[0].content.value, 'Hello from the helper.');
    assert.equal(((await client.getTask({ tenant: '', id: sent.id } as Wire)) as Wire).id, sent.id);

    let text = '';
    const states: number[] = [];
    for await (const { payload } of client.sendMessageStream(
      request('slowly', `slowly-${version}`),
    ) as AsyncIterable<Wire>) {
      if (payload.$case === 'task' || payload.$case === 'statusUpdate') states.push(payload.value.status.state);
      else text = (payload.value.append ? text : '') + payload.value.artifact.parts[0].content.value;
    }
    assert.equal(text, 'A slow answer.');
    assert.deepEqual([states[0], states.at(-1)], [1, completed]);

    // Cut in the middle, and followed again.
    const cut = new AbortController();
    let id = '';
    try {
      const events = client.sendMessageStream(request('wait', `wait-${version}`), {
        signal: cut.signal,
      }) as AsyncIterable<Wire>;
      for await (const { payload } of events) {
        if (payload.$case === 'task') id = payload.value.id;
        else cut.abort();
      }
      assert.fail('the stream was cut');
    } catch (error) {
      assert.equal(cut.signal.aborted, true, String(error));
    }
    const resumed = client.resubscribeTask({ tenant: '', id } as Wire) as AsyncGenerator<Wire>;
    const { value: first } = await resumed.next();
    assert.deepEqual([first.payload.$case, first.payload.value.status.state], ['task', working]);
    const stopped = (await client.cancelTask({ tenant: '', id, metadata: undefined } as Wire)) as Wire;
    assert.deepEqual([stopped.id, stopped.status.state], [id, canceled]);
    const rest: Wire[] = [];
    for await (const event of resumed) rest.push(event);
    assert.equal(rest.at(-1).payload.value.status.state, canceled);

    const named = (name: string) => (error: unknown) => error instanceof Error && error.name === name;
    await assert.rejects(client.getTask({ tenant: '', id: 'nothing' } as Wire), named('TaskNotFoundError'));
    await assert.rejects(client.cancelTask({ tenant: '', id } as Wire), named('TaskNotCancelableError'));
    await assert.rejects(async () => {
      for await (const _event of client.resubscribeTask({ tenant: '', id } as Wire)) assert.fail('nothing is told');
    }, named('UnsupportedOperationError'));
    if (version === '0.3') return;
    const { tasks, totalSize, nextPageToken } = (await client.listTasks({
      tenant: '',
      contextId: '',
      status: 0,
      pageToken: '',
    } as Wire)) as Wire;
    assert.deepEqual([tasks.length, totalSize, nextPageToken], [3, 3, '']);
    assert.equal(tasks[0].id, id);
  });
