import type { InstanceState } from '../../core/instance-state.ts';
import type { ModelHealthRow } from '../../db/tables/model-health.ts';
import type { ModelHealthStore } from './model-health.store.ts';
import type { ModelProviderHealth } from './models.schema.ts';

/** What a provider answered when it was last asked, without what the circuit says at the moment. */
export interface HealthResult {
  readonly providerName: string;
  readonly status: ModelProviderHealth['status'];
  readonly detail: string | null;
  readonly latencyMs: number;
  readonly models: readonly string[];
  /** Epoch milliseconds, when the question began and when it was answered. */
  readonly askedAt: number;
  readonly checkedAt: number;
}

export interface HealthResultsDeps {
  readonly state: Pick<InstanceState, 'table'>;
  readonly store: ModelHealthStore;
  /** True: other processes ask as well, and each tells what any of them met last. */
  readonly isShared: boolean;
  readonly now: () => number;
  /** How long a result counts as the last known one that may be of a process which is gone. */
  readonly countsMs: number;
}

const rowOf = ({ providerName, latencyMs, askedAt, checkedAt, models, ...result }: HealthResult): ModelHealthRow => ({
  ...result,
  provider_name: providerName,
  latency_ms: latencyMs,
  models: JSON.stringify(models),
  asked_at: askedAt,
  checked_at: checkedAt,
});

const resultOf = (row: ModelHealthRow): HealthResult => ({
  providerName: row.provider_name,
  status: row.status as HealthResult['status'],
  detail: row.detail,
  latencyMs: row.latency_ms,
  models: JSON.parse(row.models) as string[],
  askedAt: row.asked_at,
  checkedAt: row.checked_at,
});

/**
 * The last result for each provider: in memory alone where this process has the store to itself, else in a table that
 * every process reads.
 */
export const createHealthResults = ({ state, store, isShared, now, countsMs }: HealthResultsDeps) => {
  const table = state.table<HealthResult>('modelHealth', {
    read: async () => (isShared ? (await store.all()).map(resultOf) : []),
    keyOf: ({ providerName }) => providerName,
  });

  return {
    /** Undefined: nobody has asked, or too long ago, or it cannot be read what others have met; see `isUnread`. */
    of(providerName: string): HealthResult | undefined {
      if (table.isStale()) return undefined;
      const result = table.rows.get(providerName);
      return isShared && result !== undefined && now() - result.checkedAt >= countsMs ? undefined : result;
    },
    /** True: what others have met could not be read in time. */
    isUnread: table.isStale,
    /** Reads what is too old to be told. Does not reject: what cannot be read is told as such. */
    upToDate: async (): Promise<void> => table.current()?.catch(() => undefined),
    /** Resolves with what anybody has met by now; rejects where that cannot be read. */
    refresh: table.refresh,
    /** Resolves once everybody can read it, or what somebody else has asked for later. Rejects where it cannot be written. */
    async put(result: HealthResult): Promise<void> {
      if (!isShared || (await store.save(rowOf(result)))) table.put(result);
      else await table.refresh();
    },
  };
};

export type HealthResults = ReturnType<typeof createHealthResults>;
