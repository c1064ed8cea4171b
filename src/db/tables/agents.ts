import { tableOf } from './table-of.ts';

interface AgentRow {
  tenant_id: string;
  name: string;
  current_version: number;
}

export interface AgentVersionRow {
  tenant_id: string;
  name: string;
  version: number;
  content: string;
  updated_at: number;
  updated_by: string | null;
  restored_from: number | null;
}

/** A file of an agent. `owner`: `session:{id}`, or `run:{id}` for a run without a session. */
interface AgentFileRow {
  tenant_id: string;
  owner: string;
  path: string;
  content: string;
  size_bytes: number;
  updated_at: number;
}

interface AgentStateRow {
  tenant_id: string;
  owner: string;
  /** The todo list as JSON; null until it is written. */
  todos: string | null;
  mode: string | null;
  updated_at: number;
}

export const agentTables = {
  agents: tableOf<AgentRow>(),
  agent_versions: tableOf<AgentVersionRow>(),
  agent_files: tableOf<AgentFileRow>(),
  agent_states: tableOf<AgentStateRow>(),
};
