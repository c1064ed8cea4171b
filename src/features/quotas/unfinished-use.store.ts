import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { Storage } from '../../db/storage.ts';
import { type QuotaUse, quotaUse } from '../../engine/control/index.ts';
import type { StoredTurn } from '../../engine/record/index.ts';
import type { CountedRoot } from './counted-roots.ts';

/** Turns that have not finished, as far as they are stored. */
export interface StoredTurns {
  turn(tenantId: string, runId: string): Promise<{ readonly turn: Pick<StoredTurn, 'usage' | 'cost'> } | null>;
}

export interface RunInProgress {
  readonly runId: string;
  readonly root: CountedRoot;
  readonly use: QuotaUse;
}

/** What runs have used that are not over: no counter has it before they are. */
export interface UnfinishedUse {
  /** Of all tenants, as far as the steps of their turns tell. */
  unfinished(): Promise<readonly RunInProgress[]>;
  /** Those of these runs that are in line or executing. */
  openAmong(tenantId: string, runIds: readonly string[]): Promise<ReadonlySet<string>>;
}

const open = ['Queued', 'Running'] as const;

export const createUnfinishedUse = (storage: Storage, turns: StoredTurns): UnfinishedUse => {
  const stepsUse = async (tenantId: string, runId: string): Promise<QuotaUse> => {
    try {
      const stored = await turns.turn(tenantId, runId);
      return quotaUse(stored?.turn.usage?.totalTokens, stored?.turn.cost ?? null);
    } catch (error) {
      // Nobody goes on with a turn that cannot be decrypted.
      if (isDecryptionFailure(error)) return quotaUse(null, null);
      throw error;
    }
  };
  return {
    async unfinished() {
      const rows = await storage.db
        .selectFrom('runs')
        .select(['id', 'tenant_id', 'agent_name', 'quota_day'])
        .where('status', 'in', open)
        .where('quota_day', 'is not', null)
        .where((eb) =>
          eb.exists(eb.selectFrom('run_steps').select('sequence').whereRef('run_steps.run_id', '=', 'runs.id')),
        )
        .execute();
      const found: RunInProgress[] = [];
      for (const { id, tenant_id: tenantId, agent_name: agentName, quota_day: day } of rows) {
        const use = await stepsUse(tenantId, id);
        if (day !== null && (use.tokens > 0 || use.costMicros > 0))
          found.push({ runId: id, root: { tenantId, agentName, day }, use });
      }
      return found;
    },
    async openAmong(tenantId, runIds) {
      const rows = await storage.db
        .selectFrom('runs')
        .select('id')
        .where('tenant_id', '=', tenantId)
        .where('id', 'in', runIds)
        .where('status', 'in', open)
        .execute();
      return new Set(rows.map(({ id }) => id));
    },
  };
};
