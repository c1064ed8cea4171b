import { statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import process from 'node:process';
import type { AppDescription } from '../../app.ts';
import { type Client, createClient } from '../../client/client.ts';
import { inProcessTransport } from '../../client/in-process-transport.ts';
import { AcpError } from '../../contract/errors.ts';
import type { LoadedConfig } from '../../core/config/index.ts';
import { providerConnections } from '../../core/config/provider-connections.ts';
import { version } from '../../core/version.ts';
import type { StoreStatus } from '../../db/maintenance.ts';
import type { ServerStatus } from '../../db/server-maintenance.ts';
import { createStyle } from '../../text/style.ts';
import { type Owner, servingAddress } from '../connect.ts';
import { reportError } from '../output/error-report.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';
import type { Finding, FindingStatus } from './finding.ts';
import { providerFindings } from './provider-health.ts';
import { reachFindings } from './reachability.ts';
import { runningServiceFindings } from './running-service.ts';

const finding = (status: FindingStatus, check: string, message: string): Finding => ({ status, check, message });

const megabyte = 1_048_576;
// Below the first a busy service has days, below the second its next checkpoint may fail.
const lowDiskBytes = 1024 * megabyte;
const noDiskBytes = 100 * megabyte;

const failureText = (error: unknown): string =>
  reportError(error)
    .text(createStyle(false))
    .replace(/^error: /, '');

const size = (bytes: number): string =>
  bytes >= 1024 * megabyte ? `${(bytes / 1024 / megabyte).toFixed(1)} GiB` : `${(bytes / megabyte).toFixed(1)} MiB`;

const configFindings = async ({ file, warnings }: LoadedConfig): Promise<Finding[]> => {
  const { describeProblems } = await import('../../core/config/index.ts');
  return [
    finding('ok', 'config', file ?? 'no file; defaults and variables'),
    ...warnings.map((warning) => finding('warn', 'config', describeProblems([warning]).trim())),
  ];
};

const encryptionFinding = ({ values: { Service } }: LoadedConfig): Finding => {
  const { ActiveKeyId, Keys } = Service.AtRest;
  const former = Object.keys(Keys).filter((id) => id !== ActiveKeyId);
  const reads = former.length === 0 ? '' : `; former keys: ${former.join(', ')}`;
  if (ActiveKeyId === null) return finding('ok', 'encryption', `off: new content is stored in plain${reads}`);
  return finding('ok', 'encryption', `new content is encrypted with key "${ActiveKeyId}"${reads}`);
};

/** Content that nobody can read: its key was taken out of the configuration. */
const lostKeysFinding = (keyIds: readonly string[]): Finding => {
  const names = keyIds.map((id) => `"${id}"`).join(', ');
  const [keys, are] = keyIds.length === 1 ? ['key', 'is'] : ['keys', 'are'];
  return finding(
    'fail',
    'encryption',
    `stored content is under the ${keys} ${names}, which ${are} not in Service:AtRest:Keys: it cannot be read\n\`acp db reencrypt --dry-run\` counts what is under which key`,
  );
};

const ownerFinding = ({ owner }: StoreStatus): Finding => {
  if (owner === null) return finding('ok', 'owner', 'nobody serves this store');
  const who = owner.pid === null ? 'another process' : `process ${owner.pid}`;
  return finding('ok', 'owner', owner.url === null ? `${who} works on it` : `${who} serves it at ${owner.url}`);
};

const migrationFinding = (
  { applied, pending }: Pick<StoreStatus, 'applied' | 'pending'>,
  appliesItself: boolean,
): Finding => {
  if (pending.length === 0) return finding('ok', 'migrations', `${applied.length} applied, none pending`);
  const names = pending.join(', ');
  return appliesItself
    ? finding('ok', 'migrations', `${pending.length} pending, applied at the next start: ${names}`)
    : finding('warn', 'migrations', `${pending.length} pending, run \`acp db migrate\`: ${names}`);
};

/** A store of an earlier version, or one that was copied, may be open to others; new ones are not. */
const modeFindings = function* (path: string): Generator<Finding> {
  // Windows has no such modes.
  if (process.getuid === undefined) return;
  const mode = statSync(path).mode & 0o777;
  if ((mode & 0o077) !== 0)
    yield finding('warn', 'store', `others may open it (mode ${mode.toString(8)})\n\`chmod 600 ${path}\` closes it`);
};

/** Free space where the store is; of a folder that is not made yet, in the nearest one above it. */
const diskFinding = async (path: string): Promise<Finding> => {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      const { bavail, bsize } = await statfs(folder);
      const free = bavail * bsize;
      const status = free < noDiskBytes ? 'fail' : free < lowDiskBytes ? 'warn' : 'ok';
      return finding(status, 'disk', `${size(free)} free at ${folder}`);
    } catch (error) {
      if (folder === dirname(folder)) return finding('warn', 'disk', failureText(error));
    }
  }
};

const libraryFindings = async function* (): AsyncGenerator<Finding> {
  const { libraryVersions } = await import('../../db/sqlite/open.ts');
  const { sqlite, vector } = libraryVersions();
  yield finding('ok', 'libraries', `SQLite ${sqlite}, sqlite-vec ${vector}`);
  const { avoidedFolder } = await import('../../core/files/asset-extraction.ts');
  const reason = avoidedFolder();
  if (reason !== null)
    yield finding('warn', 'libraries', `unpacked to a private folder at every start, since ${reason}`);
};

// Leases last for seconds, and go by the server's clock; logs and records go by this machine's.
const clockBoundMs = 2000;

const serverFindings = function* (
  config: LoadedConfig,
  status: ServerStatus,
  lostKeys: readonly string[],
): Generator<Finding> {
  const { address, schema, serverVersion, totalBytes, processes, connections, isStandby, clockAheadMs } = status;
  const { Postgres } = config.values.Service.Persistence;
  yield finding('ok', 'store', `${address}, schema ${schema} (PostgreSQL ${serverVersion}, ${size(totalBytes)})`);
  if (isStandby) yield finding('fail', 'store', 'the server is a standby and takes no writes');
  if (status.unfinishedMove !== null)
    yield finding('fail', 'store', `the target of a move from ${status.unfinishedMove.source} that is not finished`);
  yield encryptionFinding(config);
  if (lostKeys.length > 0) yield lostKeysFinding(lostKeys);
  yield finding('ok', 'processes', processes === 1 ? '1 serves this store' : `${processes} serve this store`);
  // One more of them has to fit.
  const most = (processes + 1) * Postgres.MaxConnections;
  const fits = most > connections.limit ? 'warn' : 'ok';
  yield finding(
    fits,
    'database',
    `${connections.used} of ${connections.limit} connections are in use; ${processes + 1} processes may take ${most} (Postgres:MaxConnections)`,
  );
  const isOff = Math.abs(clockAheadMs) > clockBoundMs;
  yield finding(isOff ? 'warn' : 'ok', 'clock', `the server's is ${clockAheadMs} ms ahead of this machine's`);
  yield migrationFinding(status, Postgres.AutoApplyMigrations);
};

const storeFindings = async function* (session: Session, config: LoadedConfig): AsyncGenerator<Finding> {
  const { Persistence } = config.values.Service;
  if (Persistence.Provider === 'Memory') {
    yield finding('warn', 'store', 'in memory: nothing is kept when the service ends');
    return;
  }
  const [{ storeStatus }, { serverPlace, serverStatus }, { absentKeys }, { storeOptions }, { NoStoreError }] =
    await Promise.all([
      import('../../db/maintenance.ts'),
      import('../../db/server-maintenance.ts'),
      import('../../db/protection/absent-keys.ts'),
      import('../../db/store-options.ts'),
      import('../../db/store-failure.ts'),
    ]);
  const options = storeOptions(config.values, session.cwd);
  const place = serverPlace(options);
  if (place !== null) {
    const status = await serverStatus(options, place).catch((error: unknown) => {
      if (error instanceof NoStoreError) return null;
      throw error;
    });
    if (status === null) {
      yield finding('ok', 'store', `${place.address}, schema ${place.schema} (is made at the first start)`);
      yield encryptionFinding(config);
    } else yield* serverFindings(config, status, await absentKeys(options));
    return;
  }
  const status = await storeStatus(options);
  const state = status.exists
    ? `${size(status.totalBytes)}, write-ahead log ${size(status.walBytes)}`
    : 'is made at the first start';
  yield finding('ok', 'store', `${status.path} (${state})`);
  if (status.exists) yield* modeFindings(status.path);
  yield encryptionFinding(config);
  // Before its migrations a store may lack tables and columns.
  const lost = status.exists && status.pending.length === 0 ? await absentKeys(options) : [];
  if (lost.length > 0) yield lostKeysFinding(lost);
  yield ownerFinding(status);
  yield migrationFinding(status, Persistence.Sqlite.AutoApplyMigrations);
  yield await diskFinding(status.path);
};

/** How far scripts are kept together, where they may run at all. */
const scriptFinding = async ({ values: { Host, Service } }: LoadedConfig): Promise<Finding> => {
  if (!Host.SkillScripts.Register) return finding('ok', 'scripts', 'off (Host:SkillScripts:Register)');
  const { describeIsolation, findIsolation } = await import('../../features/skills/index.ts');
  const isolation = await findIsolation();
  const isRequired = Service.Skills.Scripts.Isolation === 'Required';
  return finding(isolation === null ? (isRequired ? 'fail' : 'warn') : 'ok', 'scripts', describeIsolation(isolation));
};

const listed = (check: string, names: readonly string[], none: string): Finding =>
  finding('ok', check, names.length === 0 ? none : names.join(', '));

// A compatible endpoint may ask for no key, and a module may have that of Azure.
const keyless: readonly string[] = ['compatible', 'azure', 'scripted'];

/** The section of a provider that lacks the key which it needs; null: it has one, or needs none. */
const sectionWithoutKey = (name: string, kind: string, { values }: LoadedConfig) =>
  keyless.includes(kind)
    ? null
    : (providerConnections(values).find(({ names, apiKey }) => names.includes(name) && apiKey === null) ?? null);

const partFindings = async function* (
  { providers, tools, modules, codeAgents }: AppDescription,
  config: LoadedConfig,
  client: Client,
): AsyncGenerator<Finding> {
  if (providers.length === 0)
    yield finding('warn', 'providers', 'none; no agent can run until one is set up under Service:Providers');
  const asked = new Map<string, string>();
  for (const { name, kind } of providers) {
    const script = config.values.Service.Providers.Scripted[name]?.File;
    const section = sectionWithoutKey(name, kind, config);
    if (section !== null) {
      // A section may make several providers: one finding stands for all.
      if (section.names[0] === name)
        yield finding('warn', 'provider', `${name} (${kind}) has no ApiKey; its runs will fail`);
    } else if (script !== undefined) yield finding('ok', 'provider', `${name} (${kind}): ${script}`);
    else asked.set(name, `${name} (${kind})`);
  }
  if (asked.size > 0) yield* await providerFindings(client, asked);
  yield listed('tools', tools, 'none');
  yield listed('modules', modules, 'none');
  yield listed('agents', codeAgents, 'none defined in code');
};

const activeKeysOf = async (session: Session, { values }: LoadedConfig): Promise<number> => {
  if (values.Service.Persistence.Provider === 'Memory') return 0;
  const [{ countActiveKeys }, { storeOptions }] = await Promise.all([
    import('../../db/maintenance.ts'),
    import('../../db/store-options.ts'),
  ]);
  return countActiveKeys(storeOptions(values, session.cwd), Date.now());
};

/** The service that runs on the configured store; null: none does, or that is unknown, which another check reports. */
const ownerOf = async (session: Session): Promise<Owner | null> => {
  try {
    return await servingAddress(session);
  } catch (error) {
    if (error instanceof AcpError) return null;
    throw error;
  }
};

/**
 * Asks the service that runs here. Without one, builds it in memory: providers, scripts, modules, tools and agents are read, and
 * the store is left alone.
 */
const serviceFindings = async function* (session: Session, config: LoadedConfig): AsyncGenerator<Finding> {
  yield await scriptFinding(config);
  const owner = await ownerOf(session);
  if (owner !== null) {
    yield* runningServiceFindings(owner, failureText);
    return;
  }
  const globals = { ...session.globals, set: [...session.globals.set, 'Service:Persistence:Provider=Memory'] };
  const [inMemory, { createApp }, { silentLogger }] = await Promise.all([
    readConfig({ ...session, globals }),
    import('../../app.ts'),
    import('../../core/logger.ts'),
  ]);
  const app = await createApp({ config: inMemory, mode: 'local', log: silentLogger, cwd: session.cwd });
  try {
    const description = app.describe();
    const transport = inProcessTransport(app.dispatch, app.localCaller, async () => undefined);
    yield* partFindings(description, config, createClient(transport));
    yield* reachFindings({ config, access: description.access, activeKeys: await activeKeysOf(session, config) });
  } finally {
    await app.close();
  }
};

/** Whether tokens could be checked: the issuer is asked for what the service would ask it for. */
const issuerFindings = async function* (_session: Session, { values }: LoadedConfig): AsyncGenerator<Finding> {
  const { Issuer } = values.Host.Oidc;
  if (Issuer === null) return;
  const { inspectIssuer } = await import('../../features/security/index.ts');
  try {
    const { address, kinds } = await inspectIssuer(Issuer);
    const count = kinds.length === 1 ? '1 key' : `${kinds.length} keys`;
    const status = kinds.length === 0 ? 'fail' : 'ok';
    yield finding(
      status,
      'issuer',
      `${Issuer} publishes ${count} at ${address}${kinds.map((kind) => `\n${kind}`).join('')}`,
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    yield finding('fail', 'issuer', `${Issuer}: no token can be checked, since its keys cannot be read: ${reason}`);
  }
};

const namedServiceFindings = async function* (session: Session): AsyncGenerator<Finding> {
  try {
    const service = await servingAddress(session);
    if (service !== null) yield* runningServiceFindings(service, failureText);
  } catch (error) {
    yield finding('fail', 'service', failureText(error));
  }
};

/** Parts that the doctor does not try: other commands do, or a try would have effects. */
const untried = (isRemote: boolean): Finding[] => [
  ...(isRemote
    ? [
        finding(
          'skip',
          'config',
          'not tried: files, store, disk and network of the service; run `acp doctor` where it runs',
        ),
      ]
    : []),
  finding('skip', 'mcp', 'MCP servers are not tried: `acp mcp doctor NAME` tries one'),
  finding('skip', 'calls', 'tools, webhooks and agents of others are not called, since that has effects'),
];

/** What a service here would run on. A check that fails does not keep the others from being made. */
export const runDiagnosis = async function* (session: Session): AsyncGenerator<Finding> {
  yield finding('ok', 'version', `acp ${version}, Node ${process.versions.node}, ${process.platform}-${process.arch}`);
  const { url = session.environment['ACP_URL'] ?? '' } = session.globals;
  if (url !== '') {
    // The settings here are those of another service, or of none.
    yield* namedServiceFindings(session);
    yield* untried(true);
    return;
  }
  let config: LoadedConfig;
  try {
    config = await readConfig(session);
  } catch (error) {
    yield finding('fail', 'config', failureText(error));
    return;
  }
  yield* await configFindings(config);
  for (const [check, findings] of [
    ['libraries', libraryFindings],
    ['store', storeFindings],
    ['service', serviceFindings],
    ['issuer', issuerFindings],
  ] as const)
    try {
      yield* findings(session, config);
    } catch (error) {
      yield finding('fail', check, failureText(error));
    }
  yield* untried(false);
};
