import type { SkillStore, StoredSkill } from './skills.store.ts';

/**
 * Stored skills as agents are compiled from. Fingerprints are asked for before every run, so that an edit reaches the
 * next one; the owner of a store may remember them, because nothing but its own writes can change them.
 */
export interface CurrentSkills {
  /** Of each name, empty where the tenant has no such skill. */
  fingerprints(tenantId: string, names: readonly string[]): Promise<readonly string[]>;
  findMany(tenantId: string, names: readonly string[]): Promise<readonly StoredSkill[]>;
  /** To be called after every committed write of this process. */
  changed(tenantId: string, name: string): void;
}

export const sharedSkills = (store: SkillStore): CurrentSkills => ({
  fingerprints: (tenantId, names) => store.fingerprints(tenantId, names),
  findMany: (tenantId, names) => store.findMany(tenantId, names),
  changed: () => undefined,
});

export const ownedSkills = (store: SkillStore): CurrentSkills => {
  // No tenant slug has a slash. Names without a skill are not remembered, so that they cannot fill the memory.
  const known = new Map<string, string>();
  // A read that began before a write must not be remembered after it.
  let writes = 0;
  return {
    async fingerprints(tenantId, names) {
      const found = names.map((name) => known.get(`${tenantId}/${name}`));
      if (!found.includes(undefined)) return found as readonly string[];
      const before = writes;
      const read = await store.fingerprints(tenantId, names);
      for (const [index, fingerprint] of read.entries())
        if (writes === before && fingerprint !== '') known.set(`${tenantId}/${names[index]}`, fingerprint);
      return read;
    },
    findMany: (tenantId, names) => store.findMany(tenantId, names),
    changed(tenantId, name) {
      writes += 1;
      known.delete(`${tenantId}/${name}`);
    },
  };
};
