import { tableOf } from './table-of.ts';

/** The card of a remote agent as a person of a tenant has approved it. */
export interface RemoteAgentPinRow {
  tenant_id: string;
  name: string;
  hash: string;
  /** JSON. */
  card: string;
  /** Null: nobody who has a name. */
  pinned_by: string | null;
  pinned_at: number;
}

export const remoteAgentTables = { remote_agent_pins: tableOf<RemoteAgentPinRow>() };
