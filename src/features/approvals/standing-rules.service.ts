import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { Handlers } from '../../core/context.ts';
import type { StoreEntries } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ApprovalRuleStore, StandingRule } from './approval-rules.store.ts';
import type { approvalRuleOperations } from './approvals.operations.ts';
import type { ToolApprovalRule } from './approvals.schema.ts';
import { argumentsHash, conditionProblems, ruleMatches } from './argument-conditions.rules.ts';

export interface StandingRules {
  readonly handlers: Handlers<typeof approvalRuleOperations>;
  /** The rule that approves the call, if any. */
  matching(tenantId: string, agentName: string, toolName: string, args: Json): Promise<StandingRule | null>;
  /** A rule that `remember` asks for, with its entry; null when an equal one is stored. */
  toRemember(
    rule: Omit<StandingRule, 'id'>,
  ): Promise<{ readonly rule: StandingRule; readonly entry: AuditEntry } | null>;
  /** Called after a rule was written. */
  changed(tenantId: string): void;
}

export interface StandingRuleDeps {
  readonly store: ApprovalRuleStore;
  /** Of each tenant: every marked call asks for them. */
  readonly rules: StoreEntries<readonly StandingRule[]>;
  readonly storage: Storage;
  readonly audit: AuditTrail;
  readonly now: () => number;
  readonly newId: () => string;
}

const toPublic = ({ argumentConditions, createdAt, ...rule }: StandingRule): ToolApprovalRule => ({
  ...rule,
  argumentConditions: [...argumentConditions],
  createdAt: isoTime(createdAt),
});

const entryOf = (action: 'create' | 'delete', rule: StandingRule, actor: string | null): AuditEntry => ({
  tenantId: rule.tenantId,
  actor,
  action: `approval-rule.${action}`,
  entity: `approval-rule:${rule.id}`,
  before: action === 'delete' ? toPublic(rule) : null,
  after: action === 'create' ? toPublic(rule) : null,
});

/** Rules that approve calls in advance: their operations, and the question that every marked call asks. */
export const createStandingRules = ({ store, rules, storage, audit, now, newId }: StandingRuleDeps): StandingRules => {
  const isTaken = (error: unknown): boolean => storage.dialect.classify(error) === 'unique-violation';

  return {
    async matching(tenantId, agentName, toolName, args) {
      const own = (await rules.read(tenantId)) ?? [];
      let hash: string | null = null;
      const hashOnce = (): string => {
        hash ??= argumentsHash(args);
        return hash;
      };
      const matches = (rule: StandingRule): boolean =>
        rule.toolName === toolName &&
        (rule.agentName === null || rule.agentName === agentName) &&
        ruleMatches(rule, args, hashOnce);
      return own.find(matches) ?? null;
    },

    async toRemember(fields) {
      const rule = { ...fields, id: newId() };
      if ((await store.same(rule)) !== null) return null;
      return { rule, entry: entryOf('create', rule, rule.createdBy) };
    },

    changed: rules.changed,

    handlers: {
      async list({ tenantId }, { query }) {
        const { agentName, toolName } = query;
        const stored = (await store.list(tenantId)).filter(
          (rule) =>
            (agentName === undefined || rule.agentName === (agentName === '' ? null : agentName)) &&
            (toolName === undefined || rule.toolName === toolName),
        );
        return ok(stored.map(toPublic));
      },

      async create({ tenantId, principal }, { body }) {
        const argumentConditions = body.argumentConditions ?? [];
        const errors = conditionProblems(argumentConditions);
        const [first] = errors;
        if (first !== undefined)
          throw new AcpError('validation-failed', `${first.path} ${first.message}.`, { details: { errors } });
        const rule: StandingRule = {
          id: newId(),
          tenantId,
          agentName: (body.agentName ?? '') === '' ? null : (body.agentName ?? null),
          toolName: body.toolName,
          argumentsHash: null,
          argumentConditions,
          createdBy: principal.actor,
          createdAt: now(),
        };
        const stored = await store.same(rule);
        if (stored !== null) return ok(toPublic(stored));
        try {
          await audit.record(entryOf('create', rule, principal.actor), [store.inserted(rule)]);
        } catch (error) {
          const other = isTaken(error) ? await store.same(rule) : null;
          if (other === null) throw error;
          return ok(toPublic(other));
        }
        rules.changed(tenantId);
        return { status: 201, body: toPublic(rule) };
      },

      async remove({ tenantId, principal }, { params }) {
        const id = params.ruleId.toLowerCase();
        const unknown = () => new AcpError('not-found', 'There is no standing rule with this id.');
        const rule = await store.get(tenantId, id);
        if (rule === null) throw unknown();
        await audit
          .record(entryOf('delete', rule, principal.actor), [store.removed(tenantId, id)])
          .catch((error: unknown) => {
            if (error instanceof ConditionFailedError) throw unknown();
            throw error;
          });
        rules.changed(tenantId);
        return noContent();
      },
    },
  };
};
