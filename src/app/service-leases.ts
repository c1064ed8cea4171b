import type { LeftoverClosings } from '../core/instance-state.ts';
import { serviceLeaseStore } from '../features/jobs/index.ts';
import { createServiceLeases, type ServiceLeases } from '../scheduler/service-leases.ts';
import type { Foundation } from './foundation.ts';
import { processName } from './options.ts';

export interface LeasedServices extends Pick<ServiceLeases, 'guarded'> {
  /** What the leases themselves need at the end of the service. */
  readonly part: { draining(): Promise<void> };
  readonly leftovers: LeftoverClosings<'serviceLeases'>;
}

/** Who of several processes does the background work, as it is configured. */
export const serviceLeases = ({ config, storage, clock, log }: Foundation['base']): LeasedServices => {
  const { Enabled: enabled, LeaseDuration: leaseDurationMs, OwnerId } = config.Service.SingletonExecution;
  const store = storage.stores(serviceLeaseStore);
  const leases = createServiceLeases(
    { store, clock, log },
    { enabled, leaseDurationMs, owner: OwnerId ?? processName() },
  );
  return {
    guarded: leases.guarded,
    // Released before the runs in progress have ended: others need not wait for them.
    part: { draining: leases.release },
    leftovers: { serviceLeases: store.freeAll },
  };
};
