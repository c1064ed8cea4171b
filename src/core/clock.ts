/** Work that waits for its time. */
export interface Timer {
  stop(): void;
  /** The process may end without it. */
  unref(): Timer;
}

/**
 * The time of the service, made once at the composition root: what it dates, what it lets lapse, and what it does later.
 * Waits for a machine (a socket, a worker thread, a lock of a file, a call that may take so long) are not of this time.
 * Design: docs/design/clocks-and-leases.md.
 */
export interface Clock {
  /** Epoch milliseconds; needs no `this`. */
  readonly now: () => number;
  /** Milliseconds that only ever go forward, whatever is done to the time of the machine: for lengths. Needs no `this`. */
  readonly elapsed: () => number;
  /** Once. What the work returns is for clocks that wait for it; it deals with its own errors. */
  after(delayMs: number, work: () => unknown): Timer;
  /** Again and again; keeps no process from its end. */
  every(intervalMs: number, work: () => unknown): Timer;
}

const timerOf = (timeout: NodeJS.Timeout, stop: (timeout: NodeJS.Timeout) => void): Timer => {
  const timer: Timer = {
    stop: () => stop(timeout),
    unref() {
      timeout.unref();
      return timer;
    },
  };
  return timer;
};

/** The time of this machine. */
export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => performance.now(),
  after: (delayMs, work) => timerOf(setTimeout(work, delayMs), clearTimeout),
  every: (intervalMs, work) => timerOf(setInterval(work, intervalMs), clearInterval).unref(),
};
