import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { RetentionRunRow } from '../../db/tables/retention.ts';
import { withDeadline } from '../../engine/tools/index.ts';
import type { ArchiveSink } from './archive.ts';
import { cutoffOf, type EffectivePolicy } from './effective-policy.rules.ts';
import type { RetentionTarget } from './retention.schema.ts';
import { type RetentionStore, retentionStore } from './retention-policies.store.ts';
import { createSweepMetrics } from './sweep-metrics.ts';
import type { SweepPiece, SweepRemoval } from './sweep-removal.store.ts';
import type { SweepRows } from './sweep-rows.store.ts';
import { type SweepBound, type SweepUnit, type SweepUnits, sweptUntil } from './sweep-units.store.ts';
import type { BegunSweep } from './sweep-whole.ts';
import { createSweepWriter, type SweepWriter } from './sweep-writer.ts';

/** Deletes a unit of a target whose rows have bytes or messages elsewhere; false: it is in use again, and stays. */
export type RemoveUnit = (tenantId: string, unit: SweepUnit) => Promise<boolean>;

export interface SweepDeps {
  readonly storage: Pick<Storage, 'transaction' | 'dialect'>;
  readonly store: RetentionStore;
  readonly units: SweepUnits;
  readonly removal: SweepRemoval;
  readonly rows: SweepRows;
  readonly removeUnit: Readonly<Partial<Record<RetentionTarget, RemoveUnit>>>;
  readonly sink: ArchiveSink | null;
  readonly batchSize: number;
  readonly batchDelayMs: number;
  readonly telemetry: Telemetry;
  readonly log: Pick<Logger, 'error' | 'info'>;
  readonly now: () => number;
  readonly newId: () => string;
}

export interface SweepOrder {
  readonly tenantId: string;
  readonly target: RetentionTarget;
  readonly policy: EffectivePolicy;
  readonly jobId: string;
  readonly trigger: 'Schedule' | 'Manual';
  /** Span of the job. */
  readonly trace: TraceParent | null;
  /** What has gone with whole partitions; absent: nothing. */
  readonly begun?: BegunSweep;
  /** Why to stop between batches; null: go on. */
  readonly stop: () => 'canceled' | 'released' | null;
}

export interface SweepOutcome {
  readonly deletedRows: number;
  /** Stable code; null: it ran to its end. */
  readonly error: string | null;
}

// A sink that needs longer for a batch is not there.
const sinkTimeoutMs = 60_000;
const clearedAtOnce = 200;
const piecesAtOnce = 1000;
// Keys come from another thread, and unpacking them takes the event loop: a thousand, about a millisecond.
const unitsAtOnce = 1000;
/** How soon a pause between two batches notices that the sweep has to stop. */
const pauseStepMs = 200;

class SweepError extends Error {
  readonly code: string;

  constructor(code: string, cause?: unknown) {
    super(`The sweep ended with ${code}.`, { cause });
    this.name = 'SweepError';
    this.code = code;
  }
}

/** As many units as a batch may have rows; one at least. */
const batchOf = (units: readonly SweepUnit[], batchSize: number): readonly SweepUnit[] => {
  let rows = 0;
  const end = units.findIndex((unit) => {
    rows += unit.rows;
    return rows > batchSize;
  });
  return end === -1 ? units : units.slice(0, Math.max(end, 1));
};

interface SweepState extends SweepOrder {
  readonly deps: SweepDeps;
  readonly run: RetentionRunRow;
  readonly writer: SweepWriter;
  isRecorded: boolean;
  isMarked: boolean;
  deletedRows: number;
  batches: number;
}

const stopIfAsked = ({ stop }: SweepState): void => {
  const reason = stop();
  if (reason !== null) throw new SweepError(reason);
};

/** A scheduled sweep that finds nothing leaves no entry. */
const record = async (state: SweepState): Promise<void> => {
  if (state.isRecorded) return;
  state.isRecorded = true;
  await state.deps.store.start(state.run);
};

/** Before the first row goes: what is missing from then on is no damage. */
const begin = async (state: SweepState, bound: SweepBound): Promise<void> => {
  state.isMarked = true;
  await record(state);
  await state.deps.store.mark(state.tenantId, state.target, sweptUntil(bound));
};

const archive = async ({ deps, tenantId, target }: SweepState, batch: readonly SweepUnit[]): Promise<void> => {
  const { sink } = deps;
  if (sink === null) throw new SweepError('archive-sink-missing');
  const rows = await deps.rows(target, tenantId, batch);
  const end = await withDeadline(
    (signal) => sink.archive({ tenantId, target, rows }, signal),
    sinkTimeoutMs,
    new AbortController().signal,
  );
  if (end.kind !== 'returned') throw new SweepError('sink-failed', end.kind === 'threw' ? end.error : end.kind);
};

const count = (state: SweepState, store: RetentionStore, rows: number): Promise<void> => {
  state.deletedRows += rows;
  return store.count(state.run, rows, state.policy.archive ? rows : 0);
};

const removeOneByOne = async (state: SweepState, batch: readonly SweepUnit[], remove: RemoveUnit): Promise<void> => {
  for (const unit of batch) {
    stopIfAsked(state);
    if (await remove(state.tenantId, unit)) await count(state, state.deps.store, unit.rows);
  }
};

const removeByStatements = async (state: SweepState, batch: readonly SweepUnit[]): Promise<void> => {
  const { deps, target, tenantId } = state;
  let pieces: SweepPiece[] = [];
  for (const [index, unit] of batch.entries()) {
    pieces.push(...(await deps.removal.pieces(target, tenantId, unit)));
    // Looked up and deleted in turn, so that a long list is never held.
    if (pieces.length < piecesAtOnce && index < batch.length - 1) continue;
    stopIfAsked(state);
    await state.writer.remove(pieces, (stores, rows) => count(state, stores(retentionStore), rows));
    pieces = [];
  }
};

/** In steps, so that a sweep that has to stop does not hold its process to the end of a long delay. */
const pauseBetween = async (state: SweepState): Promise<void> => {
  for (let left = state.deps.batchDelayMs; ; left -= pauseStepMs) {
    await pause(Math.min(Math.max(left, 0), pauseStepMs));
    stopIfAsked(state);
    if (left <= pauseStepMs) return;
  }
};

/** What goes, batch by batch; units are looked up in pages, and the last unit of a page is where the next begins. */
const batches = async function* (state: SweepState, bound: SweepBound): AsyncGenerator<readonly SweepUnit[], void> {
  const { deps, target, tenantId } = state;
  const limit = Math.min(deps.batchSize, unitsAtOnce);
  let behind: SweepUnit | null = null;
  for (let isLast = false; !isLast; ) {
    let page: readonly SweepUnit[] = await deps.units.next(target, tenantId, bound, behind, limit);
    isLast = page.length < limit;
    behind = page.at(-1) ?? behind;
    while (page.length > 0) {
      const batch = batchOf(page, deps.batchSize);
      page = page.slice(batch.length);
      yield batch;
      if (page.length > 0 || !isLast) await pauseBetween(state);
    }
  }
};

const sweepBatches = async (state: SweepState, bound: SweepBound): Promise<void> => {
  const removeUnit = state.deps.removeUnit[state.target];
  for await (const batch of batches(state, bound)) {
    stopIfAsked(state);
    state.batches += 1;
    if (!state.isMarked) await begin(state, bound);
    if (state.policy.archive) await archive(state, batch);
    if (removeUnit === undefined) await removeByStatements(state, batch);
    else await removeOneByOne(state, batch, removeUnit);
  }
};

const clearApprovals = async (state: SweepState, cutoff: number): Promise<void> => {
  const { removal } = state.deps;
  const next = (behindId: string) => removal.clearApprovals(state.tenantId, cutoff, behindId, clearedAtOnce);
  for (let last = await next(''); last !== null; last = await next(last)) {
    stopIfAsked(state);
    await pause(1);
  }
};

const sweepTarget = async (state: SweepState): Promise<void> => {
  const { deps, target, tenantId, policy } = state;
  if (state.trigger === 'Manual') await record(state);
  if (!policy.enabled) return;
  const cutoff = cutoffOf(policy, state.run.started_at);
  const bound = await deps.units.bound(target, tenantId, { cutoff, maxRows: policy.maxRows });
  if (target === 'ToolInvocations' && cutoff !== null) await clearApprovals(state, cutoff);
  await sweepBatches(state, bound);
};

/** The code of the history, and null where the sweep ran to its end. */
const errorCode = ({ deps, tenantId, target, jobId }: SweepState, error: unknown): string => {
  const code = error instanceof SweepError ? error.code : 'store-failed';
  // The job goes on in another process, as another sweep; which has ended this one if it was quicker.
  if (code === 'released' || error instanceof ConditionFailedError) return 'interrupted';
  if (code !== 'canceled') deps.log.error({ tenantId, target, jobId, error }, 'A retention sweep failed');
  return code;
};

/** The entry of a sweep in the history, as it begins. */
export const sweepRun = (
  { tenantId, target, jobId, trigger }: Pick<SweepOrder, 'tenantId' | 'target' | 'jobId' | 'trigger'>,
  { newId, now }: Pick<SweepDeps, 'newId' | 'now'>,
): RetentionRunRow => ({
  tenant_id: tenantId,
  id: newId(),
  target,
  job_id: jobId,
  trigger,
  deleted_rows: 0,
  archived_rows: 0,
  started_at: now(),
  completed_at: null,
  error: null,
});

/** Removes what the policy of one target of one tenant says, batch by batch, and leaves an entry in the history. */
export const createSweep = (deps: SweepDeps) => {
  const { telemetry } = deps;
  const metrics = createSweepMetrics(telemetry);
  return async (order: SweepOrder): Promise<SweepOutcome> => {
    const beganAt = performance.now();
    const span = telemetry.begin('acp.retention.sweep', 'Internal', order.trace, {
      'acp.tenant.id': order.tenantId,
      'acp.retention.target': order.target,
    });
    const { begun } = order;
    const run = begun?.run ?? sweepRun(order, deps);
    const writer = createSweepWriter(deps.storage);
    const isRecorded = begun !== undefined;
    const counts = { isRecorded, isMarked: false, deletedRows: begun?.deletedRows ?? 0, batches: 0 };
    const state: SweepState = { ...order, deps, run, writer, ...counts };
    const error = await sweepTarget(state).then(
      () => null,
      (failure: unknown) => errorCode(state, failure),
    );
    const { deletedRows, batches } = state;
    const archivedRows = state.policy.archive ? deletedRows - (begun?.deletedRows ?? 0) : 0;
    metrics.ended(order.target, { deletedRows, archivedRows, error, seconds: (performance.now() - beganAt) / 1000 });
    span?.set({
      'acp.retention.deleted_rows': deletedRows,
      'acp.retention.archived_rows': archivedRows,
      'acp.retention.batches': batches,
    });
    telemetry.finish(span, error);
    if (error !== null) await record(state);
    if (state.isRecorded) await deps.store.end(run, deps.now(), error);
    return { deletedRows, error };
  };
};

export type Sweep = ReturnType<typeof createSweep>;
