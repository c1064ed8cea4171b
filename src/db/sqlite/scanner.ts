import { createIdleThread } from './idle-thread.ts';
import type { SqliteThreadOptions } from './open.ts';
import type { ScanAnswer, ScanRequest } from './scan.worker.ts';

class ScanError extends Error {
  readonly code: string | null;

  constructor({ code, message }: { readonly code: string | null; readonly message: string }) {
    super(message);
    this.name = 'ScanError';
    this.code = code;
  }
}

/** Reads in a thread of its own, on a connection that cannot write. */
export const createScanner = (options: SqliteThreadOptions) => {
  const open = new Map<number, PromiseWithResolvers<readonly unknown[]>>();
  let lastId = 0;
  const thread = createIdleThread<ScanAnswer>(
    new URL('./scan.worker.ts', import.meta.url),
    { workerData: options },
    {
      does: 'reads the store',
      answered(answer) {
        const asker = open.get(answer.id);
        open.delete(answer.id);
        if ('rows' in answer) asker?.resolve(answer.rows);
        else asker?.reject(new ScanError(answer.failure));
        return open.size > 0;
      },
      ended(error) {
        for (const { reject } of open.values()) reject(error);
        open.clear();
      },
    },
  );
  return {
    read(sql: string, parameters: readonly unknown[]): Promise<readonly unknown[]> {
      lastId += 1;
      const answer = Promise.withResolvers<readonly unknown[]>();
      open.set(lastId, answer);
      thread.ask({ id: lastId, sql, parameters } satisfies ScanRequest);
      return answer.promise;
    },
    close: thread.close,
  };
};
