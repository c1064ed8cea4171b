import { flowLimits, highestPriority, singletonModes } from '../../contract/flow-settings.ts';
import { parseDuration } from '../../core/config/duration.ts';
import { isJsonPointer } from '../../core/documents/json-pointer.ts';
import type { AgentFlow, WindowLimit } from '../../engine/compiled-agent.ts';
import { rangeLimit, textLimit } from './agent-limits.rules.ts';
import type { AgentContent } from './agents.content.ts';
import { errorUnless, type Finding } from './agents.findings.ts';

type Flow = NonNullable<AgentContent['flow']>;
type WindowSettings = Flow['rateLimit'];

const { mostStarts, shortestMs, longestMs, longestKey, mostValues } = flowLimits;

const lengthFinding = (path: string, duration: string, least: number, from: string): Finding[] => {
  const ms = parseDuration(duration) ?? 0;
  return errorUnless(
    ms >= least && ms <= longestMs,
    'value-out-of-range',
    path,
    `${path} must be a duration from ${from} to 30d, such as 30s, 5m or 1h.`,
  );
};

const keyFindings = (path: string, key: string | null): Finding[] => [
  ...textLimit(`${path}.key`, key, longestKey),
  ...errorUnless(
    key === null || isJsonPointer(key),
    'value-out-of-range',
    `${path}.key`,
    `${path}.key must be a JSON Pointer (RFC 6901), such as /parameters/customer.`,
  ),
];

const windowFindings = (path: string, settings: WindowSettings): Finding[] =>
  settings === null
    ? []
    : [
        ...rangeLimit(`${path}.limit`, settings.limit, 1, mostStarts),
        ...lengthFinding(`${path}.window`, settings.window, shortestMs, '1s'),
        ...keyFindings(path, settings.key),
      ];

const debounceFindings = ({ debounce }: Flow): Finding[] => {
  if (debounce === null) return [];
  const { window, maxWait, key } = debounce;
  const windowMs = parseDuration(window) ?? shortestMs;
  return [
    ...lengthFinding('flow.debounce.window', window, shortestMs, '1s'),
    ...(maxWait === null ? [] : lengthFinding('flow.debounce.maxWait', maxWait, windowMs, 'window')),
    ...keyFindings('flow.debounce', key),
  ];
};

const singletonFindings = ({ singleton }: Flow): Finding[] =>
  singleton === null
    ? []
    : [
        ...errorUnless(
          singletonModes.includes(singleton.mode),
          'value-out-of-range',
          'flow.singleton.mode',
          `flow.singleton.mode must be one of ${singletonModes.join(', ')}.`,
        ),
        ...keyFindings('flow.singleton', singleton.key),
      ];

const concurrencyFindings = ({ concurrency }: Flow): Finding[] =>
  concurrency === null
    ? []
    : [
        ...rangeLimit('flow.concurrency.limit', concurrency.limit, 1, mostStarts),
        ...keyFindings('flow.concurrency', concurrency.key),
      ];

const priorityFindings = ({ priority }: Flow): Finding[] =>
  priority === null
    ? []
    : [
        ...keyFindings('flow.priority', priority.key),
        ...rangeLimit('flow.priority.default', priority.default, -highestPriority, highestPriority),
        ...Object.entries(priority.values ?? {}).flatMap(([name, value]) =>
          rangeLimit(`flow.priority.values.${name}`, value, -highestPriority, highestPriority),
        ),
        ...errorUnless(
          priority.values === null || priority.key !== null,
          'value-out-of-range',
          'flow.priority.values',
          'flow.priority.values are looked up by flow.priority.key, which is missing.',
        ),
        ...errorUnless(
          Object.keys(priority.values ?? {}).length <= mostValues,
          'value-out-of-range',
          'flow.priority.values',
          `flow.priority.values must be at most ${mostValues}.`,
        ),
      ];

const together = ({ debounce, singleton, throttle }: Flow): Finding[] =>
  errorUnless(
    debounce === null || (singleton === null && throttle === null),
    'feature-conflict',
    'flow.debounce',
    'flow.debounce cannot stand beside a throttle or a singleton: each says when a run starts.',
  );

export const flowFindings = ({ flow }: Pick<AgentContent, 'flow'>): Finding[] =>
  flow === null
    ? []
    : [
        ...windowFindings('flow.rateLimit', flow.rateLimit),
        ...windowFindings('flow.throttle', flow.throttle),
        ...debounceFindings(flow),
        ...singletonFindings(flow),
        ...concurrencyFindings(flow),
        ...priorityFindings(flow),
        ...together(flow),
      ];

const msOf = (duration: string): number => parseDuration(duration) ?? longestMs;

const compileWindow = (settings: WindowSettings): WindowLimit | null =>
  settings === null ? null : { limit: settings.limit, windowMs: msOf(settings.window), key: settings.key };

/** Of a definition without findings. */
export const compileFlow = ({ flow }: Pick<AgentContent, 'flow'>): AgentFlow | null => {
  if (flow === null) return null;
  if (Object.values(flow).every((gate) => gate === null)) return null;
  const { rateLimit, throttle, debounce, singleton, concurrency, priority } = flow;
  return {
    rateLimit: compileWindow(rateLimit),
    throttle: compileWindow(throttle),
    debounce: debounce && {
      windowMs: msOf(debounce.window),
      maxWaitMs: debounce.maxWait === null ? null : msOf(debounce.maxWait),
      key: debounce.key,
    },
    singleton,
    concurrency,
    priority,
  };
};
