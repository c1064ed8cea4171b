import type { Storage } from '../../db/storage.ts';
import { type EmergencyDeps, emergencyService } from './emergency.service.ts';
import { createEmergencyStore } from './emergency.store.ts';

export { createStopsInForce, type StopsInForce } from './stop-switch.ts';

/** The kill switch: what operators have stopped, and the operations that stop and resume. */
export const emergencyFeature = ({
  storage,
  config,
  runHandlerKeys,
  ...deps
}: Omit<EmergencyDeps, 'store' | 'defaultTenantId'> & {
  readonly storage: Storage;
  /** Of the jobs that run agents. */
  readonly runHandlerKeys: readonly string[];
  readonly config: { readonly Service: { readonly DefaultTenantId: string } };
}) => {
  const store = createEmergencyStore(storage, runHandlerKeys);
  return {
    handlers: emergencyService({ ...deps, store, defaultTenantId: config.Service.DefaultTenantId }),
  };
};
