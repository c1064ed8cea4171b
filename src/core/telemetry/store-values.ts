import type { Logger } from '../logger.ts';
import type { MetricRegistry } from './metrics.ts';

export interface StoreValuesOptions {
  readonly everyMs: number;
  /** While the service stops the store may be closed already: the last values stand. */
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
}

/** What gauges show of the store: read when metrics are collected, at most once in a while, and nothing while it fails. */
export const storeValues = <T>(
  metrics: MetricRegistry,
  { everyMs, lifecycle, log }: StoreValuesOptions,
  read: () => Promise<readonly T[]>,
): (() => readonly T[]) => {
  let values: readonly T[] = [];
  metrics.beforeCollect(everyMs, async () => {
    if (lifecycle.draining) return;
    values = await read().catch((error: unknown): readonly T[] => {
      log.warn({ error }, 'Metrics could not be read from the store');
      return [];
    });
  });
  return () => values;
};
