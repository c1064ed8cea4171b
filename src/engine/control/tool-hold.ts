import type { Json } from '../../contract/schema.ts';
import type { Principal } from '../../core/context.ts';
import type { CompiledAgent } from '../compiled-agent.ts';
import type { OpenCall } from '../context/index.ts';
import type { ExecutedKind, RunTrace } from '../record/index.ts';
import type { RegisteredTool } from '../tools/index.ts';
import type { ApprovalCall, ApprovalGate } from './approval-gate.ts';
import type { WaitingCall } from './pause.ts';

/** What a run says about who could be asked for one of its calls. */
interface HeldRun {
  readonly id: string;
  readonly plan: {
    readonly tenantId: string;
    readonly kind: ExecutedKind;
    /** Null: no recorded run is repeated. */
    readonly replay: object | null;
    readonly agent: Pick<CompiledAgent, 'name' | 'asksForEveryTool'>;
    /** Null: no other agent has called this one. */
    readonly parent: object | null;
    readonly job: { readonly continuesApproval?: true } | null;
    readonly sessionId: string | null;
    readonly asksNobody: boolean;
    readonly userId: string | null;
    readonly principal: Pick<Principal, 'door'>;
  };
  readonly trace: Pick<RunTrace, 'ofCall'> | null;
  readonly signal: AbortSignal;
}

export interface ApprovalPorts {
  readonly approvals: ApprovalGate;
  newId(): string;
}

/** A call that may go on, also one that a standing rule lets go on, one that waits, or one that fails because nobody can be asked. */
type Held = WaitingCall | { readonly refused: string } | 'preApproved' | null;

/** A queued run has no client, unless it continues a decided one; a called agent has its caller's model for one. */
const clientRefusal = ({ plan }: HeldRun): string | null => {
  if (plan.principal.door !== undefined)
    return 'client-tool-not-available: a run that another system started has no client.';
  if (plan.parent !== null) return 'client-tool-not-available: an agent that another agent called has no client.';
  if (plan.job !== null && plan.job.continuesApproval !== true)
    return 'client-tool-not-available: a queued run has no client.';
  if (plan.sessionId === null && !plan.asksNobody)
    return 'client-tool-needs-session: a run without a session cannot wait for its client.';
  return null;
};

/** Whether a person can be asked while a call is made, who answers with the next request. */
export const mayAsk = ({ plan }: HeldRun): boolean =>
  plan.kind === 'Agent' &&
  plan.sessionId !== null &&
  plan.job === null &&
  plan.parent === null &&
  plan.replay === null &&
  plan.principal.door === undefined &&
  !plan.asksNobody;

const approvalRefusal = ({ plan }: HeldRun): string | null => {
  if (plan.principal.door !== undefined)
    return 'approval-not-available: the call needs an approval, and nobody can be asked in a run that another system started.';
  if (plan.parent !== null)
    return 'approval-not-available: the call needs an approval, and an agent that another agent called cannot ask for one.';
  if (plan.asksNobody)
    return 'approval-not-available: the call needs an approval, and its caller cannot be asked for one.';
  if (plan.sessionId === null)
    return 'approval-needs-session: the call needs an approval, and a run without a session cannot wait for one.';
  return null;
};

/** What stands between the checked arguments of a call and its body: the client that executes it, or an approval. */
export const holdCall = async (
  run: HeldRun,
  ports: ApprovalPorts,
  { call, idempotencyKey, answer, keptInput }: OpenCall,
  tool: RegisteredTool,
  args: Json,
): Promise<Held> => {
  const { plan } = run;
  const { descriptor } = tool;
  // Who decides or executes the call later has what is kept of it: the original is gone with this run.
  const storedArguments = keptInput === undefined ? args : (JSON.parse(keptInput) as Json);
  const waiting = { call, idempotencyKey, arguments: storedArguments };
  if (descriptor.runsOnClient) {
    const refused = clientRefusal(run);
    if (refused !== null) return { refused };
    return { ...waiting, kind: 'client', requestId: call.toolCallId, presentation: null };
  }
  // What was asked before was let go on then.
  if (answer === 'approved' || (typeof answer !== 'string' && answer.type === 'QuestionAnswers')) return null;
  const request: ApprovalCall = {
    tenantId: plan.tenantId,
    agentName: plan.agent.name,
    runId: run.id,
    sessionId: plan.sessionId,
    userId: plan.userId,
    toolName: call.toolName,
    arguments: args as ApprovalCall['arguments'],
  };
  const marked = descriptor.requiresApproval || plan.agent.asksForEveryTool;
  const decision = await ports.approvals.decide(request, marked, run.signal);
  const how = decision.kind === 'ask' ? 'asked' : decision.by;
  if (how !== null)
    run.trace?.ofCall(call.toolCallId)?.set({
      'acp.approval.outcome': how,
      'acp.approval.rule_id': decision.kind === 'run' ? decision.ruleId : null,
    });
  if (decision.kind === 'run') return decision.by === 'rule' ? 'preApproved' : null;
  const refused = approvalRefusal(run);
  if (refused !== null) return { refused };
  const presentable = { ...request, arguments: storedArguments as ApprovalCall['arguments'] };
  const presentation = await ports.approvals.present(presentable, run.signal);
  return { ...waiting, kind: 'approval', requestId: ports.newId(), presentation };
};
