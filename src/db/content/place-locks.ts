import type { ContentPlace } from './store.ts';

/** Work in line for each place; a place without work costs nothing. */
export const createPlaceLocks = () => {
  const last = new Map<ContentPlace, Promise<unknown>>();
  return async <T>(place: ContentPlace, work: () => Promise<T>): Promise<T> => {
    const before = last.get(place) ?? Promise.resolve();
    const mine = before.then(work, work);
    last.set(place, mine);
    try {
      return await mine;
    } finally {
      if (last.get(place) === mine) last.delete(place);
    }
  };
};
