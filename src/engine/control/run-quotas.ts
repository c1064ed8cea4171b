import type { Statement } from '../../db/statement.ts';
import type { CostMicros, UnitPrices } from '../pricing.ts';

/** Where a run that is not recorded counts: its root's agent and local day. */
export interface UnrecordedCount {
  readonly rootRunId: string;
  readonly agentName: string;
  readonly day: string;
  /** False: the store did not take that it runs; what it uses is kept with that. */
  readonly isWritten: boolean;
}

export interface QuotaUse {
  readonly tokens: number;
  readonly costMicros: number;
}

/** A model call that is about to be made. */
export interface BoundedCall {
  readonly tenantId: string;
  readonly runId: string;
  /** `day`: where the root counts when it has no row. */
  readonly root: { readonly id: string; readonly agentName: string; readonly day: string | null };
  /** What the run has used so far, in earlier attempts, too. */
  readonly spent: QuotaUse;
  /** No provider counts more for what is sent. */
  readonly inputTokens: number;
  /** What the agent allows, or else the model can answer at most; null: nobody says. */
  readonly outputTokens: number | null;
  readonly prices: UnitPrices;
  readonly signal: AbortSignal;
}

/** A part of the quotas that belongs to one model call until it is over. */
export interface CallAllowance {
  /** Tokens that the call may answer with; null: as many as it likes. */
  readonly outputTokens: number | null;
  /** Less than the call asked for. */
  readonly isCut: boolean;
  /** No limit applies: the call is made as it is. */
  readonly isFree: boolean;
  /** Frees what the call has not used; to be called whatever became of it. */
  settle(use: QuotaUse): void;
}

/** Quotas that no call may pass (`Quotas:Strict`). */
export interface CallAllowances {
  /** From memory: false where no limit of tokens or cost applies. */
  apply(tenantId: string, agentName: string): boolean;
  /**
   * Waits while other calls hold what this one needs. Throws RunFailure `quota_exceeded` when the call does not fit into
   * what is left.
   */
  allow(call: BoundedCall): Promise<CallAllowance>;
  /** Of a call that no limit applies to now: what it uses counts all the same, should a rule be saved before its run ends. */
  free(call: Pick<BoundedCall, 'tenantId' | 'runId' | 'root' | 'spent'>): Promise<CallAllowance>;
}

/** A run that the store did not take. */
export interface UnwrittenRun {
  readonly tenantId: string;
  readonly id: string;
  readonly root: { readonly id: string; readonly agentName: string };
  /** It has to be admitted: neither a child, nor a turn that goes on. */
  readonly isAdmission: boolean;
}

/** What the engine tells the quotas as runs go on and end. */
export interface RunQuotas {
  /** Null: runs are limited when they start only. */
  readonly calls: CallAllowances | null;
  /**
   * Members of the events that a root run gets before its end, because it crosses a threshold; undefined where such
   * events are off.
   */
  closing(
    run: { tenantId: string; rootRunId: string; userId: string | null } & QuotaUse,
  ): Promise<readonly object[]> | undefined;
  /** Writes that count what a run has used that has no row. */
  unrecorded(tenantId: string, count: UnrecordedCount, use: QuotaUse): readonly Statement[];
  /**
   * Keeps in memory that a run counts, until the store takes it. False: a run that a quota limits is not made without
   * its admission in the store.
   */
  unwritten(run: UnwrittenRun, error: unknown): boolean;
  /** The store has taken a run after its end. */
  writtenLate(runId: string): void;
  /** The store will not get the record of a run; what it has used is booked without it. */
  recordDropped(runId: string): void;
  /**
   * A run of the tenant has ended here. `isBooked`: what it used is written; else it goes on later, or is written later.
   * `isLost`: another process has closed it or executes it, and what is stored of it is that one's. `use`: of the run
   * itself, without its children.
   */
  ended(
    run: {
      tenantId: string;
      runId: string;
      isBooked: boolean;
      isLost: boolean;
      count: UnrecordedCount | null;
    } & QuotaUse,
  ): void;
}

export const quotaUse = (tokens: number | null | undefined, cost: CostMicros | null): QuotaUse => ({
  tokens: tokens ?? 0,
  costMicros: cost?.total ?? 0,
});
