import { AcpError, errorTable } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import { type AgentSource, CompileError } from '../../engine/compiled-agent.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { failureError, type Launch } from '../runs/index.ts';
import type { AskAgent } from './judge.ts';
import type { JudgeTelemetry } from './judge-telemetry.ts';

export interface JudgeCallDeps {
  readonly launch: Pick<Launch, 'enter' | 'start'>;
  readonly agents: Pick<AgentSource, 'compile'>;
  readonly engine: Pick<LiveRuns, 'cancel'>;
  readonly telemetry: Pick<JudgeTelemetry, 'spent'>;
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

/**
 * How judges run agents: as runs of kind Eval, which are launched, recorded and priced like any other.
 * Design: docs/design/replays.md.
 */
export const createJudgeCalls = (deps: JudgeCallDeps) => {
  const started = async ({ context, trace, signal }: AskingJudge, agentName: string, message: string) => {
    const entrance = await deps.launch.enter({
      kind: 'judge',
      context: { ...context, trace, signal },
      agentName,
      body: {},
      isStreaming: false,
      target: { userId: context.principal.userId },
      async work() {
        const agent = await deps.agents.compile(context.tenantId, agentName, trace);
        return { kind: 'Eval', agent, message, parameters: agent.resolveParameters(null) };
      },
    });
    return deps.launch.start(entrance);
  };

  const answerOf = async (judge: AskingJudge, agentName: string, message: string): Promise<string> => {
    const { name, context, signal } = judge;
    signal.throwIfAborted();
    const run = await started(judge, agentName, message);
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
