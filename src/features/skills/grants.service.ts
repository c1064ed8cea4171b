import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditedCall, CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { AuditLog, TellChange } from '../audit/index.ts';
import type { AgentSkills } from './agent-skills.ts';
import { grantOperations } from './grants.operations.ts';
import type { SkillScriptGrant, SkillScriptGrantRequest } from './grants.schema.ts';
import { type GrantScope, type GrantStore, grantStore, type StoredGrant } from './grants.store.ts';

export interface GrantServiceDeps {
  readonly store: GrantStore;
  readonly skills: Pick<AgentSkills, 'resolve'>;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly executionIsOn: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

export interface GrantService {
  readonly handlers: Handlers<typeof grantOperations>;
  /** Throws what is told before a grant is even read (GRANT-1). */
  assertMayGrant(): void;
  /** Revokes every active grant of a skill that goes, as a part of its removal. */
  revokeAll(stores: UnitOfWork, tell: TellChange, caller: CallContext, skillName: string): Promise<void>;
}

const toGrant = (grant: StoredGrant): SkillScriptGrant => ({
  ...grant,
  grantedAt: isoTime(grant.grantedAt),
  expiresAt: isoTimeOrNull(grant.expiresAt),
  revokedAt: isoTimeOrNull(grant.revokedAt),
});

const fault = (path: string, message: string): AcpError =>
  new AcpError('validation-failed', `${path} ${message}.`, { details: { errors: [{ path, message }] } });

const expiryOf = ({ expiresAt }: SkillScriptGrantRequest, now: number): number | null => {
  if (expiresAt === undefined || expiresAt === null) return null;
  const expiry = Date.parse(expiresAt);
  if (expiry > now) return expiry;
  const message = 'must be a time in the future';
  throw new AcpError('expires-at-not-in-future', `expiresAt ${message}.`, {
    details: { errors: [{ path: 'expiresAt', message }] },
  });
};

export const grantService = (deps: GrantServiceDeps): GrantService => {
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
      tell({ id: grant.id, before: toGrant(grant), after: toGrant({ ...grant, revokedAt: at }) }, by);
    return revoked.length;
  };

  return {
    handlers: {
      async list({ tenantId }) {
        return ok((await store.list(tenantId)).map(toGrant));
      },

      async create(context, { body }) {
        const { tenantId, principal } = context;
        const at = now();
        const expiresAt = expiryOf(body, at);
        const { skillName } = body;
        const scriptName = body.scriptName ?? null;
        const skill = (await skills.resolve(tenantId, [skillName])).get(skillName);
        if (skill === undefined) throw fault('skillName', 'names no skill');
        if (scriptName !== null && !skill.scripts.some(({ name }) => name === scriptName))
          throw fault('scriptName', `names no script of ${skillName}`);
        const grant: StoredGrant = {
          id: newId(),
          tenantId,
          skillName,
          scriptName,
          grantedBy: principal.actor,
          grantedAt: at,
          expiresAt,
          revokedAt: null,
        };
        await audit.change(context, async (stores, tell) => {
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
    },

    assertMayGrant() {
      if (!deps.executionIsOn)
        throw new AcpError('script-execution-disabled', 'Skill scripts are switched off on this host.');
    },

    async revokeAll(stores, tell, caller, skillName) {
      await revoke(stores, tell, caller, { skillName }, now());
    },
  };
};
