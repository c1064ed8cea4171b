import type { RunWarning } from '../contract/run-outcome.ts';
import type { ActiveRun } from './active-run.ts';

const none: readonly RunWarning[] = [];

/** What the answer of a run says of the store, as far as it is known by now. */
export const warningsOf = ({ log, plan, uncounted }: ActiveRun): readonly RunWarning[] => {
  // The store did its part: as good as always, and for every run.
  if (!log.isIncomplete && !uncounted && plan.isUnchecked !== true) return none;
  return [
    ...(plan.isUnchecked === true ? (['quota-not-checked'] as const) : []),
    ...(uncounted && !log.endStored ? (['quota-not-written'] as const) : []),
    ...(log.isIncomplete ? (['recording-incomplete'] as const) : []),
  ];
};
