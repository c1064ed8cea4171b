import assert from 'node:assert/strict';
import { ConfigError } from '../../../src/core/config/index.ts';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import { cardOf, keyFor, message, openA2A, post, rpc, send } from './a2a-world.ts';

const secret = 'Never tell anybody that the sky is green.';

forEachHttpService(
  'A2A-6 A2A-7 A2A-8 A2A-9 A2A-10 a card tells what a stranger needs, and nothing else',
  async (open) => {
    const app = await openA2A(open, {
      agents: [
        {
          name: 'poet',
          displayName: 'The poet',
          instructions: secret,
          model: { provider: 'demo', model: 'hidden-model', responseFormat: { kind: 'Json' } },
          metadata: {
            'a2a.tags': ['verse', 'rhyme'],
            'a2a.examples': ['A haiku about rain'],
            'a2a.documentationUrl': 'https://example.org/poet',
            'a2a.iconUrl': 'https://example.org/poet.png',
          },
        },
      ],
      host: { A2A: { Agents: ['helper', 'poet'], Provider: { Organization: 'Acme', Url: 'https://acme.example' } } },
    });
    const url = `${app.url}/a2a/poet`;
    const named = { 'a2a-version': '1.0' };
    const { status, body, headers } = await cardOf(app, { agent: 'poet', headers: named });
    assert.equal(status, 200);
    assert.deepEqual(body, {
      name: 'The poet',
      description: '',
      version: '1',
      provider: { organization: 'Acme', url: 'https://acme.example' },
      supportedInterfaces: [
        { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      ],
      capabilities: {
        streaming: true,
        pushNotifications: false,
        extendedAgentCard: false,
        extensions: body.capabilities.extensions,
      },
      securitySchemes: {
        bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
        apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-Api-Key' } },
      },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }, { schemes: { apiKey: { list: [] } } }],
      defaultInputModes: body.defaultInputModes,
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: [
        { id: 'poet', name: 'The poet', description: '', tags: ['verse', 'rhyme'], examples: ['A haiku about rain'] },
      ],
      documentationUrl: 'https://example.org/poet',
      iconUrl: 'https://example.org/poet.png',
    });
    // Readers of 0.3 name it or no version; the card has security schemes in the shape of one version, never of both.
    const { securitySchemes: _newer, securityRequirements: _too, ...common } = body;
    for (const version of [undefined, '0.3', '0.3.1']) {
      const legacy = await cardOf(app, { agent: 'poet', headers: { 'a2a-version': version } });
      assert.deepEqual(legacy.body, {
        ...common,
        url,
        preferredTransport: 'JSONRPC',
        protocolVersion: '0.3.0',
        securitySchemes: {
          bearer: { type: 'http', scheme: 'Bearer' },
          apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
        },
        security: [{ bearer: [] }, { apiKey: [] }],
        supportsAuthenticatedExtendedCard: false,
      });
      assert.notEqual(legacy.headers.get('etag'), headers.get('etag'));
      assert.ok(legacy.headers.get('vary')?.split(', ').includes('A2A-Version'));
    }
    assert.deepEqual(body.capabilities.extensions, [
      {
        uri: 'urn:acp:a2a:resume:1',
        description: 'Events of a stream have positions, and a stream goes on after one of them.',
        required: false,
      },
    ]);
    for (const mode of ['text/plain', 'application/json', 'image/png', 'application/pdf', 'audio/*'])
      assert.ok(body.defaultInputModes.includes(mode), mode);
    assert.doesNotMatch(JSON.stringify(body), /sky|hidden-model|demo/);
    const plain = (await cardOf(app)).body;
    assert.deepEqual(
      [plain.name, plain.skills[0].tags, plain.defaultOutputModes],
      ['helper', ['agent'], ['text/plain']],
    );

    // A2A-11: the tag is that of the content, and moves with it.
    assert.equal(headers.get('cache-control'), 'private, max-age=300');
    const tag = headers.get('etag') ?? '';
    assert.match(tag, /^"[0-9a-f]{32}"$/);
    const again = await cardOf(app, { agent: 'poet', headers: { ...named, 'if-none-match': tag } });
    assert.deepEqual([again.status, again.body, again.headers.get('etag')], [304, null, tag]);
    assert.equal((await cardOf(app, { agent: 'poet', headers: { 'if-none-match': '"other"' } })).status, 200);
    await app.client.agents.save({
      params: { name: 'poet' },
      body: { name: 'poet', model: { provider: 'demo', model: 'hidden-model' }, description: 'Rhymes.' },
    });
    const changed = await cardOf(app, { agent: 'poet', headers: { ...named, 'if-none-match': tag } });
    assert.deepEqual([changed.status, changed.body.version, changed.body.description], [200, '2', 'Rhymes.']);
  },
);

overHttp(
  'A2A-7 A2A-8 the address is the public one where it is set, below its path; without 0.3 nothing of it is told',
  async (open) => {
    const app = await openA2A(open, {
      host: {
        A2A: { Path: '/partners', PublicBaseUrl: 'https://agents.example.org/', LegacyCompat: false },
      },
    });
    assert.equal((await cardOf(app)).status, 404);
    const answer = await fetch(`${app.url}/partners/helper/.well-known/agent-card.json`);
    const card = (await answer.json()) as Record<string, unknown>;
    const url = 'https://agents.example.org/partners/helper';
    assert.deepEqual(card['supportedInterfaces'], [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]);
    for (const member of [
      'url',
      'preferredTransport',
      'protocolVersion',
      'security',
      'supportsAuthenticatedExtendedCard',
    ])
      assert.equal(member in card, false, member);
  },
);

overHttp(
  'A2A-1 A2A-2 an agent that is not offered is not there, whatever the reason, and both of its routes say the same',
  async (open) => {
    const app = await openA2A(open, {
      tools: [
        {
          name: 'ask',
          description: 'Asks.',
          inputSchema: { type: 'object' },
          requiresApproval: true,
          execute: () => 'x',
        },
        { name: 'look', description: 'Looks.', inputSchema: { type: 'object' }, runsOnClient: true },
      ] as never,
      agents: [{ name: 'hidden' }],
      host: { Tenancy: { Enabled: true }, A2A: { Agents: ['helper', 'later'] } },
    });
    const problems = async (agent: string) => {
      const card = await cardOf(app, { agent });
      const call = await rpc(app, 'SendMessage', { message: message('Hi') }, { agent });
      const { requestId: _card, instance: _at, ...problem } = card.body;
      const { requestId: _call, instance: _there, ...same } = call.body;
      assert.deepEqual([call.status, same], [card.status, problem]);
      return [card.status, problem.code, problem.detail];
    };
    const absent = [404, 'not-found', 'There is nothing at this path.'];
    for (const agent of ['hidden', 'nobody', 'HELPER', 'later']) assert.deepEqual(await problems(agent), absent, agent);
    assert.equal((await cardOf(app)).status, 200);
    // A name of the list is there once it is saved, and not any more once somebody would have to be asked.
    await app.createAgent({ name: 'later' });
    assert.equal((await cardOf(app, { agent: 'later' })).status, 200);
    const model = { provider: 'demo', model: 'demo-1' };
    for (const tool of ['ask', 'look']) {
      await app.client.agents.save({ params: { name: 'later' }, body: { name: 'later', model, toolNames: [tool] } });
      assert.deepEqual(await problems('later'), absent, tool);
    }
    await app.client.agents.save({ params: { name: 'later' }, body: { name: 'later', model } });
    assert.equal((await send(app, 'Hi', {}, { agent: 'later' })).status.state, 'TASK_STATE_COMPLETED');
    assert.ok(app.log.some(({ message: said, fields }) => /not offered/.test(said) && fields['agent'] === 'later'));
    // An agent of the tenant alone counts.
    const other = app.inTenant('acme');
    const token = (await other.keys.create({ body: { name: 'k', scopes: ['ExternalInvoke'] } })).body.plaintextKey;
    assert.equal((await cardOf(app, { token })).status, 404);
  },
);

overHttp(
  'A2A-2 an agent in whose runs somebody has to be asked cannot be offered: the service does not start',
  async (open) => {
    const tools = [
      {
        name: 'ask',
        description: 'Asks.',
        inputSchema: { type: 'object' },
        requiresApproval: true,
        execute: () => 'x',
      },
    ] as never;
    const first = await open({ tools, agents: [{ name: 'careful', toolNames: ['ask'] }] });
    const { folder } = first;
    await first.close();
    await assert.rejects(open({ tools, folder, host: { A2A: { Agents: ['careful'] } } }), (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      assert.match(error.report(), /Host:A2A:Agents.*"careful".*"ask" needs an approval/s);
      return true;
    });
  },
);

forEachHttpService(
  'A2A-3 A2A-5 cards and calls need ExternalInvoke; public cards are those of the default tenant',
  async (open) => {
    const app = await openA2A(open, {
      host: { AnonymousLoopback: false, AuthToken: 'a-shared-token-of-this-test' },
      token: 'a-shared-token-of-this-test',
    });
    const invoke = await keyFor(app, 'partner');
    const reader = (await app.client.keys.create({ body: { name: 'r', scopes: ['RunsRead', 'RunsWrite'] } })).body
      .plaintextKey;
    const body = { message: message('Hi') };
    assert.deepEqual([(await cardOf(app)).status, (await rpc(app, 'SendMessage', body)).status], [401, 401]);
    assert.deepEqual(
      [(await cardOf(app, { token: reader })).status, (await rpc(app, 'SendMessage', body, { token: reader })).status],
      [403, 403],
    );
    assert.equal((await cardOf(app, { token: invoke })).status, 200);
    assert.equal((await rpc(app, 'SendMessage', body, { token: invoke })).status, 200);
    // A key that may call agents opens nothing else.
    assert.equal((await fetch(`${app.url}/api/runs`, { headers: { authorization: `Bearer ${invoke}` } })).status, 403);
  },
);

overHttp('A2A-5 A2A-11 public cards take no credential, and calls do', async (open) => {
  const token = 'a-shared-token-of-this-test';
  const app = await openA2A(open, {
    token,
    host: { AnonymousLoopback: false, AuthToken: token, A2A: { PublicCards: true } },
  });
  const card = await cardOf(app);
  assert.deepEqual([card.status, card.headers.get('cache-control')], [200, 'public, max-age=300']);
  assert.equal((await rpc(app, 'SendMessage', { message: message('Hi') })).status, 401);
  assert.equal((await cardOf(app, { agent: 'nobody' })).status, 404);
});

overHttp(
  'A2A-5 A2A-11 a public card is that of the credential or the tenant that is named, and no shared cache mixes it up with another',
  async (open) => {
    const Tenancy = { Enabled: true, AllowHeaderResolution: true, HeaderName: 'X-Customer' };
    const app = await openA2A(open, { host: { Tenancy, A2A: { PublicCards: true } } });
    const acme = app.inTenant('acme');
    const model = { provider: 'demo', model: 'demo-1' };
    await acme.agents.create({ body: { name: 'helper', model, description: 'Of acme alone.' } });
    const [ours, theirs] = [await keyFor(app, 'ours'), await keyFor({ client: acme }, 'theirs')];
    const forwarded = { 'x-forwarded-host': 'agents.example.org', 'x-forwarded-proto': 'https' };
    const seen = async (options: Parameters<typeof cardOf>[1]) => {
      const { body, headers } = await cardOf(app, options);
      return [
        body.description,
        new URL(body.supportedInterfaces[0].url).origin,
        headers.get('vary')?.toLowerCase().split(', ') ?? [],
      ] as const;
    };
    const all = [
      ['Answers questions.', app.url, {}],
      ['Answers questions.', app.url, { token: ours }],
      ['Of acme alone.', app.url, { token: theirs }],
      ['Of acme alone.', app.url, { headers: { 'x-api-key': theirs } }],
      ['Of acme alone.', app.url, { headers: { 'x-customer': 'acme' } }],
      ['Answers questions.', 'https://agents.example.org', { headers: forwarded }],
    ] as const;
    for (const [description, origin, options] of all) {
      const [told, at, varies] = await seen(options);
      assert.deepEqual([told, at], [description, origin]);
      for (const field of ['authorization', 'x-api-key', 'x-customer', ...Object.keys(forwarded)])
        assert.ok(varies.includes(field), field);
    }
  },
);

overHttp('A2A-1 without an allowlist there is no such route', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  assert.equal((await cardOf(app)).status, 404);
  assert.equal((await post(app, '{}')).status, 404);
  const { paths } = (await (await fetch(`${app.url}/openapi.json`)).json()) as { readonly paths: object };
  assert.deepEqual(
    Object.keys(paths).filter((path) => path.startsWith('/a2a')),
    [],
  );
});
