import { AcpError, type ErrorCode } from '../../../contract/errors.ts';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import type { ToolApprovalDecision } from '../../../contract/tool-approval.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import { answerProblems } from './asked-requests.rules.ts';

/** What a run request answers of the open requests of its session. */
export type Answers = Pick<AgentRunRequest, 'approvals' | 'toolResults'>;

export const isOpen = (row: SessionRequestRow): boolean => row.state === 'Open';

export const hasAnswers = ({ approvals: decisions, toolResults }: Answers): boolean =>
  (decisions?.length ?? 0) > 0 || (toolResults?.length ?? 0) > 0;

const refuse = (code: ErrorCode, message: string, path: string): AcpError =>
  new AcpError(code, message, { details: { errors: [{ path, message }] } });

const invalidResult = (path: string, problems: readonly string[]): AcpError =>
  new AcpError('validation-failed', `${path} ${problems[0]}.`, {
    details: { errors: problems.map((message) => ({ path, message })) },
  });

/** Of equal ids the open one counts: models repeat the ids of their calls. */
const byId = (rows: readonly SessionRequestRow[], kind: string, id: string): SessionRequestRow | undefined => {
  const same = rows.filter((row) => row.kind === kind && row.id === id);
  return same.find(isOpen) ?? same[0];
};

const checkDecisions = (
  rows: readonly SessionRequestRow[],
  decisions: readonly ToolApprovalDecision[],
  settled: ReadonlyMap<string, string>,
): void => {
  for (const [index, { requestId }] of decisions.entries()) {
    const row = byId(rows, 'Approval', requestId);
    const path = `approvals[${index}].requestId`;
    if (row === undefined) throw refuse('approval-unknown', `The request "${requestId}" is not known.`, path);
    if (settled.get(requestId) === 'Expired')
      throw refuse('approval-expired', `The request "${requestId}" has expired.`, path);
    if (!isOpen(row) || settled.has(requestId))
      throw refuse('approval-already-decided', `The request "${requestId}" is answered.`, path);
  }
  const answeredIds = new Set(decisions.map(({ requestId }) => requestId));
  const missing = rows.find((row) => isOpen(row) && row.kind === 'Approval' && !answeredIds.has(row.id));
  if (missing !== undefined)
    throw refuse('approvals-missing', `The request "${missing.id}" is not answered.`, 'approvals');
};

const checkResults = (
  rows: readonly SessionRequestRow[],
  results: NonNullable<AgentRunRequest['toolResults']>,
): void => {
  for (const [index, { callId, result }] of results.entries()) {
    const row = byId(rows, 'ClientTool', callId);
    const path = `toolResults[${index}].callId`;
    if (row === undefined) throw refuse('tool-call-unknown', `The call "${callId}" is not known.`, path);
    if (!isOpen(row)) throw refuse('tool-call-answered', `The call "${callId}" is answered.`, path);
    const problems = row.asked !== null && typeof result === 'string' ? answerProblems(row, result) : [];
    if (problems.length > 0) throw invalidResult(`toolResults[${index}].result`, problems);
  }
  const answeredIds = new Set(results.map(({ callId }) => callId));
  const missing = rows.find((row) => isOpen(row) && row.kind === 'ClientTool' && !answeredIds.has(row.id));
  if (missing !== undefined)
    throw refuse('tool-results-missing', `The call "${missing.id}" is not answered.`, 'toolResults');
};

/** Refuses answers that fit no open request, and lists that leave one out. `settled`: as of `Mailbox.settled`. */
export const checkAnswers = (
  rows: readonly SessionRequestRow[],
  { approvals: decisions, toolResults }: Answers,
  settled: ReadonlyMap<string, string>,
): void => {
  if ((decisions?.length ?? 0) > 0) checkDecisions(rows, decisions ?? [], settled);
  else if ((toolResults?.length ?? 0) > 0) checkResults(rows, toolResults ?? []);
};
