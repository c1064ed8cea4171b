/** How work under a deadline ended. What it does after `timedOut` or `canceled` is dropped. */
export type DeadlineEnd<T> =
  | { readonly kind: 'returned'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timedOut'; readonly timeoutMs: number }
  | { readonly kind: 'canceled' };

/**
 * Runs `work` until it settles, `timeoutMs` have passed (null: never) or `outer` is aborted, whichever is first. The
 * last two abort the signal that the work was given; the work itself is not killed. Never rejects, and leaves neither
 * a timer nor a listener behind.
 */
export const withDeadline = <T>(
  work: (signal: AbortSignal) => Promise<T>,
  timeoutMs: number | null,
  outer: AbortSignal,
): Promise<DeadlineEnd<T>> => {
  if (outer.aborted) return Promise.resolve({ kind: 'canceled' });
  return new Promise((resolve) => {
    const controller = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const settle = (end: DeadlineEnd<T>): void => {
      clearTimeout(timer);
      outer.removeEventListener('abort', onAbort);
      resolve(end);
    };
    const onAbort = (): void => {
      settle({ kind: 'canceled' });
      controller.abort(outer.reason);
    };
    outer.addEventListener('abort', onAbort, { once: true });
    if (timeoutMs !== null)
      timer = setTimeout(() => {
        settle({ kind: 'timedOut', timeoutMs });
        controller.abort(new DOMException('It took too long', 'TimeoutError'));
      }, timeoutMs);
    // Wrapped, so that a function that throws at once ends like one that rejects.
    (async () => work(controller.signal))().then(
      (value) => settle({ kind: 'returned', value }),
      (error: unknown) => settle({ kind: 'threw', error }),
    );
  });
};
