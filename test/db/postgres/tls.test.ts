import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { openStorage } from '../../../src/db/open-storage.ts';
import { storeOptions } from '../../support/opened-store.ts';
import { executeAt, makePostgresCluster, serverAccount, whyNoServer } from '../../support/postgres-server.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const skip = whyNoServer() ?? (!hasOpenssl && 'there is no program openssl in PATH');

const openssl = (folder: string, ...args: string[]): void => {
  const { status, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
};

const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc'];

/** An authority, as `name.crt` and `name.key`. */
const makeAuthority = (folder: string, name: string): void =>
  openssl(folder, 'req', '-x509', ...key, '-keyout', `${name}.key`, '-out', `${name}.crt`, '-subj', `/CN=${name}`);

/** A certificate of an authority, as `name.crt` and `name.key`. */
const issue = (folder: string, authority: string, name: string, subject: string, names?: string): void => {
  openssl(folder, 'req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${subject}`);
  writeFileSync(join(folder, `${name}.ext`), names === undefined ? '' : `subjectAltName=${names}\n`);
  const signed = ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-days', '2'];
  openssl(folder, 'x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', `${name}.ext`, ...signed);
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
};

describe('TLS to PostgreSQL, in the words of its connection strings', { skip }, () => {
  const ends: (() => Promise<void>)[] = [];
  let folder = '';
  let port = 0;
  let reload: (...rules: readonly string[]) => Promise<void>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'acp-tls-'));
    ends.push(async () => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    for (const authority of ['ours', 'foreign']) makeAuthority(folder, authority);
    // Its one name is that of no address.
    issue(folder, 'ours', 'server', 'db.example.org', 'DNS:localhost');
    issue(folder, 'ours', 'client', 'acp');
    issue(folder, 'foreign', 'stranger', 'acp');
    const account = serverAccount() ?? {};
    if ('uid' in account) chownSync(join(folder, 'server.key'), account.uid, account.gid);
    const cluster = await makePostgresCluster();
    port = await freePort();
    const rules = join(folder, 'hba.conf');
    const write = (...lines: readonly string[]): void =>
      writeFileSync(rules, ['local all all trust', ...lines].map((line) => `${line}\n`).join(''));
    write();
    const child = await cluster.start([
      ...['listen_addresses=127.0.0.1', `port=${port}`, 'ssl=on', `hba_file=${rules}`],
      ...[`ssl_cert_file=${folder}/server.crt`, `ssl_key_file=${folder}/server.key`, `ssl_ca_file=${folder}/ours.crt`],
    ]);
    const administration = new URL(cluster.url);
    administration.port = String(port);
    reload = async (...lines) => {
      write(...lines);
      await executeAt(administration.href, 'select pg_reload_conf()');
    };
    ends.push(async () => {
      const closed = once(child, 'close');
      child.kill('SIGQUIT');
      await closed;
      cluster.remove();
    });
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  const urlOf = (host: string, parameters: Record<string, string>): string =>
    `postgres://acp@${host}:${port}/postgres?${new URLSearchParams(parameters)}`;
  const open = (host: string, parameters: Record<string, string>) => {
    const postgres = {
      ...{ connectionString: urlOf(host, parameters), directConnectionString: null },
      ...{ schema: 'service', maxConnections: 4 },
    };
    return openStorage(storeOptions('', { provider: 'Postgres', postgres, commandTimeoutMs: 10_000 }));
  };
  /** Whether the connections of the store are encrypted. */
  const isEncrypted = async (host: string, parameters: Record<string, string>): Promise<boolean> => {
    const opened = await open(host, parameters);
    try {
      const { rows } = await sql<{
        ssl: number;
      }>`select ssl from pg_catalog.pg_stat_ssl where pid = pg_backend_pid()`.execute(opened.storage.db);
      return rows[0]?.ssl === 1;
    } finally {
      await opened.close();
    }
  };
  const file = (name: string): string => join(folder, name);
  const refusedFor = (host: string, parameters: Record<string, string>, message: RegExp): Promise<void> =>
    assert.rejects(open(host, parameters), (error: Error & { code?: string }) => {
      assert.match(error.message, message);
      assert.ok(['store-unavailable', 'validation-failed'].includes(error.code ?? ''), String(error.code));
      return true;
    });

  test('disable sends plain text, the others encrypt; verify-full asks for the name, and the rest of them does not', async () => {
    await reload('host all all 127.0.0.1/32 trust');
    assert.equal(await isEncrypted('127.0.0.1', {}), false);
    assert.equal(await isEncrypted('127.0.0.1', { sslmode: 'disable' }), false);
    assert.equal(await isEncrypted('127.0.0.1', { sslmode: 'require' }), true);
    assert.equal(await isEncrypted('127.0.0.1', { sslmode: 'verify-ca', sslrootcert: file('ours.crt') }), true);
    assert.equal(await isEncrypted('localhost', { sslmode: 'verify-full', sslrootcert: file('ours.crt') }), true);
    // A root alone means all that can be verified.
    assert.equal(await isEncrypted('localhost', { sslrootcert: file('ours.crt') }), true);
  });

  test('a certificate of another authority or for another name is refused at the start, which names file and setting', async () => {
    await reload('host all all 127.0.0.1/32 trust');
    const foreign = /cannot be opened: its certificate is of no authority in .*foreign\.crt \(sslrootcert\)/;
    for (const sslmode of ['require', 'verify-ca', 'verify-full'])
      await refusedFor('localhost', { sslmode, sslrootcert: file('foreign.crt') }, foreign);
    await refusedFor('localhost', { sslmode: 'verify-full' }, /no authority that this machine trusts; .* sslrootcert/);
    await refusedFor(
      '127.0.0.1',
      { sslmode: 'verify-full', sslrootcert: file('ours.crt') },
      /its certificate is not for the host name 127\.0\.0\.1, which sslmode verify-full asks for/,
    );
  });

  test('a server that wants a certificate of the client gets the one of the connection string', async () => {
    await reload('hostssl all all 127.0.0.1/32 cert');
    const trusting = { sslmode: 'verify-full', sslrootcert: file('ours.crt') };
    const own = { sslcert: file('client.crt'), sslkey: file('client.key') };
    assert.equal(await isEncrypted('localhost', { ...trusting, ...own }), true);
    await refusedFor(
      'localhost',
      trusting,
      /refuses the user from here: it may want TLS \(sslmode\) or a certificate \(sslcert\)/,
    );
    await refusedFor(
      'localhost',
      { ...trusting, sslcert: file('stranger.crt'), sslkey: file('stranger.key') },
      /may refuse the certificate .*stranger\.crt \(sslcert\)/,
    );
    // A server that takes encrypted connections alone.
    await refusedFor('localhost', { sslmode: 'disable' }, /it may want TLS \(sslmode\)/);
  });

  test('files that are absent, no PEM, or no pair are refused by their names before anybody is asked', async () => {
    writeFileSync(file('notes.txt'), 'no certificate');
    const root = { sslmode: 'verify-full', sslrootcert: file('ours.crt') };
    await refusedFor(
      'localhost',
      { ...root, sslrootcert: file('none.crt') },
      /sslrootcert cannot be read: .*none\.crt/,
    );
    await refusedFor(
      'localhost',
      { ...root, sslrootcert: file('notes.txt') },
      /file of sslrootcert is no PEM file: .*notes\.txt/,
    );
    await refusedFor('localhost', { ...root, sslcert: file('client.crt') }, /sslcert and sslkey are needed together/);
    await refusedFor(
      'localhost',
      { ...root, sslcert: file('client.crt'), sslkey: file('stranger.key') },
      /sslkey .* is not the key of sslcert/,
    );
    await refusedFor('localhost', { sslmode: 'verify-ca' }, /sslmode verify-ca needs sslrootcert/);
  });

  test('a mode that would fall back to plain text is refused', async () => {
    for (const sslmode of ['allow', 'prefer'])
      await refusedFor(
        'localhost',
        { sslmode },
        new RegExp(`sslmode is ${sslmode}, and supported are disable, require`),
      );
  });

  test('a server without TLS is refused where the connection string asks for it', async () => {
    const plain = createServer((socket) => socket.once('data', () => socket.end('N'))).listen(0, '127.0.0.1');
    await once(plain, 'listening');
    const own = port;
    port = (plain.address() as { port: number }).port;
    try {
      await refusedFor('localhost', { sslmode: 'require' }, /the server does not offer TLS, and sslmode asks for it/);
    } finally {
      port = own;
      plain.close();
      await once(plain, 'close');
    }
  });
});
