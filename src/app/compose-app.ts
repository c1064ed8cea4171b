import { isForEverybody } from '../contract/operation.ts';
import { clientAddressReader } from '../core/caller/client-address.ts';
import type { Principal } from '../core/context.ts';
import type { CodeAgents } from '../features/agents/index.ts';
import type { platformFeature } from '../features/platform/index.ts';
import { anonymousIsPossible, type securityFeature } from '../features/security/index.ts';
import type { App } from './app-interface.ts';
import type { Foundation } from './foundation.ts';
import type { createLifecycle } from './lifecycle.ts';
import { identityOptions } from './options.ts';

const localPrincipal: Principal = {
  kind: 'Host',
  role: 'Admin',
  scopes: null,
  actor: null,
  userId: null,
  apiKey: null,
  permissions: null,
};

interface AppParts
  extends Pick<Foundation, 'opened' | 'providers' | 'hostTools' | 'modules'>,
    Pick<App, 'config' | 'log' | 'telemetry' | 'dispatch'> {
  readonly security: Pick<ReturnType<typeof securityFeature>, 'identity'>;
  readonly platform: Pick<ReturnType<typeof platformFeature>, 'health'>;
  readonly life: ReturnType<typeof createLifecycle>;
  readonly ready: boolean;
  readonly codeAgents: Pick<CodeAgents, 'contents'>;
}

/** What transports and commands see of the composed service. */
export const composeApp = (parts: AppParts): App => {
  const { config, log, dispatch, security, platform, life, opened, ready } = parts;
  return {
    dispatch,
    localCaller: { principal: localPrincipal, tenantId: config.values.Service.DefaultTenantId },
    config,
    log,
    authenticate(request, required) {
      if (required?.signed === true) return security.identity.signedCaller(request);
      return required !== undefined && isForEverybody(required)
        ? security.identity.metaCaller(request)
        : security.identity.authenticate(request);
    },
    clientAddress: clientAddressReader(config.values.Host.TrustedProxies),
    health: platform.health,
    telemetry: parts.telemetry,
    started(url) {
      opened.ownership?.announce(url);
      if (ready) life.started();
    },
    drain: life.drain,
    drainWait: life.drainWait,
    close: life.close,
    describe: () => ({
      pendingMigrations: opened.pending,
      providers: parts.providers.list().map(({ name, kind }) => ({ name, kind })),
      tools: parts.hostTools.registry.list().map(({ descriptor }) => descriptor.name),
      modules: parts.modules.names,
      codeAgents: [...parts.codeAgents.contents.keys()],
      access: {
        anonymous: anonymousIsPossible(identityOptions(config.values)),
        runAuthorization: parts.modules.runAuthorization !== null,
      },
    }),
  };
};
