/** A limit on calls in progress. Callers beyond it wait in order. */
export interface CallLimit {
  /** Free places are taken at once. Rejects with the signal's reason; the place in line is then given up. */
  enter(signal: AbortSignal): Promise<void> | null;
  leave(): void;
}

/** `enter` gives null where nobody has to wait, so that the usual call costs no turn of the event loop. */
export const createCallLimit = (most: number | null): CallLimit => {
  if (most === null) return { enter: () => null, leave: () => undefined };
  let inProgress = 0;
  const line = new Set<() => void>();
  return {
    enter(signal) {
      if (inProgress < most) {
        inProgress += 1;
        return null;
      }
      return new Promise((resolve, reject) => {
        const proceed = (): void => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        };
        const giveUp = (): void => {
          line.delete(proceed);
          reject(signal.reason);
        };
        if (signal.aborted) {
          reject(signal.reason);
          return;
        }
        signal.addEventListener('abort', giveUp, { once: true });
        line.add(proceed);
      });
    },
    leave() {
      const [next] = line;
      if (next === undefined) {
        inProgress -= 1;
        return;
      }
      // The place passes on: nobody who came later can take it in between.
      line.delete(next);
      next();
    },
  };
};
