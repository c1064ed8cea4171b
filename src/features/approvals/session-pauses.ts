import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRequestRow } from '../../db/tables/approvals.ts';
import type { TurnResume } from '../../engine/context/index.ts';
import type { SessionTurn } from '../../engine/record/index.ts';
import { statusAt } from './approval-decisions.ts';
import type { ApprovalStore } from './approvals.store.ts';
import { type InBandAnswers, responseMessage } from './in-band-answers.ts';
import { lostCalls, lostRequests } from './lost-calls.rules.ts';
import { answeredCalls, changedError, openCallsOf, refusedPart, rejection } from './open-calls.rules.ts';
import type { PauseEndDeps, PauseEnds } from './pause-ends.ts';
import { type Answers, checkAnswers, hasAnswers, isOpen } from './request-answers.rules.ts';
import type { SessionRequestStore } from './session-requests.store.ts';

/** Where a turn goes on, and the paused run that it goes on from. */
export interface Continued {
  readonly resume: TurnResume | null;
  readonly continuedFromRunId: string | null;
}

/** What sessions wait for, as the start of their next run meets it. */
export interface SessionPauses {
  /** Refuses answers that fit no open request, and any turn while the mailbox has some; before any row. */
  check(context: CallContext, agentName: string, sessionId: string, answers: Answers): Promise<void>;
  /** Uses the answers up, with their entries and rules, or voids what waits when a plain message overtakes it. The session is locked. */
  begin(
    context: CallContext,
    runId: string,
    agentName: string,
    session: SessionTurn,
    answers: Answers,
  ): Promise<Continued>;
  /**
   * As `begin` for a plain message of a run that waited in line. Calls whose answers a failed run had taken are answered
   * with what is known of them; null when there are none. Throws `approval-pending`.
   */
  overtake(tenantId: string, session: SessionTurn): Promise<TurnResume | null>;
  /**
   * Calls back once, when the session does not wait for its mailbox any more, so that a run that met `approval-pending`
   * is to ask again; soon, when that is so by now. Runs are called in the order in which they came to wait.
   */
  watch: PauseEnds['watch'];
  unwatch: PauseEnds['unwatch'];
  /** Called when the continuation of a paused run was closed before it began. */
  ended: PauseEnds['ended'];
  /** Where the continuation of a run in the mailbox goes on; throws `session-conflict` when the session has changed. */
  resume(sourceRunId: string, session: SessionTurn): Promise<TurnResume>;
  /** Requests that are open, for readers of the session. */
  open(
    tenantId: string,
    sessionId: string,
  ): Promise<readonly { kind: 'Approval' | 'ClientTool'; id: string; toolName: string; runId: string }[]>;
}

export interface SessionPauseDeps {
  readonly storage: Storage;
  readonly requests: SessionRequestStore;
  readonly approvals: ApprovalStore;
  readonly inBand: InBandAnswers;
  readonly ends: PauseEnds;
  blockedUntil: PauseEndDeps['blockedUntil'];
  readonly now: () => number;
  readonly newId: () => string;
}

const pendingError = (sessionId: string): AcpError =>
  new AcpError('approval-pending', `Session "${sessionId}" waits for a decision in the mailbox.`);

export const createSessionPauses = (deps: SessionPauseDeps): SessionPauses => {
  const { storage, requests, approvals, inBand, ends, now, newId } = deps;

  const refuseWhilePending = async (
    tenantId: string,
    sessionId: string,
    rows: readonly SessionRequestRow[],
  ): Promise<void> => {
    if (!rows.some((row) => isOpen(row) && row.channel === 'Mailbox')) return;
    if ((await deps.blockedUntil(tenantId, sessionId)) !== null) throw pendingError(sessionId);
  };

  const overtake: SessionPauses['overtake'] = async (tenantId, session) => {
    // The history tells without a query whether anything can wait.
    if (openCallsOf(session.history).length === 0) return null;
    const rows = await requests.list(tenantId, session.sessionId);
    await refuseWhilePending(tenantId, session.sessionId, rows);
    if (rows.some(isOpen)) {
      await storage.write([requests.voided(tenantId, session.sessionId)]);
      ends.ended(tenantId, session.sessionId);
      return null;
    }
    const answered = lostRequests(session.history, rows);
    if (answered.length === 0) return null;
    const made = await requests.made(answered);
    return { messages: [], calls: lostCalls(session.history, answered, made), earlier: null };
  };

  return {
    overtake,
    watch: ends.watch,
    unwatch: ends.unwatch,
    ended: ends.ended,
    async check(context, _agentName, sessionId, answers) {
      const rows = await requests.list(context.tenantId, sessionId);
      await refuseWhilePending(context.tenantId, sessionId, rows);
      checkAnswers(rows, answers);
    },

    async begin(context, runId, agentName, session, answers) {
      if (!hasAnswers(answers)) return { resume: await overtake(context.tenantId, session), continuedFromRunId: null };
      const rows = await requests.list(context.tenantId, session.sessionId);
      checkAnswers(rows, answers);
      const open = rows.filter(isOpen);
      try {
        const resume =
          (answers.approvals?.length ?? 0) > 0
            ? await inBand.decide({ context, runId, agentName, session }, open, answers.approvals ?? [])
            : await inBand.takeResults(session, open, answers.toolResults ?? []);
        return { resume, continuedFromRunId: open[0]?.run_id ?? null };
      } catch (error) {
        if (!(error instanceof ConditionFailedError)) throw error;
        const code = (answers.approvals?.length ?? 0) > 0 ? 'approval-already-decided' : 'tool-call-answered';
        throw new AcpError(code, 'Another request has answered it in the same moment.', { cause: error });
      }
    },

    async resume(sourceRunId, session) {
      const handover = await approvals.handover(sourceRunId);
      if (handover === undefined) throw changedError(session.sessionId);
      const rows = await requests.list(handover.tenant_id, session.sessionId);
      const open = rows.filter((row) => row.run_id === handover.run_id);
      const decided = new Map((await approvals.ofRun(handover.run_id)).map((row) => [row.request_id, row]));
      const at = now();
      const calls = answeredCalls(session, open, (row) => {
        const approval = decided.get(row.id);
        const status = approval === undefined ? 'Expired' : statusAt(approval, at);
        const name = { toolCallId: row.tool_call_id, toolName: row.tool_name };
        if (status === 'Approved') return 'approved';
        return refusedPart(
          name,
          status === 'Expired' ? 'Not approved: nobody decided in time.' : rejection(approval?.reason),
        );
      });
      const given = open.map(({ id }) => {
        const approval = decided.get(id);
        return { requestId: id, approved: approval?.status === 'Approved', reason: approval?.reason ?? null };
      });
      // A further attempt finds them answered.
      if (open.some(isOpen)) await storage.write(open.filter(isOpen).map((row) => requests.answered(row)));
      // The session is this run's now: who has waited for it lines up behind, before anybody who comes later.
      ends.ended(handover.tenant_id, session.sessionId);
      return {
        messages: [responseMessage({ messageId: newId(), at }, handover.continuation_run_id, given)],
        calls,
        earlier: null,
      };
    },

    async open(tenantId, sessionId) {
      const rows = (await requests.list(tenantId, sessionId)).filter(isOpen);
      return rows.map((row) => ({
        kind: row.kind === 'Approval' ? 'Approval' : 'ClientTool',
        id: row.id,
        toolName: row.tool_name,
        runId: row.run_id,
      }));
    },
  };
};
