import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { clampPaging, type Json } from '../../contract/schema.ts';
import type { ToolApprovalPresentation } from '../../contract/tool-approval.ts';
import type { RunAction, RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { Logger } from '../../core/logger.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { type ApprovalDecisions, statusAt } from './approval-decisions.ts';
import type { approvalOperations } from './approvals.operations.ts';
import type { PendingApproval } from './approvals.schema.ts';
import type { ApprovalStore, MailboxRow } from './approvals.store.ts';

export interface ApprovalServiceDeps {
  readonly store: ApprovalStore;
  readonly decisions: ApprovalDecisions;
  readonly authorization: RunAuthorization;
  readonly owners: Pick<SessionAccess, 'maySee' | 'listOwner'>;
  /** A reason as it may be kept, for the model and for readers. Throws `content-blocked`. */
  inspectReason(context: CallContext, reason: string, row: MailboxRow): Promise<string>;
  readonly log: Pick<Logger, 'warn'>;
  /** How many that have expired a list stores at most. */
  readonly maxPerScan: number;
  readonly now: () => number;
}

/** States of a paused run in which another run continues it. */
const continues: ReadonlySet<string> = new Set(['Queued', 'Answered']);

const toPublic = (row: MailboxRow, now: number): PendingApproval => ({
  id: row.id,
  tenantId: row.tenant_id,
  runId: row.run_id,
  agentName: row.agent_name,
  sessionId: row.session_id,
  requestId: row.request_id,
  inBand: row.in_band === 1,
  toolCallId: row.tool_call_id,
  toolName: row.tool_name,
  arguments: row.arguments === null ? null : (JSON.parse(row.arguments) as Json),
  presentation: row.presentation === null ? null : (JSON.parse(row.presentation) as ToolApprovalPresentation),
  status: statusAt(row, now),
  decidedBy: row.decided_by,
  decidedAt: isoTimeOrNull(row.decided_at),
  reason: row.reason,
  expiresAt: isoTimeOrNull(row.expires_at),
  continuationRunId: continues.has(row.handover_state ?? '') ? row.continuation_run_id : null,
  createdAt: isoTime(row.created_at),
});

export const approvalService = (deps: ApprovalServiceDeps): Handlers<typeof approvalOperations> => {
  const { store, decisions, authorization, owners, log, now } = deps;

  /** Another owner's and a refused one are answered as an unknown one, before anything else could tell that they exist. */
  const find = async (context: CallContext, id: string, action: RunAction): Promise<MailboxRow> => {
    const row = await store.get(context.tenantId, id.toLowerCase());
    const target = { resource: 'Approval', id: id.toLowerCase() } as const;
    const resource =
      row === undefined
        ? target
        : { ...target, agentName: row.agent_name, sessionId: row.session_id, runId: row.run_id };
    const isSeen = row !== undefined && owners.maySee(context.principal, row.owner_id);
    if (!isSeen || !(await authorization.allows(context, action, resource)))
      throw new AcpError('not-found', 'There is no approval with this id.');
    return store.opened(row);
  };

  return {
    async list(context, { query }) {
      const { agentName } = query;
      await authorization.require(context, 'List', { resource: 'Approval', agentName: agentName ?? null });
      const ownerId = owners.listOwner(context.principal);
      const filter = { ...clampPaging(query), ownerId, ...(agentName === undefined ? {} : { agentName }) };
      await decisions.settleLapsed(await store.lapsed(now(), deps.maxPerScan, context.tenantId));
      const at = now();
      const { rows, unreadable } = await store.pending(context.tenantId, at, filter);
      if (unreadable !== null) {
        const { count, error } = unreadable;
        const { tenantId } = context;
        log.warn({ tenantId, approvals: count, error }, 'Listed approvals lack what cannot be decrypted');
      }
      return ok(rows.map((row) => toPublic(row, at)));
    },
    async get(context, { params }) {
      const row = await find(context, params.id, 'Read');
      const isChanged = await decisions.settleLapsed([row]);
      return ok(toPublic(isChanged ? await find(context, params.id, 'Read') : row, now()));
    },
    async decide(context, { params, body }) {
      const row = await find(context, params.id, 'Decide');
      const decided = await decisions.decide(row, {
        status: body.approved ? 'Approved' : 'Rejected',
        decidedBy: context.principal.actor,
        decidedAt: now(),
        reason: typeof body.reason === 'string' ? await deps.inspectReason(context, body.reason, row) : null,
      });
      return ok(toPublic(decided, now()));
    },
  };
};
