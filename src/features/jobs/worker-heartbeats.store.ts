import { defineStore } from '../../db/define-store.ts';
import { statementOf } from '../../db/statement.ts';
import type { WorkerHeartbeatStore } from '../../scheduler/worker-heartbeats.ts';

// Beside the leases of background services, whose names have no space. Earlier versions leave these rows alone, and their
// workers have none.
const prefix = 'worker ';

const nameOf = (owner: string): string => `${prefix}${owner}`;

/** Heartbeats of workers. A worker without one has its leases until they expire. */
export const workerHeartbeatStore = defineStore((storage): WorkerHeartbeatStore => {
  const { db } = storage;
  return {
    async beat(owner, now, until) {
      const written = db
        .insertInto('service_leases')
        .values({ name: nameOf(owner), owner, lease_until: until, term: now })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ lease_until: until }))
        .returning('term');
      const expired = db
        .selectFrom('service_leases')
        .select('owner')
        .where('name', '>=', prefix)
        .where('name', 'like', `${prefix}%`)
        .where('lease_until', '<', now);
      const [rows, silent] = await storage.exchange([statementOf(written), statementOf(expired)]);
      const [row] = rows as readonly { readonly term: number }[];
      return {
        term: Number(row?.term ?? now),
        silent: (silent as readonly { readonly owner: string }[]).map((each) => each.owner),
      };
    },
    async endLeases(owners, now) {
      const names = owners.map(nameOf);
      const ended = db
        .updateTable('jobs')
        .set({ lease_until: now - 1 })
        .where('status', 'in', ['Leased', 'Running'])
        .where('lease_until', '>=', now)
        .where('lease_owner', 'in', (eb) =>
          eb
            .selectFrom('service_leases')
            .select('service_leases.owner')
            .where('service_leases.name', 'in', names)
            .where('service_leases.lease_until', '<', now),
        )
        .returning('id');
      const removed = db.deleteFrom('service_leases').where('name', 'in', names).where('lease_until', '<', now);
      const [rows = []] = await storage.exchange([statementOf(ended), statementOf(removed)]);
      return rows.length;
    },
    async remove(owner) {
      await db.deleteFrom('service_leases').where('name', '=', nameOf(owner)).execute();
    },
  };
});
