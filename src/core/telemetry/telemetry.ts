import { createMetricRegistry, type MetricRegistry, noMetrics } from './metrics.ts';
import type { Span } from './span.ts';
import { inShare, type TraceParent } from './trace-context.ts';

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

/** What the parts of the service report their work to. */
export interface Telemetry {
  readonly settings: TelemetrySettings;
  readonly metrics: MetricRegistry;
  /** Null: nothing is exported. Set once, before the first request. */
  export: SpanExport | null;
  /** A span that has ended. */
  ended(span: Span): void;
  /** Whether the trace of a root that closed is stored. */
  stores(traceId: string, failed: boolean): boolean;
}

/** `hasReader`: somebody can ask for the metrics or is sent them. Without one nothing is counted. */
export const createTelemetry = (settings: TelemetrySettings, hasReader: boolean): Telemetry => {
  const stores = (traceId: string, failed: boolean): boolean =>
    settings.enabled &&
    settings.persistSpans &&
    ((failed && settings.alwaysPersistFailures) || inShare(traceId, settings.successSampleRatio));
  const telemetry: Telemetry = {
    settings,
    metrics: settings.enabled && hasReader ? createMetricRegistry() : noMetrics,
    export: null,
    ended(span) {
      if (span.sampled) telemetry.export?.ended(span);
    },
    stores,
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
