import { AcpError, type FieldError } from '../../contract/errors.ts';
import { conditionProblems } from '../approvals/index.ts';
import { limitsOf, type QuotaRule } from '../quotas/index.ts';
import type {
  GuardDocument,
  PolicyKind,
  PolicyTestRequest,
  PriceDocument,
  RuleDocument,
} from './policy-tests.schema.ts';

const refuse = (errors: readonly FieldError[]): AcpError => {
  const [first] = errors;
  const { path = '', message = 'is not valid' } = first ?? {};
  return new AcpError('validation-failed', `${path === '' ? 'The body' : path} ${message}.`, { details: { errors } });
};

const check = (errors: readonly FieldError[]): void => {
  if (errors.length > 0) throw refuse(errors);
};

/** The one document of a request. Throws `validation-failed`. */
export const kindOf = (body: PolicyTestRequest): PolicyKind => {
  const kinds = { guard: 'Guard', rule: 'Rule', quota: 'Quota', price: 'Price' } as const;
  const named = (['guard', 'rule', 'quota', 'price'] as const).filter((name) => body[name] !== undefined);
  const [one] = named;
  if (one === undefined || named.length > 1)
    throw refuse([{ path: named[1] ?? '', message: 'must have exactly one of guard, rule, quota and price' }]);
  return kinds[one];
};

const nothingVisible = /^[\s\p{Default_Ignorable_Code_Point}]*$/u;

export const checkGuard = ({ DeniedTerms = [], MaskedPii = [] }: GuardDocument): void => {
  check(
    DeniedTerms.flatMap((term, index) =>
      nothingVisible.test(term)
        ? [
            {
              path: `guard.DeniedTerms[${index}]`,
              message: 'must have a character that can be seen: this one would block every text',
            },
          ]
        : [],
    ),
  );
  if (DeniedTerms.length + MaskedPii.length === 0)
    throw refuse([{ path: 'guard', message: 'must have at least one of DeniedTerms and MaskedPii' }]);
};

export const checkRules = ({ rules = [], requireApproval = [], replaceStored = false }: RuleDocument): void => {
  check(
    rules.flatMap((rule, index) =>
      conditionProblems(rule.argumentConditions ?? []).map(({ path, message }) => ({
        path: `rule.rules[${index}].${path}`,
        message,
      })),
    ),
  );
  if (rules.length + requireApproval.length === 0 && !replaceStored)
    throw refuse([{ path: 'rule', message: 'must have at least one of rules, requireApproval and replaceStored' }]);
};

const pricePattern = 6;

export const checkPrices = (document: PriceDocument): void => {
  const errors: FieldError[] = [];
  for (const [provider, models] of Object.entries(document))
    for (const [model, prices] of Object.entries(models)) {
      const path = `price.${provider}.${model}`;
      if ((prices.Input ?? null) === null && (prices.Output ?? null) === null)
        errors.push({ path, message: 'must have at least one of Input and Output' });
      for (const [name, price] of Object.entries(prices))
        if (
          typeof price === 'number' &&
          Math.abs(Number(price.toFixed(pricePattern)) - price) > Number.EPSILON * Math.max(1, price)
        )
          errors.push({ path: `${path}.${name}`, message: `must have at most ${pricePattern} decimals` });
    }
  if (Object.keys(document).length === 0) errors.push({ path: 'price', message: 'must name at least one provider' });
  check(errors.slice(0, 8));
};

/** Quotas as the admission knows them. Throws `validation-failed`. */
export const quotaRules = (tenantId: string, document: NonNullable<PolicyTestRequest['quota']>): QuotaRule[] => {
  const seen = new Set<string>();
  return document.map((quota, index) => {
    const at = `quota[${index}]`;
    const agentName = quota.agentName ?? '';
    const scope = `${agentName}\n${quota.period}`;
    if (seen.has(scope))
      throw refuse([{ path: at, message: `must be the only one for its agent and period (${quota.period})` }]);
    seen.add(scope);
    try {
      const limits = limitsOf(quota);
      const rest = { tenantId, agentName, period: quota.period, enabled: quota.enabled ?? true, labels: null };
      return { id: at, ...rest, ...limits, createdAt: 0, updatedAt: 0 };
    } catch (error) {
      const errors =
        error instanceof AcpError ? (error.details['errors'] as readonly FieldError[] | undefined) : undefined;
      if (errors === undefined) throw error;
      throw refuse(errors.map(({ path, message }) => ({ path: path === '' ? at : `${at}.${path}`, message })));
    }
  });
};
