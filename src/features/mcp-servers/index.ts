import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/index.ts';
import { environment } from '../../core/environment.ts';
import { type InstanceState, tenantKey } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { ToolRegistry } from '../../engine/tools/index.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import type { AuditLog } from '../audit/index.ts';
import { createAgentResources } from './agent-resources.ts';
import { backgroundDiscovery } from './background-discovery.ts';
import { createConnections, secretReader } from './connections.ts';
import { createDiscovery } from './discovery.ts';
import { createHostPrograms } from './host-programs.ts';
import { mcpServerService } from './mcp-servers.service.ts';
import { mcpServerStore } from './mcp-servers.store.ts';
import { createServerView } from './mcp-servers.view.ts';
import { createMcpTelemetry } from './mcp-telemetry.ts';
import { type McpTokenStore, oauthPart } from './oauth/index.ts';
import { pinService } from './pins.service.ts';
import { remoteTool } from './remote-call.ts';
import { remoteContentService } from './remote-content.service.ts';
import { createRemoteContent } from './remote-content.ts';
import { createRemoteTools } from './remote-tools.ts';
import { createServerCheck } from './server-check.ts';
import { createToolCatalog } from './tool-catalog.ts';

export { secretReader } from './connections.ts';
export { endpointProblem, isRefusedTarget, isSafeForCredentials, refusedTarget } from './mcp-servers.rules.ts';
export type { McpTokenKey, McpTokenStore } from './oauth/index.ts';
export type { RemoteTools } from './remote-tools.ts';

export interface McpServersDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'table'>;
  readonly audit: Pick<AuditLog, 'change' | 'save' | 'tell'>;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'begin' | 'finish'>;
  /** Of a module; null: the service keeps tokens itself. */
  readonly tokenStore: McpTokenStore | null;
  /** Tools of code, which win over remote ones. */
  readonly tools: Pick<ToolRegistry, 'get'>;
  /** Counts a target that the address rules refuse. */
  readonly egressRefused: (client: 'mcp', phase: 'save' | 'connect') => void;
  readonly log: Logger;
  readonly clock: Pick<Clock, 'every'>;
  /** Time on which the processes of a store agree. */
  readonly now: () => number;
  readonly newId: () => string;
}

/**
 * Remote servers of the Model Context Protocol: their records, their tools as agents have them, their prompts and resources.
 * Design: docs/design/mcp-servers.md.
 */
export const mcpServersFeature = (deps: McpServersDeps) => {
  const { config, storage, audit, log, now, newId } = deps;
  const { Service, Host } = config;
  const { Mcp: settings } = Service;
  const allowPrivate = Service.Egress.AllowPrivateNetworkTargets;
  const timeoutMs = settings.ConnectionTimeout;
  const names = {
    prefix: settings.AllowedConfigurationPrefix,
    defaultTenantId: Service.DefaultTenantId,
    oneSegment: Host.Tenancy.Enabled,
  };
  const store = storage.stores(mcpServerStore);
  const table = deps.state.table('mcpServers', {
    read: store.all,
    keyOf: ({ tenant_id, name }) => tenantKey(tenant_id, name),
  });
  const http = createOutboundHttp({ allowPrivate, onRefusal: () => deps.egressRefused('mcp', 'connect') });
  const telemetry = createMcpTelemetry(deps.telemetry);
  const secret = secretReader(config, names);
  const oauth = oauthPart({
    ...{ storage, http, secret, allowPrivate, timeoutMs, audit, log, now, newId },
    shared: settings.OAuthTokenStore === 'Database',
    tokenStore: deps.tokenStore,
    enabled: settings.Enabled,
    callbackBaseUri: settings.OAuthCallbackBaseUri,
    prefix: Host.Prefix,
  });
  const programs = createHostPrograms({
    ...{ store, table, log, now, newId },
    configured: Host.McpStdio,
    defaultTenantId: Service.DefaultTenantId,
    changed: () => catalog.changed(),
  });
  const connections = createConnections({
    ...{ secret, http, programs, log },
    tokens: oauth.tokens,
    connectTimeoutMs: timeoutMs,
    path: environment()['PATH'],
  });
  const call = {
    connections,
    current: (tenantId: string, name: string) => catalog.row(tenantId, name),
    telemetry,
    maxOutputBytes: Service.Tools.DefaultMaxOutputBytes,
    log,
  };
  const catalog = createToolCatalog({
    table,
    store,
    enabled: settings.Enabled,
    codeTool: (name) => deps.tools.get(name) !== undefined,
    register: (server, name, admitted) => remoteTool(server, name, admitted, call),
  });
  const { changed } = catalog;
  const discovery = createDiscovery({
    ...{ store, table, connections, telemetry, log, now, changed },
    transaction: (work) => storage.transaction(work),
    maxTools: settings.MaxToolsPerServer,
  });
  const view = createServerView(connections);
  const check = createServerCheck({
    ...{ connections, timeoutMs },
    oauth: oauth.check(connections),
    maxTools: settings.MaxToolsPerServer,
  });
  const content = createRemoteContent({
    ...{ connections, telemetry, timeoutMs, now },
    maxResourceBytes: settings.MaxResourceBytesPerResource,
  });
  telemetry.toolsOf(catalog.counts);
  const background = backgroundDiscovery({
    ...{ table, discovery, clock: deps.clock, timeoutMs, log, now },
    prepare: programs.keep,
    lacks: (row) => connections.lacking(row) !== null,
    intervalMs: settings.RefreshInterval,
  });

  return {
    handlers: {
      ...mcpServerService({
        ...{ store, table, catalog, connections, discovery, view, check, timeoutMs, audit, now, newId },
        rules: { names, allowPrivate },
        isOfHost: programs.has,
        enabled: settings.Enabled,
        forgetGrant: oauth.forgetGrant,
        targetRefused: () => deps.egressRefused('mcp', 'save'),
      }),
      ...oauth.service({ store, connections, discovery }),
      ...pinService({ store, table, view, audit, now, changed }),
      ...remoteContentService({ store, content, telemetry, enabled: settings.Enabled }),
    },
    /** What agents of a tenant can have beyond the tools of the host. */
    tools: createRemoteTools({ catalog, discovery, timeoutMs: Service.Validation.McpTimeout }),
    /** What runs read at their beginning. */
    resources: createAgentResources({
      ...{ catalog, content, timeoutMs, log },
      maxBytes: settings.MaxResourceBytesPerResource,
      maxTotalBytes: settings.MaxResourceBytesTotal,
    }),
    /** Null: MCP is switched off. */
    background: settings.Enabled ? background : null,
    async close(): Promise<void> {
      await connections.close();
      await http.close();
    },
  };
};
