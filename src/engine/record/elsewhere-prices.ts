import type { ModelProvider } from '../../providers/models/model-provider.ts';
import type { PriceList, UnitPrices } from '../pricing.ts';
import { conventionalProvider } from './genai-convention.ts';

type Priced = Pick<ModelProvider, 'name' | 'catalog'>;

/** What providers append to the name that was asked for: `gpt-5-2025-08-07`, `claude-sonnet-4-5-20250929`. */
const versionDate = /-(?:\d{4}-\d{2}-\d{2}|\d{8})$/;

/** Prices of calls that another program has made, of a provider that need not be one of this service. */
export type ElsewherePrices = (provider: string | null, models: readonly (string | null)[]) => UnitPrices | null;

/**
 * A provider has the name that it has here, in the price table or in the conventions of OpenTelemetry; without one of that
 * name any that has a price for the model serves. Of several names of a model the first that has a price counts, and then
 * those without their dates. Null: nobody has one.
 */
export const createElsewherePrices = (
  prices: PriceList,
  providers: { list(): readonly ModelProvider[] },
): ElsewherePrices => {
  const orderOf = (provider: string | null): readonly Priced[] => {
    const listed = [...providers.list()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const named = listed.filter((one) => one.name === provider || conventionalProvider(one) === provider);
    const priced = [...prices.providers].sort().map((name) => ({ name, catalog: [] }));
    return [...named, ...priced.filter(({ name }) => name === provider), ...listed, ...priced];
  };
  return (provider, models) => {
    const told = models.filter((model) => model !== null);
    const names = new Set([...told, ...told.map((model) => model.replace(versionDate, ''))]);
    for (const { name, catalog } of orderOf(provider))
      for (const model of names) {
        const price = prices.pricesOf(name, model, catalog.find((entry) => entry.name === model) ?? null);
        if (price.input !== null || price.output !== null) return price;
      }
    return null;
  };
};
