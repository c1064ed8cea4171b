import type { FieldError } from '../../contract/errors.ts';

/** A kind of job that schedules can start. */
export interface SchedulableKey {
  readonly key: string;
  /** `None`: its handler knows by itself what to do. */
  readonly payload: 'Required' | 'Any' | 'None';
  /** The target as it is stored; null: there is none of this name. */
  target(tenantId: string, name: string): Promise<string | null>;
  /** What is wrong with an item, by paths in it. */
  itemErrors?(item: unknown): readonly FieldError[];
}

export interface ScheduleKeys {
  /** Sorted. */
  readonly list: readonly string[];
  get(key: string): SchedulableKey | undefined;
}

export class UnknownKeysError extends Error {
  readonly keys: readonly string[];

  constructor(keys: readonly string[]) {
    super(`No handler of jobs is registered for ${keys.join(', ')}.`);
    this.name = 'UnknownKeysError';
    this.keys = keys;
  }
}

/**
 * The keys that schedules may name: those that are stated, else all that offer themselves. Throws UnknownKeysError for a
 * stated one that no schedule could start.
 */
export const createScheduleKeys = (
  registered: readonly (SchedulableKey & { readonly isOffered: boolean })[],
  stated: readonly string[] | null,
): ScheduleKeys => {
  const byKey = new Map(registered.map((entry) => [entry.key, entry]));
  const unknown = (stated ?? []).filter((key) => !byKey.has(key));
  if (unknown.length > 0) throw new UnknownKeysError(unknown);
  const list = (stated ?? registered.filter(({ isOffered }) => isOffered).map(({ key }) => key)).toSorted();
  const allowed = new Set(list);
  return { list, get: (key) => (allowed.has(key) ? byKey.get(key) : undefined) };
};
