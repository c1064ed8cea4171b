import type { Clock } from '../../core/clock.ts';
import { type Config, mayNameSecret } from '../../core/config/index.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import { type RegisteredTool, registeredTool, type ToolRegistry } from '../../engine/tools/index.ts';
import { agentToolSchema } from '../../engine/turn/index.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import { callToolName, type RemoteAgentReferences } from '../agents/index.ts';
import type { AuditLog } from '../audit/index.ts';
import { secretReader } from '../mcp-servers/index.ts';
import { type ConfiguredAgent, createAgentCards } from './agent-cards.ts';
import { createKnownAgents, type Definitions, definedAgent } from './known-agents.ts';
import { remoteAgentService } from './remote-agents.service.ts';
import { remoteAgentStore } from './remote-agents.store.ts';
import { createRemoteAgentTelemetry } from './remote-telemetry.ts';
import { lostRemoteTasks, type RemoteWorkDeps, remoteAgentOf } from './remote-work.ts';

export interface RemoteAgentsDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  /** Counts a target that the address rules refuse. */
  readonly egressRefused: (client: 'a2a', phase: 'connect') => void;
  readonly log: Logger;
  /** The agents of a tenant. */
  readonly definitions: Definitions;
  /** Time on which the processes of a store agree. */
  readonly now: () => number;
  readonly clock: Pick<Clock, 'elapsed'>;
}

type Described = Pick<ConfiguredAgent, 'name' | 'id' | 'description' | 'effect' | 'requiresApproval' | 'timeoutMs'>;

const toolOf = (
  agent: Described,
  agentIn: (tenantId: string) => ConfiguredAgent,
  deps: RemoteWorkDeps,
): RegisteredTool => {
  const { name, id, description, effect, requiresApproval } = agent;
  const about = description === null ? '' : ` ${description}`;
  return registeredTool(
    {
      name: callToolName(name),
      description: `Gives a task to the agent "${name}" and returns its answer.${about}`,
      inputSchema: agentToolSchema,
      effect,
      requiresApproval,
    },
    {
      ...{ kind: 'RemoteAgent', source: id, resultSource: 'RemoteTool', ownsTimeout: true },
      remoteAgent: remoteAgentOf(agent, agentIn, deps),
    },
  );
};

/** The tools of the host, with those of remote agents among them. Names of the host's own never begin as theirs do. */
export const withRemoteAgents = (host: ToolRegistry, remote: readonly RegisteredTool[]): ToolRegistry => {
  if (remote.length === 0) return host;
  const byName = new Map(remote.map((tool) => [tool.descriptor.name, tool]));
  const all = [...host.list(), ...remote].sort((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
  return { list: () => all, get: (name) => host.get(name) ?? byName.get(name) };
};

/** Agents of other systems, which agents of this service call over the Agent2Agent protocol. Design: docs/design/a2a.md. */
export const remoteAgentsFeature = (deps: RemoteAgentsDeps) => {
  const { config, log, now, clock } = deps;
  const { Service, Host } = config;
  const allowPrivate = Service.Egress.AllowPrivateNetworkTargets;
  const timeoutMs = Service.Mcp.ConnectionTimeout;
  const store = deps.storage.stores(remoteAgentStore);
  const telemetry = createRemoteAgentTelemetry(deps.telemetry);
  const http = createOutboundHttp({ allowPrivate, onRefusal: () => deps.egressRefused('a2a', 'connect') });
  const names = {
    prefix: Service.Mcp.AllowedConfigurationPrefix,
    defaultTenantId: Service.DefaultTenantId,
    oneSegment: Host.Tenancy.Enabled,
  };
  const cards = createAgentCards({
    ...{ http, allowPrivate, timeoutMs, telemetry, now, log },
    secret: secretReader(config, names),
  });
  const known = createKnownAgents(config, deps.definitions);
  const work = { cards, store, http, requestTimeoutMs: timeoutMs, telemetry, log };
  return {
    /** By name, fixed until restart. */
    tools: known.host.map((agent) => toolOf(agent, () => agent, work)),
    /** How definitions have remote agents of their own. */
    references: {
      allowPrivate,
      mayNameIn: (tenantId, key) => mayNameSecret(names, tenantId, key),
      tool: (agentName, remote) =>
        toolOf(definedAgent('', agentName, remote), (tenantId) => definedAgent(tenantId, agentName, remote), work),
    } satisfies RemoteAgentReferences,
    lostTasks: lostRemoteTasks(known, work),
    handlers: remoteAgentService({
      cards,
      store,
      known,
      audit: deps.audit,
      now,
      elapsed: clock.elapsed,
      toolName: callToolName,
    }),
    close: () => http.close(),
  };
};
