import type { AgentSkills } from '../skills/index.ts';
import { isAgentName } from './agent-limits.rules.ts';
import { listedCallables, type ReachableAgents } from './agent-references.rules.ts';
import type { ReachableSkills } from './agent-skills.rules.ts';
import type { AgentContent } from './agents.content.ts';
import { type AgentStore, type StoredAgent, stampOf } from './agents.store.ts';

/** An agent of either source. Code agents have version 1 and no store behind them. */
export type KnownAgent =
  | { readonly origin: 'code'; readonly content: AgentContent; readonly version: 1; readonly isModel?: true }
  | ({ readonly origin: 'database' } & StoredAgent);

/** What definitions reach, with the names that were looked up in the store on the way. */
export interface Reached {
  readonly agents: ReachableAgents;
  /** Stamp of each stored agent that was looked up, null where there was none. */
  readonly stamps: ReadonlyMap<string, string | null>;
  readonly skills: ReachableSkills;
}

const codeAgent = (content: AgentContent): KnownAgent => ({ origin: 'code', content, version: 1 });
const storedAgent = (agent: StoredAgent): KnownAgent => ({ origin: 'database', ...agent });
const storedOrNull = (agent: StoredAgent | null): KnownAgent | null => (agent === null ? null : storedAgent(agent));

/** Names that a definition leads to. Malformed ones resolve to nothing and are not worth a query. */
const leadsTo = (content: AgentContent): readonly string[] => listedCallables(content).filter(isAgentName);

/** The walk of `reach`, over any lookup. */
const reachAgents = async (
  content: AgentContent,
  lookUp: (names: readonly string[]) => Promise<ReadonlyMap<string, AgentContent>>,
): Promise<ReachableAgents> => {
  const agents = new Map<string, AgentContent>();
  const asked = new Set([content.name]);
  const shared = content.sharedInstructionsName;
  const sharedNames = shared !== null && isAgentName(shared) ? [shared] : [];
  let next = [...leadsTo(content), ...sharedNames];
  while (next.length > 0) {
    const names = [...new Set(next)].filter((name) => !asked.has(name));
    for (const name of names) asked.add(name);
    const reached = names.length === 0 ? new Map<string, AgentContent>() : await lookUp(names);
    for (const [name, agent] of reached) agents.set(name, agent);
    next = [...reached.values()].flatMap(leadsTo);
  }
  return agents;
};

/** The same over definitions at hand. */
export const reachWithin = (
  contents: ReadonlyMap<string, AgentContent>,
  content: AgentContent,
): Promise<ReachableAgents> =>
  reachAgents(content, async (names) => {
    const wanted = new Set(names);
    return new Map([...contents].filter(([name]) => wanted.has(name)));
  });

/** Both sources as one: code agents hide stored ones of the same name, everywhere. */
export const createAgentCatalog = (
  store: AgentStore,
  code: ReadonlyMap<string, AgentContent>,
  skills: Pick<AgentSkills, 'resolve'>,
) => ({
  isCode: (name: string): boolean => code.has(name),
  async find(tenantId: string, name: string): Promise<KnownAgent | null> {
    const content = code.get(name);
    return content === undefined ? storedOrNull(await store.find(tenantId, name)) : codeAgent(content);
  },
  /** A version of a stored agent that still exists. */
  async findVersion(tenantId: string, name: string, version: number): Promise<KnownAgent | null> {
    return storedOrNull(await store.findVersion(tenantId, name, version));
  },
  /** Ordered by name. */
  async list(tenantId: string): Promise<readonly KnownAgent[]> {
    const stored = (await store.list(tenantId)).filter(({ name }) => !code.has(name));
    const agents = [...[...code.values()].map(codeAgent), ...stored.map(storedAgent)];
    // Names are ASCII: the order of UTF-16 units is the order of code points.
    return agents.sort((a, b) => (a.content.name < b.content.name ? -1 : 1));
  },
  /** Follows calls to any depth and shared instructions one hop; the definition itself is not looked up. */
  async reach(tenantId: string, content: AgentContent): Promise<Reached> {
    const stamps = new Map<string, string | null>();
    const agents = await reachAgents(content, async (names) => {
      const reached = new Map<string, AgentContent>();
      const inStore: string[] = [];
      for (const name of names) {
        const agent = code.get(name);
        if (agent === undefined) inStore.push(name);
        else reached.set(name, agent);
      }
      for (const name of inStore) stamps.set(name, null);
      for (const agent of await store.findMany(tenantId, inStore)) {
        stamps.set(agent.name, stampOf(agent));
        reached.set(agent.name, agent.content);
      }
      return reached;
    });
    return { agents, stamps, skills: await skills.resolve(tenantId, content.skillNames) };
  },
});

export type AgentCatalog = ReturnType<typeof createAgentCatalog>;
