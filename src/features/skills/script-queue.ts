interface Waiter {
  readonly tenantId: string;
  readonly start: () => void;
}

/** Places for processes. Who finds none waits in the order of arrival; nobody is refused. */
export const createScriptQueue = ({ perTenant, total }: { readonly perTenant: number; readonly total: number }) => {
  const running = new Map<string, number>();
  const waiting: Waiter[] = [];
  let all = 0;
  const hasRoom = (tenantId: string): boolean => all < total && (running.get(tenantId) ?? 0) < perTenant;

  /** The first in line whose tenant has room: a tenant at its limit does not hold up the others. */
  const admit = (): void => {
    for (let next = 0; next !== -1; ) {
      next = waiting.findIndex(({ tenantId }) => hasRoom(tenantId));
      const [waiter] = next === -1 ? [] : waiting.splice(next, 1);
      waiter?.start();
    }
  };
  const take = (tenantId: string): (() => void) => {
    all += 1;
    running.set(tenantId, (running.get(tenantId) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      all -= 1;
      const left = (running.get(tenantId) ?? 1) - 1;
      if (left === 0) running.delete(tenantId);
      else running.set(tenantId, left);
      admit();
    };
  };

  return {
    /** How many wait now. */
    waiting: () => waiting.length,
    /** Resolves with the function that gives the place back; rejects with the signal's reason when it is aborted first. */
    enter: (tenantId: string, signal: AbortSignal): Promise<() => void> =>
      new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason);
          return;
        }
        const leave = (): void => {
          waiting.splice(waiting.indexOf(waiter), 1);
          reject(signal.reason);
        };
        const waiter: Waiter = {
          tenantId,
          start() {
            signal.removeEventListener('abort', leave);
            resolve(take(tenantId));
          },
        };
        signal.addEventListener('abort', leave, { once: true });
        waiting.push(waiter);
        admit();
      }),
  };
};

export type ScriptQueue = ReturnType<typeof createScriptQueue>;
