import type { promptParts } from '../../engine/record/index.ts';

export const replayResults = ['identical', 'drifted', 'missing'] as const;
export type ReplayResult = (typeof replayResults)[number];
export type Difference = (typeof promptParts)[number];

export interface StepReport {
  readonly number: number;
  readonly result: ReplayResult;
  /** Parts of the prompt that differ from what was sent when the run was recorded. */
  readonly differences: readonly Difference[];
  /** In words; null where the differences say it all. */
  readonly reason: string | null;
}

export interface OutcomeReport {
  readonly result: ReplayResult;
  readonly recorded: string;
  readonly replayed: string;
}

/** What the first differing prompt says instead, where both texts are known. */
export interface TextChange {
  readonly part: 'instructions' | 'tools';
  readonly recorded: string;
  readonly replayed: string;
}

export interface RunReport {
  readonly runId: string;
  readonly agentName: string;
  readonly agentVersion: number | null;
  readonly depth: number;
  readonly result: ReplayResult;
  readonly steps: readonly StepReport[];
  readonly outcome: OutcomeReport;
  readonly changes: readonly TextChange[];
}

export interface Divergence {
  readonly runId: string;
  readonly agentName: string;
  /** Null: the outcome of the run. */
  readonly step: number | null;
  readonly result: Exclude<ReplayResult, 'identical'>;
  readonly detail: string;
}

export interface BundleReport {
  readonly result: ReplayResult;
  readonly rootRunId: string;
  readonly redacted: boolean;
  /** Every step and outcome that is not identical, the first one first. */
  readonly divergences: readonly Divergence[];
  readonly runs: readonly RunReport[];
  readonly warnings: readonly string[];
}

/** Drift is worse than what could not be compared. */
export const worst = (results: readonly ReplayResult[]): ReplayResult =>
  results.includes('drifted') ? 'drifted' : results.includes('missing') ? 'missing' : 'identical';

const detailOf = ({ differences, reason }: StepReport): string =>
  [differences.length === 0 ? '' : `${differences.join(', ')} differ`, reason ?? '']
    .filter((text) => text !== '')
    .join('; ');

const divergencesOf = (run: RunReport): Divergence[] => {
  const { runId, agentName, outcome } = run;
  const divergences: Divergence[] = [];
  for (const step of run.steps)
    if (step.result !== 'identical')
      divergences.push({ runId, agentName, step: step.number, result: step.result, detail: detailOf(step) });
  if (outcome.result !== 'identical') {
    const detail = `recorded ${outcome.recorded}, replayed ${outcome.replayed}`;
    divergences.push({ runId, agentName, step: null, result: outcome.result, detail });
  }
  return divergences;
};

export const bundleReport = (
  bundle: { readonly rootRunId: string; readonly redacted: boolean },
  runs: readonly RunReport[],
  warnings: readonly string[],
): BundleReport => ({
  result: worst(runs.map(({ result }) => result)),
  rootRunId: bundle.rootRunId,
  redacted: bundle.redacted,
  divergences: runs.flatMap(divergencesOf),
  runs,
  warnings,
});
