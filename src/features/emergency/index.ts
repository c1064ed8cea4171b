import type { Storage } from '../../db/storage.ts';
import { type EmergencyDeps, emergencyService } from './emergency.service.ts';
import { emergencyStore } from './emergency.store.ts';

export { createStopsInForce, type StopsInForce } from './stop-switch.ts';

/** The kill switch: what operators have stopped, and the operations that stop and resume. */
export const emergencyFeature = ({
  storage,
  config,
  ...deps
}: Omit<EmergencyDeps, 'store' | 'defaultTenantId'> & {
  readonly storage: Storage;
  readonly config: { readonly Service: { readonly DefaultTenantId: string } };
}) => {
  const store = storage.stores(emergencyStore);
  return {
    handlers: emergencyService({ ...deps, store, defaultTenantId: config.Service.DefaultTenantId }),
  };
};
