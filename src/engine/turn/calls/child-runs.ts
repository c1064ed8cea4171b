import type { Timer } from '../../../core/clock.ts';
import type { ActiveRun, RunOutcome, RunPlan } from '../../active-run.ts';
import { RunFailure } from '../../run-failure.ts';
import { remoteFailureType, ToolError } from '../../tools/index.ts';
import { reportedUsage } from '../../usage.ts';
import type { ChildPorts } from '../turn-ports.ts';
import type { ChildCaller } from './agent-tool.ts';

const answerOf = (agentName: string, outcome: RunOutcome): string => {
  if (outcome.status === 'Completed') return outcome.output ?? '';
  // What is said of a remote agent has none of its words.
  if (outcome.failure?.type === remoteFailureType) throw new ToolError(outcome.failure.message);
  // The child's own error text stays in its run.
  if (outcome.status === 'Canceled') throw new ToolError(`Agent "${agentName}" was canceled.`);
  throw new ToolError(`Agent "${agentName}" failed.`);
};

/** Waits for the child within the caller's two limits: when it is asked to stop, and when the caller goes on without it. */
const waitFor = async (
  ports: ChildPorts,
  parent: ActiveRun,
  child: ActiveRun,
  agentName: string,
): Promise<RunOutcome> => {
  const own = parent.plan.agent.subAgents;
  const limits = [own.childDeadlineMs ?? ports.settings.childDeadlineMs, child.plan.remote?.agent.timeoutMs ?? null];
  const deadlineMs = limits.reduce((one, other) =>
    one === null || other === null ? (one ?? other) : Math.min(one, other),
  );
  const waitMs = own.waitTimeoutMs ?? ports.settings.waitTimeoutMs;
  const timers: Timer[] = [];
  const timedOut = (stage: 'Deadline' | 'Wait', limitMs: number) =>
    parent.log.append('child.timed-out', { childRunId: child.id, agentName, stage, limitMs });
  try {
    if (deadlineMs !== null)
      timers.push(
        ports.after(deadlineMs, () => {
          timedOut('Deadline', deadlineMs);
          const failure = new RunFailure(
            'Timeout',
            'child_deadline',
            `The run did not finish within ${deadlineMs} ms.`,
          );
          child.stop({ kind: 'fail', failure });
        }),
      );
    if (waitMs === null) return await child.done;
    const gaveUp = new Promise<never>((_, reject) => {
      timers.push(
        ports.after(waitMs, () => {
          timedOut('Wait', waitMs);
          reject(new ToolError(`Agent "${agentName}" did not answer within ${waitMs} ms.`));
        }),
      );
    });
    return await Promise.race([child.done, gaveUp]);
  } finally {
    for (const timer of timers) timer.stop();
  }
};

/** Callable agents: every call is a run of its own, in the caller's tree and budget. */
export const createChildCaller = (ports: ChildPorts, start: (plan: RunPlan) => ActiveRun): ChildCaller => {
  const answered = async (parent: ActiveRun, plan: RunPlan, agentName: string, toolCallId: string): Promise<string> => {
    const child = start(plan);
    parent.children.add(child);
    if (parent.stopReason !== null) child.stop({ kind: 'cancel', cause: 'ParentCanceled', by: null });
    parent.log.append('child.started', { childRunId: child.id, agentName, depth: child.depth, toolCallId });
    const startedAt = ports.now();
    void child.done.then(() => parent.children.delete(child));
    const outcome = await waitFor(ports, parent, child, agentName);
    parent.log.append('child.completed', {
      childRunId: child.id,
      agentName,
      status: outcome.status,
      durationMs: ports.now() - startedAt,
      usage: reportedUsage(child.usage),
    });
    return answerOf(agentName, outcome);
  };
  return {
    async call(parent, agentName, message, toolCallId) {
      const plan = await ports.children.plan(parent, agentName, message, toolCallId);
      return answered(parent, plan, agentName, toolCallId);
    },
    async callRemote(parent, work, message, toolCallId) {
      const plan = ports.children.planRemote(parent, work, message, toolCallId);
      return answered(parent, plan, work.agent.name, toolCallId);
    },
  };
};
