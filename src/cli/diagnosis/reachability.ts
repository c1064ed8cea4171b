import type { AppDescription } from '../../app.ts';
import type { LoadedConfig } from '../../core/config/index.ts';
import type { Finding, FindingStatus } from './finding.ts';

export interface Reach {
  readonly config: LoadedConfig;
  readonly access: AppDescription['access'];
  /** API keys of all tenants that are neither revoked nor expired. */
  readonly activeKeys: number;
}

const listener = ({ config }: Reach, isLoopback: (hostname: string) => boolean): string => {
  const { Url, Prefix } = config.values.Host;
  const machines = isLoopback(new URL(Url).hostname) ? 'this machine alone' : 'other machines, too,';
  return `${Url}${Prefix}: ${machines} can connect (Host:Url)`;
};

const callers = ({ config }: Reach): string =>
  config.values.Host.AllowRemoteAccess
    ? 'of other machines are served with a credential (Host:AllowRemoteAccess is on)'
    : 'of this machine only; all that came through a proxy are refused (Host:AllowRemoteAccess is off)';

const credentials = ({ config, access, activeKeys }: Reach): string => {
  const { AuthToken, Oidc } = config.values.Host;
  const keys = activeKeys === 1 ? '1 API key' : `${activeKeys} API keys`;
  const accepted = [
    ...(AuthToken === null ? [] : ['the shared token (Host:AuthToken)']),
    ...(activeKeys === 0 ? [] : [keys]),
    ...(Oidc.Issuer === null ? [] : [`tokens of ${Oidc.Issuer} (Host:Oidc)`]),
  ];
  const credentials = accepted.length === 0 ? 'none' : accepted.join(', ');
  return access.anonymous
    ? `${credentials}; without one every user of this machine is Admin (Host:AnonymousLoopback is on)
so would be whoever comes through a reverse proxy that hides; \`Host:AnonymousLoopback: false\` asks for a credential`
    : accepted.length === 0
      ? `${credentials}, and nobody is served without one: make a key with \`acp keys create\``
      : `${credentials}; nobody is served without one`;
};

const browsers = ({ config }: Reach): string => {
  const { AllowedOrigins } = config.values.Host;
  return AllowedOrigins.length === 0
    ? 'pages of other sites may not call (Host:AllowedOrigins is empty)'
    : `pages of ${AllowedOrigins.join(', ')} may call (Host:AllowedOrigins)`;
};

const proxies = ({ config }: Reach): string => {
  const { TrustedProxies } = config.values.Host;
  return TrustedProxies.length === 0
    ? 'none is trusted; limits and logs see who connects (Host:TrustedProxies is empty)'
    : `${TrustedProxies.join(', ')} may name the address of a caller (Host:TrustedProxies)`;
};

const routes = ({ config }: Reach): string => {
  const { Prefix, Health, EnableDiagnosticsEndpoint, Metrics } = config.values.Host;
  const health = [Health.LivePath, Health.ReadyPath].filter((path) => path !== null);
  const open = [`${Prefix}/api/meta`, `${Prefix}/docs`, ...health].join(', ');
  const diagnostics = EnableDiagnosticsEndpoint ? 'on' : 'off';
  return `${open} need no credential
diagnostics ${diagnostics} (Host:EnableDiagnosticsEndpoint), metrics ${Metrics.Path ?? 'off'} (Host:Metrics:Path)`;
};

const egress = ({ config }: Reach): string =>
  config.values.Service.Egress.AllowPrivateNetworkTargets
    ? 'declared tools and endpoints of tenants reach private addresses, too (Service:Egress:AllowPrivateNetworkTargets is on)'
    : 'declared tools and endpoints of tenants reach public addresses only (Service:Egress:AllowPrivateNetworkTargets is off)';

const ok: FindingStatus = 'ok';

/** A warning where strangers could be administrators, and where nobody can call at all. */
const accessStatus = ({ config, access, activeKeys }: Reach): FindingStatus => {
  const { AuthToken, Oidc } = config.values.Host;
  const hasCredential = AuthToken !== null || Oidc.Issuer !== null || activeKeys > 0;
  return access.anonymous || !hasCredential ? 'warn' : 'ok';
};

/** What of a service with these settings can be reached, by whom, and which setting makes it so. */
export const reachFindings = async function* (reach: Reach): AsyncGenerator<Finding> {
  const { isLoopbackName, remoteAccessProblem } = await import('../../core/config/index.ts');
  const problem = remoteAccessProblem(reach.config, {
    hasActiveApiKey: reach.activeKeys > 0,
    hasAuthorizationHandler: reach.access.runAuthorization,
  });
  yield { status: ok, check: 'listens', message: listener(reach, isLoopbackName) };
  yield problem === null
    ? { status: ok, check: 'callers', message: callers(reach) }
    : { status: 'fail', check: 'callers', message: problem.message };
  yield { status: accessStatus(reach), check: 'access', message: credentials(reach) };
  yield { status: ok, check: 'browsers', message: browsers(reach) };
  yield { status: ok, check: 'proxies', message: proxies(reach) };
  yield { status: ok, check: 'routes', message: routes(reach) };
  yield { status: ok, check: 'egress', message: egress(reach) };
};
