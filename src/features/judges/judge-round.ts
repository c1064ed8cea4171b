import type { CallContext } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import { errorClassOf, withDeadline } from '../../engine/tools/index.ts';
import type { JudgedScore } from '../scores/index.ts';
import type { AskAgent, Judge, JudgedRun } from './judge.ts';
import { type AskingJudge, JudgeCallError } from './judge-calls.ts';
import type { JudgePlace, JudgeTelemetry } from './judge-telemetry.ts';
import { readVerdict } from './judge-verdict.rules.ts';
import type { JudgeFailure } from './judges.schema.ts';

export interface JudgeRoundDeps {
  /** For one judge and one run. */
  readonly timeoutMs: number;
  readonly telemetry: JudgeTelemetry;
  /** How the judge runs agents. */
  readonly calls: (judge: AskingJudge) => AskAgent;
  readonly log: Pick<Logger, 'warn'>;
}

/** What one judge said: its scores, none where it has no verdict, or why it failed. */
export type JudgeOutcome =
  | { readonly kind: 'scored'; readonly scores: readonly JudgedScore[] }
  | { readonly kind: 'failed'; readonly failure: JudgeFailure };

interface Asked {
  readonly runId: string;
  readonly run: JudgedRun;
  readonly place: JudgePlace;
  readonly context: CallContext;
}

type Answer =
  | ReturnType<typeof readVerdict>
  | { readonly kind: 'unanswered'; readonly errorType: string; readonly isRetryable: boolean };

/** Of the service's own errors the code, of any other the class alone. */
const unanswered = (error: unknown): Answer =>
  error instanceof JudgeCallError
    ? { kind: 'unanswered', errorType: error.code, isRetryable: error.isRetryable }
    : { kind: 'unanswered', errorType: errorClassOf(error), isRetryable: true };

/** Asks one judge; never rejects. */
export const createJudgeRound = ({ timeoutMs, telemetry, calls, log }: JudgeRoundDeps) => {
  const answerOf = async (
    judge: Judge,
    run: JudgedRun,
    context: CallContext,
    trace: TraceParent | null,
  ): Promise<Answer> => {
    // A copy each: one judge must not change what the next one sees.
    const own: JudgedRun = { ...run, toolNames: [...run.toolNames] };
    const startedAt = performance.now();
    const work = async (signal: AbortSignal) => {
      const ask = calls({ name: judge.name, context, trace, signal });
      return readVerdict(await judge.judge(own, signal, ask));
    };
    const end = await withDeadline(work, timeoutMs, context.signal);
    if (end.kind === 'canceled') return { kind: 'unanswered', errorType: 'judge-canceled', isRetryable: true };
    // A judge that never waits keeps the timer from running out, but not the time.
    if (end.kind === 'timedOut' || performance.now() - startedAt > timeoutMs)
      return { kind: 'unanswered', errorType: 'judge-timeout', isRetryable: true };
    if (end.kind === 'threw') return unanswered(end.error);
    return end.value;
  };

  return async (judge: Judge, { runId, run, place, context }: Asked): Promise<JudgeOutcome> => {
    const { name } = judge;
    const span = telemetry.begin(name, place);
    const answer = await answerOf(judge, run, context, span ?? place.request);
    if (answer.kind === 'scores') {
      const { reason } = answer;
      for (const score of answer.scores) telemetry.scored(span, name, place.agentName, score, reason);
      telemetry.end(span, null);
      const scores = answer.scores.map(({ metric, value }) => ({
        name: metric === null ? name : `${name}.${metric}`,
        value,
        comment: metric === null ? reason : null,
      }));
      return { kind: 'scored', scores };
    }
    const { errorType } = answer;
    telemetry.end(span, errorType);
    // Only how it failed: the message of its error may have the text of the run in it.
    log.warn({ runId, judge: name, errorType }, 'A judge gave no score');
    const failure = { judgeName: name, errorType, isRetryable: answer.kind === 'unanswered' && answer.isRetryable };
    return { kind: 'failed', failure };
  };
};
