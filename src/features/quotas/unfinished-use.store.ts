import { isDecryptionFailure } from '../../core/content-cipher.ts';
import { defineStore } from '../../db/define-store.ts';
import { type QuotaUse, quotaUse } from '../../engine/control/index.ts';
import type { StoredTurn } from '../../engine/record/index.ts';
import type { QuotaHold } from './quota-holds.store.ts';

/** Turns that have not finished, as far as they are stored. */
export interface StoredTurns {
  turn(tenantId: string, runId: string): Promise<{ readonly turn: Pick<StoredTurn, 'usage' | 'cost'> } | null>;
}

const spentBy = async (turns: StoredTurns, tenantId: string, runId: string): Promise<QuotaUse> => {
  try {
    const stored = await turns.turn(tenantId, runId);
    return quotaUse(stored?.turn.usage?.totalTokens, stored?.turn.cost ?? null);
  } catch (error) {
    // Nobody goes on with a turn that cannot be decrypted.
    if (isDecryptionFailure(error)) return quotaUse(null, null);
    throw error;
  }
};

/** What runs of all tenants have used that are not over, as far as the steps of their turns tell. */
export const unfinishedUse = defineStore(
  (storage) =>
    async (turns: StoredTurns): Promise<readonly Pick<QuotaHold, 'runId' | 'root' | 'spent'>[]> => {
      const rows = await storage.db
        .selectFrom('runs')
        .select(['id', 'tenant_id', 'agent_name', 'quota_day'])
        .where('status', 'in', ['Queued', 'Running'])
        .where('quota_day', 'is not', null)
        .where((eb) =>
          eb.exists(eb.selectFrom('run_steps').select('sequence').whereRef('run_steps.run_id', '=', 'runs.id')),
        )
        .execute();
      return Promise.all(
        rows.map(async ({ id, tenant_id: tenantId, agent_name: agentName, quota_day: day }) => ({
          runId: id,
          root: { tenantId, agentName, day: day ?? '' },
          spent: await spentBy(turns, tenantId, id),
        })),
      );
    },
);
