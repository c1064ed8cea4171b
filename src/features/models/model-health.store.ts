import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { ModelHealthRow } from '../../db/tables/model-health.ts';

export const modelHealthStore = defineStore((storage) => ({
  all: (): Promise<readonly ModelHealthRow[]> => storage.db.selectFrom('model_health').selectAll().execute(),
  /** False: another result is there, which was asked for later, and stays. */
  async save(row: ModelHealthRow): Promise<boolean> {
    const { provider_name: _, ...result } = row;
    const saved = await storage.db
      .insertInto('model_health')
      .values(row)
      .onConflict((conflict) =>
        conflict.column('provider_name').doUpdateSet(result).where('model_health.asked_at', '<=', row.asked_at),
      )
      .returning('provider_name')
      .executeTakeFirst();
    return saved !== undefined;
  },
}));

export type ModelHealthStore = StoreOf<typeof modelHealthStore>;
