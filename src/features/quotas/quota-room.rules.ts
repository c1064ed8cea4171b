import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { BoundedCall, QuotaUse } from '../../engine/control/index.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';
import type { QuotaHold } from './quota-holds.store.ts';
import { addedUse, noUse } from './quota-use.ts';
import { appliesTo, isInScope } from './quotas.rules.ts';
import type { QuotaRule } from './quotas.store.ts';

/** What stands against a quota beside its counter. */
export type StandingUse = Pick<QuotaHold, 'root' | 'isAdmission' | 'held' | 'spent'>;

/** Of a call that nothing bounds. */
export const anyUse: QuotaUse = { tokens: Number.POSITIVE_INFINITY, costMicros: Number.POSITIVE_INFINITY };

/** The rules that limit what the calls of an agent's runs may use. */
export const limitingUse = (rules: readonly QuotaRule[], agentName: string): readonly QuotaRule[] =>
  rules.filter((rule) => appliesTo(rule, agentName) && (rule.maxTokens !== null || rule.maxCostMicros !== null));

const startIn = ({ day }: CountedRoot, { period }: QuotaRule): string => (period === 'Daily' ? day : monthOf(day));

/** Micro-units, never less than what rounding can make of it. */
const costOfTokens = (tokens: number, perMillion: number): number =>
  // Without end at no price is nothing.
  perMillion === 0 ? 0 : Math.ceil((tokens * perMillion) / 1_000_000) + 1;

export const mostCost = ({ inputTokens, prices }: BoundedCall, outputTokens: number): number =>
  prices.input === null || prices.output === null
    ? 0
    : costOfTokens(inputTokens, Math.max(prices.input, prices.cachedInput ?? 0)) +
      costOfTokens(outputTokens, prices.output);

/** How many tokens the answer may have where so much is left; below 1: the call does not fit. */
const outputWithin = (rule: QuotaRule, call: BoundedCall, used: QuotaUse): number => {
  const byTokens = rule.maxTokens === null ? Number.POSITIVE_INFINITY : rule.maxTokens - used.tokens - call.inputTokens;
  const { input, output } = call.prices;
  if (rule.maxCostMicros === null || input === null || output === null) return byTokens;
  const left = rule.maxCostMicros - used.costMicros - mostCost(call, 0);
  if (left < 0) return left;
  return output === 0 ? byTokens : Math.min(byTokens, Math.floor((left * 1_000_000) / output));
};

/** What stands against a rule, with and without what calls in progress hold. */
const usedOf = (
  rule: QuotaRule,
  root: CountedRoot,
  rows: readonly QuotaUsageRow[],
  holds: Iterable<StandingUse>,
): { readonly settled: QuotaUse; readonly all: QuotaUse } => {
  const start = startIn(root, rule);
  const row = rows.find(
    (one) => one.agent_name === rule.agentName && one.period === rule.period && one.period_start === start,
  );
  let settled: QuotaUse = { tokens: row?.tokens ?? 0, costMicros: row?.cost_micros ?? 0 };
  let held = noUse;
  for (const hold of holds) {
    // The place of a run that has made no call yet says nothing of its use.
    if (hold.isAdmission || startIn(hold.root, rule) !== start || !isInScope(rule, hold.root.agentName)) continue;
    settled = addedUse(settled, hold.spent);
    held = addedUse(held, hold.held);
  }
  return { settled, all: addedUse(settled, held) };
};

export interface Room {
  readonly rule: QuotaRule;
  /** Tokens that the answer may have; below 1: the call does not fit. */
  readonly now: number;
  /** The same once no other call holds anything. */
  readonly later: number;
}

/** The room that each of the rules leaves a call, the tightest first. */
export const roomsFor = (
  call: BoundedCall,
  root: CountedRoot,
  rules: readonly QuotaRule[],
  rows: readonly QuotaUsageRow[],
  holds: () => Iterable<StandingUse>,
): readonly Room[] =>
  rules
    .map((rule): Room => {
      const { settled, all } = usedOf(rule, root, rows, holds());
      return { rule, now: outputWithin(rule, call, all), later: outputWithin(rule, call, settled) };
    })
    .sort((a, b) => a.now - b.now);
