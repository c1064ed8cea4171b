import { isDeepStrictEqual } from 'node:util';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { AuditLog } from '../audit/index.ts';
import type { PeriodClock } from './period-clock.ts';
import { type QuotaRuleStore, quotaRuleStore } from './quota-rules.store.ts';
import type { QuotaVerifier } from './quota-verification.store.ts';
import type { quotaOperations } from './quotas.operations.ts';
import { shownAmount } from './quotas.rules.ts';
import type { QuotaDefinition, QuotaPeriod, QuotaSaveRequest, QuotaUsageRecord } from './quotas.schema.ts';
import type { QuotaRule, QuotaRules, QuotaStore } from './quotas.store.ts';

export interface QuotaServiceDeps {
  readonly store: Pick<QuotaStore, 'usage'>;
  readonly ruleStore: Pick<QuotaRuleStore, 'list'>;
  readonly rules: Pick<QuotaRules, 'changed'>;
  readonly verify: QuotaVerifier;
  readonly clock: PeriodClock;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly recordingEnabled: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

const toDefinition = (rule: QuotaRule): QuotaDefinition => ({
  id: rule.id,
  tenantId: rule.tenantId,
  agentName: rule.agentName === '' ? null : rule.agentName,
  period: rule.period,
  maxRuns: rule.maxRuns,
  maxTokens: rule.maxTokens,
  maxCost: rule.maxCostMicros === null ? null : shownAmount('Cost', rule.maxCostMicros),
  enabled: rule.enabled,
  labels: labelsOf(rule),
  createdAt: isoTime(rule.createdAt),
  updatedAt: isoTime(rule.updatedAt),
});

const toUsage = (row: QuotaUsageRow): QuotaUsageRecord => ({
  tenantId: row.tenant_id,
  agentName: row.agent_name,
  period: row.period as QuotaPeriod,
  periodStart: row.period_start,
  runs: row.runs,
  tokens: row.tokens,
  cost: shownAmount('Cost', row.cost_micros),
  updatedAt: isoTime(row.updated_at),
});

const invalid = (path: string, message: string): AcpError =>
  new AcpError('validation-failed', `${path === '' ? 'The body' : path} ${message}.`, {
    details: { errors: [{ path, message }] },
  });

/** Micro-units; more decimals than the store keeps are refused, not rounded. */
const micros = (cost: number): number => {
  const whole = Math.round(cost * 1_000_000);
  if (Math.abs(whole / 1_000_000 - cost) > Number.EPSILON * Math.max(1, cost))
    throw invalid('maxCost', 'must have at most 6 decimals');
  return whole;
};

type Limits = Pick<QuotaRule, 'maxRuns' | 'maxTokens' | 'maxCostMicros'>;

/** Limits of a rule in the units of the store. Throws `validation-failed`, which names the field. */
export const limitsOf = (body: QuotaSaveRequest): Limits => {
  const { maxRuns = null, maxTokens = null, maxCost = null } = body;
  if (maxRuns === null && maxTokens === null && maxCost === null)
    throw invalid('', 'must set at least one of maxRuns, maxTokens and maxCost');
  return { maxRuns, maxTokens, maxCostMicros: maxCost === null ? null : micros(maxCost) };
};

export const quotaService = (deps: QuotaServiceDeps): Handlers<typeof quotaOperations> => {
  const { store, ruleStore, clock, audit, now } = deps;

  return {
    list: async ({ tenantId }) => ok((await ruleStore.list(tenantId)).map(toDefinition)),

    async save(context, { query, body }) {
      const { tenantId } = context;
      const agentName = body.agentName ?? '';
      const { period } = body;
      const wanted = { ...limitsOf(body), enabled: body.enabled ?? true, labels: labelsText(body.labels) };
      try {
        const saved = await audit.save(context, query, async (stores, tell) => {
          const rules = stores(quotaRuleStore);
          const before = await rules.find(tenantId, agentName, period);
          if (before !== null && isDeepStrictEqual({ ...before, ...wanted }, before)) return before;
          assertExpected(query, before?.updatedAt);
          const at = now();
          const made = { id: before?.id ?? deps.newId(), createdAt: before?.createdAt ?? at, updatedAt: at };
          const rule: QuotaRule = { ...made, tenantId, agentName, period, ...wanted };
          if (query.dryRun === true) return rule;
          await rules.save(rule);
          tell({ id: rule.id, before: before === null ? null : toDefinition(before), after: toDefinition(rule) });
          return rule;
        });
        return ok(toDefinition(saved));
      } finally {
        if (query.dryRun !== true) deps.rules.changed(tenantId);
      }
    },

    async remove(context, { params }) {
      const { tenantId } = context;
      const id = params.id.toLowerCase();
      try {
        await audit.change(context, async (stores, tell) => {
          const rules = stores(quotaRuleStore);
          const rule = await rules.get(tenantId, id);
          if (rule === null || !(await rules.remove(tenantId, id)))
            throw new AcpError('not-found', 'There is no quota with this id.');
          tell({ id, before: toDefinition(rule), after: null });
        });
      } finally {
        deps.rules.changed(tenantId);
      }
      return noContent();
    },

    async usage({ tenantId }, { query: { agentName, period } }) {
      const periods = clock.current();
      const counters = await store.usage(tenantId, periods, agentName === undefined ? null : [agentName]);
      const rules = await ruleStore.list(tenantId);
      const isAsked = (of: string): boolean => period === undefined || of === period;
      return ok({
        tenantId,
        timeZone: clock.timeZone,
        usage: counters.filter((row) => isAsked(row.period)).map(toUsage),
        definitions: rules
          .filter((rule) => (agentName === undefined || rule.agentName === agentName) && isAsked(rule.period))
          .map(toDefinition),
        dailyResetsAt: isoTime(periods.dayEndsAt),
        monthlyResetsAt: isoTime(periods.monthEndsAt),
      });
    },

    async verify({ tenantId }) {
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Counters are compared with recorded runs, and recording is off.');
      return ok({ tenantId, ...(await deps.verify(tenantId)) });
    },
  };
};
