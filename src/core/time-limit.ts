/** Resolves after `limitMs` at the latest, with whether the work had ended by then. Rejects with what it rejects with. */
export const endsWithin = async (limitMs: number, work: Promise<unknown>): Promise<boolean> => {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), limitMs);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** Waits for host code, at most so long; what comes later is dropped. Rejects with what it throws. */
export const withTimeLimit = async <T>(limitMs: number, work: () => T | Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`It took more than ${limitMs} ms.`)), limitMs);
  try {
    return await Promise.race([(async () => work())(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};
