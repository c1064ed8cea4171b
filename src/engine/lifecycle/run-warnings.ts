import type { Frame } from '../../contract/operation.ts';
import type { RunWarning } from '../../contract/run-outcome.ts';
import type { ActiveRun } from '../active-run.ts';

const none: readonly RunWarning[] = [];

/** What the answer of a run says of the store, as far as it is known by now. */
export const warningsOf = ({ log, plan, uncounted }: ActiveRun): readonly RunWarning[] => {
  // The store did its part: as good as always, and for every run.
  if (!log.isIncomplete && !uncounted && !plan.isUnchecked) return none;
  return [
    ...(plan.isUnchecked ? (['quota-not-checked'] as const) : []),
    ...(uncounted && !log.endStored ? (['quota-not-written'] as const) : []),
    ...(log.isIncomplete ? (['recording-incomplete'] as const) : []),
  ];
};

/** The same as the frame outside the log that stands just before the end of a stream; none where there is nothing to say. */
export const warningFrames = (run: ActiveRun): readonly Frame[] => {
  const warnings = warningsOf(run);
  return warnings.length === 0 ? [] : [{ event: 'warning', data: JSON.stringify({ warnings }) }];
};
