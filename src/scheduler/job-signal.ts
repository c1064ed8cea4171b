/** Tells the worker of this process that a job may be due; made before the worker and before whoever queues jobs. */
export interface JobSignal {
  /** Nothing happens without a worker, which finds the job when it looks by itself. */
  readonly wake: () => void;
  readonly heard: (by: () => void) => void;
}

export const createJobSignal = (): JobSignal => {
  let look = (): void => undefined;
  return {
    wake: () => look(),
    heard(by) {
      look = by;
    },
  };
};
