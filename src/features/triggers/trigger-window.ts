interface Window {
  startedAt: number;
  used: number;
}

// Triggers that were not called for a window are forgotten once there are more than these.
const sweptAbove = 1000;

/** A fixed window for each trigger, in this process; its first call begins it. Times are epoch milliseconds. */
export const createTriggerWindows = (permitLimit: number, windowMs: number, now: () => number) => {
  const windows = new Map<string, Window>();

  const isOver = ({ startedAt }: Window, at: number): boolean =>
    // A clock that was set back would make the window last.
    at >= startedAt + windowMs || at < startedAt;

  const sweep = (at: number): void => {
    for (const [id, window] of windows) if (isOver(window, at)) windows.delete(id);
  };

  return {
    /** Null: the call has a place in the window; else how many milliseconds there is none. */
    take(triggerId: string): number | null {
      const at = now();
      let window = windows.get(triggerId);
      if (window === undefined || isOver(window, at)) {
        if (windows.size > sweptAbove) sweep(at);
        window = { startedAt: at, used: 0 };
        windows.set(triggerId, window);
      }
      if (window.used >= permitLimit) return window.startedAt + windowMs - at;
      window.used += 1;
      return null;
    },
  };
};
