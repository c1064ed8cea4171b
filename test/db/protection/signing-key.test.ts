import assert from 'node:assert/strict';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { createProtectedRows } from '../../../src/db/protection/protected-rows.ts';
import { signingKeyStore } from '../../../src/features/audit/signing-key.store.ts';
import { storedSigningKey } from '../../../src/features/audit/signing-key.ts';
import { forEachDurableStore, openForTwo } from '../../support/store.ts';

const cipher = createContentCipher('a', { a: Buffer.alloc(32, 5).toString('base64') });
const pem = (key: { export(options: { format: 'pem'; type: 'pkcs8' }): string | Buffer }): string =>
  String(key.export({ format: 'pem', type: 'pkcs8' }));

forEachDurableStore(
  'AUDIT-15 SEC-50 processes of one store sign with one key, which is sealed in it',
  async (t, store) => {
    const connections = await openForTwo(t, store);
    const rows = createProtectedRows(cipher);
    const [first, second] = connections.map((storage) =>
      signingKeyStore.on({ dialect: storage.dialect, db: storage.db, rows } as Parameters<
        typeof signingKeyStore.on
      >[0]),
    );
    assert.ok(first !== undefined && second !== undefined);
    const [one, other] = await Promise.all([storedSigningKey(first), storedSigningKey(second)]);
    assert.equal(one.asymmetricKeyType, 'ed25519');
    assert.equal(pem(one), pem(other));
    assert.equal(pem(await storedSigningKey(second)), pem(one));
    const [row, ...others] = (await connections[0]?.db.selectFrom('own_secrets').selectAll().execute()) ?? [];
    assert.deepEqual(others, []);
    assert.match(row?.value ?? '', /^acp:sealed:1:a:/);
    // Without the key nothing is signed, and none is made in its place.
    const keyless = signingKeyStore.on(connections[0] as Parameters<typeof signingKeyStore.on>[0]);
    await assert.rejects(storedSigningKey(keyless), { code: 'decryption-failed' });
  },
);
