import type { ApiTable, Operation } from '../contract/operation.ts';
import type { Config } from '../core/config/index.ts';
import { operations } from '../operations.ts';

/** Operations of a protocol for other systems: they exist only where the host opens it, at the path that it names. */
interface ProtocolDoor {
  /** Of the table. */
  readonly feature: string;
  /** Where the table has them. */
  readonly path: string;
  readonly mountedAt: string;
  readonly isOpen: boolean;
  /** Verbs that take no credential. */
  readonly forEverybody?: readonly string[];
}

const protocolDoors = ({ Host: { A2A, McpServer, Traces } }: Config): readonly ProtocolDoor[] => [
  {
    feature: 'mcpEndpoint',
    path: '/mcp',
    mountedAt: McpServer.Path,
    isOpen: McpServer.Agents.length > 0 || McpServer.ControlPlane !== 'Off',
  },
  {
    feature: 'a2a',
    path: '/a2a',
    mountedAt: A2A.Path,
    isOpen: A2A.Agents.length > 0,
    forEverybody: A2A.PublicCards ? ['card'] : [],
  },
  { feature: 'traces', path: '/v1/traces', mountedAt: '/v1/traces', isOpen: Traces.Enabled },
];

/** The table of this service: without the protocols that its host has not opened, and with the others at their paths. */
export const mountedOperations = (config: Config): ApiTable => {
  const table: Record<string, Readonly<Record<string, Operation>>> = { ...operations };
  const hasIssuer = config.Host.Oidc.Issuer !== null;
  for (const { feature, path: from, mountedAt, isOpen, forEverybody = [] } of protocolDoors(config)) {
    const { [feature]: own = {} } = table;
    delete table[feature];
    if (!isOpen) continue;
    const at = (path: string): string => mountedAt + path.slice(from.length);
    table[feature] = Object.fromEntries(
      Object.entries(own).map(([verb, { resourceMetadata, ...operation }]) => [
        verb,
        {
          ...operation,
          path: at(operation.path),
          ...(forEverybody.includes(verb) ? { role: null, scope: null } : {}),
          // Without an issuer there is nothing to be told.
          ...(resourceMetadata === undefined || !hasIssuer ? {} : { resourceMetadata: at(resourceMetadata) }),
        },
      ]),
    );
  }
  return table;
};

/** Whether this service offers an operation: it answers at its path, or is part of its API description. */
export const isOffered = ({ Host }: Config, { envelope }: Operation): boolean =>
  envelope !== 'OpenAi' || Host.OpenAi.Enabled;

/** Whether the API description has an operation. The diagnostics are left out while they are off; their 404 names the setting that turns them on. */
export const isDescribed = (config: Config, feature: string, operation: Operation): boolean =>
  isOffered(config, operation) && (feature !== 'diagnostics' || config.Host.EnableDiagnosticsEndpoint);

/** The table of the API description of a service with this configuration. */
export const describedOperations = (config: Config): ApiTable =>
  Object.fromEntries(
    Object.entries(mountedOperations(config)).map(([feature, own]) => [
      feature,
      Object.fromEntries(Object.entries(own).filter(([, operation]) => isDescribed(config, feature, operation))),
    ]),
  );
