/** Tells the worker of this process that a job may be due; made before the worker and before whoever queues jobs. */
export const createJobSignal = () => {
  let look = (_dueAt: number): void => undefined;
  return {
    /** The job is due at this time, epoch milliseconds. Nothing happens without a worker, which finds it by itself. */
    wake: (dueAt: number): void => look(dueAt),
    heard(by: (dueAt: number) => void): void {
      look = by;
    },
  };
};

export type JobSignal = ReturnType<typeof createJobSignal>;
