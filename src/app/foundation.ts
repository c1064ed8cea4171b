import type { RoleDecision } from '../core/caller/role-decision.ts';
import { systemClock } from '../core/clock.ts';
import { ConfigError, type ConfigSource, type LoadedConfig } from '../core/config/index.ts';
import { loadModule } from '../core/files/load-module.ts';
import { newId as newIdAt } from '../core/ids.ts';
import { createInstanceState } from '../core/instance-state.ts';
import type { Logger } from '../core/logger.ts';
import { createLogger } from '../core/logger.ts';
import { openPreview } from '../db/open-for-reading.ts';
import { type OpenedStorage, openStorage } from '../db/open-storage.ts';
import type { OwnershipWait } from '../db/sqlite/owner-lock.ts';
import type { Storage } from '../db/storage.ts';
import { createStoreClock } from '../db/store-clock.ts';
import { storeOptions } from '../db/store-options.ts';
import { conventionalProvider, createRunListeners } from '../engine/record/index.ts';
import { createAuditLog } from '../features/audit/index.ts';
import { createStopsInForce } from '../features/emergency/index.ts';
import {
  hostAttribution,
  hostDeploymentCredential,
  hostLibrary,
  hostRoleDecision,
  hostRunAuthorization,
  type LateAudit,
  type LoadedModules,
  loadHostModules,
  missingRolePolicies,
} from '../features/modules/index.ts';
import type { StoreSharing } from '../features/platform/index.ts';
import { createSessionAccess } from '../features/sessions/index.ts';
import { loadHostTools } from '../features/tools/index.ts';
import { createModelProviders, type ModelProviders } from '../providers/models/index.ts';
import type { AppOptions } from './app-interface.ts';
import { answerLimits, modelProtection } from './options.ts';
import { countEgressRefusals, openTelemetry, protectionMetrics } from './telemetry.ts';

const policiesKey = 'Host:RequireRolePolicies';
const builtIn: ConfigSource = { kind: 'default' };

/** Null: the role claim of a token decides. Throws ConfigError when policies are required and one is missing. */
const roleDecision = (
  { values, sources }: LoadedConfig,
  { rolePolicies }: Pick<LoadedModules, 'rolePolicies'>,
  log: Pick<Logger, 'warn'>,
): RoleDecision | null => {
  if (!values.Host.RequireRolePolicies) return null;
  const missing = missingRolePolicies(rolePolicies);
  if (missing.length === 0) return hostRoleDecision(rolePolicies, log);
  const message = `expected a module with rolePolicies for ${missing.join(', ')}`;
  throw new ConfigError([
    { key: policiesKey, source: sources.get(policiesKey) ?? builtIn, code: 'missing-value', message },
  ]);
};

/** A command waits for a while. A service that restarts waits for its predecessor, and for commands as long as they live. */
const ownershipWait = (
  mode: AppOptions['mode'],
  log: Pick<Logger, 'info'>,
  signal: AbortSignal | undefined,
): OwnershipWait =>
  mode === 'local'
    ? { waitMs: 5000, yieldsToService: true }
    : {
        waitMs: 1000,
        onCommand: (pid) => log.info({ pid }, 'The service waits for the process that works on its store'),
        ...(signal === undefined ? {} : { signal }),
      };

/** What exists before the first feature: what the host brings, the open store, and the base of all features. */
export const createFoundation = async ({ config, mode, clock = systemClock, ...options }: AppOptions) => {
  const { Service, Host } = config.values;
  const reporting = await openTelemetry(config.values, options.log ?? createLogger(Host.LogLevel), mode === 'serve');
  const { log, telemetry } = reporting;
  const { now } = clock;
  const newId = (): string => newIdAt(now());
  const egressRefused = countEgressRefusals(telemetry);

  const modulesAudit: LateAudit = { trail: null };
  const modules = await loadHostModules(Host.Modules, (path) => loadModule(path, hostLibrary), modulesAudit);
  const providers: ModelProviders = createModelProviders(Service.Providers, {
    log: (entry) => log.warn({ ...entry }, 'A model provider failed'),
    deploymentCredential: hostDeploymentCredential(modules.deploymentCredential),
    protection: modelProtection(config.values),
    answerLimits: answerLimits(config.values),
    allowPrivateEndpoints: Service.Egress.AllowPrivateNetworkTargets,
    onEndpointRefusal: () => egressRefused('provider', 'connect'),
    observer: protectionMetrics(
      telemetry,
      (): ReadonlyMap<string, number> => providers.protection.open(),
      (name): string => conventionalProvider(providers.get(name) ?? { kind: 'compatible', name }),
    ),
    now,
  });
  const roles = roleDecision(config, modules, log);
  const authorization = hostRunAuthorization(modules.runAuthorization, log);
  const hostTools = await loadHostTools(config, modules, () => egressRefused('tool', 'connect'));

  const open = mode === 'preview' ? openPreview : openStorage;
  const opened: OpenedStorage = await open({
    ...storeOptions(config.values, options.cwd ?? process.cwd()),
    now,
    log,
    wait: ownershipWait(mode, log, options.stopping),
  });
  const storage: Storage = opened.storage;
  const audit = createAuditLog({ storage, telemetry, log, now, newId });
  modulesAudit.trail = audit;
  const storeTime = createStoreClock({
    clock,
    read: options.storeTime === 'Clock' ? null : storage.dialect.readTime,
    log,
  });
  const state = createInstanceState({ ownsStore: !opened.shared, clock, announcements: opened.announcements, log });
  const sharing: StoreSharing | null = opened.shared
    ? {
        staleState: state.stale,
        hearsOthers: () => !opened.announcements.deaf(),
        heldFor: () => opened.heldFor?.() ?? null,
        clockOffsetMs: storeTime.offsetMs,
        isClockOff: storeTime.isOff,
        replica: () => storage.dialect.replica?.state() ?? null,
        missingPartitions: () => storage.dialect.partitions?.missing() ?? [],
      }
    : null;
  // What nearly every feature needs; each takes what its own dependencies name.
  const base = {
    config: config.values,
    storage,
    /** True: other processes may write the same store. */
    isShared: opened.shared,
    /** Name of this process among those of the store. */
    processId: reporting.instanceId,
    announcements: opened.announcements,
    audit,
    authorization,
    owners: createSessionAccess(Service.SessionOwnership),
    listeners: createRunListeners(
      modules.eventListeners.map(({ value }) => value),
      log,
    ),
    attribution: hostAttribution(modules.attributionResolver, log),
    roles,
    prefix: Host.Prefix,
    lifecycle: { draining: false },
    state,
    stops: createStopsInForce(state, storage),
    telemetry,
    egressRefused,
    log,
    clock,
    /** Of what processes that share the store agree on: leases, places in line, what lapses for all of them. */
    storeClock: storeTime.clock,
    now,
    newId,
  };
  return { config, base, storeTime, sharing, opened, providers, modules, hostTools, reporting };
};

export type Foundation = Awaited<ReturnType<typeof createFoundation>>;
