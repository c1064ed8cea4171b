import type { RetentionPolicyRow } from '../../db/tables/retention.ts';
import { type RetentionTarget, retentionTargets } from './retention.schema.ts';

/** The policy in force for a target of a tenant; both limits null: nothing is removed. */
export interface EffectivePolicy {
  readonly source: 'Stored' | 'Configuration' | 'None';
  readonly maxAgeDays: number | null;
  readonly maxRows: number | null;
  readonly archive: boolean;
  readonly enabled: boolean;
}

/** The defaults of a host, as `Service:Retention` has them. */
export interface RetentionDefaults {
  readonly enabled: boolean;
  readonly targets: Readonly<
    Partial<Record<RetentionTarget, Pick<EffectivePolicy, 'maxAgeDays' | 'maxRows' | 'archive'>>>
  >;
}

export type Policies = ReadonlyMap<RetentionTarget, EffectivePolicy>;

/** Nothing is removed. */
export const noPolicy: EffectivePolicy = {
  source: 'None',
  maxAgeDays: null,
  maxRows: null,
  archive: false,
  enabled: false,
};

const fromRow = (row: RetentionPolicyRow): EffectivePolicy => ({
  source: 'Stored',
  maxAgeDays: row.max_age_days,
  maxRows: row.max_rows,
  archive: row.archive === 1,
  enabled: row.enabled === 1,
});

/** A stored policy replaces the default of its target as a whole; defaults count while retention is on. */
export const effectivePolicies = (rows: readonly RetentionPolicyRow[], defaults: RetentionDefaults): Policies => {
  const stored = new Map(rows.map((row) => [row.target, row]));
  return new Map(
    retentionTargets.map((target) => {
      const row = stored.get(target);
      if (row !== undefined) return [target, fromRow(row)];
      const fallback = defaults.enabled ? defaults.targets[target] : undefined;
      if (fallback === undefined || (fallback.maxAgeDays === null && fallback.maxRows === null))
        return [target, noPolicy];
      return [target, { source: 'Configuration', enabled: true, ...fallback }];
    }),
  );
};

const byName = new Map(retentionTargets.map((target) => [target.toLowerCase(), target]));

/** In any case; undefined: there is no such target. */
export const targetOf = (name: string): RetentionTarget | undefined => byName.get(name.toLowerCase());

const dayMs = 86_400_000;

/** Epoch milliseconds; what is older goes. Null without an age rule. */
export const cutoffOf = ({ maxAgeDays }: Pick<EffectivePolicy, 'maxAgeDays'>, now: number): number | null =>
  maxAgeDays === null ? null : now - maxAgeDays * dayMs;
