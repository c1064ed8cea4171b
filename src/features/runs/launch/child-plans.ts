import { AcpError } from '../../../contract/errors.ts';
import type { ActiveRun, ChildPlans, RunPlan } from '../../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../../engine/compiled-agent.ts';
import { ToolError } from '../../../engine/tools/index.ts';
import { standInFor } from './remote-stand-in.ts';
import { type PlanParts, runPlan } from './run-plan.ts';

export interface ChildPlanDeps {
  readonly agents: Pick<AgentSource, 'compile'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Runs that other runs call: for whom their parent is, and admitted by the limits of its tree alone. */
export const createChildPlans = ({ agents, now, newId }: ChildPlanDeps): ChildPlans => {
  const compile = async (parent: ActiveRun, agentName: string): Promise<CompiledAgent> => {
    try {
      return await agents.compile(parent.plan.tenantId, agentName, parent.trace?.span);
    } catch (error) {
      if (error instanceof AcpError || error instanceof CompileError)
        throw new ToolError(`Agent "${agentName}" cannot be called now.`, { cause: error });
      throw error;
    }
  };

  const parametersOf = (agent: CompiledAgent) => {
    try {
      return agent.resolveParameters(null);
    } catch (cause) {
      throw new ToolError(`Agent "${agent.name}" needs parameters and cannot be called by another agent.`, { cause });
    }
  };

  /** Throws where the limits of the tree admit no further run. */
  const childPlan = (
    parent: ActiveRun,
    toolCallId: string,
    own: Pick<PlanParts, 'agent' | 'message' | 'parameters'> & Partial<Pick<PlanParts, 'remote'>>,
  ): RunPlan => {
    const refusal = parent.budget.admitChild(parent.depth + 1);
    if (refusal !== null) throw new ToolError(refusal);
    const { tenantId, requestId, kind, culture, isStreaming, principal, userId, ownerId, labels, unrecordedCount } =
      parent.plan;
    return runPlan({
      id: newId(),
      tenantId,
      requestId,
      kind,
      ...own,
      culture,
      isStreaming,
      principal,
      userId,
      ownerId,
      labels,
      createdAt: now(),
      unrecordedCount,
      parent,
      parentCallId: toolCallId,
    });
  };

  return {
    async plan(parent, agentName, message, toolCallId) {
      const agent = await compile(parent, agentName);
      return childPlan(parent, toolCallId, { agent, message, parameters: parametersOf(agent) });
    },
    planRemote: (parent, remote, message, toolCallId) =>
      childPlan(parent, toolCallId, { agent: standInFor(remote.agent), message, parameters: {}, remote }),
  };
};
