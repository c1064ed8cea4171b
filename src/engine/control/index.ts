/** What holds a run back: guards, quotas, the budget of its tree, approvals and pauses. */

export {
  type ApprovalCall,
  type ApprovalGate,
  type ApprovalPolicy,
  type ApprovalPolicyAnswer,
  type ApprovalPresenter,
  createApprovalGate,
  type ToolApprovalPresentation,
} from './approval-gate.ts';
export { callWithinQuotas, type QuotaPorts } from './call-allowance.ts';
export { guardedAnswer, namesIn } from './guards/answer-guard.ts';
export { type CallGuard, guardCall } from './guards/call-guard.ts';
export type { ContentGuard, GuardInput, GuardSource, GuardVerdict } from './guards/content-guard.ts';
export type { BlockNote, ContentGuards, GuardFinding, GuardWatch, Inspected } from './guards/guard-port.ts';
export { checkedJson } from './guards/json-texts.ts';
export { guardedOffer } from './guards/offered-tools.ts';
export { blockedText, blockRun, guardedText, tellMasks } from './guards/run-guard.ts';
export { guardedAttachments, guardedStart, refuseBlocked, tellStart } from './guards/start-guard.ts';
export { type Pause, pauseOf, type WaitingCall, waitingApprovals, waitingClientCalls } from './pause.ts';
export {
  type BoundedCall,
  type CallAllowance,
  type CallAllowances,
  type QuotaUse,
  quotaUse,
  type RunQuotas,
  type UnrecordedCount,
} from './run-quotas.ts';
export { type ApprovalPorts, holdCall, mayAsk } from './tool-hold.ts';
export { TreeBudget, type TreeLimits } from './tree-budget.ts';
export { WaitClock } from './wait-clock.ts';
