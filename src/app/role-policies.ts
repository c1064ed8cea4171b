import type { RoleDecision } from '../core/caller/role-decision.ts';
import { ConfigError, type ConfigSource, type LoadedConfig } from '../core/config/index.ts';
import type { Logger } from '../core/logger.ts';
import { hostRoleDecision, type LoadedModules, missingRolePolicies } from '../features/modules/index.ts';

const key = 'Host:RequireRolePolicies';
const builtIn: ConfigSource = { kind: 'default' };

/** Null: the role claim of a token decides. Throws ConfigError when policies are required and one is missing. */
export const roleDecision = (
  { values, sources }: LoadedConfig,
  { rolePolicies }: Pick<LoadedModules, 'rolePolicies'>,
  log: Pick<Logger, 'warn'>,
): RoleDecision | null => {
  if (!values.Host.RequireRolePolicies) return null;
  const missing = missingRolePolicies(rolePolicies);
  if (missing.length === 0) return hostRoleDecision(rolePolicies, log);
  const message = `expected a module with rolePolicies for ${missing.join(', ')}`;
  throw new ConfigError([{ key, source: sources.get(key) ?? builtIn, code: 'missing-value', message }]);
};
