import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import { RpcError, type RpcParams, rpcCodes } from '../../contract/json-rpc.ts';
import type { Clock } from '../../core/clock.ts';
import { compileChecker } from '../../core/validate.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import type { ExposedAgent, ExposedRuns } from '../exposure/index.ts';
import { agentFailure, agentResult, type RunFile } from './agent-results.ts';
import { AgentToolInput, agentOutputSchema } from './agent-tool.rules.ts';
import type { McpTasks } from './mcp-tasks.ts';
import type { McpCallContext, McpCallEnd, McpCallOptions, McpTool, McpToolResult } from './mcp-tool.ts';

export interface AgentToolDeps {
  readonly runs: ExposedRuns;
  readonly tasks: McpTasks;
  readonly filesOf: (tenantId: string, runId: string) => Promise<readonly RunFile[]>;
  readonly inlineWaitMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

const input = compileChecker(AgentToolInput, { nullIsAbsent: true });
const badArguments: ReadonlySet<ErrorCode> = new Set([
  'session-not-owned',
  'session-agent-mismatch',
  'parameter-invalid',
]);
/** Steps of a run that a caller may count; what they are about is the run's own. */
const steps: ReadonlySet<string> = new Set([
  'tool.invoking',
  'tool.invoked',
  'tool.failed',
  'child.started',
  'child.completed',
  'superstep.started',
  'superstep.completed',
]);

const checkedArguments = (given: RpcParams): AgentToolInput => {
  const args = input.normalize(given);
  if (input.check(args)) return args as AgentToolInput;
  const [first] = input.errors(args);
  throw new RpcError(
    rpcCodes.invalidParams,
    first === undefined ? 'The arguments are not valid.' : `arguments ${first.path}: ${first.message}.`,
  );
};

/** Why no run began, as its caller is told: what HTTP says better, and bugs, go on as they are. */
const refusal = (error: unknown, sessionId: string | null): McpToolResult => {
  if (!(error instanceof AcpError)) throw error;
  if (badArguments.has(error.code)) throw new RpcError(rpcCodes.invalidParams, error.message);
  if (error.status >= 500 && error.details.runId === undefined) throw error;
  const { runId, errorType } = error.details;
  return agentFailure({ ...(runId === undefined ? {} : { runId }), sessionId }, errorType ?? error.code, error.message);
};

/** An agent as a tool. */
export const agentTool = (deps: AgentToolDeps, name: string, agent: ExposedAgent): McpTool => {
  const format = agent.compiled.model.responseFormat;
  const outputSchema = agentOutputSchema(format);

  const ended = async (
    { base }: McpCallContext,
    active: ActiveRun,
    { status, output, failure }: RunOutcome,
  ): Promise<McpToolResult> => {
    const { id, plan } = active;
    const warnings = warningsOf(active);
    const run = {
      runId: id,
      sessionId: plan.sessionId,
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    };
    if (status === 'Completed') return agentResult(run, output, format, await deps.filesOf(plan.tenantId, id), base);
    if (failure !== null) return agentFailure(run, failure.type, failure.message);
    return agentFailure(run, 'canceled', 'The run was canceled.');
  };

  /** True where the run goes on longer than its caller waits, and wherever that waits not at all. */
  const outlastsWait = async (run: ActiveRun): Promise<boolean> => {
    if (deps.inlineWaitMs === 0) return true;
    return new Promise((resolve) => {
      const timer = deps.clock.after(deps.inlineWaitMs, () => resolve(true));
      void run.done.then(() => {
        timer.stop();
        resolve(false);
      });
    });
  };

  const follow = async (context: McpCallContext, run: ActiveRun, options: McpCallOptions): Promise<McpCallEnd> => {
    if (options.mayBecomeTask && (await outlastsWait(run))) {
      const task = await deps.tasks.handle(context, run);
      // A run without a row could not be found again: its caller waits.
      if (task !== null) return { kind: 'task', task };
    }
    return { kind: 'result', result: await ended(context, run, await run.done) };
  };

  return {
    shape: {
      name,
      ...(agent.displayName === null ? {} : { title: agent.displayName }),
      description: agent.description ?? `Asks the agent ${agent.displayName ?? agent.name}.`,
      inputSchema: AgentToolInput as never,
      ...(outputSchema === undefined ? {} : { outputSchema }),
    },
    async call(context, args, options) {
      const body = checkedArguments(args);
      let run: ActiveRun;
      try {
        run = await deps.runs.start(context, { agentName: agent.name, body, isStreaming: false });
      } catch (error) {
        return { kind: 'result', result: refusal(error, body.sessionId ?? null) };
      }
      const abandon = (): void => deps.runs.abandon(context, run);
      const over = options.underway(abandon);
      const { onProgress, gone } = options;
      const stop =
        onProgress === null
          ? null
          : run.log.subscribe(
              (frames) => {
                for (const { event } of frames) if (steps.has(event)) onProgress();
              },
              () => undefined,
            );
      gone?.addEventListener('abort', abandon, { once: true });
      if (gone?.aborted === true) abandon();
      try {
        return await follow(context, run, options);
      } finally {
        gone?.removeEventListener('abort', abandon);
        stop?.();
        over();
      }
    },
  };
};
