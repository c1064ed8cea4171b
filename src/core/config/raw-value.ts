/** Where a setting comes from. `line` counts from 1. */
export type ConfigSource =
  | { readonly kind: 'default' }
  | { readonly kind: 'file'; readonly file: string; readonly line: number }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'flag'; readonly name: string };

export const defaultSource: ConfigSource = { kind: 'default' };

/** A given value before its key's type is applied, with its place. */
export type RawValue = RawScalar | RawList | RawMap;

export interface RawScalar {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** True for YAML and JSON scalars; false for text that the key's type still has to read. */
  readonly typed: boolean;
  /** True for text that came through a reference: it is never quoted in a message. */
  readonly hidden: boolean;
  readonly source: ConfigSource;
}

export interface RawList {
  readonly kind: 'list';
  readonly items: readonly RawValue[];
  readonly source: ConfigSource;
}

export interface RawMap {
  readonly kind: 'map';
  readonly entries: readonly RawEntry[];
  /** Names of different sources that have one id are the same; absent: only equal names are. */
  readonly idOf?: (name: string) => string;
  readonly source: ConfigSource;
}

export interface RawEntry {
  readonly name: string;
  readonly value: RawValue;
  /** Place of the name, which may stand lines before its value. */
  readonly source: ConfigSource;
}

/** Text of a variable or a flag. */
export const rawText = (value: string, source: ConfigSource): RawScalar => ({
  kind: 'scalar',
  value,
  typed: false,
  hidden: false,
  source,
});

/** A parsed scalar; what is no number, boolean or null counts as text. */
export const rawScalar = (value: unknown, source: ConfigSource): RawScalar => {
  const scalar = typeof value === 'number' || typeof value === 'boolean' || value === null ? value : String(value);
  return { kind: 'scalar', value: scalar, typed: true, hidden: false, source };
};

/** A parsed JSON value; every part has the source of the whole. */
export const rawFromJson = (value: unknown, source: ConfigSource): RawValue => {
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => rawFromJson(item, source)), source };
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, item]) => ({ name, value: rawFromJson(item, source), source }));
    return { kind: 'map', entries, source };
  }
  return rawScalar(value, source);
};

/** The higher source wins; maps are joined by name, lists and single values are replaced whole. */
export const mergeRaw = (lower: RawValue, higher: RawValue): RawValue => {
  if (lower.kind !== 'map' || higher.kind !== 'map') return higher;
  const idOf = ({ name }: RawEntry): string => higher.idOf?.(name) ?? name;
  const merged = new Map(lower.entries.map((entry) => [idOf(entry), entry]));
  for (const entry of higher.entries) {
    const below = merged.get(idOf(entry));
    merged.set(idOf(entry), below === undefined ? entry : { ...entry, value: mergeRaw(below.value, entry.value) });
  }
  return { ...higher, entries: [...merged.values()] };
};

/** How a source is named in reports: `service.yaml:12`, `variable Service__X`, `--set Service:X`. */
export const describeSource = (source: ConfigSource): string => {
  switch (source.kind) {
    case 'default':
      return 'default';
    case 'file':
      return `${source.file}:${source.line}`;
    case 'variable':
      return `variable ${source.name}`;
    case 'flag':
      return source.name;
  }
};
