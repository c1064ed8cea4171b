import Type, { type Static } from 'typebox';
import { closed, Labels, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const quotaPeriods = ['Daily', 'Monthly'] as const;
export type QuotaPeriod = (typeof quotaPeriods)[number];
export const quotaMetrics = ['Runs', 'Tokens', 'Cost'] as const;
export type QuotaMetric = (typeof quotaMetrics)[number];

/** Micro-units are stored as whole numbers that JavaScript keeps exact. */
const maxCostUnits = Math.floor(Number.MAX_SAFE_INTEGER / 1_000_000);

const count = (description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })));

export const QuotaSaveRequest = closed(
  {
    agentName: Type.Optional(
      nullable(Type.String({ maxLength: 128, description: 'Null or empty: tenant-wide. The agent need not exist' })),
    ),
    period: oneOf(quotaPeriods),
    maxRuns: count('Runs of the period; null: unlimited'),
    maxTokens: count('Tokens of the period; null: unlimited'),
    maxCost: Type.Optional(
      nullable(
        Type.Number({
          minimum: 0,
          maximum: maxCostUnits,
          description: 'In the configured currency, up to 6 decimals; null: unlimited',
        }),
      ),
    ),
    enabled: Type.Optional(Type.Boolean({ default: true, description: 'Default true' })),
    labels: Type.Optional(Labels),
  },
  { title: 'QuotaSaveRequest' },
);
export type QuotaSaveRequest = Static<typeof QuotaSaveRequest>;

export const QuotaDefinition = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    agentName: nullable(Type.String()),
    period: oneOf(quotaPeriods),
    maxRuns: nullable(Type.Integer()),
    maxTokens: nullable(Type.Integer()),
    maxCost: nullable(Type.Number()),
    enabled: Type.Boolean(),
    labels: Labels,
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'QuotaDefinition' },
);
export type QuotaDefinition = Static<typeof QuotaDefinition>;

const LocalDate = Type.String({ format: 'date', description: 'Local date on which the period began' });
const Amounts = { runs: Type.Integer(), tokens: Type.Integer(), cost: Type.Number() };

export const QuotaUsageRecord = Type.Object(
  {
    tenantId: Type.String(),
    agentName: Type.String({ description: 'Empty: tenant-wide' }),
    period: oneOf(quotaPeriods),
    periodStart: LocalDate,
    ...Amounts,
    updatedAt: Time,
  },
  { title: 'QuotaUsageRecord' },
);
export type QuotaUsageRecord = Static<typeof QuotaUsageRecord>;

export const QuotaUsageResponse = Type.Object(
  {
    tenantId: Type.String(),
    timeZone: Type.String({ description: 'IANA name' }),
    usage: Type.Array(QuotaUsageRecord),
    definitions: Type.Array(QuotaDefinition),
    dailyResetsAt: Time,
    monthlyResetsAt: Time,
  },
  { title: 'QuotaUsageResponse' },
);

const Sums = Type.Object(Amounts, { title: 'QuotaSums' });

export const QuotaDifference = Type.Object(
  {
    agentName: Type.String({ description: 'Empty: tenant-wide' }),
    period: oneOf(quotaPeriods),
    periodStart: LocalDate,
    counted: Sums,
    recorded: Sums,
    runsDeleted: Type.Boolean({
      description: 'Retention or an erasure deleted runs of this period, which can explain the difference',
    }),
  },
  { title: 'QuotaDifference' },
);
export type QuotaDifference = Static<typeof QuotaDifference>;

export const QuotaVerification = Type.Object(
  {
    tenantId: Type.String(),
    matches: Type.Boolean({ description: 'Every counter equals the sum of the recorded runs' }),
    countersChecked: Type.Integer(),
    runsChecked: Type.Integer({ description: 'Number of counted root runs' }),
    differences: Type.Array(QuotaDifference),
  },
  { title: 'QuotaVerification' },
);
