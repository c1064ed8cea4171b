import type { Statement } from '../db/statement.ts';
import type { CostMicros } from './pricing.ts';

/** Where a run that is not recorded counts: its root's agent and local day. */
export interface UnrecordedCount {
  readonly rootRunId: string;
  readonly agentName: string;
  readonly day: string;
}

export interface QuotaUse {
  readonly tokens: number;
  readonly costMicros: number;
}

/** What the engine tells the quotas as runs end. */
export interface RunQuotas {
  /**
   * Members of the events that a root run gets before its end, because it crosses a threshold; undefined where such
   * events are off.
   */
  closing(
    run: { tenantId: string; rootRunId: string; userId: string | null } & QuotaUse,
  ): Promise<readonly object[]> | undefined;
  /** Writes that count what a run has used that has no row. */
  unrecorded(tenantId: string, count: UnrecordedCount, use: QuotaUse): readonly Statement[];
  /** A run of the tenant has ended, and what it used is written. */
  ended(tenantId: string): void;
}

export const quotaUse = (tokens: number | null | undefined, cost: CostMicros | null): QuotaUse => ({
  tokens: tokens ?? 0,
  costMicros: cost?.total ?? 0,
});
