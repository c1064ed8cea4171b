import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditedCall, CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { SkillScriptGrantRow } from '../../db/tables/skills.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { AuditLog, TellChange } from '../audit/index.ts';
import type { AgentSkills } from './agent-skills.ts';
import { grantOperations } from './grants.operations.ts';
import type { SkillScriptGrant, SkillScriptGrantRequest } from './grants.schema.ts';
import { type GrantScope, type GrantStore, grantStore } from './grants.store.ts';
import { skillStore } from './skills.store.ts';

export interface GrantServiceDeps {
  readonly store: GrantStore;
  readonly skills: Pick<AgentSkills, 'resolve'>;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly executionIsOn: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

const toGrant = (row: SkillScriptGrantRow): SkillScriptGrant => ({
  id: row.id,
  tenantId: row.tenant_id,
  skillName: row.skill_name,
  scriptName: row.script_name,
  grantedBy: row.granted_by,
  grantedAt: isoTime(row.granted_at),
  expiresAt: isoTimeOrNull(row.expires_at),
  revokedAt: isoTimeOrNull(row.revoked_at),
});

const expiryOf = ({ expiresAt }: SkillScriptGrantRequest, now: number): number | null => {
  if (expiresAt === undefined || expiresAt === null) return null;
  const expiry = Date.parse(expiresAt);
  if (expiry > now) return expiry;
  throw invalidField('expiresAt', 'must be a time in the future', 'expires-at-not-in-future');
};

export const grantService = (deps: GrantServiceDeps) => {
  const { store, skills, audit, now, newId } = deps;

  /** Revokes the active grants of a scope, each with its entry; how many there were. */
  const revoke = async (
    stores: UnitOfWork,
    tell: TellChange,
    { tenantId, principal }: Omit<AuditedCall, 'audit'>,
    scope: GrantScope,
    at: number,
  ): Promise<number> => {
    const revoked = await stores(grantStore).revoke(tenantId, scope, at);
    const by = { tenantId, principal, audit: grantOperations.remove.audit };
    for (const grant of revoked)
      tell({ id: grant.id, before: toGrant(grant), after: toGrant({ ...grant, revoked_at: at }) }, by);
    return revoked.length;
  };

  const handlers: Handlers<typeof grantOperations> = {
    async list({ tenantId }) {
      return ok((await store.list(tenantId)).map(toGrant));
    },

    async create(context, { body }) {
      const { tenantId, principal } = context;
      const at = now();
      const expiresAt = expiryOf(body, at);
      const { skillName } = body;
      const scriptName = body.scriptName ?? null;
      const requireScript = (scripts: readonly { readonly name: string }[] | undefined): void => {
        if (scripts === undefined) throw invalidField('skillName', 'names no skill');
        if (scriptName !== null && !scripts.some(({ name }) => name === scriptName))
          throw invalidField('scriptName', `names no script of ${skillName}`);
      };
      const skill = (await skills.resolve(tenantId, [skillName])).get(skillName);
      requireScript(skill?.scripts);
      const grant: SkillScriptGrantRow = {
        id: newId(),
        tenant_id: tenantId,
        skill_name: skillName,
        script_name: scriptName,
        granted_by: principal.actor,
        granted_at: at,
        expires_at: expiresAt,
        revoked_at: null,
      };
      await audit.change(context, async (stores, tell) => {
        // Again, in the unit: a skill that has gone meanwhile took its grants along, and the next one of its name has none.
        if (skill?.origin === 'stored') requireScript((await stores(skillStore).find(tenantId, skillName))?.scripts);
        // A grant replaces the active one of the same scope.
        await revoke(stores, tell, context, { skillName, scriptName }, at);
        await stores(grantStore).insert(grant);
        tell({ id: grant.id, before: null, after: toGrant(grant) });
      });
      return { status: 201, body: toGrant(grant) };
    },

    async remove(context, { params, query }) {
      const at = now();
      const scope = { skillName: params.skillName, scriptName: query.scriptName ?? null };
      const revoked = await audit.change(context, (stores, tell) => revoke(stores, tell, context, scope, at));
      if (revoked === 0) throw new AcpError('not-found', 'There is no active grant with this scope.');
      return noContent();
    },
  };

  return {
    handlers,
    /** Throws where no grant could be made, before the request is even read (GRANT-1). */
    assertMayGrant(): void {
      if (!deps.executionIsOn)
        throw new AcpError('script-execution-disabled', 'Skill scripts are switched off on this host.');
    },
    /** Revokes every active grant of a skill that goes, as a part of its removal. */
    async revokeAll(stores: UnitOfWork, tell: TellChange, caller: CallContext, skillName: string): Promise<void> {
      await revoke(stores, tell, caller, { skillName }, now());
    },
  };
};

export type GrantService = ReturnType<typeof grantService>;
