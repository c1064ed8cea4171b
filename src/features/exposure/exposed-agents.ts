import { AcpError } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import type { Logger } from '../../core/logger.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import { exposureHindrance } from './exposure.rules.ts';

/** An agent that another system may call, as it is now. */
export interface ExposedAgent {
  readonly name: string;
  readonly displayName: string | null;
  readonly description: string | null;
  readonly metadata: Readonly<Record<string, Json>>;
  readonly version: number;
  readonly compiled: CompiledAgent;
}

/** What a definition says to people. */
export type AgentPresentation = Omit<ExposedAgent, 'compiled'>;

export interface ExposedAgentsDeps {
  /** How the setting with the allowlist is called. */
  readonly setting: string;
  readonly allowlist: readonly string[];
  readonly agents: Pick<AgentSource, 'compile'>;
  /** Null: a tenant has no agent of this name. */
  readonly presentationOf: (tenantId: string, name: string) => Promise<AgentPresentation | null>;
  readonly log: Pick<Logger, 'warn'>;
}

/** The agents of an allowlist, by their exact names, as far as a tenant has them and nobody has to be asked in their runs. */
export const createExposedAgents = ({ setting, allowlist, agents, presentationOf, log }: ExposedAgentsDeps) => {
  const names: ReadonlySet<string> = new Set(allowlist);

  /** The agent, or why it is not there. */
  const look = async (tenantId: string, name: string): Promise<ExposedAgent | string> => {
    const presentation = await presentationOf(tenantId, name);
    if (presentation === null) return 'there is no such agent';
    try {
      const compiled = await agents.compile(tenantId, name);
      return exposureHindrance(compiled) ?? { ...presentation, compiled };
    } catch (error) {
      if (error instanceof CompileError) return 'it does not compile';
      // Deleted between the two reads.
      if (error instanceof AcpError && error.code === 'agent-not-found') return 'there is no such agent';
      throw error;
    }
  };

  const hindranceOf = async (tenantId: string, name: string): Promise<string | null> => {
    try {
      return exposureHindrance(await agents.compile(tenantId, name));
    } catch (error) {
      // Not there, or not as it should be: that may change before anybody calls it.
      if (error instanceof CompileError || (error instanceof AcpError && error.code === 'agent-not-found')) return null;
      throw error;
    }
  };

  const find = async (tenantId: string, name: string): Promise<ExposedAgent | null> => {
    if (!names.has(name)) return null;
    const found = await look(tenantId, name);
    return typeof found === 'string' ? null : found;
  };

  return {
    /** Null for every agent that is not offered, whatever the reason. */
    find,
    /** Ordered by name. */
    async list(tenantId: string): Promise<readonly ExposedAgent[]> {
      const found = await Promise.all([...names].sort().map((name) => find(tenantId, name)));
      return found.filter((agent) => agent !== null);
    },
    /** Agents of the list in whose runs somebody would have to be asked, with the tool that asks. */
    async hindered(tenantId: string): Promise<readonly { readonly agent: string; readonly reason: string }[]> {
      const hindered: { agent: string; reason: string }[] = [];
      for (const name of names) {
        const reason = await hindranceOf(tenantId, name);
        if (reason !== null) hindered.push({ agent: name, reason });
      }
      return hindered;
    },
    /** Tells the operator which names of the list are not offered now, and why. */
    async warn(tenantId: string): Promise<void> {
      for (const name of names) {
        const found = await look(tenantId, name);
        if (typeof found === 'string')
          log.warn({ setting, agent: name, tenantId, reason: found }, 'An agent of the allowlist is not offered');
      }
    },
  };
};

export type ExposedAgents = ReturnType<typeof createExposedAgents>;
