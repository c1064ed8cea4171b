import { sql } from 'kysely';
import { defineStore } from '../../db/define-store.ts';
import { updateStatement } from '../../db/statement.ts';
import type { HeldLease } from '../../scheduler/background-service.ts';
import type { LeaseStore } from '../../scheduler/service-leases.ts';

interface FencedLeases extends LeaseStore {
  /**
   * Changes nothing, and fails its unit unless the lease is still held in this term. Whoever takes it over waits for the
   * unit, so it comes late in it. Null: nobody else does the work.
   */
  assertHeld(held: HeldLease | null): Promise<void>;
}

export const serviceLeaseStore = defineStore((storage): FencedLeases => {
  const stillHeld = updateStatement(
    storage.db,
    'service_leases',
    ({ name, owner, term }: HeldLease) => ({ set: { term }, where: { name, owner, term } }),
    { mustChange: true, isRepeatable: true },
  );
  return {
    async take(name, owner, now, until) {
      // One statement: between a look and a write of its own another process could take the same lease.
      const taken = await storage.db
        .insertInto('service_leases')
        .values({ name, owner, lease_until: until, term: 1 })
        .onConflict((conflict) =>
          conflict
            .column('name')
            .doUpdateSet((eb) => ({
              owner,
              lease_until: until,
              term: eb
                .case()
                .when('service_leases.owner', '=', owner)
                .then(eb.ref('service_leases.term'))
                .else(sql<number>`${eb.ref('service_leases.term')} + 1`)
                .end(),
            }))
            .where((eb) =>
              eb.or([eb('service_leases.owner', '=', owner), eb('service_leases.lease_until', '<=', now)]),
            ),
        )
        .returning('term')
        .executeTakeFirst();
      return taken?.term ?? null;
    },
    assertHeld: (held) => (held === null ? Promise.resolve() : storage.write([stillHeld(held)])),
    async release(name, owner) {
      // The row stays, with its term: who begins a further one is no earlier holder.
      const freed = storage.db.updateTable('service_leases').set({ owner: '', lease_until: 0 });
      await freed.where('name', '=', name).where('owner', '=', owner).execute();
    },
    async freeAll() {
      await storage.db.deleteFrom('service_leases').execute();
    },
  };
});
