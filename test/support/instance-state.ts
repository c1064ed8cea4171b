import { systemClock } from '../../src/core/clock.ts';
import { createInstanceState, type InstanceState } from '../../src/core/instance-state.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { noAnnouncements } from '../../src/db/announcements.ts';

/** What a process keeps, by a time that the test tells; one that shares its store hears of nothing, and has the ages alone. */
export const instanceStateOf = (ownsStore: boolean, now: () => number): InstanceState =>
  createInstanceState({
    ownsStore,
    clock: { ...systemClock, now },
    announcements: noAnnouncements,
    log: silentLogger,
  });
