import { AcpError } from '../contract/errors.ts';
import { ConfigError, type LoadedConfig, remoteAccessProblem } from '../core/config/index.ts';
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
