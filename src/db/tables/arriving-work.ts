import { tableOf } from './table-of.ts';

/** One of the things that a job does one after another. */
export interface JobItemRow {
  job_id: string;
  /** From 0. */
  seq: number;
  id: string;
  tenant_id: string;
  /** JSON. */
  input: string | null;
  run_id: string | null;
  /** Which attempt at the job has the run; null without one. */
  attempt: number | null;
  status: string;
  error: string | null;
}

export interface ScheduleRow {
  tenant_id: string;
  name: string;
  id: string;
  handler_key: string;
  lane: string;
  target_name: string;
  cron: string | null;
  time_zone: string;
  /** JSON. */
  payload: string | null;
  enabled: number;
  /** Null: it is disabled, or has no cron. */
  next_run_at: number | null;
  last_run_at: number | null;
  /** JSON object; null: none. */
  labels: string | null;
  created_by: string | null;
  created_at: number;
  updated_at: number;
}

export interface WebhookRow {
  tenant_id: string;
  name: string;
  id: string;
  url: string;
  /** JSON list of kinds. */
  events: string;
  /** Configuration key of the signing secret. */
  secret_key: string;
  /** JSON object; null: none. */
  headers: string | null;
  /** JSON object; null: none. */
  labels: string | null;
  disabled_reason: string | null;
  enabled: number;
  consecutive_failures: number;
  created_at: number;
  updated_at: number;
}

/** One event for one subscription; its id is that of its job. */
export interface WebhookDeliveryRow {
  id: string;
  webhook_id: string;
  tenant_id: string;
  event_type: string;
  /** The body as it is sent. */
  payload: string;
  status: string;
  error: string | null;
  /** Attempts made. */
  attempt: number;
  /** How many of them were made before it was sent again: delays are those of the others. */
  attempts_before: number;
  response_code: number | null;
  next_attempt_at: number | null;
  created_at: number;
  delivered_at: number | null;
}

export interface TriggerRow {
  tenant_id: string;
  name: string;
  id: string;
  target_kind: string;
  target_name: string;
  /** How its sender signs. */
  scheme: string;
  /** Configuration key of the secret. */
  secret_key: string;
  payload_mode: string;
  payload_path: string | null;
  /** How its calls are let in, as it was saved: JSON object; null: at once. */
  flow: string | null;
  /** JSON object; null: none. */
  labels: string | null;
  enabled: number;
  last_accepted_at: number | null;
  created_at: number;
  updated_at: number;
}

/** An id that a trigger of this name has accepted. */
export interface TriggerCallRow {
  tenant_id: string;
  trigger_name: string;
  call_id: string;
  run_id: string;
  /** Until then it is not accepted again. */
  kept_until: number;
}

export const arrivingWorkTables = {
  job_items: tableOf<JobItemRow>(),
  schedules: tableOf<ScheduleRow>(),
  webhooks: tableOf<WebhookRow>(),
  webhook_deliveries: tableOf<WebhookDeliveryRow>(),
  triggers: tableOf<TriggerRow>(),
  trigger_calls: tableOf<TriggerCallRow>(),
};
