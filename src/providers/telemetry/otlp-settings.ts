import { inShare, type TraceParent } from '../../core/telemetry/trace-context.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What leaves the process, by the standard `OTEL_*` variables. */
export interface OtlpSignals {
  readonly traces: boolean;
  readonly metrics: boolean;
  readonly logs: boolean;
}

const isSet = (value: string | undefined): boolean => value !== undefined && value.trim() !== '';

/** A signal is exported when there is an endpoint for it and no variable says otherwise. */
export const otlpSignals = (env: Environment): OtlpSignals => {
  const isOff = env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true';
  const signal = (name: 'TRACES' | 'METRICS' | 'LOGS'): boolean =>
    !isOff &&
    (isSet(env['OTEL_EXPORTER_OTLP_ENDPOINT']) || isSet(env[`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`])) &&
    (env[`OTEL_${name}_EXPORTER`] ?? 'otlp').split(',').some((exporter) => exporter.trim() === 'otlp');
  return { traces: signal('TRACES'), metrics: signal('METRICS'), logs: signal('LOGS') };
};

/** A number of a variable; the default for one that is none. */
export const numberOf = (env: Environment, name: string, fallback: number): number => {
  const value = Number(env[name] ?? '');
  return isSet(env[name]) && Number.isFinite(value) && value >= 0 ? value : fallback;
};

/** `OTEL_TRACES_SAMPLER` and its argument; the standard's default follows the caller, and takes what begins here. */
export const exportSampler = (env: Environment): ((traceId: string, parent: TraceParent | null) => boolean) => {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || 'parentbased_always_on';
  const ratio = Math.min(numberOf(env, 'OTEL_TRACES_SAMPLER_ARG', 1), 1);
  const roots = (traceId: string): boolean =>
    name.endsWith('always_off') ? false : name.endsWith('traceidratio') ? inShare(traceId, ratio) : true;
  return name.startsWith('parentbased_')
    ? (traceId, parent) => parent?.sampled ?? roots(traceId)
    : (traceId) => roots(traceId);
};
