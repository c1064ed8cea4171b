import { type Span, spanTime } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { JudgeScore } from './judge-verdict.rules.ts';

/** Where the spans of judges belong: in the trace of the run, where that is known, with a link to the request. */
export interface JudgePlace {
  readonly agentName: string;
  readonly run: TraceParent | null;
  readonly request: TraceParent | null;
}

/** The span of a run, where a trace of it is stored. */
type FindSpan = (tenantId: string, rootRunId: string, runId: string) => Promise<Omit<TraceParent, 'sampled'> | null>;

// Scores go from 0 to 100.
const bounds = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/** What is traced and counted of judges. */
export const createJudgeTelemetry = (telemetry: Telemetry, currency: string | null, findSpan: FindSpan) => {
  const scores = telemetry.metrics.histogram(
    'acp.judge.score',
    'Scores that judges gave, without their metrics.',
    '1',
    ['acp.judge.name', 'gen_ai.agent.name'],
    bounds,
  );
  const cost = telemetry.metrics.counter('acp.judge.cost', 'Cost of the runs of judges.', '{currency}', [
    'acp.judge.name',
    'acp.cost.currency',
  ]);
  return {
    async placeOf(row: RunRow, request: TraceParent | null): Promise<JudgePlace> {
      const { agent_name: agentName } = row;
      const out = telemetry.export;
      const span = out === null ? null : await findSpan(row.tenant_id, row.root_run_id ?? row.id, row.id);
      if (out === null || span === null) return { agentName, run: null, request };
      // As the run's own spans were, so that none of a judge stands alone.
      return { agentName, run: { ...span, sampled: out.samples(span.traceId, null) }, request };
    },
    begin(judgeName: string, { agentName, run, request }: JudgePlace): Span | null {
      const span = telemetry.begin('acp.judge', 'Internal', run ?? request, {
        'gen_ai.evaluation.name': judgeName,
        'gen_ai.agent.name': agentName,
      });
      if (span !== null && run !== null && request !== null) span.links = [request];
      return span;
    },
    scored(
      span: Span | null,
      judgeName: string,
      agentName: string,
      { metric, value }: JudgeScore,
      reason: string | null,
    ): void {
      if (metric === null) scores.record(value, [judgeName, agentName]);
      if (span === null) return;
      const attributes = {
        'gen_ai.evaluation.name': metric === null ? judgeName : `${judgeName}.${metric}`,
        'gen_ai.evaluation.score.value': value,
        // What a judge says of a run may quote it.
        ...(reason === null || !telemetry.settings.recordSensitiveData
          ? {}
          : { 'gen_ai.evaluation.explanation': reason }),
      };
      span.events = [...span.events, { name: 'gen_ai.evaluation.result', at: spanTime(), attributes }];
    },
    /** What a run of the judge has cost, in millionths of the currency. */
    spent(judgeName: string, costMicros: number): void {
      if (costMicros > 0) cost.add(costMicros / 1_000_000, [judgeName, currency]);
    },
    end: (span: Span | null, errorType: string | null): void => telemetry.finish(span, errorType),
  };
};

export type JudgeTelemetry = ReturnType<typeof createJudgeTelemetry>;
