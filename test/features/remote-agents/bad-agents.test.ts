import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { ConfigError } from '../../../src/core/config/index.ts';
import { startServer } from '../../providers/http/loopback-server.ts';
import { openApp } from '../../support/app.ts';
import { followToEnd, runJson } from '../runs/run-calls.ts';
import {
  type Asked,
  artifact,
  cardOf,
  childOf,
  rawAgent,
  remoteSetup,
  task,
  type Wire,
  writeFrames,
} from './remote-world.ts';

const secretWords = 'secret words of the other side';

const raw =
  (status: number, body: string, type = 'application/json') =>
  (response: ServerResponse): void =>
    void response.writeHead(status, { 'content-type': type }).end(body);

/** A body that is sent as long as somebody reads it. */
const endless = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const chunk = ' '.repeat(1_048_576);
  let written = 0;
  const more = (): void => {
    if (response.socket?.destroyed !== false || written >= 100) return void response.end();
    written += 1;
    response.write(chunk, more);
  };
  more();
};

const rpcError = (code: number) => (response: ServerResponse) =>
  raw(200, JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: secretWords } }))(response);

test('MCP-20 what a remote agent says of its failure reaches no model, caller or row', async (t) => {
  let answer: (asked: Asked) => Readonly<Record<string, unknown>> | null = () => null;
  const partner = await rawAgent(t, (asked) => answer(asked));
  const app = await openApp(
    t,
    'in process',
    remoteSetup(
      partner.cardUrl,
      {},
      { service: { Mcp: { ConnectionTimeout: '2s' }, Egress: { AllowPrivateNetworkTargets: true } } },
    ),
  );
  const written =
    (write: (response: ServerResponse) => void) =>
    ({ response }: Asked): null => {
      write(response);
      return null;
    };
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: secretWords }] };
  const ended = (state: string) => (): Wire => ({
    task: task(state, { status: { state: `TASK_STATE_${state}`, message } }),
  });
  const cases: readonly (readonly [string, typeof answer, string])[] = [
    ['500', written(raw(500, secretWords)), 'Tool failed: partner answered 500'],
    ['401', written(raw(401, secretWords)), 'Tool failed: partner answered 401'],
    [
      'a page',
      written(raw(200, `<html>${secretWords}</html>`, 'text/html')),
      'Tool failed: partner gave no valid answer',
    ],
    ['half a JSON', written(raw(200, '{"jsonrpc":"2.0","id":1,"res')), 'Tool failed: partner gave no valid answer'],
    ['a list', written(raw(200, '[]')), 'Tool failed: partner gave no valid answer'],
    ['nothing known', () => ({ other: secretWords }), 'Tool failed: partner gave no valid answer'],
    ['an unknown state', ended('SINGING'), 'Tool failed: partner gave no valid answer'],
    ['an error', written(rpcError(-32_005)), 'Tool failed: partner answered -32005'],
    ['no end', written(endless), 'Tool failed: partner did not answer'],
    [
      'a redirect',
      written((response) => response.writeHead(307, { location: partner.url }).end()),
      'Tool failed: partner answered 307',
    ],
    ['a cut', written((response) => void response.destroy()), 'Tool failed: partner did not answer'],
    ['failed', ended('FAILED'), 'Tool failed: partner has failed'],
    ['rejected', ended('REJECTED'), 'Tool failed: partner has rejected the task'],
    ['canceled', ended('CANCELED'), 'Tool failed: partner has canceled the task'],
    ['a question', ended('INPUT_REQUIRED'), 'Tool failed: partner asks for more, and nobody can answer it here'],
    ['a login', ended('AUTH_REQUIRED'), 'Tool failed: partner asks for a credential that nobody can give it here'],
  ];
  for (const [what, how, said] of cases) {
    answer = how;
    const before = partner.asked.filter(({ method }) => method === 'SendMessage').length;
    const { output, runId } = await runJson(app.client, 'boss', 'ask this');
    assert.equal(output, said, what);
    assert.equal((await childOf(app, runId))?.error?.message, said, what);
    assert.equal(partner.asked.filter(({ method }) => method === 'SendMessage').length, before + 1, what);
  }
  assert.ok(!(await app.store.text()).includes(secretWords));
  // A question that nobody answers need not wait there.
  assert.equal(partner.asked.filter(({ method }) => method === 'CancelTask').length, 2);
});

test('MCP-20 a stream that says nothing of its task, or an error, is no answer and is not sent again', async (t) => {
  let write: (asked: Asked) => void = () => undefined;
  const partner = await rawAgent(t, (asked) => {
    if (asked.method === 'SendMessage')
      return { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'at once' }] } };
    write(asked);
    return null;
  });
  partner.card = { ...(partner.card as object), capabilities: { streaming: true } };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const output = async (how: typeof write) => {
    write = how;
    return (await runJson(app.client, 'boss', 'ask this')).output;
  };
  assert.equal(
    await output(({ id, response }) => {
      writeFrames(response, id, []);
      response.end();
    }),
    'Tool failed: partner did not answer',
  );
  assert.equal(
    await output(({ response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"${secretWords}"}}\n\n`);
    }),
    'Tool failed: partner answered -32603',
  );
  assert.ok(partner.asked.every(({ method }) => method === 'SendStreamingMessage'));
  // One that has no streams after all has done nothing yet.
  assert.equal(await output(({ response }) => rpcError(-32_004)(response)), 'at once');
  const ids = partner.asked.slice(-2).map(({ method, params }) => [method, params.message.messageId]);
  assert.deepEqual(
    ids.map(([method]) => method),
    ['SendStreamingMessage', 'SendMessage'],
  );
  assert.equal(ids[0]?.[1], ids[1]?.[1]);
});

test('MCP-4 a card that is none, is elsewhere or names an address that is not allowed is refused in words', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED') }));
  const app = await openApp(
    t,
    'in process',
    remoteSetup(
      partner.cardUrl,
      {},
      { service: { Mcp: { ConnectionTimeout: '300ms' }, Egress: { AllowPrivateNetworkTargets: true } } },
    ),
  );
  const good = partner.card as Readonly<Record<string, unknown>>;
  const named = (url: string) => ({
    ...good,
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  });
  const cases: readonly (readonly [typeof partner.card, RegExp])[] = [
    [raw(500, secretWords), /HTTP 500/],
    [raw(200, `<html>${secretWords}`, 'text/html'), /no JSON/],
    [raw(200, '{"name":'), /no JSON/],
    [raw(200, '[]'), /no JSON object/],
    [raw(200, '['.repeat(400) + ']'.repeat(400)), /no JSON object/],
    [raw(200, `{"name":"x","deep":${'['.repeat(600)}${']'.repeat(600)}}`), /nested too deep/],
    [endless, /larger than/],
    [() => undefined, /in time/],
    [(response) => void response.writeHead(302, { location: partner.cardUrl }).end(), /HTTP 302/],
    [{ ...good, name: '' }, /no name/],
    [
      { ...good, supportedInterfaces: [{ url: 'https://a.invalid', protocolBinding: 'GRPC', protocolVersion: '1.0' }] },
      /no interface/,
    ],
    [
      {
        ...good,
        supportedInterfaces: [{ url: 'https://a.invalid', protocolBinding: 'JSONRPC', protocolVersion: '2.0' }],
      },
      /no interface/,
    ],
    [named('file:///etc/passwd'), /address of its interface/],
    [named('https://user:pass@a.invalid/'), /address of its interface/],
  ];
  for (const [card, problem] of cases) {
    partner.card = card;
    const [listed] = (await app.client.remoteAgents.list({})).body;
    assert.match(listed?.status.problem ?? '', problem);
    assert.ok(!JSON.stringify(listed).includes(secretWords));
    assert.match((await runJson(app.client, 'boss', 'ask this')).output ?? '', /^Tool failed: partner /);
  }
  assert.equal(partner.asked.length, 0);
  partner.card = good;
  assert.equal((await app.client.remoteAgents.list({})).body[0]?.status.state, 'Connected');
});

test('MCP-4 addresses of private networks are refused for cards, and for what they name', async (t) => {
  const inside = await startServer((_request, response) => response.end());
  t.after(() => inside.close());
  const setup = remoteSetup(
    `${inside.url}/card.json`,
    {},
    { service: { Egress: { AllowPrivateNetworkTargets: false } } },
  );
  const app = await openApp(t, 'in process', setup);
  const [listed] = (await app.client.remoteAgents.list({})).body;
  assert.deepEqual(
    [listed?.status.state, listed?.status.problem],
    ['Refused', 'The address of its card is not allowed.'],
  );
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'Tool failed: partner is not available');
  assert.equal(inside.received.length, 0);
});

test('MCP-5 a credential goes to where the card is, and elsewhere only once somebody has approved that', async (t) => {
  const elsewhere = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('there')] }) }));
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('here')] }) }));
  const key = { AuthorizationConfigurationKey: 'Service:McpSecrets:partner' };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl, key));
  const { authorization } = partner.received[0]?.headers ?? {};
  assert.equal(authorization, undefined, 'nobody was asked yet');
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'here');
  assert.deepEqual(
    partner.received.map(({ headers }) => headers.authorization),
    ['Bearer s3cret-of-the-partner', 'Bearer s3cret-of-the-partner'],
  );
  partner.card = cardOf(`${elsewhere.url}/a2a`);
  const { hash } = (await app.client.remoteAgents.pin({ params: { name: 'partner' } })).body;
  assert.equal(
    (await runJson(app.client, 'boss', 'ask this')).output,
    'Tool failed: nobody has approved where partner takes messages',
  );
  assert.equal(elsewhere.asked.length, 0);
  await app.client.remoteAgents.approve({ params: { name: 'partner' }, body: { hash } });
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'there');
  assert.equal(elsewhere.received.at(-1)?.headers.authorization, 'Bearer s3cret-of-the-partner');
  assert.ok(!(await app.store.text()).includes('s3cret-of-the-partner'));
});

test('MCP-5 a key outside of the prefix stops the start, and one without a value is told', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED') }));
  const outside = remoteSetup(partner.cardUrl, { AuthorizationConfigurationKey: 'Service:WebhookSecrets:crm' });
  await assert.rejects(openApp(t, 'in process', outside), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.report(), /RemoteAgents:partner:AuthorizationConfigurationKey.*Service:McpSecrets:/s);
    return true;
  });
  const nothing = remoteSetup(partner.cardUrl, { AuthorizationConfigurationKey: 'Service:McpSecrets:other' });
  const app = await openApp(t, 'in process', nothing);
  assert.equal((await app.client.remoteAgents.list({})).body[0]?.status.state, 'MissingCredential');
  assert.equal(
    (await runJson(app.client, 'boss', 'ask this')).output,
    'Tool failed: the credential of partner has no value',
  );
  assert.equal(partner.received.length, 0);
});

test('MCP-20 an agent that says much of its task fills no log, and what it said last is kept', async (t) => {
  const partner = await rawAgent(t, ({ id, response }) => {
    const updates = Array.from({ length: 2000 }, (_, index) => ({
      statusUpdate: { taskId: 'task-1', contextId: `c${index}`, status: { state: 'TASK_STATE_WORKING' } },
    }));
    writeFrames(response, id, [{ task: task('SUBMITTED') }, ...updates, { task: task('COMPLETED') }]);
    response.end();
    return null;
  });
  partner.card = { ...(partner.card as object), capabilities: { streaming: true } };
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const { runId } = await runJson(app.client, 'boss', 'ask this');
  const child = await childOf(app, runId);
  assert.deepEqual([child?.status, child?.remoteTask?.state], ['Completed', 'COMPLETED']);
  const events = await followToEnd(app.client, child?.id ?? '');
  assert.ok(events.length < 120, String(events.length));
  assert.equal(events.findLast(({ type }) => type === 'custom')?.['payload'].state, 'COMPLETED');
});
