import { AcpError } from '../../contract/errors.ts';
import type { AuditedCall } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ApprovalHandoverRow, ApprovalRow } from '../../db/tables/approvals.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { HeldLease } from '../../scheduler/background-service.ts';
import type { AuditLog, ChangedEntity } from '../audit/index.ts';
import { serviceLeaseStore } from '../jobs/index.ts';
import type { ApprovalMetrics } from './approval-metrics.ts';
import { approvalOperations } from './approvals.operations.ts';
import type { ApprovalStatus } from './approvals.schema.ts';
import { type ApprovalStore, approvalStore, type DecisionRow, type MailboxRow } from './approvals.store.ts';

/** The run that goes on once its calls are decided: made by whoever owns queued runs. */
export interface Continuations {
  /** The row, log and job of the continuation. */
  queued(handover: ApprovalHandoverRow, now: number): readonly Statement[];
  /** Called when one was queued. */
  wake(handover: ApprovalHandoverRow, now: number): void;
}

export interface DecisionDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: ApprovalStore;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly continuations: Continuations;
  readonly metrics: ApprovalMetrics;
  /** Called when every call of a paused run has lapsed, so that its session takes other turns. */
  lapsed(tenantId: string, sessionId: string): void;
  /** False: nothing is queued and nothing decided. */
  readonly schedulingEnabled: boolean;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

const expiry = {
  principal: { actor: 'system:approval-expiration' },
  audit: { action: 'approval.expire', entity: 'approval', mode: 'noted' },
} as const;
// Every failed try means that another decision on the same run was stored, and a run has few calls.
const maxTries = 50;

/** The state that a reader sees: a row past its time is expired at once. */
export const statusAt = (row: Pick<ApprovalRow, 'status' | 'expires_at'>, now: number): ApprovalStatus =>
  row.status === 'Pending' && row.expires_at !== null && row.expires_at <= now
    ? 'Expired'
    : (row.status as ApprovalStatus);

/** Whether its time is over and nothing says so in the store: a clock that is set back would have it wait again. */
export const isLapsed = (row: Pick<ApprovalRow, 'status' | 'expires_at'>, now: number): boolean =>
  row.status === 'Pending' && statusAt(row, now) === 'Expired';

export const isDecided = (status: string): boolean => status === 'Approved' || status === 'Rejected';

/** A call that does not wait any more; without a decision its time is over. */
interface Settled {
  readonly row: ApprovalRow;
  readonly decision: DecisionRow | null;
}

const changed = ({ row, decision }: Settled): ChangedEntity => {
  const told = { toolName: row.tool_name, argumentsHash: row.arguments_hash };
  return { id: row.id, before: null, after: decision === null ? told : { decision: decision.status, ...told } };
};

/** Whose change it is that a call does not wait any more. */
const settledBy = ({ row: { tenant_id: tenantId }, decision }: Settled): AuditedCall =>
  decision === null
    ? { tenantId, ...expiry }
    : { tenantId, principal: { actor: decision.decidedBy }, audit: approvalOperations.decide.audit };

/** The audit entry of a call that has expired. */
export const expiredCall = (row: ApprovalRow): [ChangedEntity, AuditedCall] => {
  const lapsed: Settled = { row, decision: null };
  return [changed(lapsed), settledBy(lapsed)];
};

/** Answers a decision that could not be stored (APPR-28). One that another decision overtook is left to the caller. */
export const notStored = (error: unknown): never => {
  if (error instanceof AcpError || error instanceof ConditionFailedError) throw error;
  throw new AcpError('store-unavailable', 'The decision could not be stored, and nothing was decided.', {
    cause: error,
    details: { retryAfterMs: 1000 },
  });
};

export const createApprovalDecisions = (deps: DecisionDeps) => {
  const { storage, store, audit, continuations, metrics, log, now } = deps;

  const count = (settled: readonly Settled[]): void => {
    for (const { row, decision } of settled)
      if (decision === null) metrics.expired(row);
      else metrics.decided(row, decision.status, 'mailbox', decision.decidedAt);
  };

  /** What only moves the run on has no entry: its calls were settled before. */
  const commit = async (settled: readonly Settled[], work: (stores: UnitOfWork) => Promise<void>): Promise<void> => {
    const [first] = settled;
    if (first === undefined) return storage.transaction(work);
    await audit.change(settledBy(first), async (stores, tell) => {
      await work(stores);
      for (const one of settled) tell(changed(one), settledBy(one));
    });
  };

  /**
   * One transaction: the decision, what lapsed meanwhile, and the continuation when nothing is open any more. Fails
   * with ConditionFailedError when another change on the same run came first.
   */
  const move = async (
    runId: string,
    decided: { id: string; decision: DecisionRow } | null,
    held: HeldLease | null = null,
  ): Promise<void> => {
    // Read before the rows: whatever changes them afterwards changes its version too.
    const handover = await store.handover(runId);
    if (handover === undefined) throw new Error(`The paused run ${runId} has no handover.`);
    const rows = await store.ofRun(runId);
    const at = now();
    const settled: Settled[] = [];
    const after = rows.map((row) => {
      if (row.id === decided?.id) {
        settled.push({ row, decision: decided.decision });
        return decided.decision.status;
      }
      if (isLapsed(row, at)) settled.push({ row, decision: null });
      return statusAt(row, at);
    });
    const isSettled = handover.state === 'Waiting' && !after.includes('Pending');
    const goesOn = isSettled && after.some(isDecided) && deps.schedulingEnabled;
    const lapsed = isSettled && !after.some(isDecided);
    if (settled.length === 0 && !goesOn && !lapsed) return;
    const opened = goesOn ? [store.openedHandover(handover)] : [];
    const queued = opened.flatMap((going) => continuations.queued(going, at));
    await commit(settled, async (stores) => {
      const approvals = stores(approvalStore);
      for (const { row, decision } of settled)
        if (decision === null) await approvals.expire(row.tenant_id, row.id);
        else await approvals.decide(row.tenant_id, row.id, decision);
      await approvals.moveHandover(handover, goesOn ? 'Queued' : lapsed ? 'Lapsed' : handover.state);
      await stores.write(queued);
      await stores(serviceLeaseStore).assertHeld(held);
    }).catch(notStored);
    count(settled);
    for (const going of opened) continuations.wake(going, at);
    if (lapsed) deps.lapsed(handover.tenant_id, handover.session_id);
  };

  /** Stores what has lapsed of one run, and queues its continuation when that settled it. */
  const settle = async (runId: string, held: HeldLease | null = null): Promise<void> => {
    for (let tries = 0; tries < maxTries; tries += 1)
      try {
        return await move(runId, null, held);
      } catch (error) {
        if (!(error instanceof ConditionFailedError)) throw error;
      }
  };

  /**
   * Stores that calls have expired before anybody is told so or takes a turn for it. Where that fails, and the clock is set
   * back before the next scan, they wait once more.
   */
  const settleLapsed = async (
    rows: readonly Pick<ApprovalRow, 'run_id' | 'status' | 'expires_at'>[],
  ): Promise<boolean> => {
    const at = now();
    const runs = new Set(rows.filter((row) => isLapsed(row, at)).map((row) => row.run_id));
    for (const runId of runs)
      try {
        await settle(runId);
      } catch (error) {
        log.warn({ runId, error }, 'An approval has expired, which could not be stored yet');
      }
    return runs.size > 0;
  };

  const read = async ({ tenant_id, id }: ApprovalRow): Promise<MailboxRow> => {
    const row = await store.get(tenant_id, id);
    if (row === undefined) throw new AcpError('not-found', 'There is no approval with this id.');
    return store.opened(row);
  };

  /** True when it was decided the same way before; throws where a decision comes too late. */
  const isRepeat = (row: MailboxRow, decision: DecisionRow): boolean => {
    const status = statusAt(row, now());
    if (status === 'Expired') throw new AcpError('approval-expired', `Approval ${row.id} has expired.`);
    if (status === 'Pending') return false;
    if (status === decision.status) return true;
    throw new AcpError('approval-already-decided', `Approval ${row.id} was ${status.toLowerCase()} before.`);
  };

  return {
    settle,
    settleLapsed,
    /** Stores a decision with its entry and, when it was the last one, the continuation. Throws `approval-expired`, `approval-already-decided` or `scheduling-disabled`. */
    async decide(first: MailboxRow, decision: DecisionRow): Promise<MailboxRow> {
      if (!deps.schedulingEnabled)
        throw new AcpError('scheduling-disabled', 'The job queue is switched off, so no run could go on.');
      let row = (await settleLapsed([first])) ? await read(first) : first;
      for (let tries = 0; tries < maxTries; tries += 1) {
        if (isRepeat(row, decision)) {
          // What had stopped half-way is completed.
          if (row.handover_state === 'Waiting') await settle(row.run_id);
          return read(row);
        }
        try {
          await move(row.run_id, { id: row.id, decision: { ...decision, decidedAt: now() } });
          return await read(row);
        } catch (error) {
          if (!(error instanceof ConditionFailedError)) throw error;
          row = await read(row);
        }
      }
      throw new AcpError('store-unavailable', 'Too many decisions on one run at the same moment.', {
        details: { retryAfterMs: 1000 },
      });
    },
  };
};

export type ApprovalDecisions = ReturnType<typeof createApprovalDecisions>;
