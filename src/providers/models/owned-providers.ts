import { createEgressAgent } from '../http/egress.ts';
import type { AnswerLimits } from './answer-limits.ts';
import { ModelCallError } from './model-error.ts';
import type { ModelProvider, OwnCredential } from './model-provider.ts';
import type { ConnectionSettings, ModelProviderSettings } from './model-settings.ts';
import { networkProvider } from './network-provider.ts';
import { endpointProblem } from './own-endpoint.ts';
import type { ForeignErrorLog } from './provider-calls.ts';
import { configuredSurfaces, presentSections } from './surfaces/configured.ts';
import type { ConnectionPool } from './transport/connection-pool.ts';
import { createConnectionPool } from './transport/connection-pool.ts';

interface OwnedProvidersDeps {
  readonly log: ForeignErrorLog;
  readonly limits: AnswerLimits;
  readonly allowPrivateEndpoints?: boolean;
  readonly onEndpointRefusal?: () => void;
}

// One for each tenant and provider that is in use, and one more after each change of a key.
const cachedProviders = 500;

/** Connections to endpoints that tenants name: each one goes to an address that was checked. */
const egressPool = (allowPrivate: boolean, onRefusal: (() => void) | undefined): ConnectionPool => {
  let agent: ReturnType<typeof createEgressAgent> | null = null;
  return {
    async agent() {
      agent ??= createEgressAgent({ allowPrivate, onRefusal });
      return agent;
    },
    async close() {
      await agent?.destroy();
    },
  };
};

const withOwn = <S extends ConnectionSettings>(section: S, { apiKey, endpoint }: OwnCredential): S => ({
  ...section,
  ApiKey: apiKey,
  ...(endpoint === null ? {} : { Endpoint: endpoint }),
});

/** The settings with the credential in every section, of which one provider is then taken. */
const ownSettings = ({ Compatible, Scripted: _, ...single }: ModelProviderSettings, own: OwnCredential) => {
  const owned = (sections: Readonly<Record<string, ConnectionSettings | null | undefined>> | null | undefined) =>
    Object.fromEntries(presentSections(sections).map(([name, section]) => [name, withOwn(section, own)]));
  return { ...owned(single), Compatible: owned(Compatible) };
};

/** Providers with the credentials of tenants, made when they are called first. */
export const createOwnedProviders = (settings: ModelProviderSettings, deps: OwnedProvidersDeps) => {
  const allowPrivate = deps.allowPrivateEndpoints ?? false;
  const names = new Set(configuredSurfaces(settings, null).map(({ name }) => name));
  const providers = new Map<string, ModelProvider>();
  const trusted = createConnectionPool();
  const checked = egressPool(allowPrivate, deps.onEndpointRefusal);

  return {
    takes: (name: string): boolean => names.has(name),
    provider(name: string, own: OwnCredential): ModelProvider | undefined {
      // A literal address never reaches the check of the connection, nor does a scheme.
      if (own.endpoint !== null && endpointProblem(own.endpoint, allowPrivate) !== null) {
        deps.onEndpointRefusal?.();
        throw new ModelCallError('provider_unavailable', `The endpoint of provider "${name}" is not allowed.`, {
          provider: name,
        });
      }
      const key = JSON.stringify([name, own.apiKey, own.endpoint]);
      const open = providers.get(key);
      if (open !== undefined) return open;
      // A module's token function is the host's credential, not the tenant's.
      const surface = configuredSurfaces(ownSettings(settings, own), null).find((candidate) => candidate.name === name);
      if (surface === undefined) return undefined;
      if (providers.size >= cachedProviders) providers.clear();
      const pool = own.endpoint === null ? trusted : checked;
      const provider = networkProvider(surface, { pool, log: deps.log, limits: deps.limits });
      providers.set(key, provider);
      return provider;
    },
    async close(): Promise<void> {
      await trusted.close();
      await checked.close();
    },
  };
};
