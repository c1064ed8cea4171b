import type { RawValue } from './raw-value.ts';

/** A value in the notation of the file, as `acp config` and the generated pages show it. */
export type Shown = string | number | boolean | null | readonly Shown[];

export interface ParseScope {
  /** Folder that relative paths of this value start from. */
  readonly folder: string;
  /** Reports that `raw` is not `expected`; `suffix` points into a list, such as `:2`. */
  reject(raw: RawValue, expected: string, suffix?: string): undefined;
}

/** How values of one type are read, described and shown. */
export interface ValueKind<T> {
  /** Short form for tables: `int ≥ 1`. */
  readonly label: string;
  /** Long form for messages: `a whole number of at least 1`. */
  readonly expected: string;
  /** True when a list may be given, so that text may be JSON and parts may come by index. */
  readonly takesList: boolean;
  /** Undefined after a rejection. */
  parse(raw: RawValue, scope: ParseScope): T | undefined;
  show(value: T): Shown;
}

type Scalar = string | number | boolean;

interface ScalarKind<T> {
  readonly label: string;
  readonly expected: string;
  /** `typed` is false for text whose type is still open. Undefined: not of this kind. */
  read(value: Scalar, typed: boolean, folder: string): T | undefined;
  show?(value: T): Shown;
}

/** A kind whose values are single scalars. */
export const scalarKind = <T>(kind: ScalarKind<T>): ValueKind<T> => ({
  label: kind.label,
  expected: kind.expected,
  takesList: false,
  parse(raw, scope) {
    const value =
      raw.kind === 'scalar' && raw.value !== null ? kind.read(raw.value, raw.typed, scope.folder) : undefined;
    return value === undefined ? scope.reject(raw, kind.expected) : value;
  },
  show: kind.show ?? ((value) => (typeof value === 'object' ? JSON.stringify(value) : (value as Shown))),
});

/** Null, or empty text from a variable, a flag or a reference, stands for no value. */
export const nullable = <T>(inner: ValueKind<T>): ValueKind<T | null> => ({
  label: `${inner.label} or null`,
  expected: `${inner.expected}, or null`,
  takesList: inner.takesList,
  parse(raw, scope) {
    if (raw.kind === 'scalar' && (raw.value === null || (raw.value === '' && !raw.typed))) return null;
    return inner.parse(raw, scope);
  },
  show: (value) => (value === null ? null : inner.show(value)),
});

interface ListLimits {
  readonly max?: number;
  /** No two entries may be equal. */
  readonly unique?: boolean;
}

export const listOf = <T>(item: ValueKind<T>, limits: ListLimits = {}): ValueKind<readonly T[]> => {
  const most = limits.max === undefined ? '' : ` of at most ${limits.max}`;
  const expected = `a list${most}, each entry ${item.expected}`;
  return {
    label: `list of ${item.label}`,
    expected,
    takesList: true,
    parse(raw, scope) {
      if (raw.kind !== 'list' || (limits.max !== undefined && raw.items.length > limits.max))
        return scope.reject(raw, expected);
      const values: T[] = [];
      let failed = false;
      for (const [index, entry] of raw.items.entries()) {
        const suffix = `:${index}`;
        const value = item.parse(entry, {
          folder: scope.folder,
          reject: (part, wanted, deeper = '') => scope.reject(part, wanted, suffix + deeper),
        });
        if (value === undefined) failed = true;
        else if (limits.unique === true && values.includes(value)) {
          failed = true;
          scope.reject(entry, `${item.expected} that is not in the list yet`, suffix);
        } else values.push(value);
      }
      return failed ? undefined : values;
    },
    show: (values) => values.map((value) => item.show(value)),
  };
};

/** One of a fixed set, written in any case. */
export const oneOf = <const T extends string>(options: readonly T[]): ValueKind<T> => {
  const byName = new Map(options.map((option) => [option.toLowerCase(), option]));
  return scalarKind({
    label: options.join(', '),
    expected: `one of ${options.join(', ')}`,
    read: (value) => (typeof value === 'string' ? byName.get(value.trim().toLowerCase()) : undefined),
  });
};

/** Several of a fixed set, as a list or separated by commas. `None` is the empty set, `All` every option. */
export const someOf = <const T extends string>(options: readonly T[]): ValueKind<readonly T[]> => {
  const expected = `None, All, or some of ${options.join(', ')}`;
  const byName = new Map<string, readonly T[]>([
    ['none', []],
    ['all', options],
    ...options.map((option): [string, readonly T[]] => [option.toLowerCase(), [option]]),
  ]);
  return {
    label: `None, ${options.join(', ')}, All; combinable`,
    expected,
    takesList: true,
    parse(raw, scope) {
      const parts = raw.kind === 'list' ? raw.items : [raw];
      const names = parts.flatMap((part) =>
        part.kind === 'scalar' && typeof part.value === 'string' ? part.value.split(',') : [''],
      );
      const groups = names.map((name) => byName.get(name.trim().toLowerCase()));
      if (raw.kind === 'map' || groups.includes(undefined)) return scope.reject(raw, expected);
      const chosen = new Set(groups.flatMap((group) => group ?? []));
      return options.filter((option) => chosen.has(option));
    },
    show: (values) => (values.length === 0 ? 'None' : values.length === options.length ? 'All' : [...values]),
  };
};

/** A key that exists only in a program that mounts the service; no text can stand for its value. */
export const codeOnly = (): ValueKind<null> => {
  const expected = 'no value: only a program that mounts the service can set it';
  return {
    label: '–',
    expected,
    takesList: false,
    parse: (raw, scope) => (raw.kind === 'scalar' && raw.value === null ? null : scope.reject(raw, expected)),
    show: () => null,
  };
};
