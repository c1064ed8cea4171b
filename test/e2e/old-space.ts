import { writeSync } from 'node:fs';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

/** Loaded into `acp serve`: on SIGUSR2 it tells, in a line on stderr, what the old generation holds. */
export interface OldSpace {
  readonly usedBytes: number;
  /** Full collections so far. */
  readonly collections: number;
}

if (isMainThread) {
  let collections = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { readonly detail: { readonly kind: number } }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
    }
  }).observe({ entryTypes: ['gc'] });
  process.on('SIGUSR2', () => {
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space');
    const told: OldSpace = { usedBytes: space?.space_used_size ?? 0, collections };
    writeSync(2, `${JSON.stringify({ oldSpace: told })}\n`);
  });
}
