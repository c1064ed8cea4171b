import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { AuditedCall, Handlers } from '../../core/context.ts';
import type { StoreEntries } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import { labelsText } from '../../core/labels.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { AuditLog, TellChange } from '../audit/index.ts';
import { type ApprovalRuleStore, approvalRuleStore, type StandingRule } from './approval-rules.store.ts';
import { approvalRuleOperations } from './approvals.operations.ts';
import type { ToolApprovalRule } from './approvals.schema.ts';
import { argumentsHash, conditionProblems, ruleMatches } from './argument-conditions.rules.ts';

export interface StandingRuleDeps {
  readonly store: Pick<ApprovalRuleStore, 'list'>;
  /** Of each tenant: every marked call asks for them. */
  readonly rules: StoreEntries<readonly StandingRule[]>;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly now: () => number;
  readonly newId: () => string;
}

const toPublic = ({ argumentConditions, labels, createdAt, ...rule }: StandingRule): ToolApprovalRule => ({
  ...rule,
  labels: { ...labels },
  argumentConditions: [...argumentConditions],
  createdAt: isoTime(createdAt),
});

/**
 * Stores a rule with its entry, unless one matches the same calls: then it gives that one. A rule does not change: with
 * other labels than those that are asked for it makes place for the new one.
 */
const storeOnce = async (
  stores: Storage['stores'],
  tell: TellChange,
  by: AuditedCall,
  rule: StandingRule,
  { labels, dryRun }: { readonly labels: 'any' | 'these'; readonly dryRun: boolean },
): Promise<StandingRule> => {
  const rules = stores(approvalRuleStore);
  const same = await rules.same(rule);
  if (same !== null && (labels === 'any' || labelsText(same.labels) === labelsText(rule.labels))) return same;
  if (dryRun) return rule;
  if (same !== null) {
    await rules.remove(rule.tenantId, same.id);
    tell({ id: same.id, before: toPublic(same), after: null }, { ...by, audit: approvalRuleOperations.remove.audit });
  }
  await rules.insert(rule);
  tell({ id: rule.id, before: null, after: toPublic(rule) }, by);
  return rule;
};

/** Rules that approve calls in advance: their operations, and the question that every marked call asks. */
export const createStandingRules = ({ store, rules, audit, now, newId }: StandingRuleDeps) => ({
  /** The rule that approves the call, if any. */
  async matching(tenantId: string, agentName: string, toolName: string, args: Json): Promise<StandingRule | null> {
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

  /** Stores a rule that `remember` asks for, with its entry; an equal one that is stored stays instead. */
  async remember(stores: UnitOfWork, tell: TellChange, rule: Omit<StandingRule, 'id' | 'labels'>): Promise<void> {
    const { tenantId, createdBy: actor } = rule;
    const by = { tenantId, principal: { actor }, audit: approvalRuleOperations.create.audit };
    await storeOnce(stores, tell, by, { ...rule, id: newId(), labels: {} }, { labels: 'any', dryRun: false });
  },

  /** Called after a rule was written. */
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

    async create(context, { query, body }) {
      const { tenantId, principal } = context;
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
        labels: body.labels ?? {},
        createdBy: principal.actor,
        createdAt: now(),
      };
      const dryRun = query.dryRun === true;
      const labels = body.labels === undefined ? 'any' : 'these';
      const stored = await audit.save(context, query, (stores, tell) =>
        storeOnce(stores, tell, context, rule, { labels, dryRun }),
      );
      if (stored !== rule || dryRun) return ok(toPublic(stored));
      rules.changed(tenantId);
      return { status: 201, body: toPublic(rule) };
    },

    async remove(context, { params }) {
      const { tenantId } = context;
      const id = params.ruleId.toLowerCase();
      await audit.change(context, async (stores, tell) => {
        const stored = stores(approvalRuleStore);
        const rule = await stored.get(tenantId, id);
        if (rule === null || !(await stored.remove(tenantId, id)))
          throw new AcpError('not-found', 'There is no standing rule with this id.');
        tell({ id, before: toPublic(rule), after: null });
      });
      rules.changed(tenantId);
      return noContent();
    },
  } satisfies Handlers<typeof approvalRuleOperations>,
});

export type StandingRules = ReturnType<typeof createStandingRules>;
