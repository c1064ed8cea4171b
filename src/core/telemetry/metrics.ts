import { endsWithin } from '../time-limit.ts';

interface Reading {
  readonly everyMs: number;
  readonly read: () => Promise<void>;
  readAt: number;
  current: Promise<void> | null;
}

const longestWaitMs = 2000;

/** What is read before metrics are collected, such as counts of the store. */
const createReadings = () => {
  const readings: Reading[] = [];
  /** Readers that come meanwhile share the look that is under way. */
  const look = (reading: Reading): Promise<void> => {
    if (reading.current === null && performance.now() - reading.readAt >= reading.everyMs) {
      reading.readAt = performance.now();
      reading.current = reading.read().finally(() => {
        reading.current = null;
      });
    }
    return reading.current ?? Promise.resolve();
  };
  return {
    /** `read` is called when metrics are collected, at most once in `everyMs`. It tells of its own failures. */
    add: (everyMs: number, read: () => Promise<void>): void =>
      void readings.push({ everyMs, read, readAt: Number.NEGATIVE_INFINITY, current: null }),
    /** Reads what is due. Waits no longer than two seconds: a store that hangs must not keep the rest from a reader. */
    refresh: async (): Promise<void> => {
      if (readings.length > 0) await endsWithin(longestWaitMs, Promise.allSettled(readings.map(look)));
    },
  };
};

/** Values of an instrument's attributes, in the order in which it names them. Null is left out. */
export type MetricValues = readonly (string | number | boolean | null)[];

export interface InstrumentSpec {
  readonly description: string;
  /** UCUM: `s`, `By`, or a noun in braces. */
  readonly unit: string;
  readonly attributes: readonly string[];
}

type Declared = [name: string, description: string, unit: string, attributes: readonly string[]];

export interface Counter {
  add(value: number, values: MetricValues): void;
}
export interface Histogram {
  record(value: number, values: MetricValues): void;
}
export interface Observation {
  readonly value: number;
  readonly values: MetricValues;
}

export type MetricKind = 'counter' | 'updown' | 'gauge' | 'histogram';

export interface MetricPoint {
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The sum, or the last value of a gauge; of a histogram the sum of what was recorded. */
  readonly value: number;
  readonly histogram: HistogramState | null;
}

export interface HistogramState {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  /** One more than there are boundaries. */
  readonly buckets: readonly number[];
}

export interface MetricSnapshot {
  readonly name: string;
  readonly kind: MetricKind;
  readonly spec: InstrumentSpec;
  /** Upper bounds of a histogram's buckets. */
  readonly boundaries: readonly number[];
  readonly points: readonly MetricPoint[];
}

export interface MetricRegistry {
  /** False: nothing is counted, so that nothing needs to be looked up or put together for it. */
  readonly counts: boolean;
  counter(...declared: Declared): Counter;
  /** A sum that also falls, such as connections that are open. */
  upDown(...declared: Declared): Counter;
  histogram(...declared: [...Declared, boundaries?: readonly number[]]): Histogram;
  /** Read when metrics are collected. */
  gauge(...declared: [...Declared, observe: () => Iterable<Observation>]): void;
  /** What gauges need of the store, before they are collected; see Readings. */
  beforeCollect(everyMs: number, read: () => Promise<void>): void;
  /** Everything since the start of the process, instruments by name. */
  collect(): readonly MetricSnapshot[];
  /** The same after what has to be read for it was read. */
  gather(): Promise<readonly MetricSnapshot[]>;
}

/** From a cache hit of half a millisecond to the longest model call. Seconds. */
const durationBounds = [0.0005, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

// The default of the OpenTelemetry SDK: what comes beyond it is one series, so that no caller can fill the memory.
const maxSeries = 2000;
const overflow = Object.freeze({ 'otel.metric.overflow': true });

interface Series {
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  value: number;
  count: number;
  min: number;
  max: number;
  readonly buckets: number[];
}

class Instrument implements Counter, Histogram {
  readonly name: string;
  readonly kind: MetricKind;
  readonly spec: InstrumentSpec;
  readonly boundaries: readonly number[];
  readonly observe: (() => Iterable<Observation>) | null;
  readonly #series = new Map<string, Series>();

  constructor(
    name: string,
    kind: MetricKind,
    spec: InstrumentSpec,
    boundaries: readonly number[],
    observe: (() => Iterable<Observation>) | null,
  ) {
    this.name = name;
    this.kind = kind;
    this.spec = spec;
    this.boundaries = boundaries;
    this.observe = observe;
  }

  add(value: number, values: MetricValues): void {
    this.#at(values).value += value;
  }

  record(value: number, values: MetricValues): void {
    const series = this.#at(values);
    series.value += value;
    series.count += 1;
    series.min = Math.min(series.min, value);
    series.max = Math.max(series.max, value);
    let bucket = 0;
    while (bucket < this.boundaries.length && value > (this.boundaries[bucket] ?? 0)) bucket += 1;
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
  }

  snapshot(): MetricSnapshot {
    if (this.observe !== null) {
      this.#series.clear();
      for (const { value, values } of this.observe()) this.#at(values).value = value;
    }
    const points = [...this.#series.values()].map(
      ({ attributes, value, count, min, max, buckets }): MetricPoint => ({
        attributes,
        value,
        histogram: this.kind === 'histogram' ? { count, min, max, buckets: [...buckets] } : null,
      }),
    );
    return { name: this.name, kind: this.kind, spec: this.spec, boundaries: this.boundaries, points };
  }

  #at(values: MetricValues): Series {
    const key = values.join('\u0000');
    return this.#series.get(key) ?? this.#open(key, values);
  }

  #open(key: string, values: MetricValues): Series {
    if (this.#series.size >= maxSeries)
      return this.#series.get('\u0000overflow') ?? this.#make('\u0000overflow', overflow);
    const attributes: Record<string, string | number | boolean> = {};
    for (const [index, name] of this.spec.attributes.entries()) {
      const value = values[index];
      if (value !== null && value !== undefined) attributes[name] = value;
    }
    return this.#make(key, attributes);
  }

  #make(key: string, attributes: Series['attributes']): Series {
    const buckets = this.kind === 'histogram' ? new Array<number>(this.boundaries.length + 1).fill(0) : [];
    const series = {
      attributes,
      value: 0,
      count: 0,
      min: Number.POSITIVE_INFINITY,
      max: Number.NEGATIVE_INFINITY,
      buckets,
    };
    this.#series.set(key, series);
    return series;
  }
}

export const createMetricRegistry = (): MetricRegistry => {
  const instruments = new Map<string, Instrument>();
  const readings = createReadings();
  const collect = (): readonly MetricSnapshot[] =>
    [...instruments.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map((instrument) => instrument.snapshot());
  const register = (
    kind: MetricKind,
    [name, description, unit, attributes]: Declared,
    boundaries: readonly number[] = [],
    observe: (() => Iterable<Observation>) | null = null,
  ): Instrument => {
    if (instruments.has(name)) throw new Error(`Two instruments have the name ${name}.`);
    const instrument = new Instrument(name, kind, { description, unit, attributes }, boundaries, observe);
    instruments.set(name, instrument);
    return instrument;
  };
  return {
    counts: true,
    counter: (...declared) => register('counter', declared),
    upDown: (...declared) => register('updown', declared),
    histogram: (name, description, unit, attributes, boundaries = durationBounds) =>
      register('histogram', [name, description, unit, attributes], boundaries),
    gauge: (name, description, unit, attributes, observe) =>
      void register('gauge', [name, description, unit, attributes], [], observe),
    beforeCollect: readings.add,
    collect,
    async gather() {
      await readings.refresh();
      return collect();
    },
  };
};

const noInstrument = { add: () => undefined, record: () => undefined };

/** Where observability is off: nothing is counted. */
export const noMetrics: MetricRegistry = {
  counts: false,
  counter: () => noInstrument,
  upDown: () => noInstrument,
  histogram: () => noInstrument,
  gauge: () => undefined,
  beforeCollect: () => undefined,
  collect: () => [],
  gather: async () => [],
};
