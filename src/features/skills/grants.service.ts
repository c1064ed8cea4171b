import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditEntry } from '../../core/audit.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { Tables } from '../../db/tables.ts';
import type { AuditLog } from '../audit/index.ts';
import type { AgentSkills } from './agent-skills.ts';
import { grantOperations } from './grants.operations.ts';
import type { SkillScriptGrant, SkillScriptGrantRequest } from './grants.schema.ts';
import type { GrantStore, StoredGrant } from './grants.store.ts';

export interface GrantServiceDeps {
  readonly store: GrantStore;
  readonly skills: Pick<AgentSkills, 'resolve'>;
  readonly audit: Pick<AuditLog, 'append'>;
  readonly executionIsOn: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

export interface GrantService {
  readonly handlers: Handlers<typeof grantOperations>;
  /** Throws what is told before a grant is even read (GRANT-1). */
  assertMayGrant(): void;
  /** Revokes every active grant of a skill that goes, inside the transaction of its removal. */
  revokeAll(db: Kysely<Tables>, context: CallContext, skillName: string): Promise<void>;
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

  const created = ({ principal }: CallContext, grant: StoredGrant): AuditEntry => ({
    tenantId: grant.tenantId,
    actor: principal.actor,
    action: grantOperations.create.audit,
    entity: `skill-script-grant:${grant.id}`,
    before: null,
    after: toGrant(grant),
  });
  const revocation = ({ principal }: CallContext, grant: StoredGrant, at: number): AuditEntry => ({
    tenantId: grant.tenantId,
    actor: principal.actor,
    action: grantOperations.remove.audit,
    entity: `skill-script-grant:${grant.id}`,
    before: toGrant(grant),
    after: toGrant({ ...grant, revokedAt: at }),
  });

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
        await store.insert(grant, (db, revoked) =>
          audit.append(db, [...revoked.map((earlier) => revocation(context, earlier, at)), created(context, grant)]),
        );
        return { status: 201, body: toGrant(grant) };
      },

      async remove(context, { params, query }) {
        const at = now();
        const scope = { skillName: params.skillName, scriptName: query.scriptName ?? null };
        const revoked = await store.revoke(context.tenantId, scope, at, (db, grants) =>
          audit.append(
            db,
            grants.map((grant) => revocation(context, grant, at)),
          ),
        );
        if (revoked === 0) throw new AcpError('not-found', 'There is no active grant with this scope.');
        return noContent();
      },
    },

    assertMayGrant() {
      if (!deps.executionIsOn)
        throw new AcpError('script-execution-disabled', 'Skill scripts are switched off on this host.');
    },

    async revokeAll(db, context, skillName) {
      const at = now();
      const revoked = await store.revokeIn(db, context.tenantId, { skillName }, at);
      if (revoked.length === 0) return;
      await audit.append(
        db,
        revoked.map((grant) => revocation(context, grant, at)),
      );
    },
  };
};
