export interface JobRow {
  id: string;
  tenant_id: string;
  handler_key: string;
  lane: string;
  target_name: string;
  status: string;
  payload: string | null;
  attempt: number;
  max_attempts: number;
  lease_owner: string | null;
  lease_until: number | null;
  scheduled_for: number;
  started_at: number | null;
  completed_at: number | null;
  error_code: string | null;
  error_message: string | null;
  created_at: number;
  /** Set on a job that a worker is to stop. */
  cancel_requested_at: number | null;
  cancel_requested_by: string | null;
  schedule_id: string | null;
  /** Which occurrence of its schedule it is; null: it was asked for. */
  occurrence_at: number | null;
  total_items: number;
  /** Completed ones only. */
  done_items: number;
  failed_items: number;
  /** Lower ones go first, within a tenant. */
  rank: number;
  /** Which line of its tenant and lane it stands in: a hash of the key of a flow; empty: that of all without one. */
  line: string;
  /** Of a job that needs places to start: its time, while `scheduled_for` is out of reach for want of them. Null: it needs none. */
  due_at: number | null;
}

/** Which process does a background service's work. */
export interface ServiceLeaseRow {
  name: string;
  owner: string;
  lease_until: number;
  /** How often it was taken over. */
  term: number;
}
