import { createHash } from 'node:crypto';
import type { Config } from '../../core/config/index.ts';
import { isAgentName, type KnownAgent, type RemoteAgentContent } from '../agents/index.ts';
import type { ConfiguredAgent } from './agent-cards.ts';

/** The agents of a tenant, whose definitions may have remote ones. */
export interface Definitions {
  list(tenantId: string): Promise<readonly KnownAgent[]>;
  find(tenantId: string, name: string): Promise<KnownAgent | null>;
}

// No name of an agent has one.
const separator = ':';

const hostAgents = ({ Host, Service }: Config): readonly ConfiguredAgent[] =>
  Object.entries(Host.RemoteAgents)
    .map(([name, agent]) => ({
      ...{ name, id: name, pinId: name, definedBy: null, tenantId: Service.DefaultTenantId },
      cardUrl: agent.CardUrl,
      description: agent.Description,
      authorizationKey: agent.AuthorizationConfigurationKey,
      requiresApproval: agent.RequiresApproval,
      effect: agent.Effect,
      pinning: agent.Pinning,
      timeoutMs: agent.Timeout,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));

const pinMark = '#';

/** Whether an approval stands under the id, of whatever address and key. */
export const isPinOf = (id: string, pinId: string): boolean => pinId === id || pinId.startsWith(`${id}${pinMark}`);

/** A remote agent of a definition, as one of a tenant. */
export const definedAgent = (tenantId: string, agentName: string, remote: RemoteAgentContent): ConfiguredAgent => {
  const { name, cardUrl, description, authorizationConfigurationKey: authorizationKey } = remote;
  const { requiresApproval, effect, pinning, timeoutMs } = remote;
  const id = `${agentName}${separator}${name}`;
  const place = createHash('sha256')
    .update(JSON.stringify([cardUrl, authorizationKey]))
    .digest('hex')
    .slice(0, 32);
  return {
    ...{ name, id, pinId: `${id}${pinMark}${place}`, definedBy: agentName, tenantId },
    ...{ cardUrl, description, authorizationKey, requiresApproval, effect, pinning, timeoutMs },
  };
};

/** The remote agents that a tenant has: those of the host, and those of the current definitions of its agents. */
export const createKnownAgents = (config: Config, definitions: Definitions) => {
  const host = hostAgents(config);
  const byName = new Map(host.map((agent) => [agent.name, agent]));
  const definedIn = (tenantId: string, { content }: KnownAgent): ConfiguredAgent[] =>
    content.remoteAgents.map((remote) => definedAgent(tenantId, content.name, remote));
  return {
    /** By name, fixed until restart. */
    host,
    /** Those of the host first, each kind in the order of ids. */
    async list(tenantId: string): Promise<readonly ConfiguredAgent[]> {
      const agents = await definitions.list(tenantId);
      const defined = agents.flatMap((agent) => definedIn(tenantId, agent));
      return [...host, ...defined.sort((a, b) => (a.id < b.id ? -1 : 1))];
    },
    async find(tenantId: string, id: string): Promise<ConfiguredAgent | undefined> {
      const end = id.indexOf(separator);
      if (end < 0) return byName.get(id);
      const agentName = id.slice(0, end);
      const agent = isAgentName(agentName) ? await definitions.find(tenantId, agentName) : null;
      return agent === null ? undefined : definedIn(tenantId, agent).find((one) => one.id === id);
    },
  };
};

export type KnownAgents = ReturnType<typeof createKnownAgents>;
