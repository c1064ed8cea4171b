import { DiagLogLevel, diag } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor } from '@opentelemetry/sdk-logs';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace';
import type { MetricSnapshot } from '../../core/telemetry/metrics.ts';
import type { Span } from '../../core/telemetry/span.ts';
import { type LogEntry, logRecord, metricData, type Origin, readableSpan } from './otlp-records.ts';
import type { OtlpSignals } from './otlp-settings.ts';

/*
 * The only file that loads the OpenTelemetry libraries, and itself loaded only where something is exported. They batch,
 * encode, send and retry, and read the OTEL_* variables about endpoints, headers, compression and timeouts; what is
 * measured, and how traces hang together, is our own.
 */

export interface PipelineOptions {
  readonly signals: OtlpSignals;
  readonly version: string;
  readonly instanceId: string;
  readonly metricIntervalMs: number;
  collect(): Promise<readonly MetricSnapshot[]>;
  /** Where the exporter's own troubles go. Not exported, or each would lead to the next. */
  readonly problem: (message: string) => void;
}

const originOf = ({ version, instanceId }: PipelineOptions): Origin => ({
  scope: { name: 'acp', version },
  resource: resourceFromAttributes({
    'service.name': 'acp',
    'service.version': version,
    'service.instance.id': instanceId,
  }).merge(detectResources({ detectors: [envDetector] })),
});

const metricReader = (options: PipelineOptions, { resource, scope }: Origin): PeriodicExportingMetricReader => {
  const startedAt = Date.now();
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(),
    exportIntervalMillis: options.metricIntervalMs,
    exportTimeoutMillis: Math.min(options.metricIntervalMs, 30_000),
  });
  reader.setMetricProducer({
    async collect() {
      const snapshots = await options.collect();
      const now = Date.now();
      const metrics = snapshots.map((metric) => metricData(metric, startedAt, now));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  });
  return reader;
};

const spanPipeline = (origin: Origin) => {
  const processor = new BatchSpanProcessor({ exporter: new OTLPTraceExporter() });
  return { processor, take: (span: Span): void => processor.onEnd(readableSpan(span, origin)) };
};

const logPipeline = (origin: Origin) => {
  const processor = new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() });
  return {
    processor,
    // The batch hands records on as they are and asks for none of the setters that its type has.
    take: (entry: LogEntry): void =>
      processor.onEmit(logRecord(entry, origin, Date.now()) as Parameters<typeof processor.onEmit>[0]),
  };
};

export const openPipelines = (options: PipelineOptions) => {
  const { signals, problem } = options;
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: problem, warn: problem, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const origin = originOf(options);
  const spans = signals.traces ? spanPipeline(origin) : null;
  const logs = signals.logs ? logPipeline(origin) : null;
  const reader = signals.metrics ? metricReader(options, origin) : null;
  return {
    span: spans?.take ?? null,
    log: logs?.take ?? null,
    async close(): Promise<void> {
      await Promise.allSettled([spans?.processor.shutdown(), logs?.processor.shutdown(), reader?.shutdown()]);
    },
  };
};
