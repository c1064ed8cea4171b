import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachService, openApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refused } from '../mcp-servers/mcp-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { artifact, rawAgent, remoteSetup, task } from './remote-world.ts';

const params = { name: 'partner' };
const done = () => ({ task: task('COMPLETED', { artifacts: [artifact('done')] }) });

forEachService(
  'MCP-19 with Block a card that changes is not called until somebody has accepted it',
  async (open, t) => {
    const partner = await rawAgent(t, done);
    const app = await open(remoteSetup(partner.cardUrl, { Pinning: 'Block' }));
    const said = async () => (await runJson(app.client, 'boss', 'ask this')).output;
    const pin = async () => (await app.client.remoteAgents.list({})).body[0]?.status.pin;
    assert.deepEqual([await said(), await pin()], ['Tool failed: nobody has approved partner', 'None']);
    const first = (await app.client.remoteAgents.pin({ params })).body;
    assert.deepEqual([first.pinned, first.changes.every(({ change }) => change === 'Added')], [false, true]);
    const approved = (await app.client.remoteAgents.approve({ params, body: { hash: first.hash } })).body;
    assert.deepEqual([approved.status.pin, await said(), await pin()], ['Same', 'done', 'Same']);

    const card = partner.card as Readonly<Record<string, unknown>>;
    const { version: _gone, ...others } = card;
    // What signs the card is no part of what it says.
    partner.card = { ...card, signatures: [{ protected: 'x', signature: 'y' }] };
    assert.deepEqual((await app.client.remoteAgents.pin({ params })).body.changes, []);
    partner.card = { ...others, description: 'Answers\u202e nothing.', iconUrl: 'https://a.invalid/i.png' };
    const second = (await app.client.remoteAgents.pin({ params })).body;
    assert.deepEqual(
      second.changes.map(({ path, change, before, after }) => [path, change, before, after]),
      [
        ['/description', 'Changed', '"Answers."', '"Answers\\u{202e} nothing."'],
        ['/iconUrl', 'Added', null, '"https://a.invalid/i.png"'],
        ['/version', 'Removed', '"7"', null],
      ],
    );
    const before = partner.asked.length;
    assert.deepEqual([await said(), await pin()], ['Tool failed: partner is not as it was approved', 'Changed']);
    assert.equal(partner.asked.length, before);
    const stale = app.client.remoteAgents.approve({ params, body: { hash: first.hash } });
    assert.deepEqual(await refused(stale), [409, 'remote-card-changed']);
    await app.client.remoteAgents.approve({ params, body: { hash: second.hash } });
    assert.equal(await said(), 'done');
    const entries = (await trail(app)).filter(({ action }) => action === 'remote-agent.approve');
    assert.deepEqual(
      entries.map(({ entity, before: was, after: is }) => [
        entity,
        (was as { hash?: string } | null)?.hash ?? null,
        (is as { hash: string }).hash,
      ]),
      [
        ['remote-agent:partner', null, first.hash],
        ['remote-agent:partner', first.hash, second.hash],
      ],
    );

    // Another tenant has approved nothing, and what it approves is its own.
    const { remoteAgents: ofAcme } = app.inTenant('acme');
    const inAcme = async () => (await ofAcme.list({})).body[0]?.status.pin;
    assert.equal(await inAcme(), 'None');
    await ofAcme.approve({ params, body: {} });
    await app.client.remoteAgents.withdraw({ params });
    assert.deepEqual([await said(), await pin()], ['Tool failed: nobody has approved partner', 'None']);
    assert.equal(await inAcme(), 'Same');
    assert.deepEqual(await refused(app.client.remoteAgents.pin({ params: { name: 'nobody' } })), [404, 'not-found']);
    partner.card = (response) => void response.writeHead(500).end();
    assert.deepEqual(await refused(app.client.remoteAgents.approve({ params, body: {} })), [
      502,
      'remote-agent-failed',
    ]);
  },
);

test('MCP-19 with Warn a changed card is called and told of, and with Off nothing is compared', async (t) => {
  const partner = await rawAgent(t, done);
  for (const [Pinning, warnings] of [
    ['Warn', 1],
    ['Off', 0],
  ] as const) {
    const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl, { Pinning }));
    await app.client.remoteAgents.approve({ params, body: {} });
    partner.card = { ...(partner.card as object), version: Pinning };
    await app.client.remoteAgents.pin({ params });
    assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'done');
    const told = app.log.filter(({ message }) => message.includes('not as it was approved'));
    assert.equal(told.length, warnings, Pinning);
    assert.equal(app.log.filter(({ message }) => message === 'The card of a remote agent has changed').length, 1);
  }
});
