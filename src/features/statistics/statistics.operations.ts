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
    summary: 'Sum up runs: counts, tokens, cost, errors and scores, with breakdowns',
    description:
      'Sums are over the runs that the caller may see. Tokens that no provider reported and costs that no price is known for are not counted as zero.',
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
      'Each bucket stands for the runs that started in it, and those without runs are there, too. A range with too many buckets is refused.',
    query: Type.Object({
      from: moment('Default: 24 hours before `to`'),
      to: moment('Exclusive; default: now'),
      bucket: Type.Optional(
        oneOf(['Hour', 'Day'], { description: 'Default Hour; buckets begin on whole hours or days, UTC' }),
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
    summary: 'Group the failures of the last hours by class and by what looks alike',
    description:
      'Messages are brought to a common form first, so that failures which differ only in their details are counted together.',
    query: Type.Object({
      agentName: Type.Optional(Type.String()),
      hours: Type.Optional(
        Type.Number({ exclusiveMinimum: 0, maximum: 8760, description: 'How far back, default 24' }),
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
    summary: 'Give a cost to finished runs whose price was unknown; a known cost stays',
    description:
      'Prices are those of the configuration as it is now. Nothing is written twice: running it again finds nothing left to do.',
    responses: { 200: RunCostRecalculationResult },
    errors: [],
    audit: { action: 'run.recalculate-costs', entity: 'tenant', mode: 'noted' },
    cli: { command: 'stats recalculate-costs' },
  },
});
