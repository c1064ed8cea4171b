import type { LoadedConfig } from '../core/config/index.ts';
import type { Session } from './session.ts';

/** The effective configuration of this call: file, variables, `--set`. Throws ConfigError with every problem. */
export const readConfig = async (
  { globals, environment, cwd }: Pick<Session, 'globals' | 'environment' | 'cwd'>,
  flags: { readonly url?: string | undefined; readonly prefix?: string | undefined } = {},
): Promise<LoadedConfig> => {
  const { loadConfig } = await import('../core/config/index.ts');
  return loadConfig({
    args: globals.set,
    configPath: globals.config ?? null,
    url: flags.url ?? null,
    prefix: flags.prefix ?? null,
    env: environment,
    cwd,
  });
};
