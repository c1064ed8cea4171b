import { AcpError } from '../../../contract/errors.ts';
import type { ToolApprovalDecision } from '../../../contract/tool-approval.ts';
import type { CallContext, Principal } from '../../../core/context.ts';
import { isoTime } from '../../../core/iso-time.ts';
import { ConditionFailedError } from '../../../db/statement.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import { readSavedAt } from '../../../engine/compiled-agent.ts';
import type { ChatMessage, ContentPart, TurnResume } from '../../../engine/context/index.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';
import type { OpenRequest } from '../sessions.schema.ts';
import { questionAnswers } from './asked-requests.rules.ts';
import { lostCalls, lostRequests } from './lost-calls.rules.ts';
import { answeredCalls, changedError, openCallsOf, refusedPart, rejection } from './open-calls.rules.ts';
import type { PauseEnds } from './pause-ends.ts';
import { type Answers, checkAnswers, hasAnswers, isOpen } from './request-answers.rules.ts';
import type { SessionRequestStore } from './session-requests.store.ts';

/** Where a turn goes on, and the paused run that it goes on from. */
export interface Continued {
  readonly resume: TurnResume | null;
  readonly continuedFromRunId: string | null;
}

/** The run that brings answers, and the session as it is locked for it. */
export interface AnsweringRun {
  readonly context: CallContext;
  readonly runId: string;
  readonly agentName: string;
  readonly session: SessionTurn;
}

/** The run whose message comes instead of decisions, and its session. */
export interface OvertakingRun {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly principal: Pick<Principal, 'actor'>;
}

/** What became by now of the calls that a paused run had put to the mailbox. */
export interface DecidedPause {
  readonly tenantId: string;
  readonly runId: string;
  readonly continuationRunId: string;
  /** By request id; Expired: nobody decided in time. */
  readonly calls: ReadonlyMap<string, { readonly status: string; readonly reason: string | null }>;
}

/** What `AgentSource.compileVersion` takes, to find the agent again in which a turn paused. */
export interface PausedVersion {
  readonly version: number;
  readonly savedAt: number | null | undefined;
}

/** What the start of a session's next run needs of approvals. */
export interface Mailbox {
  /**
   * Until when the session waits for it at most: a person is asked, or what was decided is about to go on. Infinity
   * without an end; null when it does not wait.
   */
  blockedUntil(tenantId: string, sessionId: string): Promise<number | null>;
  decided(sourceRunId: string): Promise<DecidedPause | undefined>;
  /** Which of these requests do not wait any more, by their ids: Approved, Rejected or Expired. */
  settled(requests: readonly SessionRequestRow[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Rejects what still waits of a session whose next turn is a plain message, and voids its requests, in one unit; fails
   * with ConditionFailedError when a decision came first.
   */
  overtake(run: OvertakingRun, open: readonly SessionRequestRow[]): Promise<void>;
  /** Stores decisions that come with a run, in one unit; fails with ConditionFailedError when another came first. */
  decide(
    run: AnsweringRun,
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<TurnResume>;
}

export interface SessionPauseDeps {
  readonly requests: SessionRequestStore;
  readonly mailbox: Mailbox;
  readonly ends: PauseEnds;
  readonly now: () => number;
  readonly newId: () => string;
}

// Every failed try means that another change of the same calls was stored, and the next one meets what came of it.
const maxTries = 10;

const pendingError = (sessionId: string): AcpError =>
  new AcpError('approval-pending', `Session "${sessionId}" waits for a decision in the mailbox.`);

/** What the history keeps of the decisions. */
export const responseMessage = (
  made: { readonly messageId: string; readonly at: number },
  runId: string,
  decisions: readonly { requestId: string; approved: boolean; reason: string | null }[],
): ChatMessage => ({
  messageId: made.messageId,
  role: 'User',
  runId,
  createdAt: isoTime(made.at),
  interrupted: false,
  contents: decisions.map((decision): ContentPart => ({ type: 'ApprovalResponse', ...decision })),
});

/** What sessions wait for, as the start of their next run meets it. */
export const createSessionPauses = (deps: SessionPauseDeps) => {
  const { requests, mailbox, ends, now, newId } = deps;

  const refuseWhilePending = async (tenantId: string, sessionId: string, rows: readonly SessionRequestRow[]) => {
    if (!rows.some((row) => isOpen(row) && row.kind === 'Approval')) return;
    if ((await mailbox.blockedUntil(tenantId, sessionId)) !== null) throw pendingError(sessionId);
  };

  /** Refuses any turn while the mailbox has a say in the session, and answers that fit no open request. */
  const check = async (
    tenantId: string,
    sessionId: string,
    answers: Answers,
  ): Promise<readonly SessionRequestRow[]> => {
    const rows = await requests.list(tenantId, sessionId);
    await refuseWhilePending(tenantId, sessionId, rows);
    const named = new Set((answers.approvals ?? []).map(({ requestId }) => requestId));
    const decided = rows.filter((row) => row.kind === 'Approval' && named.has(row.id));
    checkAnswers(rows, answers, decided.length === 0 ? new Map() : await mailbox.settled(decided));
    return rows;
  };

  /**
   * As `begin` for a plain message of a run that waited in line. Calls whose answers a failed run had taken are answered
   * with what is known of them; null when there are none. Throws `approval-pending`.
   */
  const overtake = async (run: Omit<OvertakingRun, 'sessionId'>, session: SessionTurn): Promise<TurnResume | null> => {
    // The history tells without a query whether anything can wait.
    if (openCallsOf(session.history).length === 0) return null;
    const { tenantId } = run;
    const { sessionId } = session;
    for (let tries = 1; ; tries += 1) {
      const rows = await check(tenantId, sessionId, {});
      const open = rows.filter(isOpen);
      if (open.length === 0) {
        const answered = lostRequests(session.history, rows);
        if (answered.length === 0) return null;
        const made = await requests.made(answered);
        return { messages: [], calls: lostCalls(session.history, answered, made), earlier: null };
      }
      try {
        await mailbox.overtake({ ...run, sessionId }, open);
        ends.ended(tenantId, sessionId);
        return null;
      } catch (error) {
        // A decision in the mailbox came first: the session waits for the other decisions, or for the run that continues it.
        if (!(error instanceof ConditionFailedError) || tries === maxTries) throw error;
      }
    }
  };

  const takeResults = async (
    session: SessionTurn,
    open: readonly SessionRequestRow[],
    results: NonNullable<Answers['toolResults']>,
  ): Promise<TurnResume> => {
    const resultOf = new Map(results.map((result) => [result.callId, result]));
    const calls = answeredCalls(session, open, (row) => {
      if (row.asked !== null)
        return questionAnswers(
          open.filter(({ tool_call_id: id }) => id === row.tool_call_id),
          ({ id }) => resultOf.get(id)?.result ?? null,
        );
      const { result = null, errorMessage = null } = resultOf.get(row.id) ?? {};
      return { type: 'ClientResult', result, errorMessage };
    });
    await requests.answer(open);
    return { messages: [], calls, earlier: null };
  };

  return {
    overtake,
    /**
     * Calls back once, when the session does not wait for its mailbox any more, so that a run that met `approval-pending`
     * is to ask again; soon, when that is so by now. Runs are called in the order in which they came to wait.
     */
    watch: (tenantId: string, sessionId: string, runId: string, over: () => void): void =>
      ends.watch(tenantId, sessionId, runId, over, mailbox.blockedUntil),
    unwatch: ends.unwatch,
    /** Called when the continuation of a paused run was closed before it began. */
    ended: ends.ended,
    /** As `Mailbox.blockedUntil` and `checkAnswers` say; before any row. */
    async check(tenantId: string, sessionId: string, answers: Answers): Promise<void> {
      await check(tenantId, sessionId, answers);
    },

    /** Uses the answers up, with their entries and rules, or voids what waits when a plain message overtakes it. The session is locked. */
    async begin(run: AnsweringRun, answers: Answers): Promise<Continued> {
      const { context, runId, session } = run;
      const { tenantId, principal } = context;
      if (!hasAnswers(answers))
        return { resume: await overtake({ tenantId, runId, principal }, session), continuedFromRunId: null };
      const open = (await check(tenantId, session.sessionId, answers)).filter(isOpen);
      const decisions = answers.approvals ?? [];
      try {
        const resume =
          decisions.length > 0
            ? await mailbox.decide(run, open, decisions)
            : await takeResults(session, open, answers.toolResults ?? []);
        return { resume, continuedFromRunId: open[0]?.run_id ?? null };
      } catch (error) {
        if (!(error instanceof ConditionFailedError)) throw error;
        // What came first tells how to refuse: a decision in the mailbox, or the end of the time for it.
        await check(tenantId, session.sessionId, answers);
        const code = decisions.length > 0 ? 'approval-already-decided' : 'tool-call-answered';
        throw new AcpError(code, 'Another request has answered it in the same moment.', { cause: error });
      }
    },

    /** Where the continuation of a run in the mailbox goes on; throws `session-conflict` when the session has changed. */
    async resume(sourceRunId: string, session: SessionTurn): Promise<TurnResume> {
      const pause = await mailbox.decided(sourceRunId);
      if (pause === undefined) throw changedError(session.sessionId);
      const rows = await requests.list(pause.tenantId, session.sessionId);
      const open = rows.filter((row) => row.run_id === pause.runId);
      const calls = answeredCalls(session, open, (row) => {
        const { status, reason } = pause.calls.get(row.id) ?? { status: 'Expired', reason: null };
        if (status === 'Approved') return 'approved';
        return refusedPart(
          { toolCallId: row.tool_call_id, toolName: row.tool_name },
          status === 'Expired' ? 'Not approved: nobody decided in time.' : rejection(reason),
        );
      });
      const decisions = open.map(({ id }) => {
        const call = pause.calls.get(id);
        return { requestId: id, approved: call?.status === 'Approved', reason: call?.reason ?? null };
      });
      // A further attempt finds them answered.
      if (open.some(isOpen)) await requests.answer(open.filter(isOpen));
      // The session is this run's now: who has waited for it lines up behind, before anybody who comes later.
      ends.ended(pause.tenantId, session.sessionId);
      return {
        messages: [responseMessage({ messageId: newId(), at: now() }, pause.continuationRunId, decisions)],
        calls,
        earlier: null,
      };
    },

    /** The version of its agent that the session's turn paused in; null: it waits for nothing, or an earlier service paused it. */
    async pausedIn(tenantId: string, sessionId: string): Promise<PausedVersion | null> {
      const paused = (await requests.list(tenantId, sessionId)).find(isOpen);
      if (paused === undefined || paused.agent_version === null) return null;
      return { version: paused.agent_version, savedAt: readSavedAt(paused.agent_saved_at) };
    },
    /** Requests that are open, for readers of the session. */
    async open(tenantId: string, sessionId: string): Promise<readonly OpenRequest[]> {
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

export type SessionPauses = ReturnType<typeof createSessionPauses>;
