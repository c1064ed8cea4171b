import { errorTable, isErrorCode } from '../../contract/errors.ts';
import type { Frame } from '../../contract/operation.ts';
import { codesByErrorClass, type RunErrorClass } from '../../contract/run-outcome.ts';
import { frameData } from '../../text/event-line.ts';

const isClass = (value: unknown): value is RunErrorClass =>
  typeof value === 'string' && Object.hasOwn(codesByErrorClass, value);

/** A run that waits for approvals or for results of client-side tools has neither succeeded nor failed. */
export const pausedExitCode = 10;

/** Exit code that a frame decides, null while the run goes on. */
export const exitCodeOf = (frame: Frame): number | null => {
  switch (frame.event) {
    case 'error': {
      const { code } = frameData(frame);
      return isErrorCode(code) ? errorTable[code].exit : null;
    }
    case 'run.completed':
      return 0;
    case 'run.awaiting-approval':
    case 'run.awaiting-input':
      return pausedExitCode;
    case 'run.canceled':
      return errorTable[codesByErrorClass.Canceled].exit;
    case 'run.failed': {
      const error = frameData(frame)['error'] as { readonly class?: unknown } | null;
      return isClass(error?.class)
        ? errorTable[codesByErrorClass[error.class]].exit
        : errorTable[codesByErrorClass.Unknown].exit;
    }
    default:
      return null;
  }
};
