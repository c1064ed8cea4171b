import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';
import { ToolApprovalRuleRequest } from '../approvals/approvals.schema.ts';
import { QuotaSaveRequest, quotaMetrics, quotaPeriods } from '../quotas/quotas.schema.ts';

export const policyKinds = ['Guard', 'Rule', 'Quota', 'Price'] as const;
export type PolicyKind = (typeof policyKinds)[number];

const piiKinds = ['Email', 'PhoneNumber', 'CreditCard', 'Iban', 'IpAddress'] as const;

/** Names as in the configuration, so that a section of it can be tested as it is. */
export const GuardDocument = closed(
  {
    DeniedTerms: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        maxItems: 1000,
        description: 'Terms that block a text, in any case and spacing',
      }),
    ),
    MaskedPii: Type.Optional(
      Type.Array(oneOf(piiKinds), { maxItems: 16, description: 'Personal data that is masked' }),
    ),
    MaskReplacement: Type.Optional(Type.String({ maxLength: 64 })),
  },
  { title: 'GuardDocument', description: 'A pattern guard, as `Service:ContentGuard:Pattern` configures it' },
);
export type GuardDocument = Static<typeof GuardDocument>;

export const RuleDocument = closed(
  {
    rules: Type.Optional(
      Type.Array(ToolApprovalRuleRequest, {
        maxItems: 200,
        description: 'Standing rules in addition to the stored ones',
      }),
    ),
    requireApproval: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        maxItems: 200,
        description: 'Tools that would need approval from now on',
      }),
    ),
    replaceStored: Type.Optional(Type.Boolean({ default: false, description: 'True: the stored rules are ignored' })),
  },
  { title: 'RuleDocument' },
);
export type RuleDocument = Static<typeof RuleDocument>;

const unitPrice = (description: string) =>
  Type.Optional(nullable(Type.Number({ minimum: 0, maximum: 1_000_000_000, description })));

const TokenPrice = closed(
  {
    Input: unitPrice('Price of a million input tokens'),
    Output: unitPrice('Price of a million output tokens'),
    CachedInput: unitPrice('Price of a million input tokens that the provider had cached; null: same as Input'),
  },
  { title: 'TokenPrice' },
);

export const PriceDocument = Type.Record(
  Type.String(),
  Type.Record(Type.String(), TokenPrice, { maxProperties: 1000 }),
  {
    maxProperties: 1000,
    title: 'PriceDocument',
    description: 'Provider, then model, then prices, as in `Service:Pricing`',
  },
);
export type PriceDocument = Static<typeof PriceDocument>;

const moment = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }));

export const PolicyTestRequest = closed(
  {
    guard: Type.Optional(GuardDocument),
    rule: Type.Optional(RuleDocument),
    quota: Type.Optional(
      Type.Array(QuotaSaveRequest, { minItems: 1, maxItems: 100, description: 'One for each agent and period' }),
    ),
    price: Type.Optional(PriceDocument),
    since: moment('Runs created at or after this time; default: seven days before `until`'),
    until: moment('Exclusive; default: now'),
    take: Type.Optional(Type.Integer({ description: 'Entries in each list, default 50, clamped to 1..1000' })),
  },
  { title: 'PolicyTestRequest', description: 'Exactly one of guard, rule, quota and price' },
);
export type PolicyTestRequest = Static<typeof PolicyTestRequest>;

const count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) });
const money = () => Type.Number({ description: 'In the configured currency' });
const omitted = () => count('Entries beyond `take`');
const runPlace = { runId: Uuid, agentName: Type.String() };

const gapParts = ['Input', 'Events', 'Reasoning', 'ToolArguments', 'ToolResult', 'Attachment', 'Usage'] as const;
const gapReasons = ['NotStored', 'Truncated', 'RunOpen', 'NotRead'] as const;

const NotEvaluated = Type.Object(
  {
    part: oneOf(gapParts),
    reason: oneOf(gapReasons, {
      description: 'NotStored: not recorded, not readable, or removed since; NotRead: files are not opened',
    }),
    count: count(),
    sampleRunIds: Type.Array(Uuid),
  },
  { title: 'PolicyTestGap' },
);
export type PolicyTestGap = Static<typeof NotEvaluated>;

const guardActions = ['Block', 'Mask'] as const;
const GuardFindings = Type.Object(
  {
    textsInspected: count(),
    runsBlocked: count(),
    runsMasked: count('Runs with text to mask and no text to block'),
    byRule: Type.Array(
      Type.Object({ rule: Type.String(), action: oneOf(guardActions), runs: count(), texts: count() }),
    ),
    findings: Type.Array(
      Type.Object({
        ...runPlace,
        action: oneOf(guardActions),
        rule: Type.String({ description: '`denied-term:` with the index of the term, or `pii:` with the kind' }),
        source: Type.String(),
        toolName: nullable(Type.String()),
        texts: count(),
      }),
    ),
    findingsOmitted: omitted(),
  },
  { title: 'GuardTest' },
);
export type GuardFindings = Static<typeof GuardFindings>;

export const callVerdicts = ['WouldApprove', 'WouldAsk', 'StillAsked', 'Unchanged'] as const;
export type CallVerdict = (typeof callVerdicts)[number];
const verdicts = { wouldApprove: count(), wouldAsk: count(), stillAsked: count(), unchanged: count() };

const RuleFindings = Type.Object(
  {
    callsExamined: count(),
    ...verdicts,
    byTool: Type.Array(Type.Object({ toolName: Type.String(), ...verdicts })),
    calls: Type.Array(
      Type.Object({
        ...runPlace,
        toolCallId: Type.String(),
        toolName: Type.String(),
        verdict: oneOf(callVerdicts),
        ruleIndex: nullable(Type.Integer(), {
          description: 'Index of the rule of the document that approves the call',
        }),
      }),
      { description: 'Calls that a rule would approve, or that would need approval' },
    ),
    callsOmitted: omitted(),
  },
  { title: 'RuleTest' },
);
export type RuleFindings = Static<typeof RuleFindings>;

const quotaPlace = {
  quotaAgentName: nullable(Type.String({ description: 'Null: the quota of the tenant' })),
  period: oneOf(quotaPeriods),
  metric: oneOf(quotaMetrics),
};

const QuotaFindings = Type.Object(
  {
    timeZone: Type.String(),
    refused: count(),
    held: count('Runs that would have waited for others to end, and may have been rejected'),
    refusals: Type.Array(
      Type.Object({
        ...runPlace,
        at: Time,
        outcome: oneOf(['Refused', 'Held']),
        ...quotaPlace,
        limit: Type.Number(),
        used: Type.Number(),
        resetsAt: Time,
      }),
    ),
    refusalsOmitted: omitted(),
    thresholds: Type.Array(
      Type.Object({
        ...quotaPlace,
        periodStart: Type.String({ format: 'date' }),
        percent: Type.Integer(),
        at: Time,
        runId: Uuid,
      }),
    ),
    thresholdsOmitted: omitted(),
  },
  { title: 'QuotaTest' },
);
export type QuotaFindings = Static<typeof QuotaFindings>;

const costs = { runs: count(), oldCost: money(), newCost: money() };
const priced = { ...runPlace, modelProvider: nullable(Type.String()), modelId: nullable(Type.String()) };

const PriceFindings = Type.Object(
  {
    currency: nullable(Type.String()),
    runsCompared: count('Runs with a recorded cost and a new one; the sums are over them'),
    oldCost: money(),
    newCost: money(),
    runsChanged: count(),
    runsNewlyPriced: count('Runs without a recorded cost; only `newlyPricedCost` includes what they would cost'),
    newlyPricedCost: money(),
    runsWithoutPrice: count('Runs whose model has no price in the table'),
    byModel: Type.Array(
      Type.Object({
        modelProvider: nullable(Type.String()),
        modelId: Type.String(),
        source: oneOf(['Catalog', 'Configuration'], {
          description: 'Catalog: prices of the provider take precedence over the table',
        }),
        ...costs,
      }),
    ),
    byAgent: Type.Array(Type.Object({ agentName: Type.String(), ...costs })),
    changes: Type.Array(Type.Object({ ...priced, oldCost: money(), newCost: money(), difference: money() }), {
      description: 'Runs whose cost changes most',
    }),
    changesOmitted: omitted(),
    withoutPrice: Type.Array(Type.Object(priced)),
    withoutPriceOmitted: omitted(),
  },
  { title: 'PriceTest' },
);
export type PriceFindings = Static<typeof PriceFindings>;

export const PolicyTestReport = Type.Object(
  {
    kind: oneOf(policyKinds),
    since: Time,
    until: Time,
    runsExamined: count(),
    matches: count('Runs, or calls of a rule, that the document would have treated differently'),
    notEvaluated: Type.Array(NotEvaluated),
    guard: Type.Optional(GuardFindings),
    rule: Type.Optional(RuleFindings),
    quota: Type.Optional(QuotaFindings),
    price: Type.Optional(PriceFindings),
  },
  { title: 'PolicyTestReport' },
);
export type PolicyTestReport = Static<typeof PolicyTestReport>;
