import type { ServerResponse } from 'node:http';
import { AcpError } from '../contract/errors.ts';
import type { Caller } from '../core/context.ts';
import { callerKey } from './request-limit.ts';

export interface OpenStreamLimits {
  readonly maxPerCaller: number;
  readonly maxPerTenant: number;
}

// A stream ends when it ends: the time until one is free is unknown.
const retryAfterMs = 5000;

const tooMany = (whose: string, most: number, setting: string): AcpError =>
  new AcpError(
    'too-many-streams',
    `${whose} has ${most} streams open, which is the limit (${setting}). Close one before you open another.`,
    { details: { retryAfterMs } },
  );

const add = (counts: Map<string, number>, key: string, by: 1 | -1): void => {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
};

export type OpenStreams = ReturnType<typeof createOpenStreams>;

/** Counts the streams that callers and tenants have open in this process. */
export const createOpenStreams = ({ maxPerCaller, maxPerTenant }: OpenStreamLimits) => {
  const callers = new Map<string, number>();
  const tenants = new Map<string, number>();
  return {
    /** Counts a stream until its response closes. Throws `too-many-streams`. */
    open(caller: Caller, response: Pick<ServerResponse, 'closed' | 'destroyed' | 'once'>): void {
      // The response to a caller that has gone is never written, and may have emitted its last event.
      if (response.closed || response.destroyed) return;
      const { tenantId } = caller;
      const key = callerKey(caller);
      if ((callers.get(key) ?? 0) >= maxPerCaller)
        throw tooMany('This caller', maxPerCaller, 'Service:Streams:MaxPerCaller');
      if ((tenants.get(tenantId) ?? 0) >= maxPerTenant)
        throw tooMany('This tenant', maxPerTenant, 'Service:Streams:MaxPerTenant');
      add(callers, key, 1);
      add(tenants, tenantId, 1);
      response.once('close', () => {
        add(callers, key, -1);
        add(tenants, tenantId, -1);
      });
    },
  };
};
