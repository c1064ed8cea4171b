import { parseDuration } from '../../core/config/duration.ts';
import { isJsonPointer } from '../../core/documents/json-pointer.ts';
import type { CompiledAgent, WindowLimit } from '../../engine/compiled-agent.ts';
import { rangeLimit, textLimit } from './agent-limits.rules.ts';
import type { AgentContent } from './agents.content.ts';
import { errorUnless, type Finding } from './agents.findings.ts';

type Flow = NonNullable<AgentContent['flow']>;
type Gate = 'rateLimit' | 'throttle';

const mostStarts = 10_000;
const shortestMs = 1000;
const longestMs = 30 * 86_400_000;
const longestKey = 256;

const windowFindings = (path: string, settings: Flow[Gate]): Finding[] => {
  if (settings === null) return [];
  const { limit, window, key } = settings;
  const windowMs = parseDuration(window) ?? 0;
  return [
    ...rangeLimit(`${path}.limit`, limit, 1, mostStarts),
    ...errorUnless(
      windowMs >= shortestMs && windowMs <= longestMs,
      'value-out-of-range',
      `${path}.window`,
      `${path}.window must be a duration from 1s to 30d, such as 30s, 5m or 1h.`,
    ),
    ...textLimit(`${path}.key`, key, longestKey),
    ...errorUnless(
      key === null || isJsonPointer(key),
      'value-out-of-range',
      `${path}.key`,
      `${path}.key must be a JSON Pointer (RFC 6901), such as /parameters/customer.`,
    ),
  ];
};

export const flowFindings = ({ flow }: Pick<AgentContent, 'flow'>): Finding[] =>
  flow === null
    ? []
    : [...windowFindings('flow.rateLimit', flow.rateLimit), ...windowFindings('flow.throttle', flow.throttle)];

const compileWindow = (settings: Flow[Gate]): WindowLimit | null => {
  if (settings === null) return null;
  const { limit, window, key } = settings;
  return { limit, windowMs: parseDuration(window) ?? longestMs, key };
};

/** Of a definition without findings. */
export const compileFlow = ({ flow }: Pick<AgentContent, 'flow'>): Pick<CompiledAgent, Gate> => ({
  rateLimit: compileWindow(flow?.rateLimit ?? null),
  throttle: compileWindow(flow?.throttle ?? null),
});
