import { createHash } from 'node:crypto';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import { formatDuration } from '../../../core/config/duration.ts';
import { valueAtPointer } from '../../../core/documents/json-pointer.ts';
import type { WindowLimit } from '../../../engine/compiled-agent.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { JobHold } from '../../jobs/index.ts';

/** The key of a request as JSON, so that 1 and "1" are two; nothing where the pointer leads to no plain value. */
const keyOf = (request: AgentRunRequest, pointer: string | null): string => {
  const value = pointer === null ? undefined : valueAtPointer(request, pointer);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? JSON.stringify(value)
    : '';
};

/** Names the window that a request counts in, without a word of the request. Another length or key begins anew. */
export const windowId = (
  gate: 'rateLimit' | 'throttle',
  tenantId: string,
  agentName: string,
  { windowMs, key }: WindowLimit,
  request: AgentRunRequest,
): string =>
  createHash('sha256')
    .update(JSON.stringify([tenantId, 'agent', agentName, gate, windowMs, key, keyOf(request, key)]))
    .digest('hex');

const allowed = ({ limit, windowMs, key }: WindowLimit): string =>
  `${limit} in ${formatDuration(windowMs)}${key === null ? '' : ` for each value at ${key}`}`;

/** Why a run over the limit did not start. Names the key and never its value, which the request holds. */
export const overRateLimit = (agentName: string, limit: WindowLimit): RunFailure =>
  new RunFailure('Canceled', 'flow_rate_limited', `The rateLimit of agent "${agentName}" allows ${allowed(limit)}.`);

/** Why a run waits for its window; null: its window is open. */
export const throttled = (agentName: string, limit: WindowLimit, now: number, until: number): JobHold | null =>
  until <= now
    ? null
    : { until, code: 'flow-throttled', message: `The throttle of agent "${agentName}" allows ${allowed(limit)}.` };
