import type { CostMicros } from '../../engine/pricing.ts';

/** What is stored of a cost: micro-units, with the unit prices of the moment. */
export interface StoredCost {
  readonly i: number | null;
  readonly o: number | null;
  readonly c: number | null;
  readonly t: number | null;
  readonly pi: number | null;
  readonly po: number | null;
  readonly pc: number | null;
  readonly s: CostMicros['prices']['source'];
  /** Currency. */
  readonly u: string | null;
}

export const storedCost = (cost: CostMicros, currency: string | null): StoredCost => {
  const { prices } = cost;
  return {
    i: cost.input,
    o: cost.output,
    c: cost.cachedInput,
    t: cost.total,
    pi: prices.input,
    po: prices.output,
    pc: prices.cachedInput,
    s: prices.source,
    u: currency,
  };
};

export const encodeCost = (cost: CostMicros | null, currency: string | null): string | null =>
  cost === null ? null : JSON.stringify(storedCost(cost, currency));

export const microsOf = ({ i, o, c, t, pi, po, pc, s }: StoredCost): CostMicros => ({
  ...{ input: i, output: o, cachedInput: c, total: t },
  prices: { input: pi, output: po, cachedInput: pc, source: s },
});

export const decodeCost = (text: string | null): StoredCost | null =>
  text === null ? null : (JSON.parse(text) as StoredCost);
