// A receiver that takes longer is slow; one that does not has its place free again before anybody misses it.
const slowAfterMs = 1000;

/** A place in use, from then on. Epoch milliseconds. */
interface Place {
  readonly since: number;
}

/**
 * How many of a worker's jobs may wait for one receiver: while it is slow it gets only so many, so that one that hangs does
 * not take the places of everything else.
 */
export const createReceiverPlaces = (most: number, now: () => number) => {
  const taken = new Map<string, Set<Place>>();
  return {
    /** What gives the place back; null: there is none for now. */
    take(receiver: string): (() => void) | null {
      const places = taken.get(receiver) ?? new Set<Place>();
      // In the order in which they were taken.
      const [oldest] = places;
      if (oldest !== undefined && places.size >= most && now() - oldest.since > slowAfterMs) return null;
      const place = { since: now() };
      places.add(place);
      taken.set(receiver, places);
      return () => {
        places.delete(place);
        if (places.size === 0) taken.delete(receiver);
      };
    },
  };
};

export type ReceiverPlaces = ReturnType<typeof createReceiverPlaces>;
