import type { Kysely } from 'kysely';
import { defineStore } from '../../db/define-store.ts';
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

export interface GrantStore {
  /** Newest first, revoked and expired ones too. */
  list(tenantId: string): Promise<readonly StoredGrant[]>;
  /** True when a grant of the skill, or of the script, holds now. */
  isGranted(tenantId: string, skillName: string, scriptName: string, now: number): Promise<boolean>;
  insert(grant: StoredGrant): Promise<void>;
  /** The active grants of the scope as they were before they were revoked. */
  revoke(tenantId: string, scope: GrantScope, now: number): Promise<readonly StoredGrant[]>;
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

export const grantStore = defineStore(
  (storage): GrantStore => ({
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
    async insert(grant) {
      await storage.db
        .insertInto('skill_script_grants')
        .values({
          id: grant.id,
          tenant_id: grant.tenantId,
          skill_name: grant.skillName,
          script_name: grant.scriptName,
          granted_by: grant.grantedBy,
          granted_at: grant.grantedAt,
          expires_at: grant.expiresAt,
          revoked_at: grant.revokedAt,
        })
        .execute();
    },
    revoke: (tenantId, { skillName, scriptName }, now) =>
      storage.atomic(async (db) => {
        const active = (await activeGrants(db, tenantId, skillName, now).execute())
          .map(fromRow)
          .filter((grant) => scriptName === undefined || grant.scriptName === scriptName);
        for (const { id } of active)
          await db.updateTable('skill_script_grants').set({ revoked_at: now }).where('id', '=', id).execute();
        return active;
      }),
  }),
);
