import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { openApprovals, queueWaiting } from '../features/approvals/approval-world.ts';
import { openApp } from '../support/app.ts';
import { trail } from '../support/audit-chain.ts';
import { type Cut, type CuttingProxy, isCommitAlone, startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { skip } from './members.ts';

/** A service whose way to its database is cut at the commit of what somebody changes. */
const openBehindProxy = async (t: TestContext) => {
  const { url, drop } = await createDatabase();
  const proxy = await startCuttingProxy(url);
  const Postgres = { ConnectionString: proxy.url, MaxConnections: 6, DirectConnectionString: null };
  const app = await openApprovals((setup = {}) =>
    openApp(t, 'http', {
      storeTime: 'Server',
      ...setup,
      service: { ...setup.service, Persistence: { Provider: 'Postgres', Postgres } },
    }),
  );
  t.after(async () => {
    await app.close();
    await proxy.close();
    await drop();
  });
  return { app, proxy };
};

/** Cuts the next commit that follows a statement with this text in it or bound to it, once. */
const cutCommitOf = (proxy: CuttingProxy, text: string, kind: Cut): void => {
  let isNamed = false;
  proxy.plan = (piece) => {
    isNamed ||= piece.includes(text);
    if (!isNamed || !isCommitAlone(piece)) return null;
    proxy.plan = () => null;
    return kind;
  };
};

for (const kind of ['before', 'after'] as const)
  test(`a change whose commit is cut ${kind} the server answers it is made once, and whoever makes it is told so`, {
    skip,
  }, async (t) => {
    const { app, proxy } = await openBehindProxy(t);
    const { client } = app;

    cutCommitOf(proxy, 'of-the-test', kind);
    const key = await client.keys.create({ body: { name: 'of-the-test', scopes: ['RunsRead'], role: 'Reader' } });
    assert.equal(proxy.cuts, 1);
    const keys = (await client.keys.list({})).body.filter(({ name }) => name === 'of-the-test');
    assert.deepEqual([key.status, keys.length], [200, 1]);

    const model = { provider: 'local', model: 'any' };
    cutCommitOf(proxy, 'made-in-doubt', kind);
    await client.agents.create({ body: { name: 'made-in-doubt', model } });
    cutCommitOf(proxy, 'Changed once', kind);
    const saved = await client.agents.save({
      params: { name: 'made-in-doubt' },
      body: { name: 'made-in-doubt', model, description: 'Changed once' },
    });
    assert.equal(proxy.cuts, 3);
    assert.equal(saved.body.version, 2);

    const { rows } = await queueWaiting(app, 's', ['pay']);
    const id = rows[0]?.id ?? '';
    cutCommitOf(proxy, id, kind);
    const { body: decided } = await client.approvals.decide({ params: { id }, body: { approved: true } });
    assert.equal(proxy.cuts, 4);
    assert.equal(decided.status, 'Approved');
    await eventually('the call is made', () => app.done.length > 0);

    const made = (await trail(app)).map(({ action, entity }) => `${action} ${entity}`);
    assert.deepEqual(made, [
      'agent.create agent:helper',
      `apikey.create apikey:${keys[0]?.id}`,
      'agent.create agent:made-in-doubt',
      'agent.update agent:made-in-doubt',
      `approval.decide approval:${id}`,
    ]);
  });
