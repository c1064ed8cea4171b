import type { ModelCatalogEntry, ModelUsage } from '../providers/models/model-provider.ts';

/** Unit prices in micro-units per million tokens; null: no such price. */
export interface UnitPrices {
  readonly input: number | null;
  readonly output: number | null;
  readonly cachedInput: number | null;
  readonly source: 'Catalog' | 'Configuration' | 'Unknown';
}

/** A run's cost in integer micro-units of the currency; null terms are unknown, never 0. */
export interface CostMicros {
  readonly input: number | null;
  readonly output: number | null;
  readonly cachedInput: number | null;
  readonly total: number | null;
  readonly prices: UnitPrices;
}

export interface ConfiguredPrice {
  readonly Input?: number | null;
  readonly Output?: number | null;
  readonly CachedInput?: number | null;
}

export interface PriceList {
  readonly currency: string | null;
  /** Those that prices are configured for. */
  readonly providers: readonly string[];
  /** The catalog's prices when it has an input or output price, else the configured ones; never mixed. */
  pricesOf(provider: string, model: string, catalog: ModelCatalogEntry | null): UnitPrices;
}

export const unknownPrices: UnitPrices = { input: null, output: null, cachedInput: null, source: 'Unknown' };

const micros = (price: number | null | undefined): number | null =>
  price === null || price === undefined ? null : Math.round(price * 1_000_000);

/** Model names are free text, so a name that every object has must not be found. */
const own = <T>(members: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(members, name) ? members[name] : undefined;

/** Nothing is written by a model that makes embeddings, so that a price for that is not missing. */
const withoutOutput = (prices: UnitPrices, catalog: ModelCatalogEntry | null): UnitPrices =>
  catalog?.supportsEmbeddings === true && prices.output === null ? { ...prices, output: 0 } : prices;

export const createPriceList = (
  currency: string | null,
  configured: Readonly<Record<string, Readonly<Record<string, ConfiguredPrice>>>>,
): PriceList => ({
  currency,
  providers: Object.keys(configured),
  pricesOf(provider, model, catalog) {
    if (catalog !== null && (catalog.inputCostPerMillionTokens !== null || catalog.outputCostPerMillionTokens !== null))
      return withoutOutput(
        {
          input: micros(catalog.inputCostPerMillionTokens),
          output: micros(catalog.outputCostPerMillionTokens),
          cachedInput: micros(catalog.cachedInputCostPerMillionTokens),
          source: 'Catalog',
        },
        catalog,
      );
    const price = own(own(configured, provider) ?? {}, model);
    if (price === undefined) return unknownPrices;
    return withoutOutput(
      {
        input: micros(price.Input),
        output: micros(price.Output),
        cachedInput: micros(price.CachedInput),
        source: 'Configuration',
      },
      catalog,
    );
  },
});

/** tokens × price ÷ 1,000,000, rounded half to even; BigInt because the product may pass 2^53. */
const term = (tokens: number | null, pricePerMillion: number | null): number | null => {
  if (tokens === null || pricePerMillion === null) return null;
  const product = BigInt(tokens) * BigInt(pricePerMillion);
  const million = 1_000_000n;
  const quotient = product / million;
  const twice = (product % million) * 2n;
  const up = twice > million || (twice === million && quotient % 2n === 1n);
  const cost = Number(up ? quotient + 1n : quotient);
  // Beyond that sums are no longer exact; such a price is a mistake, and the cost unknown.
  return Number.isSafeInteger(cost) ? cost : null;
};

const sum = (terms: readonly (number | null)[]): number | null =>
  terms.reduce<number | null>((total, value) => (total === null || value === null ? null : total + value), 0);

/** Cost of the tokens of one model. Without a cached-input price every input token costs the input price. */
export const costOf = (usage: ModelUsage, prices: UnitPrices): CostMicros => {
  const cached = usage.cachedInputTokens ?? 0;
  const splits = prices.cachedInput !== null && usage.cachedInputTokens !== null;
  const fullInput =
    usage.inputTokens === null ? null : splits ? Math.max(usage.inputTokens - cached, 0) : usage.inputTokens;
  const input = term(fullInput, prices.input);
  const output = term(usage.outputTokens, prices.output);
  const cachedInput = splits ? term(cached, prices.cachedInput) : null;
  return { input, output, cachedInput, total: sum(splits ? [input, output, cachedInput] : [input, output]), prices };
};

const addTerm = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

const samePrice = (a: number | null, b: number | null): number | null => (a === b ? a : null);

/** A sum over calls with different unit prices has no unit prices. */
const samePrices = (a: UnitPrices, b: UnitPrices): UnitPrices => ({
  input: samePrice(a.input, b.input),
  output: samePrice(a.output, b.output),
  cachedInput: samePrice(a.cachedInput, b.cachedInput),
  source: a.source === 'Unknown' ? a.source : b.source,
});

/** Costs of several calls of one run together, with the unit prices that all of them had. */
export const addCosts = (a: CostMicros, b: CostMicros): CostMicros => ({
  input: addTerm(a.input, b.input),
  output: addTerm(a.output, b.output),
  cachedInput: a.cachedInput === null && b.cachedInput === null ? null : (a.cachedInput ?? 0) + (b.cachedInput ?? 0),
  total: addTerm(a.total, b.total),
  prices: samePrices(a.prices, b.prices),
});

export const decimal = (amount: number | null): number | null => (amount === null ? null : amount / 1_000_000);

/** The cost as it is stored with the run and shown: decimals in the currency. */
export const publicCost = (cost: CostMicros, currency: string | null) => ({
  inputCost: decimal(cost.input),
  inputPricePerMillionTokens: decimal(cost.prices.input),
  outputCost: decimal(cost.output),
  outputPricePerMillionTokens: decimal(cost.prices.output),
  cachedInputCost: decimal(cost.cachedInput),
  cachedInputPricePerMillionTokens: decimal(cost.prices.cachedInput),
  totalCost: decimal(cost.total),
  currency,
  source: cost.prices.source,
});
