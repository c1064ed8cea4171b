/** What waits for the next read, each key once. */
interface Waiting<V> {
  readonly found: Promise<V | undefined>;
  resolve(value: V | undefined): void;
  reject(error: unknown): void;
}

/**
 * Reads by a key that are asked for in the same turn of the event loop, in one query of at most `most` keys: on a server
 * each query is a message there and one back. All who wait for a query hear of its failure.
 */
export const readTogether = <V>(
  most: number,
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
): ((key: string) => Promise<V | undefined>) => {
  let waiting = new Map<string, Waiting<V>>();

  const answer = async (some: readonly (readonly [string, Waiting<V>])[]): Promise<void> => {
    try {
      const found = await read(some.map(([key]) => key));
      for (const [key, { resolve }] of some) resolve(found.get(key));
    } catch (error) {
      for (const [, { reject }] of some) reject(error);
    }
  };
  const readAll = (): void => {
    const all = [...waiting];
    waiting = new Map();
    for (let at = 0; at < all.length; at += most) void answer(all.slice(at, at + most));
  };

  return (key) => {
    const asked = waiting.get(key);
    if (asked !== undefined) return asked.found;
    if (waiting.size === 0) setImmediate(readAll);
    const { promise: found, resolve, reject } = Promise.withResolvers<V | undefined>();
    waiting.set(key, { found, resolve, reject });
    return found;
  };
};
