import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ApprovalRuleStore, StandingRule } from './approval-rules.store.ts';
import type { approvalRuleOperations } from './approvals.operations.ts';
import type { ToolApprovalRule } from './approvals.schema.ts';
import { argumentsHash, conditionProblems, ruleMatches } from './argument-conditions.rules.ts';

// A change on another instance counts within five seconds.
const keptForMs = 4000;

export interface StandingRules {
  readonly handlers: Handlers<typeof approvalRuleOperations>;
  /** The rule that approves the call, if any. Rules are read again when what is known is old. */
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
export const createStandingRules = ({ store, storage, audit, now, newId }: StandingRuleDeps): StandingRules => {
  const known = new Map<string, { readonly readAt: number; readonly rules: Promise<readonly StandingRule[]> }>();

  const rulesOf = (tenantId: string): Promise<readonly StandingRule[]> => {
    const kept = known.get(tenantId);
    const at = now();
    if (kept !== undefined && at >= kept.readAt && at - kept.readAt < keptForMs) return kept.rules;
    const rules = store.list(tenantId);
    // A failed read is not kept: the next call asks the store again.
    rules.catch(() => known.delete(tenantId));
    known.set(tenantId, { readAt: at, rules });
    return rules;
  };

  const isTaken = (error: unknown): boolean => storage.dialect.classify(error) === 'unique-violation';

  return {
    async matching(tenantId, agentName, toolName, args) {
      const rules = await rulesOf(tenantId);
      let hash: string | null = null;
      const hashOnce = (): string => {
        hash ??= argumentsHash(args);
        return hash;
      };
      const matches = (rule: StandingRule): boolean =>
        rule.toolName === toolName &&
        (rule.agentName === null || rule.agentName === agentName) &&
        ruleMatches(rule, args, hashOnce);
      return rules.find(matches) ?? null;
    },

    async toRemember(fields) {
      const rule = { ...fields, id: newId() };
      if ((await store.same(rule)) !== null) return null;
      return { rule, entry: entryOf('create', rule, rule.createdBy) };
    },

    changed: (tenantId) => known.delete(tenantId),

    handlers: {
      async list({ tenantId }, { query }) {
        const { agentName, toolName } = query;
        const rules = (await store.list(tenantId)).filter(
          (rule) =>
            (agentName === undefined || rule.agentName === (agentName === '' ? null : agentName)) &&
            (toolName === undefined || rule.toolName === toolName),
        );
        return ok(rules.map(toPublic));
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
        known.delete(tenantId);
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
        known.delete(tenantId);
        return noContent();
      },
    },
  };
};
