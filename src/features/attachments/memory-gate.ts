interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

/** One request that is larger than the limit gets in alone: nothing waits for ever. */
export const createMemoryGate = (limitBytes: number) => {
  const line: Waiting[] = [];
  let held = 0;
  const fits = (bytes: number): boolean => held === 0 || held + bytes <= limitBytes;
  const admit = (): void => {
    for (let next = line[0]; next !== undefined && fits(next.bytes); next = line[0]) {
      line.shift();
      held += next.bytes;
      next.enter();
    }
  };
  const giveBack = (bytes: number): (() => void) => {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      held -= bytes;
      admit();
    };
  };
  return {
    /** Resolves with what gives the bytes back. Rejects with the signal's reason while it waits. */
    async take(bytes: number, signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      if (line.length === 0 && fits(bytes)) {
        held += bytes;
        return giveBack(bytes);
      }
      const turn = Promise.withResolvers<void>();
      const waiting: Waiting = { bytes, enter: turn.resolve };
      const leave = (): void => {
        const at = line.indexOf(waiting);
        if (at < 0) return;
        line.splice(at, 1);
        turn.reject(signal.reason);
        // The one that left may have been what the others waited behind.
        admit();
      };
      line.push(waiting);
      signal.addEventListener('abort', leave, { once: true });
      try {
        await turn.promise;
      } finally {
        signal.removeEventListener('abort', leave);
      }
      return giveBack(bytes);
    },
  };
};

/** Lets runs hold bytes up to a limit together; the others wait in their order. */
export type MemoryGate = ReturnType<typeof createMemoryGate>;
