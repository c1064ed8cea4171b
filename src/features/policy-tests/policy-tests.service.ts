import { invalidField } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { createGaps, type Gaps } from './gaps.ts';
import { type GuardTestDeps, testGuard } from './guard-findings.ts';
import type { HistoryScope } from './history-walk.ts';
import { checkGuard, checkPrices, checkRules, kindOf, quotaRules } from './policy-documents.rules.ts';
import type { policyTestOperations } from './policy-tests.operations.ts';
import type { PolicyTestReport, PolicyTestRequest } from './policy-tests.schema.ts';
import { type PriceTestDeps, testPrices } from './price-findings.ts';
import { type QuotaTestDeps, testQuotas } from './quota-findings.ts';
import { type RuleTestDeps, testRules } from './rule-findings.ts';

export interface PolicyTestDeps extends GuardTestDeps, RuleTestDeps, QuotaTestDeps, PriceTestDeps {
  readonly authorization: RunAuthorization;
  readonly owners: Pick<SessionAccess, 'listOwner'>;
  readonly now: () => number;
}

const defaultWindowMs = 7 * 86_400_000;
const defaultTake = 50;
const mostTake = 1000;

const windowOf = ({ since, until }: PolicyTestRequest, now: number): { sinceMs: number; untilMs: number } => {
  // A run of this millisecond has been recorded by now.
  const untilMs = until === undefined ? now + 1 : Date.parse(until);
  const sinceMs = since === undefined ? untilMs - defaultWindowMs : Date.parse(since);
  if (sinceMs < untilMs) return { sinceMs, untilMs };
  throw invalidField('since', 'must be before until');
};

/**
 * Asks of recorded runs what a policy would have done; nothing is written, and no tool or model is called.
 * Design: docs/design/guards.md#what-does-a-policy-test-approximate.
 */
export const policyTestService = (deps: PolicyTestDeps): Handlers<typeof policyTestOperations> => {
  const outcomeOf = async (scope: HistoryScope, body: PolicyTestRequest, gaps: Gaps) => {
    const { guard, rule, quota, price } = body;
    if (guard !== undefined) {
      checkGuard(guard);
      const { findings, ...outcome } = await testGuard(deps, scope, guard, gaps);
      return { ...outcome, guard: findings };
    }
    if (rule !== undefined) {
      checkRules(rule);
      const { findings, ...outcome } = await testRules(deps, scope, rule, gaps);
      return { ...outcome, rule: findings };
    }
    if (quota !== undefined) {
      const { findings, ...outcome } = await testQuotas(deps, scope, quotaRules(scope.tenantId, quota), gaps);
      return { ...outcome, quota: findings };
    }
    const document = price ?? {};
    checkPrices(document);
    const { findings, ...outcome } = await testPrices(deps, scope, document, gaps);
    return { ...outcome, price: findings };
  };

  return {
    async run(context, { body }) {
      await deps.authorization.require(context, 'List', { resource: 'Run' });
      const kind = kindOf(body);
      const { tenantId, signal, principal } = context;
      const ownerId = deps.owners.listOwner(principal);
      const window = windowOf(body, deps.now());
      const take = Math.min(Math.max(body.take ?? defaultTake, 1), mostTake);
      const gaps = createGaps();
      const outcome = await outcomeOf({ tenantId, ownerId, signal, ...window, take }, body, gaps);
      const report: PolicyTestReport = {
        kind,
        since: isoTime(window.sinceMs),
        until: isoTime(window.untilMs),
        notEvaluated: gaps.all,
        ...outcome,
      };
      return ok(report);
    },
  };
};
