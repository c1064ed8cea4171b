import { agentTables } from './tables/agents.ts';
import { featureTables } from './tables/features.ts';
import type { JobRow, ServiceLeaseRow } from './tables/jobs.ts';
import { sessionTables } from './tables/sessions.ts';
import { type RowsOf, tableOf } from './tables/table-of.ts';

/**
 * Rows as they are stored, the same on every database: ids are text, times epoch milliseconds,
 * booleans 0 or 1, money integer micro-units, JSON text that the stores decode.
 */
export interface RunRow {
  id: string;
  tenant_id: string;
  agent_name: string;
  kind: string;
  status: string;
  created_at: number;
  started_at: number | null;
  completed_at: number | null;
  agent_version: number | null;
  model_provider: string | null;
  model_id: string | null;
  is_streaming: number;
  job_id: string | null;
  session_id: string | null;
  user_id: string | null;
  labels: string | null;
  parent_run_id: string | null;
  root_run_id: string | null;
  depth: number;
  child_run_count: number;
  replay_of_run_id: string | null;
  continued_from_run_id: string | null;
  input_tokens: number | null;
  output_tokens: number | null;
  total_tokens: number | null;
  cached_input_tokens: number | null;
  reasoning_tokens: number | null;
  audio_input_tokens: number | null;
  audio_output_tokens: number | null;
  /** RunCost as JSON, amounts in micro-units; null while the run is open. */
  cost: string | null;
  total_cost_micros: number | null;
  error_type: string | null;
  error_class: string | null;
  error_message: string | null;
  error_fingerprint: string | null;
  /** ProviderNames as JSON. */
  error_provider: string | null;
  event_count: number;
  /** Whose run it is while sessions have owners: the owner of its session, else its caller. */
  owner_id: string | null;
  /** Local day whose quotas a root run counts in; null: none. */
  quota_day: string | null;
  /** 1: the cost was found after the run had been counted. */
  cost_recalculated: number | null;
  /** Through which protocol another system started it, and which one; null: none did. */
  door: string | null;
  /** RemoteTask as JSON: what of the run another system does; null: nothing. */
  remote_task: string | null;
  /** When its version of its agent was saved; 0: an agent of code. Null: not known. */
  agent_saved_at: number | null;
  /** StoredShare[] as JSON: what each of its models used; null: all of it is of the one that the row names. */
  model_shares: string | null;
}

export interface RunEventRow {
  run_id: string;
  first_sequence: number;
  last_sequence: number;
  /** A pack of consecutive events; see engine/event-pack. */
  events: string;
}

export interface RunInputRow {
  run_id: string;
  messages: string;
  /** Culture, parameters and length of the history as JSON; null when the run had none of them. */
  context: string | null;
}

/** What was sent to the model in each call of a run, as hashes, and which tools each answer called. */
export interface RunModelCallsRow {
  run_id: string;
  calls: string;
}

/** One step of a turn that is not finished; see engine/turn-steps. */
export interface RunStepRow {
  run_id: string;
  sequence: number;
  content: string;
}

/** The last sign of life of a run, where instances look after each other's runs. */
export interface RunHeartbeatRow {
  run_id: string;
  beat_at: number;
}

/** One label of a run, for the list's filter. */
export interface RunLabelRow {
  tenant_id: string;
  key: string;
  value: string;
  run_id: string;
}

export interface RunScoreRow {
  id: string;
  tenant_id: string;
  run_id: string;
  /** Empty: the whole run. */
  message_id: string;
  name: string;
  kind: string;
  value: number | null;
  text_value: string | null;
  comment: string | null;
  source: string;
  /** Empty: a caller without a name. */
  author: string;
  evaluator_version: string | null;
  created_at: number;
}

/** `called` of a call that has asked for input. */
export const askedCall = 2;

export interface ToolInvocationRow {
  id: string;
  tenant_id: string;
  run_id: string;
  tool_call_id: string;
  tool_name: string;
  source: string | null;
  effect: string;
  idempotency_key: string;
  /** Pending until the outcome is known, then Settled; Unknown when the attempt ended before that. */
  state: string;
  arguments: string | null;
  result: string | null;
  truncated: number;
  error: string | null;
  succeeded: number;
  authorization_denied: number;
  timed_out: number;
  duration_ms: number | null;
  usage: string | null;
  created_at: number;
  settled_at: number | null;
  /** Order of settling within the run, from 0. */
  settled_order: number | null;
  /** 0: refused before the tool was called. 2: it has asked for input, and is called again with it. */
  called: number;
}

export interface IdempotencyKeyRow {
  tenant_id: string;
  key: string;
  fingerprint: string;
  /** Null while the first request is in progress. */
  status: number | null;
  headers: string | null;
  body: string | null;
  locked_until: number;
  created_at: number;
  /** Of the request that made the mark; empty in rows of older builds. */
  claim: string;
}

export interface AuditEntryRow {
  tenant_id: string;
  id: string;
  actor: string | null;
  action: string;
  entity: string;
  /** JSON text, masked; null where the entity did not exist. */
  before: string | null;
  after: string | null;
  created_at: number;
  previous_hash: string | null;
  hash: string;
}

/** A model's answer that equal calls of the tenant get again. */
export interface ResponseCacheRow {
  /** Of tenant and call. */
  id: string;
  tenant_id: string;
  answer: string;
  created_at: number;
  expires_at: number;
}

/** The end of a tenant's chain of audit entries. */
export interface AuditHeadRow {
  tenant_id: string;
  entry_count: number;
  newest_id: string | null;
  newest_hash: string | null;
  newest_at: number;
}

export interface AttachmentRow {
  id: string;
  tenant_id: string;
  session_id: string | null;
  run_id: string | null;
  file_name: string;
  media_type: string;
  byte_size: number;
  /** With the tenant, where the bytes are; several rows may have the same. */
  sha256: string;
  created_by: string | null;
  user_id: string | null;
  /** Whose it is while it has no session, or one that is gone; null while sessions have no owners. */
  owner_id: string | null;
  created_at: number;
}

export interface EmergencyStopRow {
  id: string;
  scope: string;
  /** Empty: every tenant. */
  tenant_id: string;
  /** Empty: every agent. */
  agent_name: string;
  requested_by_tenant: string;
  reason: string | null;
  stopped_by: string | null;
  stopped_at: number;
  resumed_by: string | null;
  resumed_at: number | null;
}

export interface SchemaMigrationRow {
  name: string;
  checksum: string;
  applied_at: number;
  /** The last migration of the oldest version that can work with this one; null: none but those that know it. */
  works_from: string | null;
}

const tables = {
  ...agentTables,
  runs: tableOf<RunRow>(),
  run_events: tableOf<RunEventRow>(),
  run_inputs: tableOf<RunInputRow>(),
  run_steps: tableOf<RunStepRow>(),
  run_heartbeats: tableOf<RunHeartbeatRow>(),
  run_labels: tableOf<RunLabelRow>(),
  run_scores: tableOf<RunScoreRow>(),
  run_model_calls: tableOf<RunModelCallsRow>(),
  tool_invocations: tableOf<ToolInvocationRow>(),
  ...sessionTables,
  jobs: tableOf<JobRow>(),
  service_leases: tableOf<ServiceLeaseRow>(),
  idempotency_keys: tableOf<IdempotencyKeyRow>(),
  response_cache: tableOf<ResponseCacheRow>(),
  audit_entries: tableOf<AuditEntryRow>(),
  audit_heads: tableOf<AuditHeadRow>(),
  attachments: tableOf<AttachmentRow>(),
  emergency_stops: tableOf<EmergencyStopRow>(),
  ...featureTables,
  schema_migrations: tableOf<SchemaMigrationRow>(),
};

/** At the target of a move alone, from its first row to its last check: see `move/move-record.ts`. */
export interface MoveRecordRow {
  /** A table; empty: the move as a whole. */
  part: string;
  /** How far it has come, as JSON. */
  progress: string;
}

const passingTables = { move_record: tableOf<MoveRecordRow>() };

export type Tables = RowsOf<typeof tables & typeof passingTables>;

/** Every table of a store. */
export const tableNames = Object.keys(tables) as readonly (keyof Tables)[];

/** With those that a store has for a while. */
export const namedTables: readonly string[] = [...tableNames, ...Object.keys(passingTables)];
