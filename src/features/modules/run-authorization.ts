import type { Json } from '../../contract/schema.ts';
import { principalJson } from '../../core/caller/principal-json.ts';
import {
  openRunAuthorization,
  type RunAction,
  type RunAuthorization,
  type RunResource,
  runAuthorizationOf,
} from '../../core/caller/run-authorization.ts';
import type { Logger } from '../../core/logger.ts';
import { withDeadline } from '../../engine/tools/index.ts';
import { answerWithinMs, failureOf } from './host-answers.ts';

/** What a handler is asked: one action of one caller. What does not apply is null. */
export interface RunAuthorizationRequest {
  readonly action: RunAction;
  readonly resource: RunResource;
  /** Null where there is no single resource: Start, List, Upload. */
  readonly id: string | null;
  readonly tenantId: string;
  readonly agentName: string | null;
  readonly sessionId: string | null;
  /** The run that the resource belongs to; for Start the run that is replayed, resumed or responded to. */
  readonly runId: string | null;
  /** The person to whom the run is attributed. */
  readonly userId: string | null;
  readonly principal: Json;
}

/** Decides who may start and see runs and what belongs to them. Throwing, or taking more than 5 s, refuses. */
export interface RunAuthorizationHandler {
  authorize(request: RunAuthorizationRequest, signal: AbortSignal): Promise<{ allowed: boolean }>;
}

/** The handler as the port that features ask; without one everything is allowed. */
export const hostRunAuthorization = (handler: RunAuthorizationHandler | null, log: Logger): RunAuthorization => {
  if (handler === null) return openRunAuthorization;
  return runAuthorizationOf(async (context, action, target) => {
    const request: RunAuthorizationRequest = {
      action,
      resource: target.resource,
      id: target.id ?? null,
      tenantId: context.tenantId,
      agentName: target.agentName ?? null,
      sessionId: target.sessionId ?? null,
      runId: target.runId ?? null,
      userId: target.userId ?? null,
      principal: principalJson(context.principal),
    };
    const end = await withDeadline((signal) => handler.authorize(request, signal), answerWithinMs, context.signal);
    if (end.kind === 'returned') {
      // Only a plain true opens: a module is not type-checked at run time.
      const verdict = end.value as { readonly allowed?: unknown } | null | undefined;
      return verdict?.allowed === true;
    }
    const { requestId } = context;
    if (end.kind !== 'canceled')
      log.warn(
        { requestId, action, resource: target.resource, ...failureOf(end) },
        'The run authorization handler failed, so the request was refused',
      );
    return false;
  });
};
