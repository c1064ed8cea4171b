import type { Kysely } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { SkillScriptGrantRow } from '../../db/tables/skills.ts';
import type { Tables } from '../../db/tables.ts';

/** What a grant covers, as it was given; undefined: any grant of the skill. */
export interface GrantScope {
  readonly skillName: string;
  readonly scriptName?: string | null;
}

const activeGrants = (db: Kysely<Tables>, tenantId: string, skillName: string, now: number) =>
  db
    .selectFrom('skill_script_grants')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('skill_name', '=', skillName)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]));

export const grantStore = defineStore((storage) => ({
  /** Newest first, revoked and expired ones too. */
  list: (tenantId: string): Promise<readonly SkillScriptGrantRow[]> =>
    storage.db
      .selectFrom('skill_script_grants')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('id', 'desc')
      .execute(),
  /** True when a grant of the skill, or of the script, holds now. */
  async isGranted(tenantId: string, skillName: string, scriptName: string, now: number): Promise<boolean> {
    const grant = await activeGrants(storage.db, tenantId, skillName, now)
      .where((eb) => eb.or([eb('script_name', 'is', null), eb('script_name', '=', scriptName)]))
      .limit(1)
      .executeTakeFirst();
    return grant !== undefined;
  },
  async insert(row: SkillScriptGrantRow): Promise<void> {
    await storage.db.insertInto('skill_script_grants').values(row).execute();
  },
  /** The active grants of the scope as they were before they were revoked. */
  revoke: (tenantId: string, { skillName, scriptName }: GrantScope, now: number) =>
    storage.atomic(async (db): Promise<readonly SkillScriptGrantRow[]> => {
      const active = (await activeGrants(db, tenantId, skillName, now).execute()).filter(
        (grant) => scriptName === undefined || grant.script_name === scriptName,
      );
      for (const { id } of active)
        await db.updateTable('skill_script_grants').set({ revoked_at: now }).where('id', '=', id).execute();
      return active;
    }),
}));

export type GrantStore = StoreOf<typeof grantStore>;
