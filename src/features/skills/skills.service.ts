import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import type { Handlers } from '../../core/context.ts';
import { type StoreEntries, tenantKey } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { AuditLog, ChangedEntity } from '../audit/index.ts';
import type { GrantService } from './grants.service.ts';
import { auditView, skillContent } from './skills.content.ts';
import type { skillOperations } from './skills.operations.ts';
import { interpreterFaults, type SkillLimits, skillFaults } from './skills.rules.ts';
import type { AgentSkillDefinition, AgentSkillRequest } from './skills.schema.ts';
import { type SkillStore, type StoredSkill, skillAfter, skillStore } from './skills.store.ts';

export interface SkillServiceDeps {
  readonly store: SkillStore;
  readonly fingerprints: Pick<StoreEntries<string>, 'changed'>;
  readonly limits: SkillLimits;
  readonly isHostSkill: (name: string) => boolean;
  readonly hasInterpreter: (extension: string) => boolean;
  /** Revokes what allowed scripts of the skill to run, with an audit entry each. */
  readonly revokeGrants: GrantService['revokeAll'];
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  /** Path in front of every operation, for `Location`. */
  readonly prefix: string;
  readonly now: () => number;
  readonly newId: () => string;
}

const toDefinition = ({ fingerprint: _fingerprint, ...skill }: StoredSkill): AgentSkillDefinition => ({
  ...skill,
  createdAt: isoTime(skill.createdAt),
  updatedAt: isoTime(skill.updatedAt),
});

const changed = (before: StoredSkill | null, after: StoredSkill | null): ChangedEntity => ({
  id: (after ?? before)?.name ?? '',
  before: before === null ? null : auditView(toDefinition(before)),
  after: after === null ? null : auditView(toDefinition(after)),
});

// The same text for an unknown skill and for one of another tenant.
const notFound = (): AcpError => new AcpError('skill-not-found', 'There is no stored skill of this name.');

export const skillService = (deps: SkillServiceDeps): Handlers<typeof skillOperations> => {
  const { store, fingerprints, limits, audit, now } = deps;

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

    async save(context, { params, query, body }) {
      const { name } = params;
      if (body.name !== name)
        throw new AcpError('name-mismatch', `The path names "${name}"; the body names another skill.`, {
          details: { errors: [{ path: 'name', message: `must be ${name}` }] },
        });
      if (deps.isHostSkill(name)) throw codeDefined(name);
      refuseFaults(body);
      const made = { id: deps.newId(), at: now() };
      const { before, after } = await audit.save(context, query, async (stores, tell) => {
        const skills = stores(skillStore);
        const content = skillContent(body);
        if (query.dryRun === true) {
          const stored = await skills.find(context.tenantId, name);
          assertExpected(query, stored?.updatedAt);
          return { before: stored, after: skillAfter(stored, context.tenantId, content, made) };
        }
        const saved = await skills.save(context.tenantId, content, made);
        assertExpected(query, saved.before?.updatedAt);
        tell(changed(saved.before, saved.after));
        return saved;
      });
      const definition = toDefinition(after);
      if (query.dryRun === true) return ok(definition);
      fingerprints.changed(tenantKey(context.tenantId, name));
      if (before !== null) return ok(definition);
      return { status: 201, body: definition, headers: { location: `${deps.prefix}/api/skills/${name}` } };
    },

    async remove(context, { params }) {
      const { name } = params;
      await audit.change(context, async (stores, tell) => {
        const removed = await stores(skillStore).remove(context.tenantId, name);
        if (removed === null) throw deps.isHostSkill(name) ? codeDefined(name) : notFound();
        await deps.revokeGrants(stores, tell, context, name);
        tell(changed(removed, null));
      });
      fingerprints.changed(tenantKey(context.tenantId, name));
      return noContent();
    },
  };
};
