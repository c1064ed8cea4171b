import Type, { type Static } from 'typebox';
import { runErrorClasses } from '../../contract/run-outcome.ts';
import { nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

const count = () => Type.Integer({ minimum: 0 });
const money = () => nullable(Type.Number({ description: 'In the configured currency; null: no price is known' }));

const sums = { totalRuns: count(), failedRuns: count(), totalTokens: count(), totalCost: money() };

export const RunErrorStatistics = Type.Object(
  {
    class: oneOf(runErrorClasses),
    totalRuns: count(),
    topClusters: Type.Array(
      Type.Object({
        fingerprint: Type.String(),
        count: count(),
        sampleMessage: Type.String(),
        sampleRunId: nullable(Uuid, {
          description: 'Null: with session ownership, if no run of the cluster belongs to the caller',
        }),
        lastSeenAt: Time,
      }),
    ),
  },
  { title: 'RunErrorStatistics', description: 'Failures of one class; errors that look alike share a fingerprint' },
);
export type RunErrorStatistics = Static<typeof RunErrorStatistics>;

export const RunStatistics = Type.Object(
  {
    totalRuns: count(),
    completedRuns: count(),
    failedRuns: count(),
    canceledRuns: count(),
    runningRuns: count(),
    queuedRuns: count(),
    awaitingInputRuns: count(),
    awaitingApprovalRuns: count(),
    inputTokens: count(),
    outputTokens: count(),
    totalTokens: count(),
    cachedInputTokens: count(),
    reasoningTokens: count(),
    audioInputTokens: count(),
    audioOutputTokens: count(),
    totalCost: money(),
    currency: nullable(Type.String()),
    runsWithUnknownPricing: count(),
    errorRate: nullable(
      Type.Number({
        description: 'Share of failed runs among the completed, failed and canceled ones; null: no such runs',
      }),
    ),
    scoredRuns: count(),
    positiveRate: nullable(Type.Number({ description: 'Share of 1 among the Binary scores; null: no such scores' })),
    byAgent: Type.Array(Type.Object({ agentName: Type.String(), ...sums })),
    byModel: Type.Array(
      Type.Object({
        modelProvider: nullable(Type.String()),
        modelId: Type.String(),
        totalRuns: Type.Integer({
          minimum: 0,
          description: 'Runs with a call of the model; tokens and cost are those of its calls alone',
        }),
        inputTokens: count(),
        outputTokens: count(),
        totalTokens: count(),
        totalCost: money(),
      }),
    ),
    byVersion: Type.Array(
      Type.Object({
        agentName: Type.String(),
        version: Type.Integer(),
        totalRuns: count(),
        failedRuns: count(),
        totalTokens: count(),
      }),
    ),
    byUser: Type.Array(Type.Object({ userId: Type.String(), ...sums })),
    byLabel: Type.Array(Type.Object({ key: Type.String(), value: Type.String(), ...sums })),
    byErrorClass: Type.Array(RunErrorStatistics),
  },
  { title: 'RunStatistics' },
);
export type RunStatistics = Static<typeof RunStatistics>;

export const TimeSeriesPoint = Type.Object(
  {
    bucket: Time,
    runs: count(),
    failedRuns: count(),
    inputTokens: count(),
    outputTokens: count(),
    cost: money(),
    averageDurationMs: nullable(Type.Number()),
  },
  { title: 'TimeSeriesPoint' },
);
export type TimeSeriesPoint = Static<typeof TimeSeriesPoint>;

export const RunCostRecalculationResult = Type.Object(
  { runsConsidered: count(), runsUpdated: count(), runsStillUnknown: count(), runsSkipped: count() },
  { title: 'RunCostRecalculationResult' },
);
export type RunCostRecalculationResult = Static<typeof RunCostRecalculationResult>;
