import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { apiKeyScopes } from '../../../src/contract/authority.ts';
import { AcpError } from '../../../src/contract/errors.ts';
import { defaultRole, grantedRole } from '../../../src/features/security/keys.service.ts';
import { keyStore } from '../../../src/features/security/keys.store.ts';
import { forEachDurableService } from '../../support/app.ts';
import { admin, bearer, createHouse, request } from './security-fixture.ts';

const refused = (code: string, member?: Record<string, unknown>) => (error: unknown) => {
  assert.ok(error instanceof AcpError);
  assert.equal(error.code, code);
  for (const [name, value] of Object.entries(member ?? {})) assert.deepEqual(error.details[name as never], value);
  return true;
};

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

test('KEY-1 KEY-2 the key has its form, is shown once and is stored as a hash', async (t) => {
  const house = await createHouse(t);
  const reply = await house.call('keys.create', admin('team.one_x'), { body: { name: 'CI', scopes: ['RunsRead'] } });
  const { record, plaintextKey } = reply.body as Awaited<ReturnType<typeof house.createKey>>;
  assert.equal(reply.status, 200);
  assert.equal(reply.headers?.['cache-control'], 'no-store');
  assert.match(plaintextKey, /^acp_team\.one_x_[0-9A-Za-z]{43}$/);
  assert.equal(record.keyPrefix, plaintextKey.slice(0, 12));
  assert.equal(record.createdBy, 'token');
  assert.equal((await house.storage.stores(keyStore).findByHash(hashOf(plaintextKey)))?.id, record.id);
  const shown = JSON.stringify(await house.listKeys(admin('team.one_x')));
  assert.ok(shown.includes(record.id));
  assert.ok(!shown.includes(plaintextKey.slice(-43)));
  assert.ok(!shown.includes(hashOf(plaintextKey)));
});

forEachDurableService('KEY-2 the key itself stands nowhere in the store, not once it was used either', async (open) => {
  const app = await open();
  const { plaintextKey } = (await app.client.keys.create({ body: { name: 'CI', scopes: ['RunsRead'] } })).body;
  await (await app.clientFor(plaintextKey)).keys.whoami({});
  assert.ok((await app.store.text()).includes(hashOf(plaintextKey)));
  assert.ok(!(await app.store.text()).includes(plaintextKey.slice(-43)));
});

test('KEY-1 keys use all of their characters and do not repeat', async (t) => {
  const house = await createHouse(t);
  const secrets = new Set<string>();
  for (let count = 0; count < 200; count += 1)
    secrets.add((await house.createKey({ name: 'k', scopes: ['RunsRead'] })).plaintextKey.slice(-43));
  assert.equal(secrets.size, 200);
  assert.equal(new Set([...secrets].join('')).size, 62);
});

test('KEY-3 name, scopes and expiry are checked', async (t) => {
  const house = await createHouse(t);
  const good = { name: 'k', scopes: ['RunsRead'] };
  const bad: [Record<string, unknown>, string][] = [
    [{ ...good, name: '' }, 'name'],
    [{ ...good, name: '  ' }, 'name'],
    [{ ...good, name: 'x'.repeat(129) }, 'name'],
    [{ scopes: ['RunsRead'] }, 'name'],
    [{ ...good, scopes: [] }, 'scopes'],
    [{ ...good, scopes: ['runs:write'] }, 'scopes[0]'],
    [{ ...good, scopes: 'RunsRead' }, 'scopes'],
    [{ ...good, role: 'Owner' }, 'role'],
    [{ ...good, expiresAt: '2030-01-01T00:00:00Z' }, 'expiresAt'],
    [{ ...good, expiresAt: '2029-12-31T23:59:59Z' }, 'expiresAt'],
    [{ ...good, expiresAt: 'tomorrow' }, 'expiresAt'],
    [{ ...good, extra: 1 }, 'extra'],
  ];
  for (const [body, path] of bad)
    await assert.rejects(house.createKey(body), (error: unknown) => {
      assert.ok(error instanceof AcpError && error.code === 'validation-failed', JSON.stringify(body));
      assert.ok(
        error.details.errors?.some((field) => field.path === path),
        `${JSON.stringify(body)} ${path}`,
      );
      return true;
    });
  assert.deepEqual(await house.listKeys(), []);
  const { record } = await house.createKey({
    name: 'k',
    scopes: ['runsread', 'RunsRead', 'AgentsRead', 'RUNSREAD'],
    role: 'reader',
    expiresAt: '2030-01-01T02:00:00.001+02:00',
  });
  assert.deepEqual(record.scopes, ['RunsRead', 'AgentsRead']);
  assert.equal(record.role, 'Reader');
  assert.equal(record.expiresAt, '2030-01-01T00:00:00.001Z');
});

test('KEY-4 the default role is the lowest that can use the scopes', () => {
  assert.equal(defaultRole(['RunsRead', 'AuditRead']), 'Reader');
  assert.equal(defaultRole(['RunsRead', 'RunsWrite']), 'Operator');
  assert.equal(defaultRole(['ExternalInvoke']), 'Operator');
  for (const scope of apiKeyScopes.filter((name) => name.endsWith('Admin')))
    assert.equal(defaultRole(['RunsWrite', scope]), 'Admin');
});

test('KEY-4 KEY-5 a role that is left out is never above the creator’s, and one that is asked for is refused', () => {
  const scopes = ['AgentsAdmin', 'RunsWrite', 'RunsRead'] as const;
  const usual = { AgentsAdmin: 'Admin', RunsWrite: 'Operator', RunsRead: 'Reader' } as const;
  for (const [rank, role] of (['Reader', 'Operator', 'Admin'] as const).entries())
    for (const scope of scopes) {
      const creator = { role, scopes: new Set(scopes) };
      const expected = ['Reader', 'Operator', 'Admin'].indexOf(usual[scope]) > rank ? role : usual[scope];
      assert.equal(grantedRole(creator, {}, [scope]), expected, `${role} ${scope}`);
      assert.equal(grantedRole(creator, { role: null }, [scope]), expected);
      for (const [asked, name] of (['Reader', 'Operator', 'Admin'] as const).entries()) {
        const give = () => grantedRole(creator, { role: name }, [scope]);
        if (asked > rank) assert.throws(give, refused('authority-not-held'), `${role} gives ${name}`);
        else assert.equal(give(), name);
      }
    }
});

test('KEY-5 a key cannot give what it lacks, and nothing is stored', async (t) => {
  const house = await createHouse(t);
  const { plaintextKey } = await house.createKey({ name: 'keys', scopes: ['SecurityAdmin', 'RunsRead'] });
  const narrow = request(bearer(plaintextKey));
  await assert.rejects(house.createKey({ name: 'k', scopes: ['AgentsAdmin'] }, narrow), refused('authority-not-held'));
  await assert.rejects(
    house.createKey({ name: 'k', scopes: ['RunsRead', 'RunsWrite'] }, narrow),
    refused('authority-not-held'),
  );
  assert.equal((await house.listKeys()).length, 1);
  const { record } = await house.createKey({ name: 'k', scopes: ['RunsRead'] }, narrow);
  assert.match(record.createdBy ?? '', /^apikey:/);
});

test('KEY-6 KEY-9 a key is seen and used in its tenant only, newest first', async (t) => {
  const house = await createHouse(t);
  for (const name of ['first', 'second', 'third']) await house.createKey({ name, scopes: ['RunsRead'] });
  house.clock.now += 5;
  await house.createKey({ name: 'fourth', scopes: ['SecurityAdmin'], role: 'Reader' });
  const { plaintextKey } = await house.createKey({ name: 'other', scopes: ['SecurityAdmin'] }, admin('other'));
  assert.deepEqual(
    (await house.listKeys()).map((key) => key.name),
    ['fourth', 'third', 'second', 'first'],
  );
  const seen = await house.listKeys(request(bearer(plaintextKey)));
  assert.deepEqual(
    seen.map((key) => [key.name, key.tenantId]),
    [['other', 'other']],
  );
});

test('KEY-7 a scope never lifts a role, and a role never widens scopes', async (t) => {
  const house = await createHouse(t);
  const reader = await house.createKey({ name: 'r', scopes: ['SecurityAdmin'], role: 'Reader' });
  const body = { name: 'k', scopes: ['SecurityAdmin'] };
  await assert.rejects(
    house.createKey(body, request(bearer(reader.plaintextKey))),
    refused('insufficient-role', { requiredRole: 'Admin' }),
  );
  assert.equal((await house.listKeys(request(bearer(reader.plaintextKey)))).length, 1);
  const unscoped = await house.createKey({ name: 'a', scopes: ['AgentsAdmin'], role: 'Admin' });
  await assert.rejects(
    house.createKey(body, request(bearer(unscoped.plaintextKey))),
    refused('insufficient-scope', { requiredScope: 'SecurityAdmin' }),
  );
});

test('KEY-8 revoking keeps the row; again, unknown and another tenant’s are 404', async (t) => {
  const house = await createHouse(t);
  const { record } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  const remove = (id: string, tenant = 'default') => house.call('keys.remove', admin(tenant), { params: { id } });
  const messages = new Set<string>();
  const missing = async (id: string, tenant?: string) =>
    assert.rejects(remove(id, tenant), (error: unknown) => {
      assert.ok(error instanceof AcpError && error.code === 'not-found');
      messages.add(error.message);
      return true;
    });
  await missing(record.id, 'other');
  await missing('01931a2b-0000-7000-8000-000000000001');
  assert.equal((await remove(record.id.toUpperCase())).status, 204);
  await missing(record.id);
  assert.equal(messages.size, 1);
  await assert.rejects(remove('not-a-uuid'), refused('validation-failed'));
  const [row] = await house.listKeys();
  assert.equal(row?.revokedAt, '2030-01-01T00:00:00.000Z');
  assert.equal(row?.isActive, false);
});

test('KEY-9 an expired key is listed as inactive and can still be revoked', async (t) => {
  const house = await createHouse(t);
  const { record } = await house.createKey({ name: 'k', scopes: ['RunsRead'], expiresAt: '2030-01-01T00:00:01Z' });
  assert.equal(record.isActive, true);
  assert.equal(await house.security.hasActiveKey(), true);
  house.clock.now += 1000;
  assert.equal((await house.listKeys())[0]?.isActive, false);
  assert.equal(await house.security.hasActiveKey(), false);
  assert.equal((await house.call('keys.remove', admin('default'), { params: { id: record.id } })).status, 204);
});

forEachDurableService('a name with U+0000 is stored with U+FFFD in its place on every store', async (open) => {
  const app = await open();
  await app.client.keys.create({ body: { name: 'a\u0000b', role: 'Reader', scopes: ['RunsRead'] } });
  const names = (await app.client.keys.list({})).body.map(({ name }) => name);
  assert.ok(names.includes('a\uFFFDb'), names.join());
});
