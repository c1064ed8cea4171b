import { readFile } from 'node:fs/promises';
import { type Client, createClient } from '../client/client.ts';
import { httpTransport } from '../client/http-transport.ts';
import { inProcessTransport } from '../client/in-process-transport.ts';
import type { Transport } from '../client/transport.ts';
import { AcpError } from '../contract/errors.ts';
import type { LoadedConfig } from '../core/config/index.ts';
import { version } from '../core/version.ts';
import { storeNote } from './output/store-note.ts';
import { readConfig } from './read-config.ts';
import type { Connection, Session, StoreAccess } from './session.ts';

/** What decides which service a command talks to. */
export type Target = Pick<Session, 'globals' | 'environment' | 'cwd'>;

/** How a store is opened where no service is found, and where that is reported. */
interface LocalAccess {
  readonly access: StoreAccess;
  readonly note: (text: string) => void;
}

/** The token of `--token-file`, else of ACP_TOKEN. There is no option for the token itself: command lines are public. */
const readToken = async ({ globals, environment }: Target): Promise<string | undefined> => {
  if (globals.tokenFile === undefined) return environment['ACP_TOKEN'] || undefined;
  let text: string;
  try {
    text = await readFile(globals.tokenFile, 'utf8');
  } catch (cause) {
    throw new AcpError('validation-failed', `The token file ${globals.tokenFile} cannot be read.`, { cause });
  }
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new AcpError('validation-failed', `The token file ${globals.tokenFile} holds no single token.`);
  return token;
};

const overHttp = (url: string, token: string | undefined): Transport =>
  httpTransport({ url, token, userAgent: `acp/${version}` });

/**
 * Says on what the command works. Throws `store-missing` where a store would be made without a request for one: without a
 * configuration file the folder, or a misspelt variable, is probably the wrong one.
 */
const announceStore = async (config: LoadedConfig, { cwd }: Target, { access, note }: LocalAccess): Promise<void> => {
  const [{ isThere }, { storeOptions }, { storeName }] = await Promise.all([
    import('../db/maintenance.ts'),
    import('../db/store-options.ts'),
    import('../db/store-place.ts'),
  ]);
  const options = storeOptions(config.values, cwd);
  const name = storeName(options);
  if (access === 'work' && config.file !== null) return note(storeNote(name));
  if (await isThere(options)) return note(storeNote(name, access === 'work' ? 'works on' : 'reads'));
  if (config.file === null && access !== 'check')
    throw new AcpError(
      'store-missing',
      `No service was named, none runs here, and there is neither a service.yaml nor a store (${name}).`,
    );
  note(`There is no store at ${name} yet: this command compares with an empty one.`);
};

/** Opens the store in this process, through the same pipeline as the service. */
const inProcess = async (target: Target, local: LocalAccess): Promise<Pick<Connection, 'transport' | 'local'>> => {
  const config = await readConfig(target);
  await announceStore(config, target, local);
  const [{ createApp }, { silentLogger }] = await Promise.all([import('../app.ts'), import('../core/logger.ts')]);
  const mode = local.access === 'work' ? 'local' : 'preview';
  const app = await createApp({ config, mode, log: silentLogger, cwd: target.cwd });
  // Services on a server are at work on the same store, whoever opens it beside them.
  const isAlone = config.values.Service.Persistence.Provider !== 'Postgres';
  return { transport: inProcessTransport(app.dispatch, app.localCaller, () => app.close()), local: isAlone };
};

export interface Owner {
  readonly url: string;
  readonly token: string | undefined;
}

/** Variables and files that the service has need not be there for whoever asks it. */
const serviceHint =
  'A service that runs is asked without this configuration: name it with --url, and give its token by ACP_TOKEN or --token-file.';

const hinted = (error: unknown): never => {
  if (error instanceof Error && error.name === 'ConfigError') throw Object.assign(error, { hint: serviceHint });
  throw error;
};

/** The serving process that owns the configured store, or null when there is none and the store may be opened here. */
const findOwner = async (target: Target): Promise<Owner | null> => {
  const config = await readConfig(target).catch(hinted);
  const { Provider } = config.values.Service.Persistence;
  if (Provider === 'Memory')
    throw new AcpError('cannot-connect', 'A memory store exists only inside the process that serves it.');
  const [{ readOwner }, { storeOptions }, { storePlace }] = await Promise.all([
    import('../db/sqlite/owner-lock.ts'),
    import('../db/store-options.ts'),
    import('../db/store-place.ts'),
  ]);
  const place = storePlace(storeOptions(config.values, target.cwd));
  const owner = place.provider === 'Sqlite' ? await readOwner(place.path) : null;
  // Another command at work on the file is waited for by opening it, which also names it when it takes too long.
  if (owner === null || owner.url === null) return null;
  // Who can read the configuration may use its token; one that was given goes first.
  return { url: owner.url, token: config.values.Host.AuthToken ?? undefined };
};

/**
 * The token of the configured service, where the address is the one that it serves now. The lock names who that is: a
 * program that listens there in its place does not get the token.
 */
const ownToken = async (target: Target, url: string): Promise<string | undefined> => {
  const asked = URL.parse(url);
  const { isLoopbackName } = await import('../core/config/index.ts');
  if (asked === null || !isLoopbackName(asked.hostname)) return undefined;
  let owner: Owner | null;
  try {
    owner = await findOwner(target);
  } catch {
    // Without a configuration that can be read here the address stands for itself, as that of another machine does.
    return undefined;
  }
  return owner !== null && new URL(owner.url).origin === asked.origin ? owner.token : undefined;
};

/** A service by its address, else the owner of the configured store; null where the store has none. */
export const servingAddress = async (target: Target): Promise<Owner | null> => {
  const token = await readToken(target);
  const url = target.globals.url ?? target.environment['ACP_URL'];
  if (url !== undefined && url !== '') return { url, token: token ?? (await ownToken(target, url)) };
  const owner = await findOwner(target);
  return owner === null ? null : { url: owner.url, token: token ?? owner.token };
};

const servingTransport = async (target: Target): Promise<Transport | null> => {
  const serving = await servingAddress(target);
  return serving === null ? null : overHttp(serving.url, serving.token);
};

const reach = async (target: Target, local: LocalAccess): Promise<Pick<Connection, 'transport' | 'local'>> => {
  const serving = await servingTransport(target);
  if (serving !== null) return { transport: serving, local: false };
  try {
    return await inProcess(target, local);
  } catch (error) {
    if (!(error instanceof AcpError) || error.code !== 'store-unavailable') throw error;
    // A service that was about to start has the store by now, and says where it listens.
    const started = await servingTransport(target);
    if (started === null) throw error;
    return { transport: started, local: false };
  }
};

/** A service by its address, else by the lock of the configured store, else in this process. */
export const connect = async <T>(
  target: Target,
  work: (connection: Connection) => Promise<T>,
  local: LocalAccess,
): Promise<T> => {
  const { transport, local: isLocal } = await reach(target, local);
  try {
    return await work({ client: createClient(transport), transport, local: isLocal });
  } finally {
    await transport.close();
  }
};

/** The same with a service that runs already; null, and no store opened, where there is none. */
export const connectServing = async <T>(target: Target, work: (client: Client) => Promise<T>): Promise<T | null> => {
  const transport = await servingTransport(target);
  if (transport === null) return null;
  try {
    return await work(createClient(transport));
  } finally {
    await transport.close();
  }
};
