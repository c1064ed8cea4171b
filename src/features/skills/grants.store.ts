import type { Kysely } from 'kysely';
import type { Storage } from '../../db/storage.ts';
import type { SkillScriptGrantRow } from '../../db/tables/skills.ts';
import type { Tables } from '../../db/tables.ts';

/** Times are epoch milliseconds. */
export interface StoredGrant {
  readonly id: string;
  readonly tenantId: string;
  readonly skillName: string;
  /** Null: every script of the skill. */
  readonly scriptName: string | null;
  readonly grantedBy: string | null;
  readonly grantedAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** What a grant covers, as it was given; undefined: any grant of the skill. */
export interface GrantScope {
  readonly skillName: string;
  readonly scriptName?: string | null;
}

/** Runs in the transaction of the change, with the grants it revokes; what throws here undoes the change. */
export type GrantAudit = (db: Kysely<Tables>, revoked: readonly StoredGrant[]) => Promise<void>;

export interface GrantStore {
  /** Newest first, revoked and expired ones too. */
  list(tenantId: string): Promise<readonly StoredGrant[]>;
  /** True when a grant of the skill, or of the script, holds now. */
  isGranted(tenantId: string, skillName: string, scriptName: string, now: number): Promise<boolean>;
  /** Replaces the active grant of the same scope. */
  insert(grant: StoredGrant, audit: GrantAudit): Promise<void>;
  /** How many active grants of the scope were revoked. */
  revoke(tenantId: string, scope: GrantScope, now: number, audit: GrantAudit): Promise<number>;
  /** The same inside a transaction of the caller. */
  revokeIn(db: Kysely<Tables>, tenantId: string, scope: GrantScope, now: number): Promise<readonly StoredGrant[]>;
}

const fromRow = (row: SkillScriptGrantRow): StoredGrant => ({
  id: row.id,
  tenantId: row.tenant_id,
  skillName: row.skill_name,
  scriptName: row.script_name,
  grantedBy: row.granted_by,
  grantedAt: row.granted_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
});

const activeGrants = (db: Kysely<Tables>, tenantId: string, skillName: string, now: number) =>
  db
    .selectFrom('skill_script_grants')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('skill_name', '=', skillName)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]));

export const createGrantStore = (storage: Storage): GrantStore => {
  const revokeIn: GrantStore['revokeIn'] = async (db, tenantId, { skillName, scriptName }, now) => {
    const active = (await activeGrants(db, tenantId, skillName, now).execute())
      .map(fromRow)
      .filter((grant) => scriptName === undefined || grant.scriptName === scriptName);
    for (const { id } of active)
      await db.updateTable('skill_script_grants').set({ revoked_at: now }).where('id', '=', id).execute();
    return active;
  };
  return {
    revokeIn,
    async list(tenantId) {
      const rows = storage.db.selectFrom('skill_script_grants').selectAll().where('tenant_id', '=', tenantId);
      return (await rows.orderBy('id', 'desc').execute()).map(fromRow);
    },
    async isGranted(tenantId, skillName, scriptName, now) {
      const grants = activeGrants(storage.db, tenantId, skillName, now);
      const found = await grants
        .where((eb) => eb.or([eb('script_name', 'is', null), eb('script_name', '=', scriptName)]))
        .limit(1)
        .executeTakeFirst();
      return found !== undefined;
    },
    insert: (grant, audit) =>
      storage.transaction(async (db) => {
        const { tenantId, skillName, scriptName, grantedAt } = grant;
        const revoked = await revokeIn(db, tenantId, { skillName, scriptName }, grantedAt);
        await db
          .insertInto('skill_script_grants')
          .values({
            id: grant.id,
            tenant_id: tenantId,
            skill_name: skillName,
            script_name: scriptName,
            granted_by: grant.grantedBy,
            granted_at: grantedAt,
            expires_at: grant.expiresAt,
            revoked_at: grant.revokedAt,
          })
          .execute();
        await audit(db, revoked);
      }),
    revoke: (tenantId, scope, now, audit) =>
      storage.transaction(async (db) => {
        const revoked = await revokeIn(db, tenantId, scope, now);
        if (revoked.length > 0) await audit(db, revoked);
        return revoked.length;
      }),
  };
};
