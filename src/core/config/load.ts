import { Binder } from './binding.ts';
import { Canonicalizer } from './canonical.ts';
import { type Check, generalChecks } from './checks.ts';
import { readConfigFile } from './file-source.ts';
import { KeyLookup } from './key-lookup.ts';
import { laneFlowChecks } from './lane-flow-checks.ts';
import { ConfigError, type ConfigProblem } from './problem.ts';
import { providerChecks } from './provider-checks.ts';
import { type ConfigSource, defaultSource, mergeRaw, type RawValue } from './raw-value.ts';
import { type Config, configSchema } from './schema.ts';
import { readFlags, readVariables } from './text-source.ts';

export interface ConfigInput {
  /** Texts of `--set`, each `Service:A:B=value`; the last of a repeated key counts. */
  readonly args?: readonly string[];
  /** Path of `--config`. Null: the variable `ACP_CONFIG`, else `service.yaml` when there is one. */
  readonly configPath?: string | null;
  /** `--url` and `--prefix` of `acp serve`. */
  readonly url?: string | null;
  readonly prefix?: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface LoadedConfig {
  readonly values: Config;
  /** Source of each key, defaults included. */
  readonly sources: ReadonlyMap<string, ConfigSource>;
  /** Keys without the mark of a secret whose text came from a secret; they are shown as one. */
  readonly tainted: ReadonlySet<string>;
  readonly warnings: readonly ConfigProblem[];
  /** Absolute path of the file that was read. */
  readonly file: string | null;
}

const empty: RawValue = { kind: 'map', entries: [], source: defaultSource };

/**
 * Reads defaults, file, variables and flags, in this order. Nothing else is opened.
 * Throws ConfigError with every problem: first values of a wrong type, then what this version lacks, then conflicts.
 */
export const loadConfig = (input: ConfigInput): LoadedConfig => {
  const { args = [], configPath = null, url = null, prefix = null, env, cwd } = input;
  const file = readConfigFile({ configPath, env, cwd });
  const variables = readVariables(env);
  const flags = readFlags({ args, url, prefix });

  const canonicalizer = new Canonicalizer();
  const merged = [file.values, variables.values, flags.values]
    .filter((values) => values !== null)
    .map((values) => canonicalizer.read(configSchema, values, []))
    .reduce<RawValue>((lower, higher) => (higher === undefined ? lower : mergeRaw(lower, higher)), empty);

  const binder = new Binder(new KeyLookup(merged, { env, cwd, file: file.path }), file.problems.length === 0);
  // The binder makes exactly the shape that the schema's type describes.
  const values = binder.bind(configSchema, merged, [], { feature: null, source: defaultSource }) as Config;
  const invalid = [
    ...file.problems,
    ...variables.problems,
    ...flags.problems,
    ...canonicalizer.problems,
    ...binder.problems,
  ];
  const problems = [...invalid, ...binder.reserved];
  const warnings = [...binder.warnings, ...exposedSecrets(binder.sources, merged)];
  if (file.problems.length === 0) {
    const findings = runChecks(
      [...generalChecks, ...laneFlowChecks, ...providerChecks],
      values,
      invalid,
      binder.sources,
    );
    problems.push(...findings.errors);
    warnings.push(...findings.warnings);
  }
  if (problems.length > 0) throw new ConfigError(problems, warnings);
  return { values, sources: binder.sources, tainted: binder.tainted, warnings, file: file.path };
};

const runChecks = (
  checks: readonly Check[],
  values: Config,
  invalid: readonly ConfigProblem[],
  sources: ReadonlyMap<string, ConfigSource>,
): { errors: readonly ConfigProblem[]; warnings: readonly ConfigProblem[] } => {
  const touches = (problem: ConfigProblem, key: string): boolean =>
    problem.key !== null && (`${problem.key}:`.startsWith(`${key}:`) || `${key}:`.startsWith(`${problem.key}:`));
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  for (const check of checks) {
    if (check.keys.some((key) => invalid.some((problem) => touches(problem, key)))) continue;
    for (const { key, message, code } of check.run(values)) {
      const problem = { key, source: sourceOf(key, sources), code: code ?? 'conflict', message };
      (check.severity === 'error' ? errors : warnings).push(problem);
    }
  }
  return { errors, warnings };
};

/** Source of a key, or of the first key of a section that was given. */
const sourceOf = (key: string, sources: ReadonlyMap<string, ConfigSource>): ConfigSource => {
  const own = sources.get(key);
  if (own !== undefined && own.kind !== 'default') return own;
  for (const [name, source] of sources) {
    if (name.startsWith(`${key}:`) && source.kind !== 'default') return source;
  }
  return own ?? defaultSource;
};

/** Secrets in places where others may see them. */
const exposedSecrets = (sources: ReadonlyMap<string, ConfigSource>, merged: RawValue): readonly ConfigProblem[] => {
  const key = 'Host:AuthToken';
  const source = sources.get(key);
  const raw = childOf(childOf(merged, 'Host'), 'AuthToken');
  const isLiteral = raw?.kind === 'scalar' && typeof raw.value === 'string' && !raw.value.includes('${');
  if (source?.kind !== 'flag' && !(source?.kind === 'file' && isLiteral)) return [];
  const message =
    source.kind === 'flag'
      ? 'other users of this machine can see the command line: better give the variable Host__AuthToken'
      : 'the token stands in the file: better give the variable Host__AuthToken or a reference to a file';
  return [{ key, source, code: 'insecure', message }];
};

const childOf = (raw: RawValue | undefined, name: string): RawValue | undefined =>
  raw?.kind === 'map' ? raw.entries.find((entry) => entry.name === name)?.value : undefined;

/** What the composition root knows once the store is open and the modules are loaded. */
export interface AccessFacts {
  readonly hasActiveApiKey: boolean;
  readonly hasAuthorizationHandler: boolean;
}

/** Remote access needs something that tells callers apart. Null: all is well. */
export const remoteAccessProblem = (loaded: LoadedConfig, facts: AccessFacts): ConfigProblem | null => {
  const { AllowRemoteAccess, AuthToken, Oidc } = loaded.values.Host;
  const isGuarded =
    AuthToken !== null || Oidc.Issuer !== null || facts.hasActiveApiKey || facts.hasAuthorizationHandler;
  if (!AllowRemoteAccess || isGuarded) return null;
  const key = 'Host:AllowRemoteAccess';
  const message =
    'remote access needs Host:AuthToken, an active API key, Host:Oidc or a module with an authorization handler';
  return { key, source: sourceOf(key, loaded.sources), code: 'insecure', message };
};
