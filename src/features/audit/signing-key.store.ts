import { defineStore, type StoreOf } from '../../db/define-store.ts';

const table = 'own_secrets';
/** The service's own: no tenant has it. */
const tenantId = '';
const name = 'audit-signing-key';

/** The key that signs exports, where several processes have to have the same one. */
export const signingKeyStore = defineStore(({ db, rows }) => {
  const read = async (): Promise<string | null> => {
    const row = await db
      .selectFrom(table)
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .executeTakeFirst();
    return row === undefined ? null : rows.open(table, tenantId, row).value;
  };
  const remove = async (): Promise<void> => {
    await db.deleteFrom(table).where('tenant_id', '=', tenantId).where('name', '=', name).execute();
  };
  const offer = async (value: string): Promise<string> => {
    const row = rows.seal(table, tenantId, { tenant_id: tenantId, name, value });
    await db
      .insertInto(table)
      .values(row)
      .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doNothing())
      .execute();
    return (await read()) ?? value;
  };
  return {
    read,
    remove,
    /** Stores it unless there is one; the one that is there then. */
    offer,
    /** In a store that nobody serves. */
    async replace(value: string): Promise<void> {
      await remove();
      await offer(value);
    },
  };
});

export type SigningKeys = StoreOf<typeof signingKeyStore>;
