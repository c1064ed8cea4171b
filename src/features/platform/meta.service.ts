import { type Role, roleAtLeast } from '../../contract/authority.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import { version } from '../../core/version.ts';
import type { metaOperations } from './meta.operations.ts';
import type { authenticationMethods, MetaResponse, storageProviders } from './meta.schema.ts';

export interface MetaDeps {
  /** Mount prefix; empty at the root. */
  readonly prefix: string;
  readonly allowRemoteAccess: boolean;
  readonly hasAuthToken: boolean;
  readonly hasIssuer: boolean;
  readonly hasActiveKey: () => Promise<boolean>;
  readonly anonymousIsPossible: boolean;
  readonly storage: { readonly provider: (typeof storageProviders)[number]; readonly persistent: boolean };
  /** True while this process leases jobs. */
  readonly jobWorkerEnabled: () => boolean;
}

type Method = (typeof authenticationMethods)[number];

export const metaService = (deps: MetaDeps): Handlers<typeof metaOperations> => {
  const usableMethods = async (): Promise<Method[]> => {
    // The operation answers while the store is away, too; then no key can be used.
    const hasKey = await deps.hasActiveKey().catch(() => false);
    return [
      ...(deps.anonymousIsPossible ? (['Anonymous'] as const) : []),
      ...(deps.hasAuthToken ? (['Token'] as const) : []),
      ...(hasKey ? (['ApiKey'] as const) : []),
      ...(deps.hasIssuer ? (['Oidc'] as const) : []),
    ];
  };

  return {
    async get({ principal }) {
      const { provider, persistent } = deps.storage;
      const can = (role: Role): boolean => principal.role !== null && roleAtLeast(principal.role, role);
      const body: MetaResponse = {
        version,
        prefix: deps.prefix,
        authentication: {
          methods: await usableMethods(),
          allowRemoteAccess: deps.allowRemoteAccess,
          requiresBearerToken: !deps.anonymousIsPossible,
          requiresAuthorizationPolicy: false,
        },
        storage: {
          persistent,
          provider,
          agentDefinitionStore: provider,
          runStore: provider,
          sessionStore: provider,
          jobStore: provider,
          jobWorkerEnabled: deps.jobWorkerEnabled(),
        },
        roles: { canRead: can('Reader'), canOperate: can('Operator'), canAdminister: can('Admin') },
      };
      return ok(body, { 'cache-control': 'no-store' });
    },
  };
};
