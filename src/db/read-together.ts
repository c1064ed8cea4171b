import type { CompiledQuery } from 'kysely';

interface Waiting {
  readonly query: CompiledQuery;
  readonly resolve: (rows: readonly unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Rows of each query, in their order. */
export type ReadAll = (queries: readonly CompiledQuery[]) => Promise<readonly (readonly unknown[])[]>;

// What is behind these waits no longer than for an answer to all of them.
const most = 50;

/**
 * Reads that are asked for in the same turn of the event loop go to the server in one message. Where one of them fails, all
 * of the message do.
 */
export const readTogether = (readAll: ReadAll): ((query: CompiledQuery) => Promise<readonly unknown[]>) => {
  let waiting: Waiting[] = [];

  const read = async (some: readonly Waiting[]): Promise<void> => {
    try {
      const answers = await readAll(some.map(({ query }) => query));
      for (const [index, { resolve }] of some.entries()) resolve(answers[index] ?? []);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  };
  const send = (): void => {
    const all = waiting;
    waiting = [];
    for (let at = 0; at < all.length; at += most) void read(all.slice(at, at + most));
  };

  return (query) => {
    if (waiting.length === 0) setImmediate(send);
    return new Promise((resolve, reject) => waiting.push({ query, resolve, reject }));
  };
};
