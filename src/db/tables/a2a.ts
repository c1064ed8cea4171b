import { tableOf } from './table-of.ts';

/** A message that another agent has sent, by its id alone, and the task that it made. */
export interface A2AMessageRow {
  tenant_id: string;
  agent_name: string;
  /** The caller behind its door. */
  door: string;
  message_id: string;
  /** Id of its run. */
  task_id: string;
  created_at: number;
  /** Until then a message with this id is answered with the task. */
  kept_until: number;
}

export const a2aTables = { a2a_messages: tableOf<A2AMessageRow>() };
