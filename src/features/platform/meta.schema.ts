import Type, { type Static } from 'typebox';
import { oneOf } from '../../contract/schema.ts';

export const storageProviders = ['Sqlite', 'Postgres', 'Memory'] as const;
export const authenticationMethods = ['Anonymous', 'Token', 'ApiKey', 'Oidc', 'Host'] as const;

export const MetaResponse = Type.Object(
  {
    version: Type.String({ description: 'Semantic version of the package' }),
    prefix: Type.String({ description: 'Mount prefix, empty at the root' }),
    authentication: Type.Object({
      methods: Type.Array(oneOf(authenticationMethods)),
      allowRemoteAccess: Type.Boolean(),
      requiresBearerToken: Type.Boolean(),
      requiresAuthorizationPolicy: Type.Boolean(),
    }),
    storage: Type.Object({
      persistent: Type.Boolean(),
      provider: oneOf(storageProviders),
      agentDefinitionStore: Type.String(),
      runStore: Type.String(),
      sessionStore: Type.String(),
      jobStore: Type.String(),
      jobWorkerEnabled: Type.Boolean(),
    }),
    roles: Type.Object({ canRead: Type.Boolean(), canOperate: Type.Boolean(), canAdminister: Type.Boolean() }),
  },
  { title: 'MetaResponse' },
);
export type MetaResponse = Static<typeof MetaResponse>;
