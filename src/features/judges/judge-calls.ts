import { AcpError, errorTable } from '../../contract/errors.ts';
import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext } from '../../core/context.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import { type AgentSource, CompileError } from '../../engine/compiled-agent.ts';
import type { RunEngine } from '../../engine/lifecycle/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import { assertMayStart, failureError, type MayStartDeps, runPlan } from '../runs/index.ts';
import type { SessionTurns } from '../sessions/index.ts';
import type { AskAgent } from './judge.ts';
import type { JudgeTelemetry } from './judge-telemetry.ts';

export interface JudgeCallDeps extends MayStartDeps {
  readonly authorization: Pick<RunAuthorization, 'require'>;
  readonly attribution: Attribution;
  readonly agents: Pick<AgentSource, 'compile'>;
  readonly engine: Pick<RunEngine, 'start' | 'cancel'>;
  readonly turns: Pick<SessionTurns, 'ownerOf'>;
  /** Null: runs are not limited. */
  readonly quotas: Pick<ActiveQuotas, 'admission'> | null;
  readonly telemetry: Pick<JudgeTelemetry, 'spent'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Which judge asks, for whom, and how long it may. */
export interface AskingJudge {
  readonly name: string;
  readonly context: CallContext;
  readonly trace: TraceParent | null;
  /** Aborted when the judge's time is over. */
  readonly signal: AbortSignal;
}

/** What a judge gets of a call that failed: nothing but what any caller of the service would read. */
export class JudgeCallError extends Error {
  readonly code: string;
  readonly isRetryable: boolean;

  constructor(error: AcpError) {
    super(error.message, { cause: error });
    this.name = 'JudgeCallError';
    this.code = error.code;
    this.isRetryable = [429, 502, 503, 504].includes(errorTable[error.code].status);
  }
}

const asPublic = (error: unknown): unknown => {
  if (error instanceof AcpError) return new JudgeCallError(error);
  if (error instanceof CompileError)
    return new JudgeCallError(new AcpError('agent-not-compilable', error.message, { cause: error }));
  return error;
};

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/** How judges run agents: as runs of kind Eval, which are admitted, recorded and priced like any other. */
export const createJudgeCalls = (deps: JudgeCallDeps) => {
  const planOf = async (judge: AskingJudge, agentName: string, message: string): Promise<RunPlan> => {
    const { context } = judge;
    const { tenantId, principal } = context;
    const ownerId = await deps.turns.ownerOf(tenantId, null, principal);
    // An admission may take a while.
    assertMayStart(deps, tenantId, agentName);
    const agent = await deps.agents.compile(tenantId, agentName, judge.trace);
    return runPlan({
      id: deps.newId(),
      tenantId,
      requestId: context.requestId,
      kind: 'Eval',
      agent,
      message,
      parameters: agent.resolveParameters(null),
      principal,
      ...(await deps.attribution.of(context, { agentName, sessionId: null })),
      ownerId,
      createdAt: deps.now(),
      trace: { parent: judge.trace, link: null },
    });
  };

  const admitted = async (judge: AskingJudge, agentName: string, message: string): Promise<ActiveRun> => {
    const { context, signal } = judge;
    const { tenantId, principal } = context;
    await deps.authorization.require(context, 'Start', { resource: 'Run', agentName, userId: principal.userId });
    assertMayStart(deps, tenantId, agentName);
    const admission = await deps.quotas?.admission.admit({ tenantId, agentName, mayWait: true, signal });
    const plan = await planOf(judge, agentName, message).catch((error: unknown) => {
      admission?.settled();
      throw error;
    });
    const run = deps.engine.start(plan);
    void run.log.opened.then(admission?.settled);
    return run;
  };

  const answerOf = async (judge: AskingJudge, agentName: string, message: string): Promise<string> => {
    const { name, context, signal } = judge;
    signal.throwIfAborted();
    const run = await admitted(judge, agentName, message);
    const stop = (): void => deps.engine.cancel(run, 'Requested', context.principal.actor);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const outcome = await run.done;
    signal.removeEventListener('abort', stop);
    deps.telemetry.spent(name, run.budget.spent.costMicros);
    if (outcome.failure !== null) throw failureError(outcome.failure, run.id);
    return outcome.output ?? '';
  };

  return (judge: AskingJudge): AskAgent =>
    async (agentName, message) => {
      if (!isText(agentName) || !isText(message)) throw new TypeError('ask(agentName, message) takes two texts.');
      try {
        return await answerOf(judge, agentName, message);
      } catch (error) {
        throw asPublic(error);
      }
    };
};
