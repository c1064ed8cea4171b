/** What waits for the next read, each key once. */
interface Waiting<V> {
  readonly found: Promise<V | undefined>;
  resolve(value: V | undefined): void;
  reject(error: unknown): void;
}

/**
 * Rows of a tenant that are asked for in the same turn of the event loop, in one query of at most `most` keys: on a server
 * each query is a message there and one back. All who wait for a query hear of its failure.
 */
export const readTogether = <V>(
  most: number,
  read: (tenantId: string, keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
): ((tenantId: string, key: string) => Promise<V | undefined>) => {
  const waiting = new Map<string, Map<string, Waiting<V>>>();

  const answer = async (
    tenantId: string,
    some: readonly (readonly [key: string, waiting: Waiting<V>])[],
  ): Promise<void> => {
    try {
      const found = await read(
        tenantId,
        some.map(([key]) => key),
      );
      for (const [key, { resolve }] of some) resolve(found.get(key));
    } catch (error) {
      for (const [, { reject }] of some) reject(error);
    }
  };
  const readAll = (): void => {
    const all = [...waiting];
    waiting.clear();
    for (const [tenantId, asked] of all) {
      const keys = [...asked];
      for (let at = 0; at < keys.length; at += most) void answer(tenantId, keys.slice(at, at + most));
    }
  };

  return (tenantId, key) => {
    if (waiting.size === 0) setImmediate(readAll);
    const ofTenant = waiting.getOrInsertComputed(tenantId, () => new Map());
    const asked = ofTenant.get(key);
    if (asked !== undefined) return asked.found;
    const { promise: found, resolve, reject } = Promise.withResolvers<V | undefined>();
    ofTenant.set(key, { found, resolve, reject });
    return found;
  };
};
