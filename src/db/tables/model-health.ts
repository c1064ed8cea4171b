import { tableOf } from './table-of.ts';

/** What a model provider answered when it was last asked, whichever process asked. */
export interface ModelHealthRow {
  provider_name: string;
  status: string;
  detail: string | null;
  latency_ms: number;
  /** JSON list of ids. */
  models: string;
  /** When the question began: of two results the one that was asked for later stays. */
  asked_at: number;
  checked_at: number;
}

export const modelHealthTables = { model_health: tableOf<ModelHealthRow>() };
