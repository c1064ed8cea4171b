import { serviceLeaseStore } from '../features/jobs/index.ts';
import { createServiceLeases } from '../scheduler/service-leases.ts';
import type { Foundation } from './foundation.ts';
import { processName } from './options.ts';

/** Who of several processes does the background work, as it is configured. */
export const serviceLeases = ({ config, storage, storeClock: clock, log }: Foundation['base']) => {
  const { Enabled: enabled, LeaseDuration: leaseDurationMs, OwnerId } = config.Service.SingletonExecution;
  const store = storage.stores(serviceLeaseStore);
  const leases = createServiceLeases(
    { store, clock, log },
    { enabled, leaseDurationMs, owner: OwnerId ?? processName() },
  );
  return {
    guarded: leases.guarded,
    /** Of the service's life. Released before the runs in progress have ended: others need not wait for them. */
    part: { draining: leases.release },
    leftovers: { serviceLeases: store.freeAll },
  };
};
