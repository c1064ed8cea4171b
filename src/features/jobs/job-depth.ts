import type { Logger } from '../../core/logger.ts';
import { storeValues } from '../../core/telemetry/store-values.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { JobStore } from './jobs.store.ts';

export interface JobDepthDeps {
  readonly telemetry: Telemetry;
  readonly store: Pick<JobStore, 'depth'>;
  readonly laneName: (lane: string) => string;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
}

// One query over an index; a scraper that asks every second gets the same answer for a while.
const everyMs = 5000;

/** How many jobs wait or are at work, of all tenants. Lanes that metrics do not tell apart are added up. */
export const observeJobDepth = ({ telemetry, store, laneName, ...deps }: JobDepthDeps): void => {
  const { metrics } = telemetry;
  const rows = storeValues(metrics, { ...deps, everyMs }, store.depth);
  metrics.gauge(
    'acp.job.queue.depth',
    'Jobs that wait or are at work.',
    '{job}',
    ['acp.job.lane', 'acp.job.status'],
    () => {
      const sums = new Map<string, { value: number; values: readonly [string, string] }>();
      for (const { lane, status, count } of rows()) {
        const name = laneName(lane);
        const key = `${name}\n${status}`;
        sums.set(key, { value: (sums.get(key)?.value ?? 0) + count, values: [name, status] });
      }
      return [...sums.values()];
    },
  );
};
