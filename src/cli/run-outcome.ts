import { errorTable, isErrorCode } from '../contract/errors.ts';
import type { Frame } from '../contract/operation.ts';
import type { RunErrorClass } from '../features/runs/runs.schema.ts';
import type { EventData } from './output/event-line.ts';

export const frameData = (frame: Frame): EventData => JSON.parse(frame.data) as EventData;

/** Exit codes as the JSON answer of the same failure would give them. */
const exitByClass: Readonly<Record<RunErrorClass, number>> = {
  ContentBlocked: errorTable['content-blocked'].exit,
  ContentFiltered: errorTable['content-filtered'].exit,
  QuotaExceeded: errorTable['run-budget-exceeded'].exit,
  ProviderError: errorTable['provider-error'].exit,
  ProviderUnavailable: errorTable['provider-unavailable'].exit,
  RateLimited: errorTable['provider-rate-limited'].exit,
  Timeout: errorTable['provider-timeout'].exit,
  ToolError: errorTable['tool-failed'].exit,
  ToolTimeout: errorTable['tool-timeout'].exit,
  StructuredResponseInvalid: errorTable['provider-error'].exit,
  CompilationFailed: errorTable['agent-not-compilable'].exit,
  Canceled: errorTable['run-canceled'].exit,
  Infrastructure: errorTable.internal.exit,
  Unknown: errorTable.internal.exit,
};

const isClass = (value: unknown): value is RunErrorClass =>
  typeof value === 'string' && Object.hasOwn(exitByClass, value);

/** Exit code that a frame decides, null while the run goes on. A pause is no failure. */
export const exitCodeOf = (frame: Frame): number | null => {
  switch (frame.event) {
    case 'error': {
      const { code } = frameData(frame);
      return isErrorCode(code) ? errorTable[code].exit : null;
    }
    case 'run.completed':
    case 'run.awaiting-approval':
    case 'run.awaiting-input':
      return 0;
    case 'run.canceled':
      return exitByClass.Canceled;
    case 'run.failed': {
      const error = frameData(frame)['error'] as { readonly class?: unknown } | null;
      return isClass(error?.class) ? exitByClass[error.class] : exitByClass.Unknown;
    }
    default:
      return null;
  }
};
