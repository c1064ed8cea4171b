import type { StopSwitch } from '../../core/emergency.ts';
import type { EmergencyStopRow } from '../../db/tables.ts';

/** The stops in force, in memory. Empty tenant: every tenant; empty agent: every agent of the tenant. */
export interface StopsInForce extends StopSwitch {
  add(row: EmergencyStopRow): void;
  remove(id: string): void;
  replace(rows: readonly EmergencyStopRow[]): void;
  list(): readonly EmergencyStopRow[];
}

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

export const createStopsInForce = (): StopsInForce => {
  let stops: readonly EmergencyStopRow[] = [];
  return {
    reason(tenantId, agentName) {
      if (stops.length === 0) return null;
      const stop = stops.find((row) => covers(row, tenantId, agentName));
      return stop === undefined ? null : `${wordsOf(stop)} by an operator until they resume.`;
    },
    add: (row) => {
      stops = [...stops, row];
    },
    remove: (id) => {
      stops = stops.filter((row) => row.id !== id);
    },
    replace: (rows) => {
      stops = rows;
    },
    list: () => stops,
  };
};
