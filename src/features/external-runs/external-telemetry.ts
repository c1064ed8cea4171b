import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ExternalTree } from './external-runs.rules.ts';

/** What became of a span that was sent. */
export type SpanOutcome = 'taken' | 'invalid' | 'late' | 'too_many' | 'unavailable' | 'failed' | 'set_aside';

/** What is counted of spans from outside and the runs that they become. */
export const createExternalTelemetry = ({ metrics }: Pick<Telemetry, 'metrics'>) => {
  const spans = metrics.counter('acp.traces.spans', 'Spans of agents that run elsewhere.', '{span}', [
    'acp.traces.outcome',
  ]);
  const runs = metrics.counter('acp.traces.runs', 'Runs that were made of such spans.', '{run}', ['acp.run.status']);
  return {
    sent(outcome: SpanOutcome, count: number): void {
      if (count > 0) spans.add(count, [outcome]);
    },
    stored(tree: ExternalTree): void {
      for (const { errorType } of tree.runs) runs.add(1, [errorType === null ? 'Completed' : 'Failed']);
    },
  };
};

export type ExternalTelemetry = ReturnType<typeof createExternalTelemetry>;
