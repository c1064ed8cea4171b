import type { ModelUsage } from '../providers/models/model-provider.ts';
import { addCosts, type CostMicros } from './pricing.ts';
import { addUsage } from './usage.ts';

/** What the calls of one model in a run used. */
export interface ModelShare {
  readonly provider: string | null;
  /** Null: unknown, or those of many models together. */
  readonly model: string | null;
  readonly calls: number;
  readonly usage: ModelUsage;
  /** Null: none of its calls reported tokens. */
  readonly cost: CostMicros | null;
}

// A run has a few; a run that another program reports may name thousands, and its shares are stored with its row.
const mostModels = 32;

const together = (a: ModelShare, b: ModelShare): ModelShare => ({
  provider: a.provider,
  model: a.model,
  calls: a.calls + b.calls,
  usage: addUsage(a.usage, b.usage),
  cost: a.cost === null || b.cost === null ? (a.cost ?? b.cost) : addCosts(a.cost, b.cost),
});

/** Sums up the calls of a run by their models, in the order of their first calls. Models beyond a number share one entry without name. */
export class ModelShares {
  readonly #shares = new Map<string, ModelShare>();

  add(share: ModelShare): void {
    const key = JSON.stringify([share.provider, share.model]);
    const isNamed = this.#shares.has(key) || this.#shares.size < mostModels - 1;
    const added = isNamed ? share : { ...share, provider: null, model: null };
    const place = isNamed ? key : JSON.stringify([null, null]);
    const before = this.#shares.get(place);
    this.#shares.set(place, before === undefined ? added : together(before, added));
  }

  all(): readonly ModelShare[] {
    return [...this.#shares.values()];
  }
}
