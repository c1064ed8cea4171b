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
