import type { Logger } from '../../core/logger.ts';
import { withDeadline } from '../../engine/tools/deadline.ts';
import { errorClassOf } from '../../engine/tools/error-class.ts';
import type { JudgedScore } from '../scores/index.ts';
import type { Judge, JudgedRun } from './judge.ts';
import type { JudgePlace, JudgeTelemetry } from './judge-telemetry.ts';
import { readVerdict } from './judge-verdict.rules.ts';
import type { JudgeFailure } from './judges.schema.ts';

export interface JudgeRoundDeps {
  /** For one judge and one run. */
  readonly timeoutMs: number;
  readonly telemetry: JudgeTelemetry;
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
}

type Answer =
  | ReturnType<typeof readVerdict>
  | { readonly kind: 'unanswered'; readonly errorType: string; readonly isRetryable: boolean };

/** Asks one judge; never rejects. */
export const createJudgeRound = ({ timeoutMs, telemetry, log }: JudgeRoundDeps) => {
  const answerOf = async (judge: Judge, run: JudgedRun, signal: AbortSignal): Promise<Answer> => {
    // A copy each: one judge must not change what the next one sees.
    const own: JudgedRun = { ...run, toolNames: [...run.toolNames] };
    const startedAt = performance.now();
    const end = await withDeadline(async (stop) => readVerdict(await judge.judge(own, stop)), timeoutMs, signal);
    if (end.kind === 'canceled') return { kind: 'unanswered', errorType: 'judge-canceled', isRetryable: true };
    // A judge that never waits keeps the timer from running out, but not the time.
    if (end.kind === 'timedOut' || performance.now() - startedAt > timeoutMs)
      return { kind: 'unanswered', errorType: 'judge-timeout', isRetryable: true };
    if (end.kind === 'threw') return { kind: 'unanswered', errorType: errorClassOf(end.error), isRetryable: true };
    return end.value;
  };

  return async (judge: Judge, { runId, run, place }: Asked, signal: AbortSignal): Promise<JudgeOutcome> => {
    const { name } = judge;
    const span = telemetry.begin(name, place);
    const answer = await answerOf(judge, run, signal);
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
