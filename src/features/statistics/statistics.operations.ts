import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { oneOf } from '../../contract/schema.ts';
import { runKinds } from '../runs/runs.schema.ts';
import { RunCostRecalculationResult, RunErrorStatistics, RunStatistics, TimeSeriesPoint } from './statistics.schema.ts';

const read = { tag: 'Statistics', role: 'Reader', scope: 'RunsRead', method: 'GET' } as const;
const moment = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }));

export const statisticOperations = defineOperations({
  get: {
    ...read,
    path: '/api/stats',
    summary: 'Summarize runs: counts, tokens, cost, errors and scores, with breakdowns',
    description:
      'Sums cover the runs that the caller may see. Tokens that no provider reported and costs without a known price are unknown, not zero.',
    query: Type.Object({
      agentName: Type.Optional(Type.String()),
      userId: Type.Optional(Type.String()),
      label: Type.Optional(Type.String({ description: '`key:value`, or a bare key for any value' })),
      startedAfter: moment('Exclusive'),
      maxAgents: Type.Optional(Type.Integer({ description: 'Rows of each breakdown, default 50, clamped to 1..200' })),
    }),
    responses: { 200: RunStatistics },
    errors: ['run-not-allowed'],
    cli: { command: 'stats show' },
  },
  timeseries: {
    ...read,
    path: '/api/stats/timeseries',
    summary: 'Count runs by hour or day',
    description:
      'Each bucket counts the runs that started in it; buckets without runs are included. A range with too many buckets is rejected.',
    query: Type.Object({
      from: moment('Default: 24 hours before `to`'),
      to: moment('Exclusive; default: now'),
      bucket: Type.Optional(
        oneOf(['Hour', 'Day'], { description: 'Default Hour; buckets begin on the hour or at midnight, UTC' }),
      ),
      agentName: Type.Optional(Type.String()),
      modelId: Type.Optional(Type.String()),
      kind: Type.Optional(oneOf(runKinds)),
    }),
    responses: { 200: Type.Array(TimeSeriesPoint) },
    errors: ['run-not-allowed'],
    cli: {
      command: 'stats timeseries',
      columns: ['bucket', 'runs', 'failedRuns', 'inputTokens', 'outputTokens', 'cost', 'averageDurationMs'],
    },
  },
  errors: {
    ...read,
    path: '/api/stats/errors',
    summary: 'Group the failures of the last hours by class and similarity',
    description: 'Messages are normalized first, so failures that differ only in details are counted together.',
    query: Type.Object({
      agentName: Type.Optional(Type.String()),
      hours: Type.Optional(
        Type.Number({ exclusiveMinimum: 0, maximum: 8760, description: 'Number of hours to look back, default 24' }),
      ),
    }),
    responses: { 200: Type.Array(RunErrorStatistics) },
    errors: ['run-not-allowed'],
    cli: { command: 'stats errors' },
  },
  recalculateCosts: {
    tag: 'Statistics',
    role: 'Admin',
    scope: 'PlatformAdmin',
    method: 'POST',
    path: '/api/stats/recalculate-costs',
    summary: 'Calculate the cost of finished runs whose price was unknown; known costs do not change',
    description:
      'Prices come from the current configuration. Nothing is written twice: a repeated call finds nothing left to do.',
    responses: { 200: RunCostRecalculationResult },
    errors: [],
    audit: { action: 'run.recalculate-costs', entity: 'tenant', mode: 'noted' },
    cli: { command: 'stats recalculate-costs' },
  },
});
