import { type StoreEntries, tenantKey } from '../../core/instance-state.ts';
import type { AgentSkill, HostSkills } from './host-skills.ts';
import type { SkillStore } from './skills.store.ts';

// Skills in memory that agents share; past it the oldest is only no longer shared.
const maxShared = 1000;

/** Where agents get their skills from. `most` is how many skills an agent may name; what stands behind them has its own finding and is not looked up. */
export const createAgentSkills = (
  store: Pick<SkillStore, 'findMany'>,
  fingerprints: StoreEntries<string>,
  host: HostSkills,
  most: number,
) => {
  // Agents that name the same skill hold one copy of its texts, which may have megabytes.
  const shared = new Map<string, WeakRef<AgentSkill>>();
  const share = (tenantId: string, skill: AgentSkill): AgentSkill => {
    const key = `${tenantId}/${skill.name}`;
    const held = shared.get(key)?.deref();
    if (held?.fingerprint === skill.fingerprint) return held;
    const oldest = shared.keys().next();
    if (shared.size >= maxShared && oldest.done !== true) shared.delete(oldest.value);
    shared.delete(key);
    shared.set(key, new WeakRef(skill));
    return skill;
  };
  return {
    /** Skills by name; a host skill hides a stored one. Names without a skill are left out. */
    async resolve(tenantId: string, names: readonly string[]): Promise<ReadonlyMap<string, AgentSkill>> {
      const resolved = new Map<string, AgentSkill>();
      const inStore: string[] = [];
      for (const name of new Set(names.slice(0, most))) {
        const skill = host.get(name);
        if (skill === undefined) inStore.push(name);
        else resolved.set(name, skill);
      }
      for (const skill of await store.findMany(tenantId, inStore))
        resolved.set(skill.name, share(tenantId, { ...skill, origin: 'stored' }));
      return resolved;
    },
    /** Changes with anything an agent gets of a skill; empty for a name without one. Asked before every run. */
    async fingerprints(tenantId: string, names: readonly string[]): Promise<readonly string[]> {
      const asked = names.slice(0, most);
      const inStore = asked.filter((name) => !host.has(name));
      const stored = await fingerprints.readAll(inStore.map((name) => tenantKey(tenantId, name)));
      const byName = new Map(inStore.map((name, index) => [name, stored[index] ?? '']));
      return asked.map((name) => host.get(name)?.fingerprint ?? byName.get(name) ?? '');
    },
  };
};

export type AgentSkills = ReturnType<typeof createAgentSkills>;
