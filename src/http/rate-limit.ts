import { AcpError } from '../contract/errors.ts';
import { RequestAbortedError } from './body.ts';

export interface RateLimitOptions {
  /** Requests in one window. */
  readonly permitLimit: number;
  readonly windowMs: number;
  /** Requests of a partition that may wait for the next window. */
  readonly queueLimit: number;
  /** Milliseconds that only ever grow. */
  readonly now: () => number;
}

/** What a request that was let through is told. */
export interface Permit {
  readonly remaining: number;
  /** Until the next window begins. */
  readonly resetMs: number;
}

interface Waiter {
  readonly admit: (permit: Permit) => void;
  readonly refuse: (error: unknown) => void;
}

interface Partition {
  startedAt: number;
  used: number;
  readonly queue: Set<Waiter>;
  timer: NodeJS.Timeout | null;
}

const limited = (retryAfterMs: number): AcpError =>
  new AcpError('rate-limited', 'Too many requests in this stretch of time.', {
    details: { retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)) },
  });

/** Counts requests in fixed windows, in this process; a partition's first request begins its windows. */
export const createRateLimiter = ({ permitLimit, windowMs, queueLimit, now }: RateLimitOptions) => {
  const partitions = new Map<string, Partition>();
  let sweeper: NodeJS.Timeout | null = null;

  /** Whoever has not asked for two windows is a stranger again. */
  const sweep = (): void => {
    const at = now();
    for (const [name, partition] of partitions)
      if (partition.queue.size === 0 && at - partition.startedAt >= 2 * windowMs) partitions.delete(name);
    if (partitions.size > 0 || sweeper === null) return;
    clearInterval(sweeper);
    sweeper = null;
  };

  const find = (name: string, at: number): Partition => {
    const known = partitions.get(name);
    if (known !== undefined) return known;
    const partition = { startedAt: at, used: 0, queue: new Set<Waiter>(), timer: null };
    partitions.set(name, partition);
    sweeper ??= setInterval(sweep, windowMs).unref();
    return partition;
  };

  const take = (partition: Partition, at: number): Permit => {
    partition.used += 1;
    return { remaining: permitLimit - partition.used, resetMs: partition.startedAt + windowMs - at };
  };

  /** Begins the window of this moment, where the last one is over, and lets those in that waited for it. */
  const turn = (partition: Partition, at: number): void => {
    const passed = Math.floor((at - partition.startedAt) / windowMs);
    if (passed < 1) return;
    partition.startedAt += passed * windowMs;
    partition.used = 0;
    for (const waiter of partition.queue) {
      if (partition.used >= permitLimit) break;
      partition.queue.delete(waiter);
      waiter.admit(take(partition, at));
    }
  };

  const watch = (partition: Partition): void => {
    if (partition.timer !== null || partition.queue.size === 0) return;
    // A timer may fire a little early: one millisecond more and the window is over.
    const waitMs = Math.max(0, partition.startedAt + windowMs - now()) + 1;
    partition.timer = setTimeout(() => {
      partition.timer = null;
      turn(partition, now());
      watch(partition);
    }, waitMs);
  };

  const wait = (partition: Partition, signal: AbortSignal): Promise<Permit> =>
    new Promise((resolve, reject) => {
      // A signal does not tell twice: the place of a caller that is gone would stand until the next window.
      if (signal.aborted) {
        reject(new RequestAbortedError());
        return;
      }
      const leave = (): void => {
        partition.queue.delete(waiter);
        reject(new RequestAbortedError());
      };
      const done = (): void => signal.removeEventListener('abort', leave);
      const waiter: Waiter = {
        admit(permit) {
          done();
          resolve(permit);
        },
        refuse(error) {
          done();
          reject(error);
        },
      };
      partition.queue.add(waiter);
      signal.addEventListener('abort', leave, { once: true });
      watch(partition);
    });

  return {
    /** Throws `rate-limited`; waits while the partition has a place in its queue. */
    acquire(name: string, signal: AbortSignal): Permit | Promise<Permit> {
      const at = now();
      const partition = find(name, at);
      turn(partition, at);
      if (partition.used < permitLimit && partition.queue.size === 0) return take(partition, at);
      const nextMs = partition.startedAt + windowMs - at;
      // The places of the next windows belong to those that wait already.
      if (partition.queue.size >= queueLimit)
        throw limited(nextMs + Math.floor(partition.queue.size / permitLimit) * windowMs);
      return wait(partition, signal);
    },
    /** Refuses those that wait. */
    close(): void {
      if (sweeper !== null) clearInterval(sweeper);
      for (const { queue, timer } of partitions.values()) {
        if (timer !== null) clearTimeout(timer);
        for (const waiter of queue)
          waiter.refuse(new AcpError('draining', 'The service is stopping.', { details: { retryAfterMs: 5000 } }));
        queue.clear();
      }
      partitions.clear();
    },
  };
};
