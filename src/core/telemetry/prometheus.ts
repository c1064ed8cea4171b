import type { MetricPoint, MetricSnapshot } from './metrics.ts';

/** Media type of the text format, version 0.0.4. */
export const prometheusType = 'text/plain; version=0.0.4; charset=utf-8';

const nameOf = (text: string): string => text.replace(/[^a-zA-Z0-9_:]/g, '_');

const units: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes' };

/** The name as OpenTelemetry's own exporters for Prometheus make it: unit and `_total` at its end. */
const metricName = ({ name, kind, spec }: MetricSnapshot): string => {
  const unit = units[spec.unit];
  const base = nameOf(name) + (unit === undefined ? '' : `_${unit}`);
  return kind === 'counter' ? `${base}_total` : base;
};

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');

const labels = (attributes: MetricPoint['attributes'], more: readonly string[] = []): string => {
  const pairs = Object.entries(attributes).map(
    ([name, value]) => `${nameOf(name)}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  const all = [...pairs, ...more];
  return all.length === 0 ? '' : `{${all.join(',')}}`;
};

const histogramLines = (name: string, boundaries: readonly number[], { attributes, value, histogram }: MetricPoint) => {
  if (histogram === null) return [];
  let below = 0;
  const buckets = boundaries.map((bound, index) => {
    below += histogram.buckets[index] ?? 0;
    return `${name}_bucket${labels(attributes, [`le="${bound}"`])} ${below}`;
  });
  return [
    ...buckets,
    `${name}_bucket${labels(attributes, ['le="+Inf"'])} ${histogram.count}`,
    `${name}_sum${labels(attributes)} ${value}`,
    `${name}_count${labels(attributes)} ${histogram.count}`,
  ];
};

/** Metrics in the text exposition format of Prometheus. Instruments that have nothing yet are left out. */
export const prometheusText = (metrics: readonly MetricSnapshot[]): string =>
  metrics
    .filter(({ points }) => points.length > 0)
    .flatMap((metric) => {
      const name = metricName(metric);
      const type = metric.kind === 'counter' ? 'counter' : metric.kind === 'histogram' ? 'histogram' : 'gauge';
      const lines = metric.points.flatMap((point) =>
        metric.kind === 'histogram'
          ? histogramLines(name, metric.boundaries, point)
          : [`${name}${labels(point.attributes)} ${point.value}`],
      );
      return [`# HELP ${name} ${escaped(metric.spec.description)}`, `# TYPE ${name} ${type}`, ...lines];
    })
    .map((line) => `${line}\n`)
    .join('');
