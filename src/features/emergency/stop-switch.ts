import type { InstanceState } from '../../core/instance-state.ts';
import type { Storage } from '../../db/storage.ts';
import type { EmergencyStopRow } from '../../db/tables.ts';
import { emergencyStore } from './emergency.store.ts';

/** Whether a stop is about what runs an agent of a tenant. */
export const covers = (
  { tenant_id, agent_name }: Pick<EmergencyStopRow, 'tenant_id' | 'agent_name'>,
  tenantId: string,
  agentName: string,
): boolean => (tenant_id === '' || tenant_id === tenantId) && (agent_name === '' || agent_name === agentName);

const wordsOf = ({ scope, tenant_id, agent_name }: EmergencyStopRow): string => {
  if (scope === 'All') return 'All agents are stopped';
  return scope === 'Tenant' ? `The agents of tenant "${tenant_id}" are stopped` : `Agent "${agent_name}" is stopped`;
};

/**
 * The stops in force, in memory. Empty tenant: every tenant; empty agent: every agent of the tenant. What was stopped
 * when the last process ended stays stopped. Design: docs/design/agents-and-skills.md.
 */
export const createStopsInForce = (state: Pick<InstanceState, 'table'>, storage: Storage) => {
  const store = storage.stores(emergencyStore);
  const stops = state.table('emergencyStops', { read: () => store.inForce(), keyOf: ({ id }) => id });
  /** Put in force by this process, which cancels what they cover once they are written, and answers with it. */
  const own = new Set<string>();
  return {
    reason(tenantId: string, agentName: string): string | null {
      const { rows } = stops;
      if (rows.size === 0) return null;
      const stop = rows.values().find((row) => covers(row, tenantId, agentName));
      return stop === undefined ? null : `${wordsOf(stop)} by an operator until they resume.`;
    },
    current: stops.current,
    refresh: stops.refresh,
    /** Before the commit that writes it. */
    begin(stop: EmergencyStopRow): void {
      own.add(stop.id);
      stops.ahead(stop);
    },
    /** After it. */
    add: stops.put,
    /** Also after a commit that failed, or whose end is unknown: a read that still finds it then is the first. */
    remove(id: string): void {
      own.delete(id);
      stops.drop(id);
    },
    list: (): readonly EmergencyStopRow[] => [...stops.rows.values()],
    /** Called once with each stop that was read from the store and that another process has put in force. */
    onRead(listener: (stop: EmergencyStopRow) => void): void {
      let seen: ReadonlySet<string> = new Set();
      stops.onRead(() => {
        const { rows } = stops;
        for (const id of own) if (!rows.has(id)) own.delete(id);
        for (const row of rows.values()) if (!seen.has(row.id) && !own.has(row.id)) listener(row);
        seen = new Set([...rows.keys()].filter((id) => !own.has(id)));
      });
    },
  };
};

export type StopsInForce = ReturnType<typeof createStopsInForce>;
