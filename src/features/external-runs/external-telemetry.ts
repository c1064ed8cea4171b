import type { Logger } from '../../core/logger.ts';
import { storeValues } from '../../core/telemetry/store-values.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ExternalTree } from './external-runs.rules.ts';
import type { ExternalSpanStore } from './external-spans.store.ts';

/** What became of a span that was sent. */
export type SpanOutcome =
  | 'taken'
  | 'invalid'
  | 'late'
  | 'too_many'
  | 'unavailable'
  | 'failed'
  | 'set_aside'
  | 'dropped';

export interface ExternalTelemetryDeps {
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  readonly store: Pick<ExternalSpanStore, 'setAsideCount'>;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
}

// A short query over an index, for a number that people look at in minutes.
const everyMs = 15_000;

/** What is counted of spans from outside and the runs that they become. */
export const createExternalTelemetry = ({ telemetry: { metrics }, store, ...deps }: ExternalTelemetryDeps) => {
  const spans = metrics.counter('acp.traces.spans', 'Spans of agents that run elsewhere.', '{span}', [
    'acp.traces.outcome',
  ]);
  const runs = metrics.counter('acp.traces.runs', 'Runs that were made of such spans.', '{run}', ['acp.run.status']);
  const setAside = storeValues(metrics, { ...deps, everyMs }, async () => [await store.setAsideCount()]);
  metrics.gauge('acp.traces.set_aside', 'Such spans that could not be made a run, and are kept.', '{span}', [], () =>
    setAside().map((value) => ({ value, values: [] })),
  );
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
