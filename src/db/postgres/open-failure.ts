import pg from 'pg';
import { AcpError } from '../../contract/errors.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';
import { addressText, type ServerAddress } from './connection-string.ts';
import { classifyPostgres } from './failure.ts';

const reasons: Readonly<Record<Exclude<StoreFailure, null>, string>> = {
  'unique-violation': 'its content is not what it should be',
  'unstorable-text': 'its content is not what it should be',
  conflict: 'another process changes it at the same time; start again',
  slow: 'it took too long',
  busy: 'another process holds a lock on it',
  full: 'the disk of the server is full',
  'read-only': 'the server takes no writes; it is a standby, or was set read-only',
  corrupt: 'the server reports damaged data',
  'in-doubt': 'the connection was lost while it was written',
  unavailable: 'the server cannot be reached, or refuses the user or the database',
};

// What a server answers to somebody who connects, by SQLSTATE.
const refusals: Readonly<Record<string, string>> = {
  '28P01': 'the server refuses the user or the password',
  '28000':
    'the server refuses the user from here: it may want TLS (sslmode) or a certificate (sslcert), or does not admit this user',
  '3D000': 'the server has no such database',
  '53300': 'the server has no connection left',
};

const untrusted = (ssl: ServerAddress['ssl'] & object, rootFile: string | null): string =>
  rootFile === null || ssl.ca === undefined
    ? 'its certificate is of no authority that this machine trusts; name the file of the right one with sslrootcert'
    : `its certificate is of no authority in ${rootFile} (sslrootcert)`;

// Codes of OpenSSL's verification, as Node gives them.
const authorityCodes: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'INVALID_CA',
]);
const timeCodes: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);

// The driver gives it no code.
const withoutTls = 'The server does not support SSL connections';

/** Why no encrypted connection came about; null: that was not the reason. */
const tlsReason = ({ ssl, host, tlsFiles }: ServerAddress, error: unknown): string | null => {
  if (ssl === false) return null;
  const code = systemCode(error);
  if (authorityCodes.has(code)) return untrusted(ssl, tlsFiles.sslrootcert ?? null);
  if (timeCodes.has(code)) return 'its certificate is not valid at this time';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `its certificate is not for the host name ${host}, which sslmode verify-full asks for`;
  if (code.startsWith('ERR_SSL_') && tlsFiles.sslcert !== undefined)
    return `the connection cannot be encrypted; the server may refuse the certificate ${tlsFiles.sslcert} (sslcert)`;
  if (code.startsWith('ERR_SSL_'))
    return 'the connection cannot be encrypted; the server may want a certificate (sslcert)';
  if (error instanceof Error && error.message === withoutTls)
    return 'the server does not offer TLS, and sslmode asks for it';
  return null;
};

const causes = function* (error: unknown): Generator<unknown> {
  for (let at = error; at !== undefined && at !== null; at = at instanceof Error ? at.cause : null) yield at;
};

/** The driver's own words stay in the cause: they may hold what nobody is to see. */
export const openFailure = (server: ServerAddress, error: unknown): unknown => {
  const cause = error instanceof AcpError ? error.cause : error;
  const failure = classifyPostgres(cause);
  const ofTls = [...causes(cause)].map((one) => tlsReason(server, one)).find((reason) => reason !== null);
  const refusal = cause instanceof pg.DatabaseError ? refusals[cause.code ?? ''] : undefined;
  const reason =
    ofTls ??
    refusal ??
    (failure === null ? (cause instanceof pg.DatabaseError ? `it answers ${cause.code}` : null) : reasons[failure]);
  if (reason === null) return error;
  return new AcpError('store-unavailable', `The store ${addressText(server)} cannot be opened: ${reason}.`, { cause });
};
