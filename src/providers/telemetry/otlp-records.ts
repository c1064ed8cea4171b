import { type Attributes, createTraceState, type HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { MetricPoint, MetricSnapshot } from '../../core/telemetry/metrics.ts';
import type { Span } from '../../core/telemetry/span.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';

/** What a span of an operation is about. */
const subjects: Readonly<Record<string, string>> = {
  chat: 'gen_ai.request.model',
  execute_tool: 'gen_ai.tool.name',
  invoke_agent: 'gen_ai.agent.name',
};

// Receivers group by names, which no definition may make longer than a name is.
const maxSubject = 128;

/**
 * The name under which a span leaves the process: the GenAI conventions' where they have one, such as `chat gpt-5` for
 * `acp.model.call`, else our own. A tool that the model has made up is not in the name: there is no end of those.
 */
const exportedName = ({ name, kind, attributes }: Span): string => {
  const operation = attributes['gen_ai.operation.name'];
  // The span of a request has the name that the HTTP conventions give it.
  const subject = typeof operation === 'string' && kind !== 'Server' ? subjects[operation] : undefined;
  if (subject === undefined) return name;
  const about = attributes['acp.tool.unknown'] === true ? '' : String(attributes[subject] ?? '');
  return `${operation} ${about.slice(0, maxSubject).toWellFormed()}`.trimEnd();
};

/** One line of the log, on its way out. */
export interface LogEntry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Who reports: the same for every record. */
export interface Origin {
  readonly resource: Resource;
  readonly scope: { readonly name: string; readonly version: string };
}

// Numbers of the OTLP data model, as the libraries' enums have them.
const spanKinds = { Internal: 0, Server: 1, Client: 2, Producer: 3, Consumer: 4 } as const;
const spanStatuses = { Unset: 0, Ok: 1, Error: 2 } as const;
const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;
const cumulative = 1;
const histogram = 0;
const gauge = 2;
const sumType = 3;
const double = 1;
const sampled = 1;

/** Epoch milliseconds as seconds and nanoseconds. */
const hrTime = (ms: number): HrTime => {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1_000_000)];
};

const spanContext = ({ traceId, spanId, state }: TraceParent) => ({
  ...{ traceId, spanId, traceFlags: sampled },
  ...(state === undefined ? {} : { traceState: createTraceState(state) }),
});

export const readableSpan = (span: Span, { resource, scope }: Origin): ReadableSpan => {
  const endedAt = span.endedAt ?? span.startedAt;
  const name = exportedName(span);
  return {
    name,
    kind: spanKinds[span.kind],
    spanContext: () => spanContext(span),
    ...(span.parentSpanId === null
      ? {}
      : { parentSpanContext: { traceId: span.traceId, spanId: span.parentSpanId, traceFlags: sampled } }),
    startTime: hrTime(span.startedAt),
    endTime: hrTime(endedAt),
    duration: hrTime(endedAt - span.startedAt),
    status: { code: spanStatuses[span.status] },
    attributes: (name === span.name
      ? span.attributes
      : { ...span.attributes, 'acp.span.name': span.name }) as Attributes,
    links: span.links.map((link) => ({ context: spanContext(link) })),
    events: span.events.map(({ name, at, attributes }) => ({
      name,
      time: hrTime(at),
      attributes: attributes as Attributes,
    })),
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
};

const pointOf = <T>({ attributes }: MetricPoint, value: T, times: { startTime: HrTime; endTime: HrTime }) => ({
  ...times,
  attributes: attributes as Attributes,
  value,
});

export const metricData = (metric: MetricSnapshot, startedAt: number, now: number): MetricData => {
  const times = { startTime: hrTime(startedAt), endTime: hrTime(now) };
  const { name, kind, spec, boundaries, points } = metric;
  const base = {
    descriptor: { name, description: spec.description, unit: spec.unit, valueType: double },
    aggregationTemporality: cumulative,
  } as const;
  if (kind === 'histogram')
    return {
      ...base,
      dataPointType: histogram,
      dataPoints: points.map((point) =>
        pointOf(
          point,
          {
            buckets: { boundaries: [...boundaries], counts: [...(point.histogram?.buckets ?? [])] },
            sum: point.value,
            count: point.histogram?.count ?? 0,
            min: point.histogram?.min ?? 0,
            max: point.histogram?.max ?? 0,
          },
          times,
        ),
      ),
    };
  const dataPoints = points.map((point) => pointOf(point, point.value, times));
  return kind === 'gauge'
    ? { ...base, dataPointType: gauge, dataPoints }
    : { ...base, dataPointType: sumType, isMonotonic: kind === 'counter', dataPoints };
};

const scalarOf = (value: unknown): string | number | boolean => {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // What JSON cannot hold must not break the work that is logged.
    return String(value);
  }
};

const errorAttributes = (error: Error): Attributes => ({
  'exception.type': error.name,
  'exception.message': error.message,
  ...(error.stack === undefined ? {} : { 'exception.stacktrace': error.stack }),
});

/** The same fields as the line on standard output has. */
export const logRecord = (
  { level, fields, message }: LogEntry,
  { resource, scope }: Origin,
  now: number,
): ReadableLogRecord => {
  const attributes: Attributes = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || name === 'traceId') continue;
    if (value instanceof Error) Object.assign(attributes, errorAttributes(value));
    else attributes[name] = scalarOf(value);
  }
  const time = hrTime(now);
  const { traceId } = fields;
  return {
    hrTime: time,
    hrTimeObserved: time,
    ...(typeof traceId === 'string'
      ? { spanContext: { traceId, spanId: '0000000000000000', traceFlags: sampled } }
      : {}),
    severityNumber: severities[level],
    severityText: level.toUpperCase(),
    body: message,
    resource,
    instrumentationScope: scope,
    attributes,
    droppedAttributesCount: 0,
  };
};
