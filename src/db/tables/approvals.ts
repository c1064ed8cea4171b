import { tableOf } from './table-of.ts';

export interface ApprovalRow {
  id: string;
  tenant_id: string;
  run_id: string;
  agent_name: string;
  session_id: string;
  request_id: string;
  tool_call_id: string;
  tool_name: string;
  /** 1: the answer of the run carries the request too, so that the next run of the session may decide it. */
  in_band: number;
  /** Canonical JSON, whole; null where tool payloads are not recorded. */
  arguments: string | null;
  arguments_hash: string;
  presentation: string | null;
  status: string;
  decided_by: string | null;
  decided_at: number | null;
  reason: string | null;
  expires_at: number | null;
  created_at: number;
}

export interface ApprovalHandoverRow {
  run_id: string;
  tenant_id: string;
  session_id: string;
  agent_name: string;
  agent_version: number;
  continuation_run_id: string;
  lane: string;
  /** JSON that the continuation is made of. */
  context: string;
  /**
   * Waiting; Queued once it goes on; Answered when the session's next run brought the decisions, whose id is then the
   * continuation's; Lapsed when no decision came; Dropped when the session went.
   */
  state: string;
  version: number;
  created_at: number;
}

export interface ApprovalRuleRow {
  id: string;
  tenant_id: string;
  /** Empty: all agents. */
  agent_name: string;
  tool_name: string;
  arguments_hash: string | null;
  argument_conditions: string;
  match_key: string;
  /** JSON; null without any. */
  labels: string | null;
  created_by: string | null;
  created_at: number;
}

export interface SessionRequestRow {
  tenant_id: string;
  session_id: string;
  run_id: string;
  /** The request's id; for a client-side call the call's. */
  id: string;
  kind: string;
  tool_call_id: string;
  tool_name: string;
  /** InBand or Mailbox. */
  channel: string;
  /** Open, Answered or Void. */
  state: string;
  idempotency_key: string;
  position: number;
  /** Sealed JSON of a question that a remote tool asks; null for others, and once it is answered. */
  asked: string | null;
  /** Of the agent in which the turn paused; null: an earlier version of the service has paused it. */
  agent_version: number | null;
  /** When that version was saved; 0: an agent of code. */
  agent_saved_at: number | null;
  created_at: number;
}

export const approvalTables = {
  approvals: tableOf<ApprovalRow>(),
  approval_handovers: tableOf<ApprovalHandoverRow>(),
  approval_rules: tableOf<ApprovalRuleRow>(),
  session_requests: tableOf<SessionRequestRow>(),
};
