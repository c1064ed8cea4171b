import { cutText } from '../../engine/tools/index.ts';

/** What is stored of a verdict: the judge's own score first, then its metrics. */
export interface JudgeScore {
  /** Null: the score itself. */
  readonly metric: string | null;
  readonly value: number;
}

export type ReadVerdict =
  | { readonly kind: 'scores'; readonly scores: readonly JudgeScore[]; readonly reason: string | null }
  | { readonly kind: 'refused'; readonly errorType: 'judge-score-out-of-range' | 'judge-answer-invalid' };

const longestReason = 4000;
const mostMetrics = 32;
const metricName = /^[A-Za-z0-9._-]{1,64}$/;

const invalid: ReadVerdict = { kind: 'refused', errorType: 'judge-answer-invalid' };
const outOfRange: ReadVerdict = { kind: 'refused', errorType: 'judge-score-out-of-range' };
const noVerdict: ReadVerdict = { kind: 'scores', scores: [], reason: null };

const fits = (value: number): boolean => value >= 0 && value <= 100;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Code of a host may answer anything: what is stored was looked at, and none of a bad answer is. */
export const readVerdict = (answer: unknown): ReadVerdict => {
  if (!isRecord(answer)) return invalid;
  const { score, reason: words, metrics: also } = answer;
  if (score === null) return noVerdict;
  const reason = words ?? null;
  const metrics = also ?? {};
  if (typeof score !== 'number' || !isRecord(metrics)) return invalid;
  if (reason !== null && typeof reason !== 'string') return invalid;
  const scores: JudgeScore[] = [{ metric: null, value: score }];
  for (const [metric, value] of Object.entries(metrics)) {
    if (!metricName.test(metric) || typeof value !== 'number') return invalid;
    scores.push({ metric, value });
  }
  if (scores.length > mostMetrics + 1) return invalid;
  if (!scores.every(({ value }) => fits(value))) return outOfRange;
  return { kind: 'scores', scores, reason: reason === null ? null : cutText(reason, longestReason).toWellFormed() };
};
