import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditTrail } from '../../core/audit.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { Tables } from '../../db/tables.ts';
import type { CurrentSkills } from './current-skills.ts';
import { auditView, skillContent } from './skills.content.ts';
import { skillOperations } from './skills.operations.ts';
import { interpreterFaults, type SkillLimits, skillFaults } from './skills.rules.ts';
import type { AgentSkillDefinition, AgentSkillRequest } from './skills.schema.ts';
import type { SkillStore, StoredSkill } from './skills.store.ts';

export interface SkillServiceDeps {
  readonly store: SkillStore;
  readonly current: Pick<CurrentSkills, 'changed'>;
  readonly limits: SkillLimits;
  readonly isHostSkill: (name: string) => boolean;
  readonly hasInterpreter: (extension: string) => boolean;
  /** Revokes what allowed scripts of the skill to run, with an audit entry each, in the transaction of the removal. */
  readonly revokeGrants: (db: Kysely<Tables>, context: CallContext, skillName: string) => Promise<void>;
  readonly audit: Pick<AuditTrail, 'note'>;
  /** Path in front of every operation, for `Location`. */
  readonly prefix: string;
  readonly now: () => number;
  readonly newId: () => string;
}

const toDefinition = ({ fingerprint: _fingerprint, ...skill }: StoredSkill): AgentSkillDefinition => ({
  ...skill,
  metadata: { ...skill.metadata },
  resources: [...skill.resources],
  scripts: [...skill.scripts],
  createdAt: isoTime(skill.createdAt),
  updatedAt: isoTime(skill.updatedAt),
});

// One text for an unknown skill and one of another tenant.
const notFound = (): AcpError => new AcpError('skill-not-found', 'There is no stored skill of this name.');

export const skillService = (deps: SkillServiceDeps): Handlers<typeof skillOperations> => {
  const { store, current, limits, audit, now } = deps;

  const refuseFaults = (body: AgentSkillRequest): void => {
    const skill = skillContent(body);
    const faults = skillFaults(skill, limits);
    const unstartable = interpreterFaults(skill.scripts.slice(0, limits.maxScripts), deps.hasInterpreter);
    const errors = [...faults, ...unstartable];
    const [first] = errors;
    if (first === undefined) return;
    const detail = `${errors.length === 1 ? '' : `The skill has ${errors.length} faults: `}${first.path} ${first.message}.`;
    const code = faults.length === 0 ? 'interpreter-not-registered' : 'validation-failed';
    throw new AcpError(code, detail, { details: { errors } });
  };
  const codeDefined = (name: string): AcpError =>
    new AcpError('skill-code-defined', `The skill "${name}" is a skill of the host and cannot be changed here.`);
  const note = (
    { tenantId, principal }: CallContext,
    action: string,
    before: StoredSkill | null,
    after: StoredSkill | null,
  ): Promise<void> => {
    const view = (skill: StoredSkill | null) => (skill === null ? null : auditView(toDefinition(skill)));
    const entity = `skill:${(after ?? before)?.name ?? ''}`;
    return audit.note({ tenantId, actor: principal.actor, action, entity, before: view(before), after: view(after) });
  };

  return {
    async list({ tenantId }) {
      return ok((await store.list(tenantId)).map(toDefinition));
    },

    async get({ tenantId }, { params }) {
      // A host skill hides a stored one of its name from agents, not from those who look after stored ones.
      const skill = await store.find(tenantId, params.name);
      if (skill === null) throw notFound();
      return ok(toDefinition(skill));
    },

    async save(context, { params, body }) {
      const { name } = params;
      if (body.name !== name)
        throw new AcpError('name-mismatch', `The path names "${name}"; the body names another skill.`, {
          details: { errors: [{ path: 'name', message: `must be ${name}` }] },
        });
      if (deps.isHostSkill(name)) throw codeDefined(name);
      refuseFaults(body);
      const made = { id: deps.newId(), at: now() };
      const { before, after } = await store.save(context.tenantId, skillContent(body), made);
      current.changed(context.tenantId, name);
      await note(context, skillOperations.save.audit, before, after);
      const definition = toDefinition(after);
      if (before !== null) return ok(definition);
      return { status: 201, body: definition, headers: { location: `${deps.prefix}/api/skills/${name}` } };
    },

    async remove(context, { params }) {
      const { name } = params;
      const removed = await store.remove(context.tenantId, name, (db) => deps.revokeGrants(db, context, name));
      if (removed === null) throw deps.isHostSkill(name) ? codeDefined(name) : notFound();
      current.changed(context.tenantId, name);
      await note(context, skillOperations.remove.audit, removed, null);
      return noContent();
    },
  };
};
