import type { SpanExport } from '../../core/telemetry/telemetry.ts';
import { endsWithin } from '../../core/time-limit.ts';
import type { PipelineOptions } from './otlp-pipelines.ts';
import type { LogEntry } from './otlp-records.ts';
import { exportSampler, numberOf, otlpSignals } from './otlp-settings.ts';

/** What takes traces, metrics and logs out of the process over OTLP/HTTP. */
export interface OtlpExport {
  /** Null: this signal is not exported. */
  readonly spans: SpanExport | null;
  readonly log: ((entry: LogEntry) => void) | null;
  /** Sends what is waiting; takes at most five seconds. False: it was not done by then, and still holds sockets and timers. */
  close(): Promise<boolean>;
}

export interface OtlpDeps extends Omit<PipelineOptions, 'signals' | 'metricIntervalMs'> {
  readonly env: Readonly<Record<string, string | undefined>>;
}

// OBS-26: a receiver that hangs must not hold up the end of the process.
const flushMs = 5000;

/** Null without an endpoint in the environment; the OpenTelemetry libraries are loaded only with one. */
export const createOtlpExport = async (deps: OtlpDeps): Promise<OtlpExport | null> => {
  const { env } = deps;
  const signals = otlpSignals(env);
  if (!signals.traces && !signals.metrics && !signals.logs) return null;
  const { openPipelines } = await import('./otlp-pipelines.ts');
  const metricIntervalMs = numberOf(env, 'OTEL_METRIC_EXPORT_INTERVAL', 60_000);
  const pipelines = openPipelines({ ...deps, signals, metricIntervalMs });
  const samples = exportSampler(env);
  return {
    spans: pipelines.span === null ? null : { samples, ended: pipelines.span },
    log: pipelines.log,
    close: () => endsWithin(flushMs, pipelines.close()),
  };
};
