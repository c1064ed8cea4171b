import type { ApiKeyScope } from '../contract/authority.ts';
import { AcpError } from '../contract/errors.ts';
import { ConfigError, type LoadedConfig, remoteAccessProblem } from '../core/config/index.ts';
import type { Logger } from '../core/logger.ts';
import type { OpenedStorage } from '../db/open-storage.ts';
import type { LoadedModules } from '../features/modules/index.ts';

/** With pending migrations tables may be missing: nothing is recovered and nothing served but health and meta. */
export const storeReadiness = ({ pending }: Pick<OpenedStorage, 'pending'>) => ({
  ready: pending.length === 0,
  assertReady(): void {
    if (pending.length === 0) return;
    throw new AcpError('migrating', `The store waits for migrations (${pending.join(', ')}); run \`acp db migrate\`.`, {
      details: { retryAfterMs: 5000 },
    });
  },
});

/** Refuses a service that would offer an agent to others in whose runs somebody has to be asked. */
export const assertMayOffer = async (
  { sources }: LoadedConfig,
  { hindrances }: { hindrances(): Promise<readonly string[]> },
): Promise<void> => {
  const key = 'Host:A2A:Agents';
  const source = sources.get(key) ?? ({ kind: 'default' } as const);
  const problems = (await hindrances()).map(
    (why) => ({ key, source, code: 'invalid-value', message: `expected ${why}` }) as const,
  );
  if (problems.length > 0) throw new ConfigError(problems);
};

/** Settings that offer something to other systems, by the scope that those need. */
const openDoors = ({ A2A, McpServer, Traces }: LoadedConfig['values']['Host']) => ({
  ExternalInvoke: [
    ...(McpServer.Agents.length > 0 ? ['Host:McpServer:Agents'] : []),
    ...(McpServer.ControlPlane === 'Off' ? [] : ['Host:McpServer:ControlPlane']),
    ...(A2A.Agents.length > 0 ? ['Host:A2A:Agents'] : []),
  ],
  TracesWrite: Traces.Enabled ? ['Host:Traces:Enabled'] : [],
});

/** Tells the operator of what other machines may call while there is no credential that could. */
export const warnOfClosedDoors = async (
  { values: { Host } }: LoadedConfig,
  security: { hasActiveKeyFor(scope: ApiKeyScope): Promise<boolean> },
  log: Pick<Logger, 'warn'>,
): Promise<void> => {
  if (!Host.AllowRemoteAccess || Host.Oidc.Issuer !== null) return;
  const doors = openDoors(Host);
  for (const scope of ['ExternalInvoke', 'TracesWrite'] as const) {
    if (doors[scope].length === 0 || (await security.hasActiveKeyFor(scope))) continue;
    for (const setting of doors[scope])
      log.warn(
        { setting },
        `Something is offered to other machines, and there is neither an issuer of tokens nor an active key with ${scope}`,
      );
  }
};

/**
 * Refuses a service that other machines can reach and that could not tell who calls. Only the store knows whether a key
 * is active.
 */
export const assertMayListen = async (
  config: LoadedConfig,
  security: { hasActiveKey(): Promise<boolean> },
  modules: Pick<LoadedModules, 'runAuthorization'>,
): Promise<void> => {
  const problem = remoteAccessProblem(config, {
    hasActiveApiKey: await security.hasActiveKey(),
    hasAuthorizationHandler: modules.runAuthorization !== null,
  });
  if (problem !== null) throw new ConfigError([problem]);
};
