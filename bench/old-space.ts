import { writeFileSync } from 'node:fs';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import process from 'node:process';
import { getHeapSpaceStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

/** Loaded into `acp serve`: on SIGUSR2 it writes to a file in its folder what the old generation holds. */
export interface OldSpace {
  /** How often it was asked, this time included. */
  readonly asked: number;
  readonly usedBytes: number;
  /** Full collections so far. */
  readonly collections: number;
}

export const oldSpaceFile = 'old-space.json';

if (isMainThread && process.argv[2] === 'serve') {
  let asked = 0;
  let collections = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { readonly detail: { readonly kind: number } }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
    }
  }).observe({ entryTypes: ['gc'] });
  process.on('SIGUSR2', () => {
    asked += 1;
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space');
    const told: OldSpace = { asked, usedBytes: space?.space_used_size ?? 0, collections };
    writeFileSync(oldSpaceFile, `${JSON.stringify(told)}\n`);
  });
}
