import type { AuditTrail } from '../../core/audit.ts';
import type { Config } from '../../core/config/index.ts';
import type { Storage } from '../../db/storage.ts';
import { tenantService } from './tenants.service.ts';
import { createTenantStore } from './tenants.store.ts';

export { assertMayAddress } from './tenants.service.ts';

export interface TenantsDeps {
  readonly storage: Storage;
  readonly audit: Pick<AuditTrail, 'note'>;
  readonly config: Config;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Records of tenants: optional labels, which nothing else needs. */
export const tenantsFeature = ({ config, storage, ...deps }: TenantsDeps) => ({
  handlers: tenantService({
    ...deps,
    store: createTenantStore(storage),
    defaultTenantId: config.Service.DefaultTenantId,
  }),
});
