import type { QuotaRule, QuotaStore } from './quotas.store.ts';

/** The rules of each tenant, kept in memory: a run asks no store whether it is limited. */
export interface QuotaRules {
  /** Rejects when they are not in memory and the store cannot be read. */
  of(tenantId: string): Promise<readonly QuotaRule[]>;
  /** As `of`, from memory alone; undefined: not known. */
  known(tenantId: string): readonly QuotaRule[] | undefined;
  /** Called after a rule was written. */
  changed(tenantId: string): void;
}

// Tenants beyond this are read again; a map that never forgets would grow with every tenant there ever was.
const mostTenants = 10_000;

export const createQuotaRules = (store: Pick<QuotaStore, 'list'>): QuotaRules => {
  const read = new Map<string, readonly QuotaRule[]>();
  const reading = new Map<string, Promise<readonly QuotaRule[]>>();
  return {
    of(tenantId) {
      const rules = read.get(tenantId);
      if (rules !== undefined) return Promise.resolve(rules);
      const begun = reading.get(tenantId);
      if (begun !== undefined) return begun;
      const now = store.list(tenantId).then(
        (found) => {
          // What was written meanwhile is not in it.
          if (reading.get(tenantId) === now) {
            reading.delete(tenantId);
            if (read.size >= mostTenants) read.clear();
            read.set(tenantId, found);
          }
          return found;
        },
        (error: unknown) => {
          if (reading.get(tenantId) === now) reading.delete(tenantId);
          throw error;
        },
      );
      reading.set(tenantId, now);
      return now;
    },
    known: (tenantId) => read.get(tenantId),
    changed(tenantId) {
      read.delete(tenantId);
      reading.delete(tenantId);
    },
  };
};
