import { readFileSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext } from 'node:tls';
import { AcpError } from '../../contract/errors.ts';

type TlsFiles = Readonly<Partial<Record<'sslrootcert' | 'sslcert' | 'sslkey', string>>>;

/** Where a server is, and who asks: what a connection is made of. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly ssl: ConnectionOptions | false;
  /** The files that TLS is made of, for people: what they name is in `ssl`. */
  readonly tlsFiles: TlsFiles;
  readonly connectTimeoutMs: number;
}

const defaultPort = 5432;
const defaultConnectTimeoutMs = 10_000;
const tlsFileNames = ['sslrootcert', 'sslcert', 'sslkey'] as const;
const isTlsFile = (name: string): name is keyof TlsFiles => tlsFileNames.some((one) => one === name);
const modes = ['disable', 'require', 'verify-ca', 'verify-full'];
const supported = ['host', 'port', 'user', 'password', 'dbname', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'].concat(
  'connect_timeout',
);

// The text may hold a password: it is never repeated.
const refuse = (reason: string): AcpError =>
  new AcpError('validation-failed', `The connection string of PostgreSQL cannot be used: ${reason}.`);

const fileAt = (path: string, parameter: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new AcpError('validation-failed', `The file of ${parameter} cannot be read: ${path}.`, { cause: error });
  }
};

/** What is no PEM would be passed over by the library of TLS, and every certificate refused later. */
const pemAt = (path: string, parameter: string): string => {
  const text = fileAt(path, parameter);
  if (/-----BEGIN [A-Z ]+-----/.test(text)) return text;
  throw refuse(`the file of ${parameter} is no PEM file: ${path}`);
};

const requirePair = (cert: string, key: string): void => {
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new AcpError('validation-failed', 'sslkey of the connection string is not the key of sslcert.', {
      cause: error,
    });
  }
};

/** TLS as libpq words it. A mode that falls back to plain text when somebody in between asks for it is refused. */
const tlsOf = (parameters: ReadonlyMap<string, string>): ConnectionOptions | false => {
  const mode = parameters.get('sslmode') ?? (parameters.has('sslrootcert') ? 'verify-full' : 'disable');
  if (!modes.includes(mode)) throw refuse(`sslmode is ${mode}, and supported are ${modes.join(', ')}`);
  if (mode === 'disable') return false;
  const [root, cert, key] = tlsFileNames.map((name) => {
    const path = parameters.get(name);
    return path === undefined ? undefined : pemAt(path, name);
  });
  if ((cert === undefined) !== (key === undefined)) throw refuse('sslcert and sslkey are needed together');
  if (cert !== undefined && key !== undefined) requirePair(cert, key);
  if (mode === 'verify-ca' && root === undefined) throw refuse('sslmode verify-ca needs sslrootcert');
  // With a root of its own, `require` verifies the chain, as libpq does for those who wrote it before there were modes.
  const chain = mode !== 'require' || root !== undefined;
  return {
    rejectUnauthorized: chain,
    ...(root !== undefined && { ca: root }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
};

const wholeNumber = (text: string, name: string): number => {
  if (!/^\d{1,6}$/.test(text)) throw refuse(`${name} is no number`);
  return Number(text);
};

/**
 * A connection URI as libpq writes it: `postgres://user:password@host:port/database?sslmode=verify-full`. Throws
 * `validation-failed` for one that has more than is supported; nothing of it is left out silently.
 */
export const parseConnectionString = (text: string): ServerAddress => {
  if (!/^postgres(ql)?:\/\//.test(text)) throw refuse('it does not begin with postgres://');
  let url: URL;
  try {
    // A host may be missing after a user: libpq has a parameter for the folder of a socket.
    url = new URL(text.replace(/^([^/]+:\/\/[^/?]*@)(?=[/?]|$)/, '$1localhost'));
  } catch {
    throw refuse('it is no URI with one host');
  }
  const parameters = new Map(url.searchParams);
  const unknown = [...parameters.keys()].find((name) => !supported.includes(name));
  if (unknown !== undefined) throw refuse(`its parameter ${unknown} is not supported`);
  const part = (name: string, value: string): string | undefined =>
    parameters.get(name) ?? (value === '' ? undefined : decodeURIComponent(value));
  const host = part('host', url.hostname.replace(/^\[(.*)\]$/, '$1')) ?? 'localhost';
  const timeout = parameters.get('connect_timeout');
  return {
    host,
    port: wholeNumber(part('port', url.port) ?? String(defaultPort), 'port'),
    user: part('user', url.username),
    password: part('password', url.password),
    database: part('dbname', url.pathname.slice(1)),
    ssl: host.startsWith('/') ? false : tlsOf(parameters),
    tlsFiles: Object.fromEntries([...parameters].filter(([name]) => isTlsFile(name))),
    connectTimeoutMs: timeout === undefined ? defaultConnectTimeoutMs : wholeNumber(timeout, 'connect_timeout') * 1000,
  };
};

/** For people and logs: without user and password. */
export const addressText = ({ host, port, database }: ServerAddress): string =>
  `postgres://${host.startsWith('/') ? encodeURIComponent(host) : host}:${port}/${database ?? ''}`;
