import { type ModelShare, ModelShares } from '../../engine/model-shares.ts';
import { addCosts, type CostMicros, costOf, type PriceList, unknownPrices } from '../../engine/pricing.ts';
import { createElsewherePrices } from '../../engine/record/index.ts';
import { addUsage, reportedUsage } from '../../engine/usage.ts';
import type { ModelProviders, ModelUsage } from '../../providers/models/index.ts';
import { unreportedUsage } from '../../providers/models/model-usage.ts';
import type { ExternalModelCall, ExternalRun } from './external-runs.rules.ts';

/** What the models of a run from outside used, and the one that its row names. */
export interface ExternalModels {
  readonly model: { readonly modelProvider: string | null; readonly modelId: string | null };
  /** Null: no call reported any. */
  readonly usage: ModelUsage | null;
  readonly cost: CostMicros | null;
  readonly shares: readonly ModelShare[];
}

/** Names of models and providers come from outside; a row stores names, not texts. */
export const shortName = <T extends string | null>(text: T): T =>
  (text === null ? null : text.slice(0, 128).toWellFormed()) as T;

interface CountedCall extends ExternalModelCall {
  readonly cost: CostMicros | null;
}

const isReported = ({ usage }: Pick<ExternalModelCall, 'usage'>): boolean => usage.totalTokens !== null;

const sharesOf = (calls: readonly CountedCall[]): readonly ModelShare[] => {
  const shares = new ModelShares();
  for (const { provider, model, usage, cost } of calls) shares.add({ provider, model, calls: 1, usage, cost });
  return shares.all();
};

/** The share that cost most, else that has most tokens; of equal ones the last. */
const largest = (shares: readonly ModelShare[]): ModelShare | undefined => {
  const isPriced = shares.every(({ cost }) => (cost?.total ?? null) !== null);
  const sizeOf = ({ cost, usage }: ModelShare): number => (isPriced ? (cost?.total ?? 0) : (usage.totalTokens ?? 0));
  return shares.reduce<ModelShare | undefined>(
    (most, share) => (most === undefined || sizeOf(share) >= sizeOf(most) ? share : most),
    undefined,
  );
};

/** Calls that a run can be named by: successful calls, and among these the calls that generate something. */
const namingCalls = (calls: readonly CountedCall[]): readonly CountedCall[] => {
  for (const isBetter of [
    (call: CountedCall) => !call.isFailed && !call.isEmbedding && call.model !== null,
    (call: CountedCall) => !call.isFailed && call.model !== null,
    (call: CountedCall) => call.model !== null,
  ])
    if (calls.some(isBetter)) return calls.filter(isBetter);
  return calls;
};

/** Prices the calls that other programs report. */
export const createExternalModels = (prices: PriceList, providers: Pick<ModelProviders, 'list'>) => {
  const pricesElsewhere = createElsewherePrices(prices, providers);
  const priceOf = ({ provider, model, requestedModel, isEmbedding }: ExternalModelCall) => {
    const price = pricesElsewhere(provider, [model, requestedModel]) ?? unknownPrices;
    // Nothing is written by a model that makes embeddings.
    return isEmbedding ? { ...price, output: price.output ?? 0 } : price;
  };
  return ({ calls }: Pick<ExternalRun, 'calls'>): ExternalModels => {
    const counted = calls.map(
      (call): CountedCall => ({
        ...call,
        provider: shortName(call.provider),
        model: shortName(call.model),
        cost: isReported(call) ? costOf(call.usage, priceOf(call)) : null,
      }),
    );
    const named = largest(sharesOf(namingCalls(counted)));
    return {
      model: { modelProvider: named?.provider ?? null, modelId: named?.model ?? null },
      usage: reportedUsage(counted.map(({ usage }) => usage).reduce(addUsage, unreportedUsage)),
      cost: counted
        .map(({ cost }) => cost)
        .reduce((sum, cost) => (sum === null || cost === null ? (sum ?? cost) : addCosts(sum, cost)), null),
      // A call that failed and used nothing is of no model.
      shares: sharesOf(counted.filter((call) => isReported(call) || !call.isFailed)),
    };
  };
};
