import process from 'node:process';

/** Exit code of a process that a signal ended: 128 + its number. */
export const interruptedExitCode: Readonly<Record<'SIGINT' | 'SIGTERM', number>> = { SIGINT: 130, SIGTERM: 143 };

export type Interrupt = keyof typeof interruptedExitCode;

const signals = ['SIGINT', 'SIGTERM'] as const;

/** Calls `handle` with each interrupt and how many came before, until the returned function is called. */
export const onInterrupt = (handle: (signal: Interrupt, earlier: number) => void): (() => void) => {
  let count = 0;
  const listeners = signals.map((signal) => {
    const listener = (): void => {
      handle(signal, count);
      count += 1;
    };
    process.on(signal, listener);
    return [signal, listener] as const;
  });
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener);
  };
};

/** A signal that the first interrupt aborts, and the exit code that the command then has; to be disposed at its end. */
export const leaveOnInterrupt = (reason?: Error) => {
  const leave = new AbortController();
  const interruption = { signal: leave.signal, exitCode: null as number | null, [Symbol.dispose]: () => release() };
  const release = onInterrupt((name) => {
    interruption.exitCode = interruptedExitCode[name];
    leave.abort(reason);
  });
  return interruption;
};
