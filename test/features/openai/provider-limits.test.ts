import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import type { Scenario } from '../../support/providers/scenario.ts';
import { calls } from '../runs/chat-requests.ts';
import { readEvents } from '../runs/run-calls.ts';
import { helperSetup, officialClient, token } from './openai-client.ts';
import { chat, codeOf, dataOf, respond, responseIdOf, send } from './openai-wire.ts';

const limited = (headers: Record<string, string> = { 'retry-after': '17' }): Scenario => ({
  fault: { kind: 'status', status: 429, vendor: 'rate-limit', headers },
});

const setup = helperSetup({
  host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
  service: {
    Providers: {
      Compatible: { local: { DefaultModel: 'small', Models: [{ Name: 'embed', SupportsEmbeddings: true }] } },
    },
  },
});

overHttp('OAI-4 OAI-16 OAI-32 the rate limit of a provider is 429 with its time to wait', async (open, t) => {
  const app = await open(setup);
  const { simulator } = app;
  const client = officialClient(app);
  const messages = [{ role: 'user' as const, content: 'Hello' }];

  const requests = {
    'a chat': () => client.chat.completions.create({ model: 'helper', messages }),
    'a streamed chat': () => client.chat.completions.create({ model: 'helper', messages, stream: true }),
    'a response': () => client.responses.create({ model: 'helper', input: 'Hello' }),
    'a streamed response': () => client.responses.create({ model: 'helper', input: 'Hello', stream: true }),
    'a response that is not stored': () => client.responses.create({ model: 'helper', input: 'Hello', store: false }),
    'a chat with a model': () => client.chat.completions.create({ model: 'local/small', messages }),
    embeddings: () => client.embeddings.create({ model: 'local/embed', input: 'Hello' }),
  } satisfies Record<string, () => PromiseLike<unknown>>;

  for (const [what, request] of Object.entries(requests))
    await t.test(`the official client raises RateLimitError for ${what}`, async () => {
      simulator.enqueue(limited());
      await assert.rejects(
        async () => request(),
        (error: unknown) => {
          assert.ok(error instanceof OpenAI.RateLimitError, String(error));
          const { status, code, type, param, headers } = error;
          assert.deepEqual([status, code, type, param], [429, 'provider_rate_limited', 'rate_limit_error', null]);
          const fields = ['retry-after', 'retry-after-ms', 'x-should-retry'].map((name) => headers.get(name));
          assert.deepEqual(fields, ['17', '17000', 'false']);
          assert.ok(headers.has('x-run-id'));
          return true;
        },
      );
    });

  await t.test('a provider that names no time gets the shortest one', async () => {
    simulator.enqueue(limited({}));
    const answer = await chat(app);
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [429, '1']);
  });

  await t.test('OAI-32 OAI-36 the response of a refused stream is stored as failed, with all its events', async () => {
    simulator.enqueue(limited());
    const refused = await respond(app, { stream: true });
    assert.deepEqual(codeOf(refused), [429, 'provider_rate_limited']);
    const stored = await send(app, `/responses/${responseIdOf(refused)}`);
    assert.deepEqual([stored.body.status, stored.body.error.code], ['failed', 'provider_rate_limited']);
    const events = dataOf(await send(app, `/responses/${responseIdOf(refused)}?stream=true`));
    assert.deepEqual(
      events.map(({ type, sequence_number }) => [type, sequence_number]),
      [
        ['response.created', 0],
        ['response.in_progress', 1],
        ['response.failed', 2],
      ],
    );
  });

  await t.test('OAI-24 OAI-35 after the first byte the stream reports the limit', async () => {
    simulator.enqueue(calls('add', {}), limited());
    const streamed = await respond(app, { stream: true });
    const last = dataOf(streamed).at(-1);
    assert.deepEqual(
      [streamed.status, last.type, last.response.error.code],
      [200, 'response.failed', 'provider_rate_limited'],
    );
    simulator.enqueue({ answer: { text: ['Half '] }, fault: { kind: 'event', after: 2, vendor: 'rate-limit' } });
    const cut = await chat(app, { stream: true });
    const { error } = dataOf(cut).at(-1);
    assert.deepEqual([cut.status, error.type, error.code], [200, 'rate_limit_error', 'provider_rate_limited']);
    assert.ok(!cut.text.includes('[DONE]'));
  });

  await t.test('OAI-39 a stream begins after 15 s at the latest, though no model has answered by then', async () => {
    simulator.enqueue({ fault: { kind: 'stall', after: 0 } });
    const asked = simulator.requests.length;
    const begins = client.chat.completions.create({ model: 'helper', messages, stream: true }).withResponse();
    await eventually('the provider is asked', () => simulator.requests.length > asked);
    await app.clock.advance(15_000);
    const { data, response } = await begins;
    assert.equal(response.status, 200);
    data.controller.abort();
  });

  await t.test('OAI-16 neither a fallback nor a compaction before the refusal begins the stream', async () => {
    const model = { provider: 'local', model: 'small' };
    await app.client.agents.create({
      body: {
        name: 'careful',
        model: { ...model, fallbacks: [{ provider: 'local', model: 'other' }] },
        compaction: { strategy: 'Truncation', triggerTokens: 20, minimumPreservedGroups: 1 },
      },
    });
    const long = [1, 2, 3, 4].flatMap((at) => [
      { role: 'user' as const, content: `Question ${at}: ${'word '.repeat(50)}` },
      { role: 'assistant' as const, content: `Answer ${at}` },
    ]);
    simulator.enqueue(limited(), { fault: { kind: 'status', status: 503 } });
    const answer = await chat(app, { model: 'careful', messages: [...long, ...messages], stream: true });
    assert.deepEqual(codeOf(answer), [429, 'provider_rate_limited']);
    const types = (await readEvents(app.client, answer.headers.get('x-run-id') ?? '')).map(({ event }) => event);
    for (const type of ['history.compacted', 'model.fallback-used']) assert.ok(types.includes(type), types.join());
  });

  await t.test('any other failure of a provider stays what it was', async () => {
    simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
    assert.deepEqual(codeOf(await chat(app)), [502, 'provider_error']);
    simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
    const streamed = await chat(app, { stream: true });
    assert.deepEqual([streamed.status, dataOf(streamed).at(-1).error.code], [200, 'provider_error']);
  });

  await t.test('the native API has the same failure as 502', async () => {
    simulator.enqueue(limited());
    const { status, headers } = await fetch(`${app.url}/api/agents/helper/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'Hello', stream: false }),
    });
    assert.deepEqual([status, headers.get('retry-after')], [502, '17']);
  });
});
