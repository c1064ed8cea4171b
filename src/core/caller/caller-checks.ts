import { AcpError } from '../../contract/errors.ts';
import { isForEverybody } from '../../contract/operation.ts';
import type { Caller } from '../context.ts';
import type { CallMetrics } from '../telemetry/call-metrics.ts';
import { Span } from '../telemetry/span.ts';
import { requireAuthority } from './authority.ts';
import type { AskingCaller, RequiredAuthority } from './incoming-call.ts';

/**
 * Who asks, and whether they may: the limit by address, credential and tenant, role and scope, the limit by caller. The first
 * that refuses throws. Answers without a promise where nothing has to be waited for. `what`: the subject of a refusal.
 */
export type CallerChecks = (
  asking: AskingCaller,
  required: RequiredAuthority,
  what?: string,
) => Caller | Promise<Caller>;

export const createCallerChecks = (metrics: Pick<CallMetrics, 'limited' | 'waited'>): CallerChecks => {
  const counted = (asking: AskingCaller, caller: Caller | null): Promise<void> | undefined => {
    try {
      const turn = asking.limit?.(caller);
      if (turn === undefined) return undefined;
      const since = performance.now();
      return turn.then(() => metrics.waited((performance.now() - since) / 1000));
    } catch (error) {
      if (error instanceof AcpError && error.code === 'rate-limited') metrics.limited();
      throw error;
    }
  };

  const authorize = (
    asking: AskingCaller,
    required: RequiredAuthority,
    caller: Caller,
    what?: string,
  ): Caller | Promise<Caller> => {
    const { principal, tenantId } = caller;
    // A span of the caller's own is left alone.
    if (asking.trace instanceof Span)
      asking.trace.set({ 'acp.tenant.id': tenantId, 'acp.auth.method': principal.kind });
    if (isForEverybody(required)) return caller;
    if (required.role !== null) requireAuthority(principal, required.role, required.scope, what);
    const turn = counted(asking, caller);
    return turn === undefined ? caller : turn.then(() => caller);
  };

  const identify = (asking: AskingCaller, required: RequiredAuthority, what?: string): Caller | Promise<Caller> => {
    const caller = asking.authenticate(required);
    return caller instanceof Promise
      ? caller.then((one) => authorize(asking, required, one, what))
      : authorize(asking, required, caller, what);
  };

  return (asking, required, what) => {
    const isUnlimited = isForEverybody(required) && required.callsPerMinute === undefined;
    const turn = isUnlimited ? undefined : counted(asking, null);
    return turn === undefined ? identify(asking, required, what) : turn.then(() => identify(asking, required, what));
  };
};
