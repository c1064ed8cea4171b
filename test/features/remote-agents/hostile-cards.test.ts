import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openApp } from '../../support/app.ts';
import { simulateInternet } from '../../support/simulated-internet.ts';
import { runJson } from '../runs/run-calls.ts';
import { artifact, cardOf, rawAgent, remoteSetup, task } from './remote-world.ts';

test('MCP-4 a card may not lead to addresses that are not on the public internet, by number or by name', async (t) => {
  const internet = simulateInternet(t, {
    'cards.example': () => ['93.184.216.34'],
    'talks.example': () => ['93.184.216.35'],
    'inside.example': () => ['10.0.0.7'],
  });
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('from outside')] }) }));
  const { port } = partner;
  const setup = remoteSetup(
    `http://cards.example:${port}/.well-known/agent-card.json`,
    {},
    {
      service: { Egress: { AllowPrivateNetworkTargets: false } },
    },
  );
  const app = await openApp(t, 'in process', setup);
  const listed = async () => (await app.client.remoteAgents.pin({ params: { name: 'partner' } })).body;
  const state = async () => (await app.client.remoteAgents.list({})).body[0]?.status;
  const said = async () => (await runJson(app.client, 'boss', 'ask this')).output;

  for (const url of [
    'http://169.254.169.254/latest',
    'http://127.0.0.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://2130706433/',
    'http://localhost/',
  ]) {
    partner.card = cardOf(url);
    assert.equal(await said(), 'Tool failed: partner is not available', url);
    assert.deepEqual(
      [(await state())?.state, (await state())?.problem],
      ['Refused', 'Its card names an address that is not allowed.'],
    );
  }
  // A name says where it leads once it is looked up.
  partner.card = cardOf(`http://inside.example:${port}/a2a`);
  await listed();
  assert.equal(await said(), 'Tool failed: partner did not answer');
  assert.equal(partner.asked.length, 0);
  assert.ok(
    internet.connected.every((address) => address === `93.184.216.34:${port}`),
    internet.connected.join(),
  );

  partner.card = cardOf(`http://talks.example:${port}/a2a`);
  await listed();
  assert.equal(await said(), 'from outside');
  assert.equal(internet.connected.at(-1), `93.184.216.35:${port}`);
  partner.card = (response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
  await assert.rejects(listed());
  assert.ok(internet.connected.every((address) => address.startsWith('93.184.216.')));
});

test('MCP-6 the credential of an agent is not sent in the clear, to its card or to where that leads', async (t) => {
  const internet = simulateInternet(t, { 'cards.example': () => ['93.184.216.34'] });
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [artifact('done')] }) }));
  const key = { AuthorizationConfigurationKey: 'Service:McpSecrets:partner' };
  const statusIn = async (setup: ReturnType<typeof remoteSetup>) => {
    const app = await openApp(t, 'in process', setup);
    assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'Tool failed: partner is not available');
    const { state, problem } = (await app.client.remoteAgents.list({})).body[0]?.status ?? {};
    return [state, problem];
  };
  const inTheClear = `http://cards.example:${partner.port}/.well-known/agent-card.json`;
  assert.deepEqual(await statusIn(remoteSetup(inTheClear, key)), ['Refused', 'A credential is sent over https alone.']);
  assert.deepEqual(internet.connected, []);
  partner.card = cardOf(`http://cards.example:${partner.port}/a2a`);
  assert.deepEqual(await statusIn(remoteSetup(partner.cardUrl, key)), [
    'Refused',
    'Its card names an address without https.',
  ]);
  assert.equal(partner.asked.length, 0);
  // Without one nothing is given away.
  const open = await openApp(t, 'in process', remoteSetup(inTheClear));
  assert.equal((await runJson(open.client, 'boss', 'ask this')).output, 'done');
});

test('MCP-4 a card that is larger than any is not read to its end', async (t) => {
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED') }));
  partner.card = cardOf(`${partner.url}/a2a`, { description: 'x'.repeat(270_000) });
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  assert.equal((await runJson(app.client, 'boss', 'ask this')).output, 'Tool failed: partner did not answer');
  const { state, problem } = (await app.client.remoteAgents.list({})).body[0]?.status ?? {};
  assert.deepEqual([state, problem], ['Unreachable', 'What it answers is larger than 262144 bytes.']);
});
