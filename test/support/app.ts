import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { type App, createApp } from '../../src/app.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { httpTransport } from '../../src/client/http-transport.ts';
import { inProcessTransport } from '../../src/client/in-process-transport.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { CallerRequest } from '../../src/core/caller/caller-request.ts';
import { loadConfig } from '../../src/core/config/index.ts';
import type { ContentCipher } from '../../src/core/content-cipher.ts';
import type { Logger } from '../../src/core/logger.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import type { ToolAuthorizer, ToolDefinition } from '../../src/engine/tools/tool.ts';
import type { HostModule } from '../../src/features/modules/index.ts';
import { createService } from '../../src/http/service.ts';
import { calmZone } from './calm-zone.ts';
import { type TestClock, testClock } from './clock.ts';
import { type Fault, faults } from './faults.ts';
import { type ProviderSimulator, type SimulatorOptions, startProviderSimulator } from './providers/simulator.ts';
import { defaultStore, durableStores, ownedStores, storesInFile, testStores } from './store.ts';
import type { StoreAside, TestStore } from './test-store.ts';

export type TransportName = 'in process' | 'http';

type Settings = Readonly<Record<string, unknown>>;

/** What differs from a service with nothing configured. */
export interface AppSetup {
  /** Settings below `Service:`, as in a configuration file. */
  readonly service?: Settings;
  /** Settings below `Host:`. */
  readonly host?: Settings;
  /** Rules of the scripted provider `demo`. */
  readonly script?: readonly Settings[];
  /** Adds the providers `openai`, `openai-responses`, `local`, `anthropic`, `google` and `azure-openai`, all simulated. */
  readonly simulator?: SimulatorOptions;
  readonly tools?: readonly ToolDefinition[];
  readonly authorizer?: ToolAuthorizer;
  /** Other members of the host's module. */
  readonly module?: HostModule;
  /** Agents to create; each one's model is `demo` unless it names another. */
  readonly agents?: readonly AgentSetup[];
  /** Bearer token or API key of the client; default: none, a caller of this machine. */
  readonly token?: string;
  /** Default: one that goes on by itself. */
  readonly clock?: TestClock;
  /** Default: a store on a server goes by the clock, too, so that a test moves the time of all. */
  readonly storeTime?: 'Clock' | 'Server';
  /** A folder that an earlier app used: the store is opened again. */
  readonly folder?: string;
}

export interface AgentSetup {
  readonly name: string;
  readonly [member: string]: unknown;
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export interface TestApp {
  readonly transport: TransportName;
  readonly app: App;
  readonly client: Client;
  /** Base address; empty in process. */
  readonly url: string;
  readonly folder: string;
  readonly simulator: ProviderSimulator;
  readonly log: readonly LogLine[];
  /** The time of the service. */
  readonly clock: TestClock;
  /** A client with another credential. */
  clientFor(token: string): Promise<Client>;
  /** The host itself as a caller in this tenant, whoever the callers of the test are. */
  inTenant(tenantId: string): Client;
  createAgent(agent: AgentSetup): Promise<void>;
  /** What a durable store can be made to do, and all that it has. */
  readonly store: {
    /** Writes of this kind fail until the returned function is called. */
    refuse(what: Fault): Promise<() => Promise<void>>;
    /** The store answers them as one that is away would, until the returned function is called: on PostgreSQL. */
    lose(what: Fault): Promise<() => Promise<void>>;
    /** What a process keeps a copy of can be neither read nor written until the returned function is called. */
    takeAway(truth: string): Promise<() => Promise<void>>;
    /** Where the bytes of attachments lie, as paths below all of them. */
    contents(): Promise<readonly string[]>;
    /** Everything that is stored, as text. */
    text(): Promise<string>;
    /** As another process has it: for the faces that features have of it. Default: with no key. */
    open(cipher?: ContentCipher): RootStorage;
    /** How many rows of this kind there are. */
    count(what: Fault): Promise<number>;
    /** What there is of this kind, where no face of a feature tells it. */
    stored(what: Fault): Promise<readonly Readonly<Record<string, unknown>>[]>;
    /** How many values of each column, as `table.column`, are encrypted under this key. */
    sealed(keyId: string): Promise<Readonly<Record<string, number>>>;
    /** How many rows each table has that has any. */
    counts(): Promise<Readonly<Record<string, number>>>;
  };
  /** Also called when the test ends. */
  close(): Promise<void>;
}

export type OpenApp = (setup?: AppSetup) => Promise<TestApp>;

const sharedKey = Symbol.for('acp.test-modules');

const merge = (left: Settings, right: Settings): Settings => {
  const merged: Record<string, unknown> = { ...left };
  for (const [name, value] of Object.entries(right)) {
    const below = merged[name];
    const both = [below, value].every((part) => typeof part === 'object' && part !== null && !Array.isArray(part));
    merged[name] = both ? merge(below as Settings, value as Settings) : value;
  }
  return merged;
};

/** The file of a module whose content lives in this process: tools are closures of their test. */
const writeModule = (folder: string, setup: AppSetup): string[] => {
  if (setup.tools === undefined && setup.authorizer === undefined && setup.module === undefined) return [];
  const shared = globalThis as unknown as Record<symbol, Map<string, unknown> | undefined>;
  shared[sharedKey] ??= new Map();
  const file = join(folder, `tools-${shared[sharedKey].size}.mjs`);
  shared[sharedKey].set(file, {
    ...setup.module,
    tools: setup.tools ?? [],
    ...(setup.authorizer === undefined ? {} : { toolAuthorizer: setup.authorizer }),
  });
  const source = `export default globalThis[Symbol.for('acp.test-modules')].get(${JSON.stringify(file)});\n`;
  writeFileSync(file, source);
  return [file];
};

const simulatedProviders = (url: string): Settings => ({
  OpenAI: { ApiKey: 'sk-test-0123456789', Endpoint: `${url}/v1` },
  Compatible: { local: { Endpoint: `${url}/v1` } },
  Anthropic: { ApiKey: 'sk-test-0123456789', Endpoint: url, MaxRetries: 0 },
  Google: { ApiKey: 'sk-test-0123456789', Endpoint: url },
  AzureOpenAI: { ApiKey: 'sk-test-0123456789', Endpoint: url },
});

const writeConfig = (
  folder: string,
  setup: AppSetup,
  store: TestStore,
  simulator: ProviderSimulator | null,
  zone: string,
): string => {
  const providers = simulator === null ? {} : simulatedProviders(simulator.url);
  writeFileSync(join(folder, 'script.yaml'), stringify({ rules: setup.script ?? [{ reply: { text: 'Hello.' } }] }));
  const Service = merge(
    // Without a time to drain, the end of a test also ends what it left running.
    {
      Providers: { Scripted: { demo: { File: './script.yaml' } }, ...providers },
      Drain: { Timeout: '0s' },
      // Tests fail on purpose, many in a row.
      CircuitBreaker: { FailureThreshold: 1000 },
      Quotas: { TimeZone: zone },
    },
    merge(store.settings(folder), setup.service ?? {}),
  );
  const Host = merge({ Url: 'http://127.0.0.1:0', Modules: writeModule(folder, setup) }, setup.host ?? {});
  const file = join(folder, 'service.yaml');
  writeFileSync(file, stringify({ Service, Host }));
  return file;
};

const recordingLog = (lines: LogLine[]): Logger => {
  const at = (level: LogLine['level']) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ level, fields, message });
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
};

const localRequest = (token: string): CallerRequest => {
  const headers: Readonly<Record<string, string>> = { host: '127.0.0.1', authorization: `Bearer ${token}` };
  return {
    peerAddress: '127.0.0.1',
    method: 'POST',
    httpVersion: '1.1',
    path: '/',
    header: (name) => headers[name],
    headerCount: (name) => (headers[name] === undefined ? 0 : 1),
    hasHeader: (isSuch) => Object.keys(headers).some(isSuch),
  };
};

interface Running {
  readonly app: App;
  readonly url: string;
  /** Null: the caller that the transport has by itself. */
  transport(token: string | null): Promise<Transport>;
}

const startOver: Record<TransportName, (options: Parameters<typeof createService>[0]) => Promise<Running>> = {
  'in process': async (options) => {
    const app = await createApp({ ...options, mode: 'serve' });
    app.started('http://127.0.0.1:0');
    return {
      app,
      url: '',
      transport: async (token) =>
        inProcessTransport(
          app.dispatch,
          token === null ? app.localCaller : await app.authenticate(localRequest(token)),
        ),
    };
  },
  http: async (options) => {
    const service = await createService(options);
    const { url } = await service.listen();
    return {
      app: service,
      url,
      transport: async (token) => httpTransport(token === null ? { url } : { url, token }),
    };
  },
};

const storeAside = (aside: StoreAside | undefined, closeLater: (storage: RootStorage) => void): TestApp['store'] => {
  const there = (): StoreAside => {
    if (aside === undefined) throw new Error('This store is not to be reached from aside.');
    return aside;
  };
  return {
    refuse: (what) => there().refuse(faults[what]),
    async lose(what) {
      const { lose } = there();
      if (lose === null) throw new Error('This store cannot be away for a part of its writes.');
      return lose(faults[what]);
    },
    takeAway: (truth) => there().takeAway(truth),
    open(cipher) {
      const storage = there().open(cipher);
      closeLater(storage);
      return storage;
    },
    contents: () => there().contents(),
    text: async () => JSON.stringify(await there().dump()),
    stored: async (what) => (await there().dump())[faults[what]] ?? [],
    count: async (what) => (await there().dump())[faults[what]]?.length ?? 0,
    async sealed(keyId) {
      const counts: Record<string, number> = {};
      for (const [table, rows] of Object.entries(await there().dump()))
        for (const [column, value] of rows.flatMap((row) => Object.entries(row)))
          if (typeof value === 'string' && value.startsWith(`acp:sealed:1:${keyId}:`))
            counts[`${table}.${column}`] = (counts[`${table}.${column}`] ?? 0) + 1;
      return counts;
    },
    counts: async () =>
      Object.fromEntries(
        Object.entries(await there().dump()).flatMap(([table, rows]) =>
          rows.length === 0 ? [] : [[table, rows.length]],
        ),
      ),
  };
};

/** What a scenario runs on: a caller's way to the service, and the service's store. */
interface Ground {
  readonly transport: TransportName;
  readonly store: TestStore;
}

/** How many services of a test have a folder. */
const users = new Map<string, number>();

/** The zone of the quotas of each folder: whoever opens it again counts by the same days. */
const zones = new Map<string, string>();
const zoneOf = (folder: string, clock: TestClock): string => {
  const zone = zones.get(folder) ?? calmZone(clock.now());
  zones.set(folder, zone);
  return zone;
};

/** The last one that leaves a folder removes it with its store. */
const leave = async (folder: string, store: TestStore): Promise<void> => {
  const left = (users.get(folder) ?? 0) - 1;
  users.set(folder, left);
  if (left > 0) return;
  users.delete(folder);
  zones.delete(folder);
  await store.remove(folder);
  rmSync(folder, { recursive: true, force: true });
};

/** Opens the service as `acp serve` does, in a folder of its own; everything is closed when the test ends. */
const openOn = async (t: TestContext, { transport: name, store }: Ground, setup: AppSetup = {}): Promise<TestApp> => {
  const folder = setup.folder ?? mkdtempSync(join(tmpdir(), 'acp-test-'));
  mkdirSync(join(folder, 'data'), { recursive: true });
  // What is open is known from here on, so that a start that throws leaves nothing behind either.
  const opened: (() => Promise<void>)[] = [];
  let closing: Promise<void> | null = null;
  const closeAll = async (): Promise<void> => {
    for (const end of opened.toReversed()) await end();
  };
  const close = (): Promise<void> => {
    closing ??= closeAll();
    return closing;
  };
  users.set(folder, (users.get(folder) ?? 0) + 1);
  t.after(async () => {
    await close();
    await leave(folder, store);
  });
  const simulator = setup.simulator === undefined ? null : await startProviderSimulator(setup.simulator);
  if (simulator !== null) opened.push(() => simulator.close());
  const clock = setup.clock ?? testClock();
  const configPath = writeConfig(folder, setup, store, simulator, zoneOf(folder, clock));
  const log: LogLine[] = [];
  const config = loadConfig({ configPath, env: {}, cwd: folder });
  if (setup.service?.['Persistence'] === undefined) await store.make(folder, 'tables');
  const started = {
    config,
    log: recordingLog(log),
    cwd: folder,
    clock,
    storeTime: setup.storeTime ?? 'Clock',
  } as const;
  const running = await startOver[name](started);
  opened.push(() => running.app.close());
  const open = async (token: string | null): Promise<Client> => {
    const transport = await running.transport(token);
    opened.push(() => transport.close());
    return createClient(transport);
  };
  const client = await open(setup.token ?? null);
  const createAgent = async ({ name: agentName, ...rest }: AgentSetup): Promise<void> => {
    const body = { name: agentName, model: { provider: 'demo', model: 'demo-1' }, ...rest };
    await client.agents.create({ body });
  };
  for (const agent of setup.agents ?? []) await createAgent(agent);
  return {
    transport: name,
    app: running.app,
    client,
    url: running.url,
    folder,
    get simulator() {
      if (simulator === null) throw new Error('This app was opened without the simulator.');
      return simulator;
    },
    log,
    clock,
    clientFor: open,
    inTenant: (tenantId) =>
      createClient(inProcessTransport(running.app.dispatch, { ...running.app.localCaller, tenantId })),
    createAgent,
    store: storeAside(store.aside?.(folder), (storage) => opened.push(() => storage.close())),
    close,
  };
};

/** A service outside of a scenario, on the store that a service has by default. */
export const openApp = (t: TestContext, transport: TransportName, setup?: AppSetup): Promise<TestApp> =>
  openOn(t, { transport, store: defaultStore }, setup);

/** Every transport and every store is in one ground at least, and a scenario runs no oftener than that takes. */
const grounds = (transports: readonly TransportName[], stores: readonly TestStore[]): Ground[] => {
  const turn = <T>(list: readonly T[], index: number): T => list[index % list.length] as T;
  const size = Math.max(transports.length, stores.length);
  return Array.from({ length: size }, (_, index) => ({
    transport: turn(transports, index),
    store: turn(stores, index),
  }));
};

const transports: readonly TransportName[] = ['http', 'in process'];

type Scenario = (open: OpenApp, t: TestContext, transport: TransportName) => Promise<void>;

const scenario =
  (on: readonly Ground[]) =>
  (name: string, body: Scenario): void => {
    for (const ground of on)
      test(`${name} [${ground.transport}, ${ground.store.name}]`, (t) =>
        body((setup) => openOn(t, ground, setup), t, ground.transport));
  };

/** One scenario for callers in process and over HTTP and for every store: all get the same answers. */
export const forEachService = scenario(grounds(transports, testStores));

/**
 * The same where all is decided between the door and what the service calls, so that the store has no say: on the one that
 * a service has by default. What of it is stored is read elsewhere on every store.
 */
export const forEachDoor = scenario(grounds(transports, [defaultStore]));

/** The same for what a service leaves to the next one, on the stores that keep it. */
export const forEachDurableService = scenario(grounds(transports, durableStores));

/** The same for what the next owner of a store does about what a dead one left. */
export const forEachOwnedService = scenario(
  grounds(
    transports,
    ownedStores.filter(({ durable }) => durable),
  ),
);

/** The same for what a service leaves beside its store, on the stores that are a file. */
export const forEachServiceInFile = scenario(grounds(transports, storesInFile));

/** The same for what several services do to one store at the same time: each opens the folder of the first one. */
export const forEachSharedService = scenario(
  durableStores.flatMap((store): Ground[] => (store.inFile ? [] : [{ transport: 'http', store }])),
);

/** The same over HTTP, on every store: for a protocol that has no other transport. */
export const forEachHttpService = scenario(testStores.map((store): Ground => ({ transport: 'http', store })));

/** The same on the stores that outlive a service. */
export const forEachDurableHttpService = scenario(durableStores.map((store): Ground => ({ transport: 'http', store })));

/** The same over HTTP only, for what only a wire shows: headers, connections, bytes. */
export const overHttp = (name: string, body: (open: OpenApp, t: TestContext) => Promise<void>): void => {
  test(name, (t) => body((setup) => openApp(t, 'http', setup), t));
};
