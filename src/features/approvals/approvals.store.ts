import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement, statementOf } from '../../db/statement.ts';
import type { ApprovalHandoverRow, ApprovalRow } from '../../db/tables/approvals.ts';

export interface DecisionRow {
  readonly status: 'Approved' | 'Rejected';
  readonly decidedBy: string | null;
  readonly decidedAt: number;
  readonly reason: string | null;
}

/** A row of the mailbox beside the continuation of its run. */
export type MailboxRow = ApprovalRow & {
  readonly continuation_run_id: string | null;
  readonly handover_state: string | null;
  /** Whose the run is that asks. */
  readonly owner_id: string | null;
};

export interface PendingFilter {
  readonly agentName?: string;
  /** Null: of every owner. */
  readonly ownerId: string | null;
  readonly skip: number;
  readonly take: number;
}

export const approvalStore = defineStore((storage) => {
  const mailbox = () =>
    storage.db
      .selectFrom('approvals')
      .leftJoin('approval_handovers', 'approval_handovers.run_id', 'approvals.run_id')
      .leftJoin('runs', 'runs.id', 'approvals.run_id')
      .selectAll('approvals')
      .select(['approval_handovers.continuation_run_id', 'approval_handovers.state as handover_state'])
      .select('runs.owner_id');
  const pendingRow = (tenantId: string, id: string) =>
    storage.db
      .updateTable('approvals')
      .where('tenant_id', '=', tenantId)
      .where('id', '=', id)
      .where('status', '=', 'Pending');
  const change = (query: Parameters<typeof statementOf>[0]): Promise<void> =>
    storage.write([statementOf(query, { mustChange: true })]);

  return {
    /** As it is stored. */
    get: (tenantId: string, id: string): Promise<MailboxRow | undefined> =>
      mailbox().where('approvals.tenant_id', '=', tenantId).where('approvals.id', '=', id).executeTakeFirst(),
    /** With what is protected in it. Throws `decryption-failed`. */
    opened: (row: MailboxRow): MailboxRow => storage.rows.open('approvals', row.tenant_id, row),
    /** Undecided and not past their time, newest first. What cannot be decrypted is null. */
    async pending(tenantId: string, now: number, { agentName, ownerId, skip, take }: PendingFilter) {
      let query = mailbox()
        .where('approvals.status', '=', 'Pending')
        .where('approvals.tenant_id', '=', tenantId)
        .where((eb) => eb.or([eb('approvals.expires_at', 'is', null), eb('approvals.expires_at', '>', now)]));
      if (agentName !== undefined) query = query.where('approvals.agent_name', '=', agentName);
      if (ownerId !== null) query = query.where('runs.owner_id', '=', ownerId);
      const rows = await query.orderBy('approvals.id', 'desc').limit(take).offset(skip).execute();
      return storage.rows.openList('approvals', tenantId, rows);
    },
    /** Of all tenants. */
    async pendingCount(now: number): Promise<number> {
      const row = await storage.db
        .selectFrom('approvals')
        .select((eb) => eb.fn.countAll<number | string>().as('count'))
        .where('status', '=', 'Pending')
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        .executeTakeFirst();
      return Number(row?.count ?? 0);
    },
    ofRun: (runId: string): Promise<readonly ApprovalRow[]> =>
      storage.db.selectFrom('approvals').selectAll().where('run_id', '=', runId).orderBy('id').execute(),
    /** As it is stored: who only ends a pause needs no context. */
    handover: (runId: string): Promise<ApprovalHandoverRow | undefined> =>
      storage.db.selectFrom('approval_handovers').selectAll().where('run_id', '=', runId).executeTakeFirst(),
    /** With its context. Throws `decryption-failed`. */
    openedHandover: (row: ApprovalHandoverRow): ApprovalHandoverRow =>
      storage.rows.open('approval_handovers', row.tenant_id, row),
    /** Rows whose time is over and that still say Pending, oldest first; `tenantId` null: of all tenants. */
    lapsed(now: number, limit: number, tenantId: string | null = null): Promise<readonly ApprovalRow[]> {
      let query = storage.db
        .selectFrom('approvals')
        .selectAll()
        .where('status', '=', 'Pending')
        .where('expires_at', '<=', now);
      if (tenantId !== null) query = query.where('tenant_id', '=', tenantId);
      return query.orderBy('expires_at').orderBy('id').limit(limit).execute();
    },
    /** Paused runs of which every call is settled and that nothing goes on from yet, while their requests are open. */
    settled: (limit: number): Promise<readonly { readonly run_id: string }[]> =>
      storage.db
        .selectFrom('approval_handovers')
        .select('run_id')
        .where('state', '=', 'Waiting')
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('approvals')
                .select('approvals.id')
                .whereRef('approvals.run_id', '=', 'approval_handovers.run_id')
                .where('approvals.status', '=', 'Pending'),
            ),
          ),
        )
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom('session_requests')
              .select('session_requests.id')
              .whereRef('session_requests.tenant_id', '=', 'approval_handovers.tenant_id')
              .whereRef('session_requests.session_id', '=', 'approval_handovers.session_id')
              .whereRef('session_requests.run_id', '=', 'approval_handovers.run_id')
              .where('session_requests.state', '=', 'Open'),
          ),
        )
        .orderBy('created_at')
        .limit(limit)
        .execute(),
    /** States of the calls of these runs, by the ids of their requests. */
    async statesOf(runIds: readonly string[]) {
      if (runIds.length === 0) return [];
      return storage.db
        .selectFrom('approvals')
        .select(['run_id', 'request_id', 'status', 'expires_at'])
        .where('run_id', 'in', runIds)
        .execute();
    },
    /** Every call of the paused runs of the session of which one is stored as undecided, also where its time is over. */
    undecided: (tenantId: string, sessionId: string) =>
      storage.db
        .selectFrom('approvals')
        .select(['run_id', 'status', 'expires_at', 'in_band'])
        .where('run_id', 'in', (eb) =>
          eb
            .selectFrom('approvals as open')
            .select('open.run_id')
            .where('open.tenant_id', '=', tenantId)
            .where('open.session_id', '=', sessionId)
            .where('open.status', '=', 'Pending'),
        )
        .execute(),
    /** A paused run of the session of which some call was decided and that has not gone on: its continuation is in line, or not yet queued (`Waiting`). */
    unfinished: (tenantId: string, sessionId: string) =>
      storage.db
        .selectFrom('session_requests')
        .innerJoin('approval_handovers', 'approval_handovers.run_id', 'session_requests.run_id')
        .leftJoin('runs', 'runs.id', 'approval_handovers.continuation_run_id')
        .select(['approval_handovers.run_id', 'approval_handovers.state'])
        .where('session_requests.tenant_id', '=', tenantId)
        .where('session_requests.session_id', '=', sessionId)
        .where('session_requests.state', '=', 'Open')
        .where(({ eb, and, or, exists, selectFrom }) =>
          or([
            and([eb('approval_handovers.state', '=', 'Queued'), eb('runs.status', '=', 'Queued')]),
            and([
              eb('approval_handovers.state', '=', 'Waiting'),
              exists(
                selectFrom('approvals')
                  .select('approvals.id')
                  .whereRef('approvals.run_id', '=', 'approval_handovers.run_id')
                  .where('approvals.status', 'in', ['Approved', 'Rejected']),
              ),
            ]),
          ]),
        )
        .limit(1)
        .executeTakeFirst(),
    inserted: insertStatement(storage.db, 'approvals', (row: ApprovalRow) =>
      storage.rows.seal('approvals', row.tenant_id, row),
    ),
    handoverInserted: insertStatement(storage.db, 'approval_handovers', (row: ApprovalHandoverRow) =>
      storage.rows.seal('approval_handovers', row.tenant_id, row),
    ),
    /** Fails its unit when the row is not pending at that time any more. */
    decide: (tenantId: string, id: string, { status, decidedBy, decidedAt, reason }: DecisionRow): Promise<void> =>
      change(
        pendingRow(tenantId, id)
          .set({ status, decided_by: decidedBy, decided_at: decidedAt, reason })
          .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', decidedAt)])),
      ),
    /** Fails its unit when the row is not pending any more. */
    expire: (tenantId: string, id: string): Promise<void> =>
      change(pendingRow(tenantId, id).set({ status: 'Expired' })),
    /** Orders everything that happens to the calls of one run; fails its unit when another change came first. */
    moveHandover: (
      { run_id, version, continuation_run_id: queuedRunId }: ApprovalHandoverRow,
      state: string,
      continuationRunId: string = queuedRunId,
    ): Promise<void> =>
      change(
        storage.db
          .updateTable('approval_handovers')
          .set({ state, version: version + 1, continuation_run_id: continuationRunId })
          .where('run_id', '=', run_id)
          .where('version', '=', version),
      ),
    /** With the deletion of a session: nothing of it waits any more, and nothing goes on. */
    dropSession: (tenantId: string, sessionId: string): Promise<void> =>
      storage.atomic(async (db) => {
        await db
          .updateTable('approvals')
          .set({ status: 'Expired' })
          .where('tenant_id', '=', tenantId)
          .where('session_id', '=', sessionId)
          .where('status', '=', 'Pending')
          .execute();
        await db
          .updateTable('approval_handovers')
          .set((eb) => ({ state: 'Dropped', version: eb('version', '+', 1) }))
          .where('tenant_id', '=', tenantId)
          .where('session_id', '=', sessionId)
          .where('state', '=', 'Waiting')
          .execute();
      }),
  };
});

export type ApprovalStore = StoreOf<typeof approvalStore>;
