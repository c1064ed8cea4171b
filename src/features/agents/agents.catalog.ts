import type { AgentSkills } from '../skills/index.ts';
import { isAgentName } from './agent-limits.rules.ts';
import type { ReachableAgents } from './agent-references.rules.ts';
import { listedCallables } from './agent-references.rules.ts';
import type { ReachableSkills } from './agent-skills.rules.ts';
import type { AgentContent } from './agents.content.ts';
import type { AgentStore, StoredAgent } from './agents.store.ts';

/** An agent of either source. Code agents have version 1 and no store behind them. */
export type KnownAgent =
  | { readonly origin: 'code'; readonly content: AgentContent; readonly version: 1 }
  | ({ readonly origin: 'database' } & StoredAgent);

/** What definitions reach, with the names that were looked up in the store on the way. */
export interface Reached {
  readonly agents: ReachableAgents;
  /** Version of each stored agent that was looked up, null where there was none. */
  readonly versions: ReadonlyMap<string, number | null>;
  readonly skills: ReachableSkills;
}

/** Both sources as one: code agents hide stored ones of the same name, everywhere. */
export interface AgentCatalog {
  isCode(name: string): boolean;
  find(tenantId: string, name: string): Promise<KnownAgent | null>;
  /** A version of a stored agent that still exists. */
  findVersion(tenantId: string, name: string, version: number): Promise<KnownAgent | null>;
  /** Ordered by name. */
  list(tenantId: string): Promise<readonly KnownAgent[]>;
  /** Follows calls to any depth and shared instructions one hop; the definition itself is not looked up. */
  reach(tenantId: string, content: AgentContent): Promise<Reached>;
}

export type CodeAgentContents = ReadonlyMap<string, AgentContent>;

const codeAgent = (content: AgentContent): KnownAgent => ({ origin: 'code', content, version: 1 });
const storedAgent = (agent: StoredAgent): KnownAgent => ({ origin: 'database', ...agent });

/** Names that a definition leads to. Malformed ones resolve to nothing and are not worth a query. */
const leadsTo = (content: AgentContent): readonly string[] => listedCallables(content).filter(isAgentName);

/** The walk of `reach`, over any lookup. */
export const reachAgents = async (
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
    const found = names.length === 0 ? new Map<string, AgentContent>() : await lookUp(names);
    for (const [name, agent] of found) agents.set(name, agent);
    next = [...found.values()].flatMap(leadsTo);
  }
  return agents;
};

export const createAgentCatalog = (
  store: AgentStore,
  code: CodeAgentContents,
  skills: Pick<AgentSkills, 'resolve'>,
): AgentCatalog => ({
  isCode: (name) => code.has(name),
  async find(tenantId, name) {
    const content = code.get(name);
    if (content !== undefined) return codeAgent(content);
    const stored = await store.find(tenantId, name);
    return stored === null ? null : storedAgent(stored);
  },
  async findVersion(tenantId, name, version) {
    const stored = await store.findVersion(tenantId, name, version);
    return stored === null ? null : storedAgent(stored);
  },
  async list(tenantId) {
    const stored = (await store.list(tenantId)).filter(({ name }) => !code.has(name));
    const agents = [...[...code.values()].map(codeAgent), ...stored.map(storedAgent)];
    // Names are ASCII: the order of UTF-16 units is the order of code points.
    return agents.sort((a, b) => (a.content.name < b.content.name ? -1 : 1));
  },
  async reach(tenantId, content) {
    const versions = new Map<string, number | null>();
    const agents = await reachAgents(content, async (names) => {
      const found = new Map<string, AgentContent>();
      const inStore: string[] = [];
      for (const name of names) {
        const agent = code.get(name);
        if (agent === undefined) inStore.push(name);
        else found.set(name, agent);
      }
      for (const name of inStore) versions.set(name, null);
      for (const agent of await store.findMany(tenantId, inStore)) {
        versions.set(agent.name, agent.version);
        found.set(agent.name, agent.content);
      }
      return found;
    });
    return { agents, versions, skills: await skills.resolve(tenantId, content.skillNames) };
  },
});
