import type { Config } from '../../core/config/index.ts';
import type { Storage } from '../../db/storage.ts';
import type { AuditLog } from '../audit/index.ts';
import { tenantService } from './tenants.service.ts';
import { tenantStore } from './tenants.store.ts';

export { assertMayAddress } from './tenants.service.ts';

export interface TenantsDeps {
  readonly storage: Storage;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly config: Config;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Records of tenants: optional labels, which nothing else needs. */
export const tenantsFeature = ({ config, storage, ...deps }: TenantsDeps) => ({
  handlers: tenantService({
    ...deps,
    store: storage.stores(tenantStore),
    defaultTenantId: config.Service.DefaultTenantId,
  }),
});
