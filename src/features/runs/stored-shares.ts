import type { ModelShare } from '../../engine/model-shares.ts';
import type { CostMicros } from '../../engine/pricing.ts';
import type { ModelUsage } from '../../providers/models/index.ts';
import { type StoredCost, storedCost } from './stored-cost.ts';

/** What is stored of a model's share. Statistics read its properties by name. */
export interface StoredShare {
  readonly p: string | null;
  readonly m: string | null;
  /** Calls. */
  readonly n: number;
  /** Tokens of input, of output and in all; null: not reported. */
  readonly i: number | null;
  readonly o: number | null;
  readonly t: number | null;
  /** Tokens of the input that came from a cache. */
  readonly c: number | null;
  /** Micro-units; null: unknown. */
  readonly s: number | null;
  readonly cost: StoredCost | null;
}

/** Null: all that the run used is of its own model, whose row says it. */
export const encodeShares = (
  shares: readonly ModelShare[],
  own: { readonly modelProvider: string | null; readonly modelId: string | null },
  currency: string | null,
): string | null => {
  const isOwn = ({ provider, model }: ModelShare): boolean => provider === own.modelProvider && model === own.modelId;
  if (shares.every(isOwn)) return null;
  return JSON.stringify(
    shares.map(
      ({ provider, model, calls, usage, cost }): StoredShare => ({
        p: provider,
        m: model,
        n: calls,
        i: usage.inputTokens,
        o: usage.outputTokens,
        t: usage.totalTokens,
        c: usage.cachedInputTokens,
        s: cost?.total ?? null,
        cost: cost === null ? null : storedCost(cost, currency),
      }),
    ),
  );
};

export const decodeShares = (text: string | null): readonly StoredShare[] | null =>
  text === null ? null : (JSON.parse(text) as readonly StoredShare[]);

/** The share at another cost. */
export const withCost = (share: StoredShare, cost: CostMicros | null, currency: string | null): StoredShare => ({
  ...share,
  s: cost?.total ?? null,
  cost: cost === null ? null : storedCost(cost, currency),
});

/** Tokens of a share, as far as they have a price. */
export const usageOfShare = ({ i, o, t, c }: StoredShare): ModelUsage => ({
  ...{ inputTokens: i, outputTokens: o, totalTokens: t, cachedInputTokens: c },
  ...{ reasoningTokens: null, audioInputTokens: null, audioOutputTokens: null },
});
