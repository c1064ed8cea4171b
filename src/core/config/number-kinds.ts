import { formatDuration, longestTimerMs, parseDuration } from './duration.ts';
import { scalarKind, type ValueKind } from './value-kind.ts';

interface Range {
  readonly min?: number;
  readonly max?: number;
}

const within = (value: number, { min = -Infinity, max = Infinity }: Range): boolean => value >= min && value <= max;

const rangeLabel = ({ min, max }: Range): string => {
  if (min !== undefined && max !== undefined) return ` ${min}..${max}`;
  return min === undefined ? (max === undefined ? '' : ` ≤ ${max}`) : ` ≥ ${min}`;
};

const rangeText = ({ min, max }: Range): string => {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  return min === undefined ? (max === undefined ? '' : ` of at most ${max}`) : ` of at least ${min}`;
};

const toNumber = (value: string | number | boolean, typed: boolean, pattern: RegExp): number | undefined => {
  if (typed) return typeof value === 'number' ? value : undefined;
  return typeof value === 'string' && pattern.test(value.trim()) ? Number(value) : undefined;
};

const integer = /^[+-]?\d+$/;
const decimalForm = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

export const int = (range: Range = {}): ValueKind<number> =>
  scalarKind({
    label: `int${rangeLabel(range)}`,
    expected: `a whole number${rangeText(range)}`,
    read(value, typed) {
      const number = toNumber(value, typed, integer);
      return number !== undefined && Number.isSafeInteger(number) && within(number, range) ? number : undefined;
    },
  });

/** Whole bytes, without a unit. */
export const bytes = (range: Range = { min: 0 }): ValueKind<number> => {
  const whole = int(range);
  return {
    ...whole,
    label: range.max === undefined ? 'bytes' : `bytes${rangeLabel(range)}`,
    expected: `${whole.expected} (bytes, no unit)`,
    parse: (raw, scope) =>
      whole.parse(raw, {
        ...scope,
        reject: (part, expected, suffix) => scope.reject(part, `${expected} (bytes, no unit)`, suffix),
      }),
  };
};

export const decimal = (range: Range = {}): ValueKind<number> =>
  scalarKind({
    label: `decimal${rangeLabel(range)}`,
    expected: `a number${rangeText(range)}`,
    read(value, typed) {
      const number = toNumber(value, typed, decimalForm);
      return number !== undefined && Number.isFinite(number) && within(number, range) ? number : undefined;
    },
  });

/** A share from 0 to 1. */
export const ratio = (options: { readonly belowOne?: boolean } = {}): ValueKind<number> => {
  const open = options.belowOne === true;
  return scalarKind({
    label: open ? 'ratio below 1' : 'ratio',
    expected: open ? 'a number from 0 to below 1' : 'a number from 0 to 1',
    read(value, typed) {
      const number = toNumber(value, typed, decimalForm);
      return number !== undefined && within(number, { min: 0, max: 1 }) && !(open && number === 1) ? number : undefined;
    },
  });
};

export const bool = (): ValueKind<boolean> =>
  scalarKind({
    label: 'bool',
    expected: 'true or false',
    read(value) {
      if (typeof value === 'boolean') return value;
      const text = typeof value === 'string' ? value.trim().toLowerCase() : '';
      return text === 'true' ? true : text === 'false' ? false : undefined;
    },
  });

const dayMs = 86_400_000;

interface DurationLimits {
  /** Shortest value in milliseconds; without it any positive one. */
  readonly min?: number;
  readonly zero?: boolean;
  readonly max?: number;
}

const durationKind = (limits: DurationLimits): ValueKind<number> => {
  const lowest = limits.min ?? (limits.zero === true ? 0 : 1);
  const floor = limits.min === undefined ? '' : ` of at least ${formatDuration(limits.min)}`;
  const ceiling = limits.max === undefined ? '' : `, at most ${Math.floor(limits.max / dayMs)} days`;
  const zero = limits.zero === true ? ', 0s allowed' : '';
  return scalarKind({
    label: `duration${limits.min === undefined ? '' : ` ≥ ${formatDuration(limits.min)}`}${zero}`,
    expected: `a duration${floor} such as 250ms, 30s, 1h30m, 2d, PT30S or 00:00:30${zero}${ceiling}`,
    read(value) {
      const ms = typeof value === 'string' ? parseDuration(value) : undefined;
      return ms !== undefined && within(ms, { min: lowest, max: limits.max ?? Infinity }) ? ms : undefined;
    },
    show: formatDuration,
  });
};

/** Milliseconds that a timer waits. */
export const duration = (limits: Omit<DurationLimits, 'max'> = {}): ValueKind<number> =>
  durationKind({ ...limits, max: longestTimerMs });

/** Milliseconds that are compared with stored times and never waited for, so weeks and months are fine. */
export const age = (limits: Pick<DurationLimits, 'min' | 'max'> = {}): ValueKind<number> => durationKind(limits);
