import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Null: certificates can be made here. */
export const whyNoCertificates = (): string | null =>
  spawnSync('openssl', ['version']).status === 0 ? null : 'there is no program openssl in PATH';

/** In PEM. */
export interface IssuedCertificate {
  readonly authority: string;
  readonly key: string;
  readonly cert: string;
}

/** A certificate for one host name, and the authority that it is of. */
export const issuedCertificate = (t: TestContext, name: string): IssuedCertificate => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-certificates-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const openssl = (...args: string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
  };
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=ca');
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', `/CN=${name}`);
  writeFileSync(join(folder, 'server.ext'), `subjectAltName=DNS:${name}\n`);
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'server.ext'];
  openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...signed);
  const file = (member: string): string => readFileSync(join(folder, member), 'utf8');
  return { authority: file('ca.crt'), key: file('server.key'), cert: file('server.crt') };
};
