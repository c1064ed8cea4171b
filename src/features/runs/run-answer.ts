import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import { waitingApprovals, waitingClientCalls } from '../../engine/control/index.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import { type PriceList, publicCost } from '../../engine/pricing.ts';
import type { PayloadSettings } from '../../engine/record/index.ts';
import { structuredOutput } from '../../engine/turn/index.ts';
import type { AgentRunResponse } from './runs.schema.ts';

interface AnswerDeps {
  readonly prices: Pick<PriceList, 'currency'>;
  readonly settings: { readonly payloads: PayloadSettings };
}

const warningsMember = (run: ActiveRun): Pick<AgentRunResponse, 'warnings'> => {
  const warnings = warningsOf(run);
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
};

/** Names what the store could not do for this run; no header where nothing is missing. */
export const warningHeader = (run: ActiveRun): Record<string, string> => {
  const warnings = warningsOf(run);
  return warnings.length === 0 ? {} : { 'X-Acp-Warning': warnings.join(', ') };
};

/** The answer of a run that was asked for as JSON. */
export const answerBody = (deps: AnswerDeps, run: ActiveRun, outcome: RunOutcome): AgentRunResponse => ({
  runId: run.id,
  status: outcome.pause?.status ?? 'Completed',
  agentName: run.plan.agent.name,
  agentVersion: run.plan.agent.version,
  sessionId: run.plan.sessionId,
  modelProvider: outcome.modelProvider,
  modelId: outcome.modelId,
  output: outcome.output,
  structuredOutput: (outcome.output === null
    ? null
    : structuredOutput(run, outcome.output)) as AgentRunResponse['structuredOutput'],
  finishReason: outcome.finishReason,
  approvals: outcome.pause === null ? [] : waitingApprovals(outcome.pause, deps.settings.payloads, false),
  clientToolCalls: outcome.pause === null ? [] : waitingClientCalls(outcome.pause),
  usage: outcome.usage,
  cost: outcome.cost === null ? null : publicCost(outcome.cost, deps.prices.currency),
  durationMs: outcome.durationMs,
  ...warningsMember(run),
});
