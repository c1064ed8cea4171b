import { AcpError } from '../../../contract/errors.ts';
import type { Attribution } from '../../../core/caller/attribution.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { DetachedRuns } from '../detached-runs.ts';
import type { Entrance, ItemOfJob } from './launch-request.ts';
import { failureError } from './refusals.ts';

interface RefusedItemDeps {
  readonly attribution: Attribution;
  readonly detached: Pick<DetachedRuns, 'recordFailed'>;
  readonly newId: () => string;
}

/**
 * Nobody waits for the run of an item: that a quota refused it is kept as a run that has failed, and that counts for no
 * quota. The error that names this run; another error is as it came.
 */
export const keepRefusal = async (
  deps: RefusedItemDeps,
  { request, ownerId }: Entrance,
  item: ItemOfJob,
  agentVersion: number,
  error: unknown,
): Promise<unknown> => {
  if (!(error instanceof AcpError) || error.code !== 'quota-exceeded') return error;
  const { context, agentName, body, isStreaming } = request;
  const sessionId = body.sessionId ?? null;
  const attribution = { ...(await deps.attribution.of(context, { agentName, sessionId })), ownerId };
  const { retryAfterMs = null } = error.details;
  const failure = new RunFailure('QuotaExceeded', 'quota_exceeded', error.message, { cause: error, retryAfterMs });
  const runId = deps.newId();
  // Also says that the job is still this worker's.
  await item.reserve(runId);
  await deps.detached.recordFailed({
    ...{ runId, tenantId: context.tenantId, agentName, agentVersion, isStreaming, sessionId, attribution, failure },
    isCounted: false,
  });
  return failureError(failure, runId);
};
