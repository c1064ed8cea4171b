import { ChurningMap } from '../../core/churning-map.ts';
import type { Clock, Timer } from '../../core/clock.ts';

/** Requests of a tenant that wait for a part of what its quotas leave, first come first served. */
export interface TenantLines<R, A> {
  join(tenantId: string, request: R): Promise<A>;
  /** Something has happened by which requests of the tenant may be answered; null: of all tenants. */
  wake(tenantId: string | null): void;
}

/** Decides about one request after another, in the order in which they came. Null: it goes on waiting. Throws what refuses it. */
export type Decide<R, A> = (request: R) => A | null;

export interface TenantLineDeps<R, A> {
  /** One look at the store serves everybody who waits. */
  look(tenantId: string, requests: readonly R[]): Promise<Decide<R, A>>;
  /** The answers where that fails: nobody waits for a store. */
  unreadable(tenantId: string, error: unknown): (request: R) => A;
  /** Epoch milliseconds at which a request is decided on again though nothing has happened. */
  dueAt(request: R): number;
  readonly clock: Pick<Clock, 'now' | 'after'>;
}

interface Waiter<R, A> {
  readonly id: number;
  readonly request: R;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: unknown) => void;
  readonly wake: () => void;
}

interface Line<R, A> {
  readonly waiters: ChurningMap<number, Waiter<R, A>>;
  /** Since the last look began: whatever it was, that look may not have seen it. */
  isWoken: boolean;
  go: (() => void) | null;
}

export const createTenantLines = <R extends { readonly signal: AbortSignal }, A>({
  look,
  unreadable,
  dueAt,
  clock,
}: TenantLineDeps<R, A>): TenantLines<R, A> => {
  const lines = new Map<string, Line<R, A>>();
  let lastId = 0;

  const wake = (line: Line<R, A>): void => {
    line.isWoken = true;
    line.go?.();
  };

  const leave = (line: Line<R, A>, { id, request, wake: onAbort }: Waiter<R, A>): void => {
    line.waiters.delete(id);
    request.signal.removeEventListener('abort', onAbort);
  };

  const answer = (line: Line<R, A>, waiter: Waiter<R, A>, decide: Decide<R, A>): void => {
    try {
      const result = decide(waiter.request);
      if (result === null) return;
      leave(line, waiter);
      waiter.resolve(result);
    } catch (error) {
      leave(line, waiter);
      waiter.reject(error);
    }
  };

  const round = async (tenantId: string, line: Line<R, A>): Promise<void> => {
    // Whoever comes after the look has begun waits for the next one.
    const waiting = [...line.waiters.values()];
    const requests = waiting.map(({ request }) => request);
    const decide = await look(tenantId, requests).catch((error: unknown) => unreadable(tenantId, error));
    for (const waiter of waiting) answer(line, waiter, decide);
  };

  /** Until somebody wakes the line, or the first of those that wait is due. */
  const idle = async (line: Line<R, A>): Promise<void> => {
    const due = Math.min(...[...line.waiters.values()].map(({ request }) => dueAt(request)));
    let timer: Timer | null = null;
    await new Promise<void>((resolve) => {
      line.go = resolve;
      timer = clock.after(Math.max(due - clock.now(), 1), resolve);
    });
    line.go = null;
    (timer as Timer | null)?.stop();
  };

  const serve = async (tenantId: string, line: Line<R, A>): Promise<void> => {
    while (line.waiters.size > 0) {
      line.isWoken = false;
      await round(tenantId, line);
      if (line.waiters.size > 0 && !line.isWoken) await idle(line);
    }
    lines.delete(tenantId);
  };

  return {
    join(tenantId, request) {
      const open = lines.get(tenantId);
      const line: Line<R, A> = open ?? { waiters: new ChurningMap(), isWoken: false, go: null };
      return new Promise((resolve, reject) => {
        lastId += 1;
        const onAbort = (): void => wake(line);
        line.waiters.set(lastId, { id: lastId, request, resolve, reject, wake: onAbort });
        request.signal.addEventListener('abort', onAbort, { once: true });
        if (open === undefined) {
          lines.set(tenantId, line);
          void serve(tenantId, line);
        } else wake(line);
      });
    },
    wake(tenantId) {
      if (tenantId === null) for (const line of lines.values()) wake(line);
      else {
        const line = lines.get(tenantId);
        if (line !== undefined) wake(line);
      }
    },
  };
};
