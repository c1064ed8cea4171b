import type { PendingToolApproval, ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { OpenRun } from './open-run.ts';
import { shownRun } from './open-run.ts';

export type WaitingCall = PendingToolApproval & { readonly truncated?: boolean };

/**
 * A run whose calls wait for whoever started it. Its session goes on once every call has a decision; calls of runs that
 * nobody was reading wait in the inbox instead.
 */
export interface WaitingRun {
  readonly runId: string;
  readonly agentName: string;
  readonly sessionId: string;
  readonly calls: readonly WaitingCall[];
}

/** Decisions so far about the calls of one run, in their order. */
export interface Answers {
  readonly waiting: WaitingRun;
  readonly decisions: readonly ToolApprovalDecision[];
}

/** Null unless the run on screen waits for an answer in its session. */
export const waitingRun = (open: OpenRun): WaitingRun | null => {
  const run = shownRun(open);
  if (run?.status !== 'AwaitingApproval' || run.jobId !== null || run.sessionId === null || open.wentOn) return null;
  if (run.continuedBy !== null) return null;
  const asked = open.timeline.items.findLast(({ event }) => event === 'run.awaiting-approval');
  const calls = asked?.data['approvals'];
  if (!Array.isArray(calls) || calls.length === 0) return null;
  return { runId: run.id, agentName: run.agentName, sessionId: run.sessionId, calls: calls as WaitingCall[] };
};

export const nextCall = ({ waiting, decisions }: Answers): WaitingCall | null =>
  waiting.calls[decisions.length] ?? null;

export const decided = (answers: Answers, approved: boolean, reason = ''): Answers => {
  const call = nextCall(answers);
  if (call === null) return answers;
  const decision = { requestId: call.requestId, approved, ...(reason === '' ? {} : { reason }) };
  return { ...answers, decisions: [...answers.decisions, decision] };
};
