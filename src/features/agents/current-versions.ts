import type { AgentStore } from './agents.store.ts';

/**
 * Numbers of current versions, 0 for a name without a stored agent. It is asked before every run, and is a port
 * because the answer depends on who else writes: the owner of a store may remember (below), a process that shares its
 * store asks it each time, with one indexed read.
 */
export interface CurrentVersions {
  /** What is known without asking the store; null: `current` says it. */
  known(tenantId: string, names: readonly string[]): readonly number[] | null;
  current(tenantId: string, names: readonly string[]): Promise<readonly number[]>;
  /** To be called after every committed write of this process. */
  changed(tenantId: string, name: string): void;
}

export const sharedVersions = (store: AgentStore): CurrentVersions => ({
  known: () => null,
  current: (tenantId, names) => store.currentVersions(tenantId, names),
  changed: () => undefined,
});

/**
 * Remembers versions for the process that alone writes the store: nothing but its own writes can change them. Names
 * without an agent are not remembered, so that calls of unknown names cannot fill the memory.
 */
export const ownedVersions = (store: AgentStore): CurrentVersions => {
  const byTenant = new Map<string, Map<string, number>>();
  // A read that began before a write must not be remembered after it.
  let writes = 0;
  const remembered = (tenantId: string): Map<string, number> => {
    const versions = byTenant.get(tenantId) ?? new Map<string, number>();
    byTenant.set(tenantId, versions);
    return versions;
  };
  const known = (tenantId: string, names: readonly string[]): readonly number[] | null => {
    const versions = byTenant.get(tenantId);
    const found: number[] = [];
    for (const name of names) {
      const version = versions?.get(name);
      if (version === undefined) return null;
      found.push(version);
    }
    return found;
  };
  const load = async (tenantId: string, names: readonly string[]): Promise<readonly number[]> => {
    const writesBefore = writes;
    const versions = await store.currentVersions(tenantId, names);
    for (const [index, version] of versions.entries())
      if (writes === writesBefore && version > 0) remembered(tenantId).set(names[index] ?? '', version);
    return versions;
  };
  return {
    known,
    current: async (tenantId, names) => known(tenantId, names) ?? load(tenantId, names),
    changed(tenantId, name) {
      writes += 1;
      byTenant.get(tenantId)?.delete(name);
    },
  };
};
