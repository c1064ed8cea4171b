import { isDeepStrictEqual } from 'node:util';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditTrail } from '../../core/audit.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { PeriodClock } from './period-clock.ts';
import type { QuotaVerifier } from './quota-verification.store.ts';
import type { quotaOperations } from './quotas.operations.ts';
import { shownAmount } from './quotas.rules.ts';
import type { QuotaDefinition, QuotaPeriod, QuotaSaveRequest, QuotaUsageRecord } from './quotas.schema.ts';
import type { QuotaRule, QuotaRules, QuotaStore } from './quotas.store.ts';

export interface QuotaServiceDeps {
  readonly store: QuotaStore;
  readonly rules: Pick<QuotaRules, 'changed'>;
  readonly verify: QuotaVerifier;
  readonly clock: PeriodClock;
  readonly storage: Storage;
  readonly audit: Pick<AuditTrail, 'record'>;
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

// Another caller created or deleted the same rule in between; each time one of them got through.
const attempts = 5;

export const quotaService = (deps: QuotaServiceDeps): Handlers<typeof quotaOperations> => {
  const { store, clock, audit, now } = deps;

  const isOvertaken = (error: unknown): boolean =>
    error instanceof ConditionFailedError || deps.storage.dialect.classify(error) === 'unique-violation';

  const saved = async (tenantId: string, actor: string | null, body: QuotaSaveRequest): Promise<QuotaRule> => {
    const agentName = body.agentName ?? '';
    const limits = limitsOf(body);
    const rules = await store.list(tenantId);
    const before = rules.find((rule) => rule.agentName === agentName && rule.period === body.period);
    const wanted = { ...limits, enabled: body.enabled ?? true };
    if (before !== undefined && isDeepStrictEqual({ ...before, ...wanted }, before)) return before;
    const at = now();
    const rule: QuotaRule = {
      id: before?.id ?? deps.newId(),
      tenantId,
      agentName,
      period: body.period,
      ...wanted,
      createdAt: before?.createdAt ?? at,
      updatedAt: at,
    };
    await audit.record(
      {
        tenantId,
        actor,
        action: 'quota.save',
        entity: `quota:${rule.id}`,
        before: before === undefined ? null : toDefinition(before),
        after: toDefinition(rule),
      },
      [before === undefined ? store.inserted(rule) : store.replaced(rule)],
    );
    return rule;
  };

  return {
    list: async ({ tenantId }) => ok((await store.list(tenantId)).map(toDefinition)),

    async save({ tenantId, principal }, { body }) {
      for (let attempt = 1; ; attempt += 1)
        try {
          const rule = await saved(tenantId, principal.actor, body);
          return ok(toDefinition(rule));
        } catch (error) {
          if (attempt === attempts || !isOvertaken(error)) throw error;
        } finally {
          deps.rules.changed(tenantId);
        }
    },

    async remove({ tenantId, principal }, { params }) {
      const unknown = () => new AcpError('not-found', 'There is no quota with this id.');
      const rule = await store.get(tenantId, params.id.toLowerCase());
      if (rule === null) throw unknown();
      const entry = {
        tenantId,
        actor: principal.actor,
        action: 'quota.delete',
        entity: `quota:${rule.id}`,
        before: toDefinition(rule),
        after: null,
      };
      try {
        await audit.record(entry, [store.removed(rule)]);
      } catch (error) {
        throw error instanceof ConditionFailedError ? unknown() : error;
      } finally {
        deps.rules.changed(tenantId);
      }
      return noContent();
    },

    async usage({ tenantId }, { query: { agentName, period } }) {
      const periods = clock.current();
      const counters = await store.usage(tenantId, periods, agentName === undefined ? null : [agentName]);
      const rules = await store.list(tenantId);
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
