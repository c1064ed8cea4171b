import type { Logger } from '../../core/logger.ts';
import type {
  ContentGuard,
  GuardFinding,
  GuardInput,
  GuardVerdict,
  GuardWatch,
  Inspected,
} from '../../engine/control/index.ts';
import { errorClassOf, withDeadline } from '../../engine/tools/index.ts';
import type { GuardMetrics } from './guard-metrics.ts';

/** The rule in the name of which a text is blocked when a guard gave no verdict. */
const guardErrorRule = 'guard-error';

export interface GuardRoundDeps {
  /** In the order in which they are asked. */
  readonly guards: readonly ContentGuard[];
  /** For one guard and one text. */
  readonly timeoutMs: number;
  readonly metrics: GuardMetrics;
  readonly log: Pick<Logger, 'error'>;
}

const neverAborted = new AbortController().signal;

const longestRule = 64;
const isRule = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= longestRule;

/** Host code may return anything; null is no verdict. */
const verdictOf = (value: unknown): GuardVerdict | null => {
  if (typeof value !== 'object' || value === null) return null;
  const { decision, text, rules, rule } = value as Readonly<Record<string, unknown>>;
  if (decision === 'Allow') return { decision };
  if (decision === 'Block') return isRule(rule) ? { decision, rule } : null;
  if (decision !== 'Mask' || typeof text !== 'string' || !Array.isArray(rules)) return null;
  return rules.length > 0 && rules.every(isRule) ? { decision, text: text.toWellFormed(), rules } : null;
};

/** One guard after another, each with the text as the former left it; the first block ends the round. */
export const createGuardRound = ({ guards, timeoutMs, metrics, log }: GuardRoundDeps) => {
  /** Logs only the guard and how it failed: the message of its error may contain the text. */
  const failed = (guard: ContentGuard, { runId, source }: GuardInput, why: Readonly<Record<string, unknown>>): null => {
    metrics.failed(guard.name);
    log.error({ runId, source, guard: guard.name, ...why }, 'A content guard failed, so the text was blocked');
    return null;
  };

  const ask = async (guard: ContentGuard, input: GuardInput, signal: AbortSignal): Promise<GuardVerdict | null> => {
    const startedAt = performance.now();
    const end = await withDeadline(async (own) => guard.inspect(input, own), timeoutMs, signal);
    if (end.kind === 'canceled') throw signal.reason;
    if (end.kind === 'threw') return failed(guard, input, { errorClass: errorClassOf(end.error) });
    // A guard that never waits keeps the timer from running out, but not the time.
    if (end.kind === 'timedOut' || performance.now() - startedAt > timeoutMs)
      return failed(guard, input, { timeoutMs });
    return verdictOf(end.value) ?? failed(guard, input, { verdict: 'not valid' });
  };

  const decide = async (
    guard: ContentGuard,
    input: GuardInput,
    signal: AbortSignal,
    watch: GuardWatch | null,
  ): Promise<GuardVerdict> => {
    const decided = watch === null ? null : watch(guard.name);
    const startedAt = performance.now();
    const verdict = (await ask(guard, input, signal)) ?? { decision: 'Block', rule: guardErrorRule };
    metrics.decided(guard.name, verdict.decision, input.source, performance.now() - startedAt);
    decided?.(verdict.decision);
    return verdict;
  };

  return async (input: GuardInput, signal: AbortSignal | null, watch: GuardWatch | null): Promise<Inspected> => {
    const masks: GuardFinding[] = [];
    let { text } = input;
    for (const guard of guards) {
      const verdict = await decide(guard, { ...input, text }, signal ?? neverAborted, watch);
      if (verdict.decision === 'Block')
        return { text, masks, block: { guardName: guard.name, ruleName: verdict.rule } };
      if (verdict.decision === 'Allow') continue;
      text = verdict.text;
      for (const ruleName of new Set(verdict.rules)) masks.push({ guardName: guard.name, ruleName });
    }
    return { text, masks, block: null };
  };
};
