import type { Logger } from '../../core/logger.ts';
import type { SqlDialect } from '../dialect.ts';

export interface WatchdogOptions {
  readonly log: Pick<Logger, 'warn'>;
  readonly intervalMs?: number;
  /** Log content above which it is moved into the store file. */
  readonly boundBytes?: number;
}

const defaultIntervalMs = 1000;
// While much is written: within a second the log would come to where SQLite moves it by itself, on the event loop.
const defaultBusyIntervalMs = 400;
// Moving 8 MiB takes some 20 ms on an SSD, during which the event loop stands; more at once would be felt.
const defaultBoundBytes = 8 * 1_048_576;
// A log this many times over its bound is not a burst any more: somebody reads from an old state and never ends.
const stuckFactor = 16;

/**
 * Keeps the write-ahead log small: its content goes into the store file when it passes the bound, and its disk space is
 * given back when nothing was written between two looks.
 */
export const startWatchdog = (dialect: SqlDialect, options: WatchdogOptions) => {
  const boundBytes = options.boundBytes ?? defaultBoundBytes;
  let lastBacklog = 0;
  let warned = false;
  let isBusy = false;
  let running: Promise<void> | null = null;

  const keepBounded = async (): Promise<void> => {
    const backlog = await dialect.walBacklogBytes();
    const { walBytes } = await dialect.size();
    const isIdle = backlog === lastBacklog;
    lastBacklog = backlog;
    isBusy = backlog >= boundBytes;
    if (!isBusy && !(isIdle && walBytes > 0)) return;
    const after = await dialect.checkpoint(isIdle ? 'Shrink' : 'Passive');
    lastBacklog = await dialect.walBacklogBytes();
    const isStuck = lastBacklog > stuckFactor * boundBytes;
    if (isStuck && !warned)
      options.log.warn({ walBytes: after.walBytes }, 'A reader of the store keeps its write-ahead log from shrinking.');
    warned = isStuck;
  };

  /** One look at the log, as the timer takes it. */
  const look = (): Promise<void> => {
    running ??= keepBounded()
      .catch((error: unknown) => options.log.warn({ error }, 'The write-ahead log could not be checked.'))
      .finally(() => {
        running = null;
      });
    return running;
  };

  const intervalMs = options.intervalMs ?? defaultIntervalMs;
  const busyIntervalMs = Math.min(defaultBusyIntervalMs, intervalMs);
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const wait = (): void => {
    if (stopped) return;
    timer = setTimeout(() => void look().then(wait), isBusy ? busyIntervalMs : intervalMs);
    timer.unref();
  };
  wait();
  return {
    look,
    /** Ends the timer and waits for a look in progress. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
