import type { PendingToolApproval, ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { OpenRun } from './open-run.ts';
import { shownRun } from './open-run.ts';

export type WaitingCall = PendingToolApproval & { readonly truncated?: boolean };

/**
 * A run whose calls may be decided by the next run of its session. Calls of runs that had no reader are decided in the
 * inbox alone, and so are the others of a run of which one was decided there.
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

/** The rows of the inbox. */
interface ListedCalls {
  readonly rows: readonly { readonly runId: string }[];
}

const askedCalls = ({ timeline }: OpenRun): readonly WaitingCall[] => {
  const calls = timeline.items.findLast(({ event }) => event === 'run.awaiting-approval')?.data['approvals'];
  return Array.isArray(calls) ? (calls as WaitingCall[]) : [];
};

/** Whether only the inbox can decide what the run on screen waits for. */
export const waitsInInbox = (open: OpenRun, inbox: ListedCalls): boolean => {
  const run = shownRun(open);
  if (run?.status !== 'AwaitingApproval' || run.continuedBy !== null) return false;
  const left = inbox.rows.filter(({ runId }) => runId === run.id).length;
  return run.jobId !== null || (left > 0 && left < askedCalls(open).length);
};

/** Null unless the run on screen waits for an answer in its session. */
export const waitingRun = (open: OpenRun, inbox: ListedCalls): WaitingRun | null => {
  const run = shownRun(open);
  if (run?.status !== 'AwaitingApproval' || run.sessionId === null || open.wentOn) return null;
  if (run.continuedBy !== null || waitsInInbox(open, inbox)) return null;
  const calls = askedCalls(open);
  return calls.length === 0 ? null : { runId: run.id, agentName: run.agentName, sessionId: run.sessionId, calls };
};

export const nextCall = ({ waiting, decisions }: Answers): WaitingCall | null =>
  waiting.calls[decisions.length] ?? null;

export const decided = (answers: Answers, approved: boolean, reason = ''): Answers => {
  const call = nextCall(answers);
  if (call === null) return answers;
  const decision = { requestId: call.requestId, approved, ...(reason === '' ? {} : { reason }) };
  return { ...answers, decisions: [...answers.decisions, decision] };
};
