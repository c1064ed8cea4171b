import { defineStore } from '../../db/define-store.ts';
import type { LeaseStore } from '../../scheduler/service-leases.ts';

export const serviceLeaseStore = defineStore(
  (storage): LeaseStore => ({
    async take(name, owner, now, until) {
      // One statement: between a look and a write of its own another process could take the same lease.
      const taken = await storage.db
        .insertInto('service_leases')
        .values({ name, owner, lease_until: until })
        .onConflict((conflict) =>
          conflict
            .column('name')
            .doUpdateSet({ owner, lease_until: until })
            .where((eb) =>
              eb.or([eb('service_leases.owner', '=', owner), eb('service_leases.lease_until', '<=', now)]),
            ),
        )
        .returning('name')
        .executeTakeFirst();
      return taken !== undefined;
    },
    async release(name, owner) {
      await storage.db.deleteFrom('service_leases').where('name', '=', name).where('owner', '=', owner).execute();
    },
    async freeAll() {
      await storage.db.deleteFrom('service_leases').execute();
    },
  }),
);
