import type { MemoryStore } from './memory.store.ts';

/** What the tools of the memory need. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly now: () => number;
}
