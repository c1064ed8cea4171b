import type { Storage } from '../../db/storage.ts';
import type { AuditChainVerification } from './audit.schema.ts';
import { type AuditReadingStore, auditReadingStore } from './audit-reading.store.ts';
import { checkChain } from './chain-check.rules.ts';
import { walkChain } from './chain-walk.ts';

export interface TrailVerification extends AuditChainVerification {
  readonly tenantId: string;
}

const verifyTrail = async (store: AuditReadingStore, tenantId: string): Promise<TrailVerification> => {
  const walk = walkChain(store, tenantId, { after: null, before: null });
  const check = checkChain(true);
  for await (const entry of walk.entries) if (!check.take(entry)) break;
  return { tenantId, ...check.end(walk.head()) };
};

/** The whole trails of all tenants of a store, for whoever copies or checks one. */
export const verifyTrails = async (storage: Storage): Promise<readonly TrailVerification[]> => {
  const store = storage.stores(auditReadingStore);
  const trails: TrailVerification[] = [];
  for (const tenantId of await store.tenants()) trails.push(await verifyTrail(store, tenantId));
  return trails;
};
