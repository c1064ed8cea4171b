/** Tells the worker of this process that a job may be due; made before the worker and before whoever queues jobs. */
export const createJobSignal = () => {
  let look = (): void => undefined;
  return {
    /** Nothing happens without a worker, which finds the job when it looks by itself. */
    wake: (): void => look(),
    heard(by: () => void): void {
      look = by;
    },
  };
};

export type JobSignal = ReturnType<typeof createJobSignal>;
