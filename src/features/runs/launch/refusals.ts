import { AcpError } from '../../../contract/errors.ts';
import type { StopSwitch } from '../../../core/emergency.ts';
import { problemCode, type RunFailure } from '../../../engine/run-failure.ts';

export interface MayStartDeps {
  readonly lifecycle: { readonly draining: boolean };
  readonly stops: StopSwitch;
  /** The store is known to be away, or on its way to a standby. */
  readonly storeIsAway: () => boolean;
}

// A draining process is followed by another one; what an operator has stopped takes a person's time.
const drainingRetryMs = 5000;
const stoppedRetryMs = 60_000;
// As every answer of a store that is away.
const awayRetryMs = 5000;

/** Refuses a run while the service ends, while the store is known to be away, and while an operator has stopped its agent. */
export const assertMayStart = (
  { lifecycle, stops, storeIsAway }: MayStartDeps,
  tenantId: string,
  agentName: string,
): void => {
  if (lifecycle.draining)
    throw new AcpError('draining', 'The service is stopping and starts no more runs.', {
      details: { retryAfterMs: drainingRetryMs },
    });
  if (storeIsAway())
    throw new AcpError('store-unavailable', 'The store takes no writes now, and the run was not started.', {
      details: { retryAfterMs: awayRetryMs },
    });
  const reason = stops.reason(tenantId, agentName);
  if (reason !== null) throw new AcpError('emergency-stopped', reason, { details: { retryAfterMs: stoppedRetryMs } });
};

/** The same as of now, for who comes after other steps: a promise only where stops have to be read first. */
export const mayStart = (deps: MayStartDeps, tenantId: string, agentName: string): Promise<void> | null => {
  const reading = deps.stops.current();
  if (reading !== null) return reading.then(() => assertMayStart(deps, tenantId, agentName));
  assertMayStart(deps, tenantId, agentName);
  return null;
};

/** The problem with which a run that did not complete answers a caller. */
export const failureError = (failure: RunFailure, runId: string): AcpError =>
  new AcpError(problemCode(failure.errorClass, failure.type), failure.message, {
    cause: failure.cause,
    details: {
      runId,
      errorType: failure.type,
      ...(failure.retryAfterMs === null ? {} : { retryAfterMs: failure.retryAfterMs }),
      ...(failure.findings === null ? {} : { errors: failure.findings }),
      ...(failure.provider === null ? {} : { provider: failure.provider }),
      ...failure.guard,
    },
  });
