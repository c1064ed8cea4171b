import { createHash } from 'node:crypto';
import { roleAtLeast } from '../../contract/authority.ts';
import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { Json } from '../../contract/schema.ts';
import type { ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { CallContext } from '../../core/context.ts';
import type { SessionRequestRow } from '../../db/approval-tables.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ChatMessage, ContentPart } from '../../engine/chat-message.ts';
import type { SessionTurn } from '../../engine/run-journal.ts';
import type { OpenCall, TurnResume } from '../../engine/turn-resume.ts';
import { statusAt } from './approval-decisions.ts';
import type { ApprovalRuleStore, StandingRule } from './approval-rules.store.ts';
import type { ApprovalStore } from './approvals.store.ts';
import { argumentsHash } from './argument-conditions.rules.ts';
import { openCallsOf } from './open-calls.rules.ts';
import type { SessionRequestStore } from './session-requests.store.ts';
import type { StandingRules } from './standing-rules.service.ts';

/** Where a turn goes on, and the paused run that it goes on from. */
export interface Continued {
  readonly resume: TurnResume | null;
  readonly continuedFromRunId: string | null;
}

type Answers = Pick<AgentRunRequest, 'approvals' | 'toolResults'>;

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
  /** As `begin` for a plain message of a run that waited in line. */
  overtake(tenantId: string, session: SessionTurn): Promise<void>;
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
  readonly rules: StandingRules;
  readonly ruleStore: ApprovalRuleStore;
  readonly audit: AuditTrail;
  readonly now: () => number;
  readonly newId: () => string;
}

const refuse = (code: ErrorCode, message: string, path: string): AcpError =>
  new AcpError(code, message, { details: { errors: [{ path, message }] } });

const pendingError = (sessionId: string): AcpError =>
  new AcpError('approval-pending', `Session "${sessionId}" waits for a decision in the mailbox.`);

const changedError = (sessionId: string): AcpError =>
  new AcpError('session-conflict', `Session "${sessionId}" has changed since its calls were put to a decision.`);

const isOpen = (row: SessionRequestRow): boolean => row.state === 'Open';

/** Of equal ids the open one counts: models repeat the ids of their calls. */
const byId = (rows: readonly SessionRequestRow[], kind: string, id: string): SessionRequestRow | undefined => {
  const same = rows.filter((row) => row.kind === kind && row.id === id);
  return same.find(isOpen) ?? same[0];
};

const rejection = (reason: string | null | undefined): string => {
  const given = (reason ?? '').trim();
  return given === '' ? 'Not approved: the user declined the call.' : `Not approved: ${given}`;
};

const refusedPart = ({ toolCallId, toolName }: { toolCallId: string; toolName: string }, errorMessage: string) =>
  ({ type: 'ToolResult', toolCallId, toolName, result: null, errorMessage }) as const;

/** A rule is given only by who could create it. */
const requireRuleAuthority = ({ principal }: CallContext): void => {
  if (principal.role === null || !roleAtLeast(principal.role, 'Admin'))
    throw new AcpError('insufficient-role', 'To remember an approval needs the role Admin.', {
      details: { requiredRole: 'Admin' },
    });
  if (principal.scopes !== null && !principal.scopes.has('PlatformAdmin'))
    throw new AcpError('insufficient-scope', 'To remember an approval needs the scope PlatformAdmin.', {
      details: { requiredScope: 'PlatformAdmin' },
    });
};

/** Calls whose request was left for later, as client-side ones of a turn with approvals, get their key here. */
const laterKey = (runId: string, toolCallId: string): string =>
  createHash('sha256').update(`${runId}\n${toolCallId}`).digest('hex').slice(0, 40);

export const createSessionPauses = (deps: SessionPauseDeps): SessionPauses => {
  const { storage, requests, approvals, rules, ruleStore, audit, now, newId } = deps;

  const refuseWhilePending = async (
    tenantId: string,
    sessionId: string,
    rows: readonly SessionRequestRow[],
  ): Promise<void> => {
    if (!rows.some((row) => isOpen(row) && row.channel === 'Mailbox')) return;
    if (await approvals.blocks(tenantId, sessionId, now())) throw pendingError(sessionId);
  };

  const checkDecisions = (rows: readonly SessionRequestRow[], decisions: readonly ToolApprovalDecision[]): void => {
    for (const [index, { requestId }] of decisions.entries()) {
      const row = byId(rows, 'Approval', requestId);
      const path = `approvals[${index}].requestId`;
      if (row === undefined) throw refuse('approval-unknown', `The request "${requestId}" is not known.`, path);
      if (!isOpen(row)) throw refuse('approval-already-decided', `The request "${requestId}" is answered.`, path);
      // A pending one was refused before.
      if (row.channel === 'Mailbox') throw refuse('approval-expired', `The request "${requestId}" has expired.`, path);
    }
    const given = new Set(decisions.map(({ requestId }) => requestId));
    const missing = rows.find((row) => isOpen(row) && row.kind === 'Approval' && !given.has(row.id));
    if (missing !== undefined)
      throw refuse('approvals-missing', `The request "${missing.id}" is not answered.`, 'approvals');
  };

  const checkResults = (
    rows: readonly SessionRequestRow[],
    results: NonNullable<AgentRunRequest['toolResults']>,
  ): void => {
    for (const [index, { callId }] of results.entries()) {
      const row = byId(rows, 'ClientTool', callId);
      const path = `toolResults[${index}].callId`;
      if (row === undefined) throw refuse('tool-call-unknown', `The call "${callId}" is not known.`, path);
      if (!isOpen(row)) throw refuse('tool-call-answered', `The call "${callId}" is answered.`, path);
    }
    const given = new Set(results.map(({ callId }) => callId));
    const missing = rows.find((row) => isOpen(row) && row.kind === 'ClientTool' && !given.has(row.id));
    if (missing !== undefined)
      throw refuse('tool-results-missing', `The call "${missing.id}" is not answered.`, 'toolResults');
  };

  const checkRows = (rows: readonly SessionRequestRow[], { approvals: decisions, toolResults }: Answers): void => {
    if ((decisions?.length ?? 0) > 0) checkDecisions(rows, decisions ?? []);
    else if ((toolResults?.length ?? 0) > 0) checkResults(rows, toolResults ?? []);
  };

  const hasAnswers = ({ approvals: decisions, toolResults }: Answers): boolean =>
    (decisions?.length ?? 0) > 0 || (toolResults?.length ?? 0) > 0;

  const overtake = async (tenantId: string, session: SessionTurn): Promise<void> => {
    // The history tells without a query whether anything can wait.
    if (openCallsOf(session.history).length === 0) return;
    const rows = await requests.list(tenantId, session.sessionId);
    await refuseWhilePending(tenantId, session.sessionId, rows);
    if (rows.some(isOpen)) await storage.write([requests.voided(tenantId, session.sessionId)]);
  };

  const responseMessage = (
    runId: string,
    decisions: readonly { requestId: string; approved: boolean; reason: string | null }[],
  ): ChatMessage => ({
    messageId: newId(),
    role: 'User',
    runId,
    createdAt: new Date(now()).toISOString(),
    interrupted: false,
    contents: decisions.map((decision): ContentPart => ({ type: 'ApprovalResponse', ...decision })),
  });

  /** The open calls of the session, each with the answer that `answerOf` knows; calls without a request are made. */
  const callsOf = (
    session: SessionTurn,
    open: readonly SessionRequestRow[],
    answerOf: (row: SessionRequestRow) => OpenCall['answer'],
  ): OpenCall[] => {
    const calls = openCallsOf(session.history);
    const rowOf = new Map(open.map((row) => [row.tool_call_id, row]));
    if (calls.length === 0 || open.some((row) => !calls.some((call) => call.toolCallId === row.tool_call_id)))
      throw changedError(session.sessionId);
    return calls.map(({ toolCallId, toolName, arguments: args }) => {
      const row = rowOf.get(toolCallId);
      const call = { toolCallId, toolName, input: JSON.stringify(args) } as OpenCall['call'];
      return row === undefined
        ? { call, idempotencyKey: laterKey(open[0]?.run_id ?? '', toolCallId), answer: 'execute' }
        : { call, idempotencyKey: row.idempotency_key, answer: answerOf(row) };
    });
  };

  const remembered = async (
    context: CallContext,
    agentName: string,
    calls: readonly OpenCall[],
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<{ rules: StandingRule[]; entries: AuditEntry[] }> => {
    const found = { rules: [] as StandingRule[], entries: [] as AuditEntry[] };
    const seen = new Set<string>();
    for (const decision of decisions) {
      const row = open.find(({ id }) => id === decision.requestId);
      const call = calls.find((entry) => entry.call.toolCallId === row?.tool_call_id);
      if (decision.remember !== true || row === undefined || call === undefined) continue;
      const hash = decision.rememberArgumentsOnly === true ? argumentsHash(JSON.parse(call.call.input) as Json) : null;
      if (seen.has(`${row.tool_name}\n${hash}`)) continue;
      seen.add(`${row.tool_name}\n${hash}`);
      const made = await rules.toRemember({
        tenantId: context.tenantId,
        agentName,
        toolName: row.tool_name,
        argumentsHash: hash,
        argumentConditions: [],
        createdBy: context.principal.actor,
        createdAt: now(),
      });
      if (made === null) continue;
      found.rules.push(made.rule);
      found.entries.push(made.entry);
    }
    return found;
  };

  const decide = async (
    context: CallContext,
    runId: string,
    agentName: string,
    session: SessionTurn,
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<TurnResume> => {
    const decisionOf = new Map(decisions.map((decision) => [decision.requestId, decision]));
    const calls = callsOf(session, open, (row) => {
      const decision = decisionOf.get(row.id);
      const name = { toolCallId: row.tool_call_id, toolName: row.tool_name };
      return decision?.approved === true ? 'approved' : refusedPart(name, rejection(decision?.reason));
    });
    const entries = open.map((row): AuditEntry => {
      const call = calls.find((entry) => entry.call.toolCallId === row.tool_call_id);
      return {
        tenantId: context.tenantId,
        actor: context.principal.actor,
        action: 'approval.decide',
        entity: `run:${runId}`,
        before: null,
        after: {
          requestId: row.id,
          decision: decisionOf.get(row.id)?.approved === true ? 'Approved' : 'Rejected',
          toolName: row.tool_name,
          argumentsHash: argumentsHash(JSON.parse(call?.call.input ?? '{}') as Json),
        },
      };
    });
    const store = async (): Promise<void> => {
      const remember = await remembered(context, agentName, calls, open, decisions);
      const writes: Statement[] = [
        ...open.map((row) => requests.answered(row)),
        ...remember.rules.map((rule) => ruleStore.inserted(rule)),
      ];
      await audit.record([...entries, ...remember.entries], writes);
      if (remember.rules.length > 0) rules.changed(context.tenantId);
    };
    await store().catch((error: unknown) => {
      // Another caller stored an equal rule in the same moment: the second look finds it.
      if (storage.dialect.classify(error) === 'unique-violation') return store();
      throw error;
    });
    const given = decisions.map(({ requestId, approved, reason }) => ({ requestId, approved, reason: reason ?? null }));
    return { messages: [responseMessage(runId, given)], calls, earlier: null };
  };

  const takeResults = async (
    session: SessionTurn,
    open: readonly SessionRequestRow[],
    results: NonNullable<AgentRunRequest['toolResults']>,
  ): Promise<TurnResume> => {
    const resultOf = new Map(results.map((result) => [result.callId, result]));
    const calls = callsOf(session, open, (row) => {
      const { result = null, errorMessage = null } = resultOf.get(row.id) ?? {};
      return { type: 'ClientResult', result, errorMessage };
    });
    await storage.write(open.map((row) => requests.answered(row)));
    return { messages: [], calls, earlier: null };
  };

  return {
    overtake,
    async check(context, _agentName, sessionId, answers) {
      if (answers.approvals?.some(({ remember }) => remember === true) === true) requireRuleAuthority(context);
      const rows = await requests.list(context.tenantId, sessionId);
      await refuseWhilePending(context.tenantId, sessionId, rows);
      checkRows(rows, answers);
    },

    async begin(context, runId, agentName, session, answers) {
      if (!hasAnswers(answers)) {
        await overtake(context.tenantId, session);
        return { resume: null, continuedFromRunId: null };
      }
      const rows = await requests.list(context.tenantId, session.sessionId);
      checkRows(rows, answers);
      const open = rows.filter(isOpen);
      try {
        const resume =
          (answers.approvals?.length ?? 0) > 0
            ? await decide(context, runId, agentName, session, open, answers.approvals ?? [])
            : await takeResults(session, open, answers.toolResults ?? []);
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
      const calls = callsOf(session, open, (row) => {
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
      return { messages: [responseMessage(handover.continuation_run_id, given)], calls, earlier: null };
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
