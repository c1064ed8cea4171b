import { createMetricRegistry, type MetricRegistry, noMetrics } from './metrics.ts';
import { type AttributeInput, Span, type SpanKind } from './span.ts';
import { inShare, newTraceId, type TraceParent } from './trace-context.ts';

/** `Service:Observability`. */
export interface TelemetrySettings {
  readonly enabled: boolean;
  readonly persistSpans: boolean;
  /** 0..1 */
  readonly successSampleRatio: number;
  readonly alwaysPersistFailures: boolean;
  readonly maxSpansPerRun: number;
  readonly recordSensitiveData: boolean;
  readonly includeAgentVersion: boolean;
}

/** What takes finished spans out of the process. */
export interface SpanExport {
  /** Whether a trace that begins here is exported; `parent` is the caller's span. */
  samples(traceId: string, parent: TraceParent | null): boolean;
  ended(span: Span): void;
}

/** What the parts of the service report their work to. Design: docs/design/telemetry.md. */
export interface Telemetry {
  readonly settings: TelemetrySettings;
  readonly metrics: MetricRegistry;
  /** Null: nothing is exported. Set once, before the first request. */
  export: SpanExport | null;
  /** True once the service has closed and its exporter has not: what that still holds would keep the process. */
  leftBehind: boolean;
  /** A span that has ended. */
  ended(span: Span): void;
  /** A span of work that belongs to no run; null where nothing is exported, as only traces of runs are stored. */
  begin(name: string, kind: SpanKind, parent: TraceParent | null, attributes: AttributeInput): Span | null;
  /** Ends it; `errorType` marks it as failed. */
  finish(span: Span | null, errorType?: string | null): void;
  /** Whether the trace of a root that closed is stored. */
  stores(traceId: string, failed: boolean): boolean;
}

/** `hasReader`: somebody can ask for the metrics or is sent them. Without one nothing is counted. */
export const createTelemetry = (settings: TelemetrySettings, hasReader: boolean): Telemetry => {
  const telemetry: Telemetry = {
    settings,
    metrics: settings.enabled && hasReader ? createMetricRegistry() : noMetrics,
    export: null,
    leftBehind: false,
    ended(span) {
      if (span.sampled) telemetry.export?.ended(span);
    },
    begin(name, kind, parent, attributes) {
      if (!settings.enabled || telemetry.export === null) return null;
      const traceId = parent?.traceId ?? newTraceId();
      const sampled = telemetry.export.samples(traceId, parent);
      return new Span(name, kind, { ...parent, traceId, sampled }, attributes);
    },
    finish(span, errorType = null) {
      if (span === null || span.endedAt !== null) return;
      span.end(errorType);
      telemetry.ended(span);
    },
    stores: (traceId, failed) =>
      settings.enabled &&
      settings.persistSpans &&
      ((failed && settings.alwaysPersistFailures) || inShare(traceId, settings.successSampleRatio)),
  };
  return telemetry;
};

/** For parts that nobody watches, such as an offline replay. */
export const noTelemetry = (): Telemetry =>
  createTelemetry(
    {
      enabled: false,
      persistSpans: false,
      successSampleRatio: 0,
      alwaysPersistFailures: false,
      maxSpansPerRun: 1,
      recordSensitiveData: false,
      includeAgentVersion: false,
    },
    false,
  );
