import type { Storage } from '../../db/storage.ts';
import { type EmergencyDeps, emergencyService } from './emergency.service.ts';
import { emergencyStore } from './emergency.store.ts';
import { cancelCovered } from './stopped-runs.ts';

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
  const { stops, engine } = deps;
  // A stop that another process was asked for ends the runs of this one, too.
  stops.onRead((stop) => void cancelCovered(engine, stop, stop.stopped_by));
  return {
    handlers: emergencyService({ ...deps, store, defaultTenantId: config.Service.DefaultTenantId }),
  };
};
