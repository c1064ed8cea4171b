import { defineStore, deletesRow, type StoreOf } from '../../../db/define-store.ts';

/** A grant as it is stored: opened. */
export interface StoredGrant {
  readonly tenantId: string;
  readonly serverId: string;
  readonly binding: string;
  /** Grows with each change. */
  readonly version: number;
  readonly value: string;
}

export interface GrantClaim extends StoredGrant {
  readonly claimId: string;
}

export interface StoredConsent {
  readonly stateHash: string;
  readonly tenantId: string;
  readonly value: string;
  readonly expiresAt: number;
}

const grants = 'mcp_grants';
const consents = 'mcp_consents';
const free = { claim_id: null, claimed_until: null } as const;

/** What people have granted at MCP servers, and what they are asked for; both as content is kept. */
export const mcpGrantStore = defineStore(({ db, rows }) => {
  const ofClaim = ({ tenantId, serverId, claimId }: GrantClaim) =>
    db
      .updateTable(grants)
      .where('tenant_id', '=', tenantId)
      .where('server_id', '=', serverId)
      .where('claim_id', '=', claimId);
  const sealed = (tenantId: string, serverId: string, value: string): string =>
    rows.seal(grants, tenantId, { server_id: serverId, value }).value;

  const find = async (tenantId: string, serverId: string): Promise<StoredGrant | null> => {
    const row = await db
      .selectFrom(grants)
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('server_id', '=', serverId)
      .executeTakeFirst();
    if (row === undefined) return null;
    const { binding, version, value } = rows.open(grants, tenantId, row);
    return { tenantId, serverId, binding, version, value };
  };

  return {
    find,
    async save({ tenantId, serverId, binding, value }: Omit<StoredGrant, 'version'>, updatedAt: number): Promise<void> {
      const changed = { binding, value: sealed(tenantId, serverId, value), updated_at: updatedAt, ...free };
      await db
        .insertInto(grants)
        .values({ tenant_id: tenantId, server_id: serverId, version: 1, ...changed })
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'server_id'])
            .doUpdateSet((eb) => ({ ...changed, version: eb(`${grants}.version`, '+', 1) })),
        )
        .execute();
    },
    /** The row of a grant that is kept elsewhere, for its claims: it has no value of its own. */
    async place(tenantId: string, serverId: string, updatedAt: number): Promise<StoredGrant | null> {
      const value = sealed(tenantId, serverId, 'null');
      await db
        .insertInto(grants)
        .values({ tenant_id: tenantId, server_id: serverId, version: 1, binding: '', value, updated_at: updatedAt })
        .onConflict((conflict) => conflict.columns(['tenant_id', 'server_id']).doNothing())
        .execute();
      return find(tenantId, serverId);
    },
    remove: (tenantId: string, serverId: string): Promise<boolean> =>
      deletesRow(db.deleteFrom(grants).where('tenant_id', '=', tenantId).where('server_id', '=', serverId)),
    /** True: nobody else changes it until then. */
    async claim({ tenantId, serverId, version, claimId }: GrantClaim, now: number, until: number): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable(grants)
        .set({ claim_id: claimId, claimed_until: until })
        .where('tenant_id', '=', tenantId)
        .where('server_id', '=', serverId)
        .where('version', '=', version)
        .where((eb) => eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', now)]))
        .executeTakeFirstOrThrow();
      return numUpdatedRows > 0n;
    },
    async release(claim: GrantClaim): Promise<void> {
      await ofClaim(claim).set(free).execute();
    },
    /** Nothing where somebody has taken the claim or the grant meanwhile. */
    async replaceClaimed(claim: GrantClaim, value: string, updatedAt: number): Promise<void> {
      const { tenantId, serverId, version } = claim;
      await ofClaim(claim)
        .set({ ...free, value: sealed(tenantId, serverId, value), version: version + 1, updated_at: updatedAt })
        .execute();
    },
    async endClaimed({ tenantId, serverId, claimId }: GrantClaim): Promise<void> {
      await db
        .deleteFrom(grants)
        .where('tenant_id', '=', tenantId)
        .where('server_id', '=', serverId)
        .where('claim_id', '=', claimId)
        .execute();
    },
    /** Those that have lapsed are removed with it. */
    async offer({ stateHash, tenantId, value, expiresAt }: StoredConsent, now: number): Promise<void> {
      await db.deleteFrom(consents).where('expires_at', '<=', now).execute();
      const row = rows.seal(consents, tenantId, { state_hash: stateHash, value });
      await db
        .insertInto(consents)
        .values({ ...row, tenant_id: tenantId, expires_at: expiresAt })
        .execute();
    },
    /** Of several that take it at once one gets it. */
    async take(stateHash: string): Promise<string | null> {
      const row = await db.deleteFrom(consents).where('state_hash', '=', stateHash).returningAll().executeTakeFirst();
      return row === undefined ? null : rows.open(consents, row.tenant_id, row).value;
    },
  };
});

export type McpGrantStore = StoreOf<typeof mcpGrantStore>;
